// SPDX-License-Identifier: Apache-2.0

package finalizers

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The placeholders that stand for something of the object.
const (
	lowerKind   = "kind"
	exactKind   = "Kind"
	pluralKind  = "plural"
	objectGroup = "group"
)

// pattern is the form of many finalizers.
type pattern struct {
	re *regexp.Regexp
	// names of the placeholders, in the order of the groups of re.
	names []string
	// literals counts the characters that stand for themselves.
	literals int
}

// token matches one piece of a pattern: characters that stand for themselves,
// "*", a placeholder, or an angle bracket that makes none.
const token = `[^*<>]+|\*|<[A-Za-z][A-Za-z-]*>|[<>]`

// isPattern reports whether the finalizer of an entry is a form.
func isPattern(finalizer string) bool { return strings.ContainsAny(finalizer, "*<>") }

// compile parses a form.
func compile(form string) (*pattern, error) {
	p := &pattern{}
	var re strings.Builder
	wild, named := false, false
	for _, piece := range regexp.MustCompile(token).FindAllString(form, -1) {
		special := isPattern(piece)
		switch {
		case piece == "<" || piece == ">":
			return nil, errors.New(`"<" and ">" have to enclose a placeholder, of letters and "-"`)
		case special && wild:
			return nil, errors.New(`"*" and placeholders need other characters between them`)
		case piece == "*":
			re.WriteString(`[^/]*`)
		case special:
			name := piece[1 : len(piece)-1]
			if piece == ObjectNamespace || slices.Contains(p.names, name) {
				return nil, fmt.Errorf("%s is there twice, or stands for the object's namespace", piece)
			}
			p.names = append(p.names, name)
			re.WriteString(placeholder(name))
		default:
			p.literals += len(piece)
			named = named || strings.ContainsAny(piece, letters+capitals+digits)
			re.WriteString(regexp.QuoteMeta(piece))
		}
		wild = special
	}
	if !named && !slices.Contains(p.names, objectGroup) {
		return nil, errors.New("it would match every finalizer: letters or <group> must be in it")
	}
	var err error
	p.re, err = regexp.Compile(`\A` + re.String() + `\z`)
	return p, err
}

// placeholder returns what it matches, as a group of a regular expression.
func placeholder(name string) string {
	switch name {
	case lowerKind, exactKind, pluralKind:
		return `([^./]+)`
	default:
		return `([^/]+)`
	}
}

// match reports whether the finalizer has the form. It returns what the
// placeholders stand for, and whether those that mean something of the object
// are what the object has. A form with <group> demands that.
func (p *pattern) match(finalizer string, kind schema.GroupKind) (values map[string]string, own, ok bool) {
	found := p.re.FindStringSubmatch(finalizer)
	if found == nil {
		return nil, false, false
	}
	values, own = map[string]string{}, true
	for i, name := range p.names {
		values[name] = found[i+1]
		if want, means := meaning(name, kind); means && (kind.Empty() || want != found[i+1]) {
			own = false
		}
	}
	return values, own, own || !slices.Contains(p.names, objectGroup)
}

// meaning returns what a placeholder stands for on objects of the kind, if it
// means something of the object.
func meaning(placeholder string, kind schema.GroupKind) (string, bool) {
	switch placeholder {
	case lowerKind:
		return strings.ToLower(kind.Kind), true
	case exactKind:
		return kind.Kind, true
	case pluralKind:
		plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
		return plural.Resource, true
	case objectGroup:
		return kind.Group, true
	default:
		return "", false
	}
}
