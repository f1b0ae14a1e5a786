// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// effects returns a function that plays a remedy in memory, and says what becomes of the objects that its cause blocks:
//
//	frees a          the API server removes it, whoever else works
//	then a           a controller of Kubernetes removes it after that
//	held a: ...      it stays, for this reason
//	unforeseen a     it is held by something that is not simulated: a webhook, a kubelet that hangs, a lazy collector
//	by controllers   the remedy works through controllers that are not simulated
func effects(t *testing.T, cluster *scenario, report *explain.Report) func(*explain.Cause, *remedy.Op) string {
	g := cluster.Graph()
	g.Snapshot().Facts = cluster.Facts()
	world := preview.World{Graph: g, Now: now, ControllerManager: cluster.ControllerManager(), Server: cluster.Server}
	played, err := newEffects(t.Context(), world)
	if err != nil {
		t.Fatal(err)
	}
	return func(cause *explain.Cause, op *remedy.Op) string {
		var blocked []types.UID
		for o := range report.Blocked(cause) {
			blocked = append(blocked, o.Object.UID)
		}
		is, err := played.Of(t.Context(), op, blocked)
		switch {
		case err != nil:
			return "refused: " + err.Error()
		case is.ByControllers:
			return "by controllers"
		}
		text := effectText(is)
		if text == "" {
			t.Errorf("%s of %s at %s has no effect", op.Verb, cause.ID, cause.Object)
		}
		return text
	}
}

// TestOneAfterAnother: what removes finalizers or references of the objects of one cause can be done in the order in which it is
// shown.
func TestOneAfterAnother(t *testing.T) {
	several := 0
	for _, cluster := range clusters(t) {
		s := parse(t, cluster)
		report := s.report(t)
		for _, cause := range report.Causes {
			server, of := simulator.New(s.Graph().Snapshot(), simulator.Options{Now: now, Server: s.Server}), map[types.UID]int{}
			for _, r := range cause.Remedies {
				if op := r.Operation; op != nil && op.Verb == remedy.Patch && op.Patch[len(op.Patch)-1].Op == "remove" {
					if of[op.Object.UID]++; of[op.Object.UID] == 2 {
						several++
					}
					if err := server.Do(t.Context(), op); errors.Is(err, remedy.ErrChanged) {
						t.Errorf("%v\n%s\n%s", err, r.Command, cluster)
					}
				}
			}
		}
	}
	if several == 0 {
		t.Error("no scenario has an object with several to remove")
	}
}

func effectText(is *effect) string {
	const shown = 4
	var parts []string
	list := func(word string, objects []graph.Identity) {
		var names []string
		for i, id := range objects {
			if i == shown {
				names = append(names, fmt.Sprintf("and %d more", len(objects)-i))
				break
			}
			names = append(names, id.String())
		}
		if len(names) > 0 {
			parts = append(parts, word+" "+strings.Join(names, ", "))
		}
	}
	list("frees", is.Frees)
	list("then", is.Follow)
	list("unforeseen", is.Unforeseen)
	for i, held := range is.Held {
		if i == shown {
			parts = append(parts, fmt.Sprintf("and %d more held", len(is.Held)-i))
			break
		}
		parts = append(parts, "held "+held.Object.String()+waitsText(held.Waits))
	}
	return strings.Join(parts, "; ")
}

func waitsText(waits []simulator.Wait) string {
	var text strings.Builder
	for _, w := range waits {
		fmt.Fprintf(&text, ": %s", w.Kind)
		for _, detail := range []string{w.Finalizer, w.Node} {
			if detail != "" {
				text.WriteString(" " + detail)
			}
		}
		for _, uid := range w.Objects {
			text.WriteString(" " + string(uid))
		}
		if !w.Unknown.IsZero() {
			text.WriteString(" (" + w.Unknown.String() + ")")
		}
	}
	return text.String()
}
