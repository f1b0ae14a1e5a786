// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
)

// maxLinks is the number of links of a chain that are shown; of longer ones the
// middle is left out.
const maxLinks = 12

// facts writes what a cause rests on, and the controller that should act.
func (a *StuckAnswer) facts(c *explain.Cause) {
	a.evidence("Evidence", c.Evidence)
	if c.Controller == nil || c.Kind == finding.FinManual { // a user has no state
		return
	}
	label, text := controllerState(c.Controller)
	if label != "controller" {
		text = "the " + label + ": " + text
	}
	a.part("By", bold, text)
	a.evidence("", c.Controller.Evidence)
}

func (a *StuckAnswer) evidence(word string, all []explain.Evidence) {
	for _, e := range all {
		what := worded(e.Source)
		switch {
		case e.Path != "" && what == explain.FromCatalogue: // its paths say what follows
			what += ": " + e.Path
		case e.Path != "":
			what += " " + e.Path
		}
		a.part(word, bold, what+": "+worded(e.Value))
		word = ""
	}
}

// liveness says whether a controller works.
var liveness = map[string]string{
	controllers.Alive: "running", controllers.Dead: "down", controllers.Absent: "not found",
	controllers.Denied: "not allowed to change the object",
	controllers.Unsure: "unclear whether it is running",
}

// controllerState names a controller, and says whether it works: "controller", "deployment/x (running)", or for one that is known only by
// its finalizer "controller of FINALIZER", "not found".
func controllerState(c *explain.Controller) (label, text string) {
	state := cmp.Or(liveness[c.Liveness], c.Liveness)
	if at, of := c.Name.Find(controllers.ControllerOf); at == 0 {
		return "controller of " + fmt.Sprint(of...), state
	}
	return "controller", worded(c.Name) + " (" + state + ")"
}

// chain writes the objects from the one that was asked about to the cause, each with what it waits for.
func (a *StuckAnswer) chain(links []explain.Link) {
	if len(links) < 2 {
		return
	}
	for i, link := range links {
		if len(links) > maxLinks && i >= maxLinks/2 && i < len(links)-maxLinks/2 {
			if i == maxLinks/2 {
				a.part("", noColor, fmt.Sprintf("... %d more", len(links)-maxLinks))
			}
			continue
		}
		text := objectName(link.Object)
		if !link.Because.IsZero() && i < len(links)-1 {
			text += ": " + worded(link.Because)
		}
		if link.Symptom != "" && i < len(links)-1 {
			text += " [" + link.Symptom + "]"
		}
		if i == 0 {
			a.part("Path", bold, text)
			continue
		}
		lead := strings.Repeat(" ", margin+2*min(i-1, maxLinks/2)) + a.Style.drawing().last.lead
		fmt.Fprint(a.out, lead)
		begun := utf8.RuneCountInString(lead)
		a.Style.flow(a.out, printable(text), begun, strings.Repeat(" ", begun+2))
	}
}

// Unread writes what an explanation could not read besides what its snapshot
// could not list. Of what was forbidden it says only how much that is, unless all is wanted.
func Unread(w io.Writer, report *explain.Report, all bool) error {
	forbidden := 0
	for _, gap := range report.Unread {
		if !all && gap.Forbidden {
			forbidden++
			continue
		}
		failed := "could not read "
		if gap.Open {
			failed = "could not find out "
		}
		if _, err := fmt.Fprintln(w, "warning: "+failed+printable(gap.String())); err != nil {
			return err
		}
	}
	if forbidden > 0 {
		if _, err := fmt.Fprintf(w, "warning: the answer is incomplete: more reads or dry runs were forbidden (%d); -v=1 lists them\n",
			forbidden); err != nil {
			return err
		}
	}
	return nil
}
