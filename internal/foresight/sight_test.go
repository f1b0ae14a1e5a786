// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Whether something gets stuck depends on the order for that alone which a safe order serves first.
func TestSticks(t *testing.T) {
	service := func(s Service) *Sight { return &Sight{Services: []Service{{Outlook: Expected}, s}} }
	for _, test := range []struct {
		name         string
		sight        *Sight
		usual, safer bool
	}{
		{"nothing", &Sight{}, false, false},
		{"a finalizer is removed", service(Service{Outlook: Expected}), false, false},
		{"its controller goes too early", service(Service{Outlook: Stuck, Doomed: true, asFirst: Expected}), true, false},
		{"its controller may go too early", service(Service{Outlook: Racing, Doomed: true, asFirst: Expected}), true, false},
		{"its controller needs it itself", service(Service{Outlook: Stuck, Doomed: true, tangled: true, asFirst: Expected}), true, true},
		{"its controller does not work", service(Service{Outlook: Stuck}), true, true},
		{"a deletion is refused", &Sight{refused: map[types.UID]refusal{"a": {outlook: Stuck}}}, true, true},
		{"a deletion is not refused", &Sight{refused: map[types.UID]refusal{"a": {outlook: Expected}}}, false, false},
		{"no namespace can be emptied", &Sight{blind: say.Of(contentUnknown, "", ""), blinds: Stuck}, true, true},
		{"namespaces can be emptied before an API goes", &Sight{blind: say.Of(contentUnknown, "", ""), blinds: Racing}, true, false},
	} {
		if usual, safer := test.sight.Sticks(false), test.sight.Sticks(true); usual != test.usual || safer != test.safer {
			t.Errorf("%s: sticks %t, in a safe order %t; want %t, %t", test.name, usual, safer, test.usual, test.safer)
		}
	}
}

// A safe order helps when there are waves, unless all that has to go early is needed by what serves it.
func TestHelps(t *testing.T) {
	waves := []preview.Wave{{}}
	early, tangled := Service{Early: true}, Service{Early: true, tangled: true}
	for _, test := range []struct {
		name  string
		sight Sight
		want  bool
	}{
		{"no waves", Sight{Services: []Service{early}}, false},
		{"for other reasons than finalizers", Sight{Waves: waves, Services: []Service{{}}}, true},
		{"for one", Sight{Waves: waves, Services: []Service{tangled, early}}, true},
		{"for none", Sight{Waves: waves, Services: []Service{tangled, {}}}, false},
	} {
		if got := test.sight.Helps(); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

// What is lost with an object names it once, and what stays is no loss.
func TestLosing(t *testing.T) {
	of := func(uid types.UID, stays bool) Loss { return Loss{Object: graph.Identity{UID: uid}, Stays: stays} }
	s := &Sight{Lost: []Loss{of("a", false), of("a", true), of("a", false), of("b", true), of("c", false)}}
	if got := s.Losing(); !slices.Equal(got, []graph.Identity{{UID: "a"}, {UID: "c"}}) {
		t.Errorf("%q", got)
	}
}
