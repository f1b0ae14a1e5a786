// SPDX-License-Identifier: Apache-2.0

package pkg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// phrases are wordings that a reader has to decode, each with what to write instead. CONTRIBUTING.md has the glossary.
var phrases = []struct{ pattern, instead string }{
	{`(goes|go|going|went) on`, "resumes, continues"},
	{`nobody|somebody|anybody|whoever|whomever`, "a user, a controller, no controller, the admin"},
	{`what serves|who serves|nobody serves`, "its controller, no controller handles"},
	{`(takes?|took|taken|taking) (\S+ ){0,6}off`, "removes"},
	{`(comes?|came|coming) back`, "is recreated, restarts, is reachable again"},
	{`(would|will) be lost`, "is destroyed, DATA LOST"},
	{`would stay`, "is kept, would get stuck"},
	{`(is|are|was|were) told`, "say who says it to whom"},
	{`(holds?|held|holding) (\S+ )?up`, "blocks"},
	{`(made|makes?|making) (\S+ ){0,3}again`, "recreates, repeats"},
	{`anew`, "again"},
	{`besides`, "also"},
	{`for ever`, "forever, or how long"},
	{`what becomes of`, "the outcome of"},
	{`keeps? it from it|for want of`, "say what prevents it, or is missing"},
	{`at last`, "in the end, finally"},
	{`that which|is had|has it from`, "say who, and what, by name"},
	{`who should act|whether it works:`, "controller: its name and state"},
	{`under way`, "in progress"},
	{`for whose sake|in the like|has to do with`, "for which, similar, belongs to"},
	{`of (its|their) own`, "its own X, a separate X, by itself"},
	{`see (\S+ ){1,5}\S+: `, "check X, then do Y"},
	{`(is|are) not (known|certain) (whether|that|which|what|who)`, "unclear whether"},
	{`whether ([^.,;:|]+ )?(is|are) not known`, "unclear whether"},
	{`(storage|snapshot|disk) behind`, "its backing storage"},
	{`(has|have) come to be`, "is used since"},
	{`is on no node`, "unschedulable, not scheduled"},
	{`foreground deletion: it|out of foreground`, "switch it to background deletion"},
	{`let(s|ting)? (\S+ ){0,3}pass`, "allow, set failurePolicy: Ignore, bypass"},
	{`ever more rarely`, "with back-off"},
	{`where it cannot be seen`, "outside the cluster"},
	{`does not work: `, "is down"},
	{`says (more|nothing) of`, "about, irrelevant to"},
	{`deleted in turn`, "cascading, by its controller, one after the other"},
}

// TestPhrases reads the strings of the product, and the prose of the documentation without its blocks.
func TestPhrases(t *testing.T) {
	note := func(place, text string) {
		text = strings.Join(strings.Fields(text), " ")
		for _, p := range phrases {
			for _, at := range regexp.MustCompile(`(?i)\b(`+p.pattern+`)\b`).FindAllStringIndex(text, -1) {
				around := text[max(0, at[0]-40):min(len(text), at[1]+40)]
				t.Errorf("%s: ...%s...: instead of %q write: %s", place, around, text[at[0]:at[1]], p.instead)
			}
		}
	}
	for _, dir := range []string{".", "../internal"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "test/") {
				literals(t, path, note)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	pages, _ := filepath.Glob("../docs/*.md")
	internals, _ := filepath.Glob("../docs/internals/*.md")
	for _, page := range append(append(pages, internals...), "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md", "../SECURITY.md") {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		note(filepath.Base(page), prose(string(content)))
	}
}

// literals calls f with the strings of a file.
func literals(t *testing.T, file string, f func(place, text string)) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(text, " ") {
				f(set.Position(literal.Pos()).String(), text)
			}
		}
		return true
	})
}

// prose returns a page without its blocks, code and the targets of its links.
func prose(page string) string {
	var b strings.Builder
	block := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "<!--") {
			block = block != strings.HasPrefix(line, "```")
		} else if !block {
			b.WriteString(line)
		}
	}
	return regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)").ReplaceAllString(b.String(), "")
}
