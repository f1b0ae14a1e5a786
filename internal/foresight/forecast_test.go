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
	service := func(s FinalizerForecast) *Forecast {
		return &Forecast{Services: []FinalizerForecast{{Outlook: Expected}, s}}
	}
	for _, test := range []struct {
		name         string
		forecast     *Forecast
		usual, safer bool
	}{
		{"nothing", &Forecast{}, false, false},
		{"a finalizer is removed", service(FinalizerForecast{Outlook: Expected}), false, false},
		{"its controller goes too early", service(FinalizerForecast{Outlook: Stuck, LosesController: true, asFirst: Expected}), true, false},
		{"its controller may go too early", service(FinalizerForecast{Outlook: Racing, LosesController: true, asFirst: Expected}), true, false},
		{"its controller needs it itself", service(FinalizerForecast{Outlook: Stuck, LosesController: true, cyclic: true, asFirst: Expected}), true, true},
		{"its controller does not work", service(FinalizerForecast{Outlook: Stuck}), true, true},
		{"a deletion is refused", &Forecast{refused: map[types.UID]refusal{"a": {outlook: Stuck}}}, true, true},
		{"a deletion is not refused", &Forecast{refused: map[types.UID]refusal{"a": {outlook: Expected}}}, false, false},
		{"no namespace can be emptied", &Forecast{blind: say.Of(contentUnknown, "", ""), blinds: Stuck}, true, true},
		{"namespaces can be emptied before an API goes", &Forecast{blind: say.Of(contentUnknown, "", ""), blinds: Racing}, true, false},
	} {
		if usual, safer := test.forecast.Sticks(false), test.forecast.Sticks(true); usual != test.usual || safer != test.safer {
			t.Errorf("%s: sticks %t, in a safe order %t; want %t, %t", test.name, usual, safer, test.usual, test.safer)
		}
	}
}

// A safe order helps when there are waves, unless all that has to go early is needed by what serves it.
func TestHelps(t *testing.T) {
	waves := []preview.Wave{{}}
	early, cyclic := FinalizerForecast{DeleteFirst: true}, FinalizerForecast{DeleteFirst: true, cyclic: true}
	for _, test := range []struct {
		name     string
		forecast Forecast
		want     bool
	}{
		{"no waves", Forecast{Services: []FinalizerForecast{early}}, false},
		{"for other reasons than finalizers", Forecast{Waves: waves, Services: []FinalizerForecast{{}}}, true},
		{"for one", Forecast{Waves: waves, Services: []FinalizerForecast{cyclic, early}}, true},
		{"for none", Forecast{Waves: waves, Services: []FinalizerForecast{cyclic, {}}}, false},
	} {
		if got := test.forecast.Helps(); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

// What is lost with an object names it once, and what stays is no loss.
func TestLosing(t *testing.T) {
	of := func(uid types.UID, stays bool) Loss { return Loss{Object: graph.Identity{UID: uid}, Stays: stays} }
	s := &Forecast{Lost: []Loss{of("a", false), of("a", true), of("a", false), of("b", true), of("c", false)}}
	if got := s.Losing(); !slices.Equal(got, []graph.Identity{{UID: "a"}, {UID: "c"}}) {
		t.Errorf("%q", got)
	}
}
