// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// An answer about one object with one cause fits a screen of 80 by 24. The next step is among its first lines, it has no
// command that is dangerous, and it ends with where more is. Each cause of many is told so, too. A page has, for each
// kind, on how many what decides is shown, and what the program offers to do is the next step.
func TestAnswersFitAScreen(t *testing.T) {
	kinds, all := map[string]*screens{}, &screens{}
	explaintest.EachScenario(t, 1, func(t *testing.T, given string) {
		w := explaintest.Parse(t, given)
		report := w.Report(t, w.Graph(), true)
		for i, c := range report.Causes {
			one := *report
			number := i + 1
			if at := slices.IndexFunc(report.Objects, func(e explain.Explanation) bool { return len(e.Findings) == 1 && e.Findings[0].Cause == c }); at >= 0 && c.Blocks == 1 {
				one.Objects, one.Causes, number = report.Objects[at:at+1], report.Causes[i:i+1], 0
			}
			lines := answer(t, &one, number)
			next := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Next") })
			offers := slices.ContainsFunc(c.Remedies, func(r explain.Remedy) bool { return r.Risk != explain.Dangerous })
			switch text := strings.Join(lines, "\n"); {
			case len(lines) > 24:
				t.Errorf("%d lines:\n%s", len(lines), text)
			case offers && (next < 0 || next >= 6):
				t.Errorf("the next step is on line %d:\n%s", next+1, text)
			case !strings.HasPrefix(lines[len(lines)-1], "More"):
				t.Errorf("ends otherwise:\n%s", text)
			}
			if kinds[c.ID] == nil {
				kinds[c.ID] = &screens{}
			}
			kinds[c.ID].add(c, lines, next)
			if !all.add(c, lines, next) {
				t.Errorf("what decides is not shown: %s\n%s", cmp.Or(c.Decides.String(), c.Summary.String()), strings.Join(lines, "\n"))
			}
			for _, r := range c.Remedies {
				if r.Risk == explain.Dangerous && r.Command != "" && strings.Contains(strings.Join(lines, "\n"), r.Command) {
					t.Errorf("shows %s", r.Command)
				}
			}
		}
	})
	if all.answers < 300 {
		t.Errorf("only %d answers", all.answers)
	}
	page := strings.Builder{}
	page.WriteString(screensHead + all.row("all"))
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		page.WriteString(kinds[kind].row(kind))
	}
	golden(t, "../../../docs/internals/first-screens.md", page.String())
}

const screensHead = `# First screens

Every cause in the scenarios of internal/explain/testdata, answered on 80 columns. ` + "`TestAnswersFitAScreen`" + ` writes this page.

| kind | most rows | row of Next, at most | with the deciding fact | Do it is Next |
|---|---|---|---|---|
`

// screens are the answers about causes of a kind: how many, the most lines, the last line on which a next step is, those that show what
// decides, those that say how the program does something, and those of them in which that is the next step.
type screens struct{ answers, rows, next, decided, offers, done int }

// add counts an answer, and reports whether what decides is in it.
func (s *screens) add(c *explain.Cause, lines []string, next int) bool {
	one := strings.Join(strings.Fields(strings.Join(lines, " ")), "")
	decides := c.Decides
	if decides.IsZero() {
		decides = c.Summary
	}
	shown := strings.Contains(one, strings.Join(strings.Fields(strings.TrimLeft(render.Worded(decides), "; ")), ""))
	s.answers, s.rows, s.next = s.answers+1, max(s.rows, len(lines)), max(s.next, next+1)
	if shown {
		s.decided++
	}
	_, does, offers := strings.Cut(one, "Doitkubectlgcunstick")
	if offers {
		s.offers++
		first := slices.IndexFunc(c.Remedies, func(r explain.Remedy) bool { return r.Risk != explain.Dangerous })
		way := slices.IndexFunc(c.Ways(), func(way []*explain.Remedy) bool { return slices.Contains(way, &c.Remedies[first]) })
		if strings.Contains(does, ":"+unstick.WayName(c.Ways()[way])) {
			s.done++
		}
	}
	return shown
}

func (s *screens) row(kind string) string {
	share := func(n, of int) string {
		if of == 0 {
			return "-"
		}
		return fmt.Sprintf("%d %%", 100*n/of)
	}
	return fmt.Sprintf("| %s | %d | %d | %s | %s |\n", kind, s.rows, s.next, share(s.decided, s.answers), share(s.done, s.offers))
}

// The age on the first line is written as kubectl prints ages.
func TestAnswerHasTheAgeOfKubectl(t *testing.T) {
	now := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	ages := map[time.Duration]string{
		-time.Second:                   "0s", // the clock of the machine is behind the server's
		63 * time.Second:               "63s",
		5*time.Minute + 3*time.Second:  "5m3s",
		42*time.Minute + 3*time.Second: "42m",
		3*time.Hour + 12*time.Minute:   "3h12m",
		30 * time.Hour:                 "30h",
		2 * 24 * time.Hour:             "2d",
		329 * 24 * time.Hour:           "329d",
	}
	for age, want := range ages {
		report := explain.Report{Now: now, Objects: []explain.Explanation{{
			Object:  graph.Identity{Resource: graph.Resource{Kind: "Pod"}, Namespace: "shop", Name: "db-0"},
			Verdict: explain.Stuck, Since: now.Add(-age),
		}}}
		if first := answer(t, &report, 0)[0]; !strings.HasSuffix(first, "pod/db-0 -n shop, deleting for "+want) {
			t.Errorf("%s is written %q, want %s", age, first, want)
		}
	}
}

func answer(t *testing.T, report *explain.Report, cause int) []string {
	t.Helper()
	var out strings.Builder
	a := render.StuckAnswer{Style: render.Style{Width: 80}, Now: report.Now, Cause: cause, Plugin: "kubectl gc", Of: " -n shop deployment/web"}
	if err := a.Write(&out, report); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, slices.Collect(screen(strings.TrimSuffix(line, "\n")))...)
	}
	return lines
}

// screen goes over the lines that a terminal of 80 columns makes of one.
func screen(line string) func(func(string) bool) {
	return func(yield func(string) bool) {
		runes := []rune(line)
		for len(runes) > 80 {
			if !yield(string(runes[:80])) {
				return
			}
			runes = runes[80:]
		}
		yield(string(runes))
	}
}

// What an answer offers to do, unstick takes: a way out by its name, which a program can carry out, whatever is allowed.
func TestOffersAreTaken(t *testing.T) {
	offer := regexp.MustCompile(`(?m)^(?:Do it)? +kubectl gc unstick --cause=([^ ]+)$`)
	offers := 0
	explaintest.EachScenario(t, 1, func(t *testing.T, given string) {
		w := explaintest.Parse(t, given)
		report := w.Report(t, w.Graph(), true)
		for number := range len(report.Causes) + 1 {
			var out strings.Builder
			a := render.StuckAnswer{Now: report.Now, Cause: number, Plugin: "kubectl gc"}
			if err := a.Write(&out, report); err != nil {
				t.Fatal(err)
			}
			said := offer.FindStringSubmatch(out.String())
			if strings.Contains(out.String(), "unstick") != (said != nil) {
				t.Errorf("offers otherwise:\n%s", out.String())
			}
			if said == nil {
				continue
			}
			offers++
			name := unstick.ParseName(said[1])
			picked, err := unstick.Resolve(report, []unstick.Name{name})
			if err != nil || name.Way == "" || shell.Quote(strings.Replace(said[1], "@", "", 1)) != strings.Replace(said[1], "@", "", 1) {
				t.Errorf("%s: %v\n%s", said[0], err, out.String())
				continue
			}
			cause := report.Causes[slices.Index(unstick.Names(report), picked[0].Name)]
			if number > 0 && cause != report.Causes[number-1] || !slices.ContainsFunc(cause.Remedies, func(r explain.Remedy) bool {
				return unstick.Possible(&r) && picked[0].Changes.Has(r.Operation.Key())
			}) {
				t.Errorf("%s does nothing:\n%s", said[0], out.String())
			}
		}
	})
	if offers < 200 {
		t.Errorf("only %d offers", offers)
	}
}
