// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/test/differential/memory"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

var earlyCases = flag.Int("early", nightly.Of(1000, 3000), "number of generated cases in which random objects are deleted ahead of a target")

// TestEarly: whatever is deleted ahead of a target, nothing goes that the deletion of the target
// in default order does not take along, by the model; and what goes ahead goes only if it does.
func TestEarly(t *testing.T) {
	ahead, held, whole := 0, 0, 0
	for i := range *earlyCases {
		seed := *firstSeed + i
		c, wrong := playEarly(t, seed)
		if wrong != "" {
			t.Errorf("generated with -early=1 -seed=%d: %s", seed, wrong)
		}
		ahead += c.ahead
		if c.held {
			held++
		} else {
			whole++
		}
	}
	fmt.Printf("early objects: %d cases, %d of %d whole to the end, %d objects went ahead\n", *earlyCases, whole, whole+held, ahead)
	if *earlyCases >= 500 && (ahead == 0 || held == 0 || whole == 0) {
		t.Error("the cases do not show everything")
	}
}

// earlyCase is what came of a case.
type earlyCase struct {
	// ahead is how many objects went ahead; held: the target was kept because one did not.
	ahead int
	held  bool
}

// playEarly plays a case.
func playEarly(t *testing.T, seed int) (c earlyCase, wrong string) {
	random := rand.New(rand.NewPCG(uint64(seed), 45))
	s := scenarios.Example(seed)
	usual := s.Actions[slices.IndexFunc(s.Actions, func(a gctest.Action) bool { return a.Verb == gctest.Delete })]
	early := usual
	for _, i := range random.Perm(len(s.Objects)) {
		if p := s.Objects[i].Path; p != usual.Paths[0] && len(early.Paths) < 4 && (len(early.Paths) == 1 || random.IntN(2) == 0) {
			early.Early = append(early.Early, len(early.Paths)-1)
			early.Paths = append([]gctest.Path{p}, early.Paths...)
		}
	}
	early.Then = []int{len(early.Paths) - 1}
	s.Actions = []gctest.Action{early}
	synctest.Test(t, func(t *testing.T) {
		w := &memory.World{Workers: 1 + random.IntN(32), Delays: random}
		play := begin(t, w, &s)
		m := newModel(&s, false)
		ends, ok := m.collectedBefore(usual)
		if usual.Policy == metav1.DeletePropagationForeground {
			// A wave's cascade may decide otherwise about what both depends on an early object and on the target, and then
			// the early one goes before, as it would once nothing held what blocks it.
			ok = ends.add(unheld(&s, usual)) && ok
		}
		if !ok {
			return // too many orders
		}
		report := act(t, play, &s, early)
		left := statesOf(t, play)
		c.held = left[usual.Paths[0]].Fate == gctest.Intact
		for _, o := range s.Objects {
			if left[o.Path].Fate != gctest.Gone {
				continue
			}
			if slices.Contains(early.Paths[:len(early.Early)], o.Path) {
				c.ahead++
			}
			line := fmt.Sprintf("%s %s\n", o.Path, left[o.Path])
			may := false
			for end := range ends {
				may = may || strings.Contains(end, line)
			}
			if !may && wrong == "" {
				wrong = fmt.Sprintf("%s went, and never goes with the target:\n%s\nwritten\n  %s", o.Path, &s, strings.Join(stepsOf(play, report), "\n  "))
			}
		}
	})
	return c, wrong
}

// collectedBefore is what an action may lead to from the beginning, or after a garbage collector has gone on
// with what was begun before.
func (m *model) collectedBefore(a gctest.Action) (outcome, bool) {
	ends, ok := m.engineAfter([]world{m.begin()}, a)
	if !ok || a.Verb == gctest.Collect {
		return ends, ok
	}
	collected, ok := m.after([]world{m.begin()}, gctest.Action{Verb: gctest.Collect})
	for _, worlds := range collected {
		more, alsoOK := m.engineAfter(worlds, a)
		ok = ends.add(more, alsoOK) && ok
	}
	return ends, ok
}

// unheld returns the ends of an action when nobody's finalizer holds anything.
func unheld(s *gctest.Scenario, a gctest.Action) (outcome, bool) {
	free := *s
	free.Objects = slices.Clone(s.Objects)
	for i := range free.Objects {
		free.Objects[i].Finalizers = slices.DeleteFunc(slices.Clone(free.Objects[i].Finalizers), func(f string) bool { return f == hold })
	}
	m := newModel(&free, false)
	return m.engineAfter([]world{m.begin()}, a)
}
