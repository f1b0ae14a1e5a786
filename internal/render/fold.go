// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// maxAlike is the number of causes that a text explains when they differ in nothing but the
// objects that they are about.
const maxAlike = 5

// alike is what a fold stands for: causes like the one with the number, from 0.
type alike struct {
	like int
	more []graph.Identity
}

var digits = pattern.New(`[0-9]+`)

// fold returns the causes that a text explains, in their order, and what it only names of
// the others.
func fold(report *explain.Report) (shown []*explain.Cause, folds []alike) {
	held := heldUp(report)
	number, index := map[string]int{}, map[string]int{}
	for _, c := range report.Causes {
		key := said(c, held[c])
		number[key]++
		switch {
		case number[key] <= maxAlike:
			shown = append(shown, c)
			index[key] = len(shown) - 1
			continue
		case number[key] == maxAlike+1:
			folds = append(folds, alike{like: index[key]})
			index[key] = len(folds) - 1
		}
		f := &folds[index[key]]
		f.more = append(f.more, c.Object)
	}
	return shown, folds
}

// heldUp returns the names of the objects that each cause holds up.
func heldUp(report *explain.Report) map[*explain.Cause][]string {
	held := map[*explain.Cause][]string{}
	for _, o := range report.Objects {
		for _, f := range o.Findings {
			held[f.Cause] = append(held[f.Cause], o.Object.Name)
		}
	}
	return held
}

// said is what a text says of a cause, of its evidence the messages alone, without what makes
// it that of the objects that it is about: their names, and numbers.
func said(c *explain.Cause, held []string) string {
	words := []string{c.ID, string(c.Verdict), c.Object.Resource.String(), c.Summary.String()}
	if c.Controller != nil {
		words = append(words, c.Controller.Name.String(), c.Controller.Liveness)
	}
	for _, r := range c.Remedies {
		words = append(words, string(r.Risk), r.Effect.String(), r.Leaks())
	}
	for _, e := range c.Evidence {
		if strings.HasSuffix(e.Path, "message") {
			words = append(words, digits().ReplaceAllString(e.Value.String(), ""))
		}
	}
	text := strings.Join(words, "\x00")
	for _, name := range append(held[:len(held):len(held)], c.Object.Name) {
		text = strings.ReplaceAll(text, name, "")
	}
	return text
}
