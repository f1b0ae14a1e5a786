// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// of is a cause of an object with the ways out.
func of(id string, at graph.Identity, ways ...explain.Remedy) *explain.Cause {
	return &explain.Cause{Kind: explain.Kind{ID: id}, Object: at, Verdict: explain.Stuck, Summary: say.Plain(id + " of " + at.Name), Remedies: ways}
}

func saying(c *explain.Cause, summary string) *explain.Cause {
	c.Summary = say.Plain(summary)
	return c
}

// A cause is named by its kind and object, by a hash where that is not a word for a shell or is the name of two; each name is of one
// cause, and stays with it when others come and go.
func TestNames(t *testing.T) {
	node := graph.Identity{Resource: graph.Resource{Kind: "Node"}, Name: "a", UID: "n"}
	hostile := identity("$(reboot)")
	other := identity("at")
	other.Resource.Group = "example.com"
	causes := []*explain.Cause{
		of("fin-dead", identity("at")), of("node", node), of("fin-dead", hostile), of("two", identity("at")), of("two", other),
		saying(of("twin", identity("at")), "finalizer a"), saying(of("twin", identity("at")), "finalizer b"), of("nothing", graph.Identity{}),
	}
	names := unstick.Names(&explain.Report{Causes: causes})
	hash := `[0-9a-f]{8}`
	for i, want := range []string{"fin-dead@configmap/s/at", "node@node/a", "fin-dead@" + hash, "two@" + hash, "two@" + hash, "twin@" + hash, "twin@" + hash, "nothing@" + hash} {
		text := names[i].String()
		if !regexp.MustCompile("^"+want+"$").MatchString(text) || slices.Index(names, names[i]) != i {
			t.Errorf("%d: %s, want %s", i, text, want)
		}
		if back := unstick.ParseName(text + ":0123abcd"); back.ID != names[i].ID || back.Object != names[i].Object || back.Way != "0123abcd" || back.String() != text+":0123abcd" {
			t.Errorf("%s is read as %+v", text, back)
		}
		if quoted := shell.Quote(regexp.MustCompile("@").ReplaceAllString(text, "")); quoted[0] == '\'' {
			t.Errorf("a shell does not take %s as it is", text)
		}
		// Alone it has a plainer name, and this one nevertheless.
		look := &unstick.Look{Report: &explain.Report{Causes: causes[i : i+1]}, Graph: graph.New(&graph.Snapshot{})}
		if p := unstick.Choose(look, &unstick.Options{Picked: []unstick.Picked{{Name: names[i]}}}); p.Choices[0].Reason == unstick.NotChosen {
			t.Errorf("%s is not the name of its cause any more", text)
		}
	}
	if name := unstick.ParseName("fin-dead@system:cafe"); name.Object != "system:cafe" || name.Way != "" {
		t.Errorf("read as %+v", name)
	}
}

// What is named is dealt with, and nothing else; a way out is allowed by its name, whatever its number is by now.
func TestResolve(t *testing.T) {
	a, b := identity("a"), identity("b")
	scale, removes := way(explain.Disruptive, "scale"), way(explain.Dangerous, "removes")
	then := &explain.Report{Causes: []*explain.Cause{of("dead", a, scale, removes), of("dead", b, way(explain.Safe, "other"))}}
	screen := unstick.NewScreen(then)
	named := func(p unstick.Pick) unstick.Name {
		n, err := screen.Meant(p)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for name, test := range map[string]struct {
		names []unstick.Name
		now   []*explain.Cause
		want  string
	}{
		"a cause":             {[]unstick.Name{{ID: "dead", Object: "configmap/s/b"}}, then.Causes, "NotChosen, 1: other safe"},
		"without a namespace": {[]unstick.Name{{ID: "dead", Object: "configmap/b"}}, then.Causes, "NotChosen, 1: other safe"},
		"all of a kind":       {[]unstick.Name{{ID: "dead"}}, then.Causes, "NotAllowed needs disruptive, 1: other safe"},
		"a way":               {[]unstick.Name{named(unstick.Pick{Cause: 1, Way: 2})}, then.Causes, "2: removes dangerous, NotChosen"},
		"two ways":            {[]unstick.Name{named(unstick.Pick{Cause: 1, Way: 2}), named(unstick.Pick{Cause: 2, Way: 1})}, then.Causes, "2: removes dangerous, 1: other safe"},
		"the other way around": {
			[]unstick.Name{named(unstick.Pick{Cause: 1, Way: 2})},
			[]*explain.Cause{of("dead", b), of("dead", a, removes, scale)}, "NotChosen, 1: removes dangerous",
		},
		"no such way any more":   {[]unstick.Name{named(unstick.Pick{Cause: 1, Way: 2})}, []*explain.Cause{of("dead", a, scale)}, "the cause has no such way out any more"},
		"no such cause any more": {[]unstick.Name{named(unstick.Pick{Cause: 1, Way: 2})}, then.Causes[1:], "there is no such cause any more"},
	} {
		report := &explain.Report{Causes: test.now}
		picked, err := unstick.Resolve(report, test.names)
		if got := chosen(report, picked, err); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func chosen(report *explain.Report, picked []unstick.Picked, err error) string {
	if err != nil {
		if !errors.As(err, new(*unstick.MovedError)) && !errors.As(err, new(*unstick.NoPickError)) {
			return "other error: " + err.Error()
		}
		return err.Error()
	}
	p := unstick.Choose(&unstick.Look{Report: report, Graph: graph.New(&graph.Snapshot{})}, &unstick.Options{Allow: explain.Safe, Picked: picked})
	text := ""
	for i := range p.Choices {
		if i > 0 {
			text += ", "
		}
		text += describe(&p.Choices[i])
	}
	return text
}

// A number means what it stood for on the screen: it is another cause's by now, and is not taken for that.
func TestScreen(t *testing.T) {
	operator, guard := identity("operator"), identity("guard")
	scale := explain.Remedy{Risk: explain.Safe, Effect: say.Plain("scale it up"), Action: explain.Action{Operation: new(remedy.ScaleOf(operator, remedy.Replicas{Wanted: 1}))}}
	drop := way(explain.Safe, "drop")
	one := []*explain.Cause{of("fin-dead", operator, way(explain.Safe, ""), scale)}
	two := []*explain.Cause{of("other", identity("o"), way(explain.Safe, "o")), of("fin-dead", operator, scale)}
	for name, test := range map[string]struct {
		then, now []*explain.Cause
		pick      unstick.Pick
		want      string
	}{
		"a way out of the only cause":      {one, one, unstick.Pick{Way: 2}, "2: operator safe"},
		"a person's":                       {one, one, unstick.Pick{Way: 1}, "way out 1 is for a person"},
		"too many ways":                    {one, one, unstick.Pick{Way: 3}, "there is no way out 3: there are 2"},
		"a cause of two":                   {two, two, unstick.Pick{Way: 2}, "NotChosen, 1: operator safe"},
		"too many causes":                  {two, two, unstick.Pick{Way: 3}, "there is no cause 3: there are 2"},
		"a way out of one of two":          {two, two, unstick.Pick{Cause: 1, Way: 1}, "1: o safe, NotChosen"},
		"too many ways of it":              {two, two, unstick.Pick{Cause: 1, Way: 2}, "there is no way out 2: there is only 1"},
		"the other one has gone":           {two, two[1:], unstick.Pick{Way: 2}, "1: operator safe"},
		"it has gone, and a guard is here": {two, []*explain.Cause{two[0], of("fin-manual", guard, drop)}, unstick.Pick{Way: 2}, "there is no such cause any more"},
		"the way is another":               {one, []*explain.Cause{of("fin-dead", operator, way(explain.Safe, ""), drop)}, unstick.Pick{Way: 2}, "the cause has no such way out any more"},
		"the cause has another way":        {two, []*explain.Cause{two[0], of("fin-dead", operator, scale, drop)}, unstick.Pick{Way: 2}, "the cause is another by now"},
		"and is two":                       {two, []*explain.Cause{saying(of("fin-dead", operator, drop), "new"), two[1]}, unstick.Pick{Way: 2}, "NotChosen, 1: operator safe"},
		"a way has gone": {
			[]*explain.Cause{two[0], of("fin-dead", operator, drop, scale)}, two, unstick.Pick{Way: 2}, "NotChosen, 1: operator safe",
		},
	} {
		screen := unstick.NewScreen(&explain.Report{Causes: test.then})
		report := &explain.Report{Causes: test.now}
		var picked []unstick.Picked
		n, err := screen.Meant(test.pick)
		if err == nil {
			var p unstick.Picked
			p, err = screen.Take(report, n)
			picked = append(picked, p)
		}
		if got := chosen(report, picked, err); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// A way out for many objects is found by what it changes for any of them.
func TestWayOfMany(t *testing.T) {
	alike := func(names ...string) *explain.Cause {
		var ways []explain.Remedy
		for _, name := range names {
			ways = append(ways, explain.Remedy{Risk: explain.Safe, Effect: say.Plain("do it"), Action: explain.Action{Operation: new(remedy.DeleteOf(identity(name), metav1.DeleteOptions{}))}})
		}
		return of("it", identity("at"), ways...)
	}
	n := unstick.Names(&explain.Report{Causes: []*explain.Cause{alike("b")}})[0]
	n.Way = unstick.WayName(alike("b").Ways()[0])
	report := &explain.Report{Causes: []*explain.Cause{alike("a", "b", "c")}}
	picked, err := unstick.Resolve(report, []unstick.Name{n})
	if got := fmt.Sprint(len(picked[0].Changes)) + " " + chosen(report, picked, err); got != "3 1: a b c safe" {
		t.Error(got)
	}
}
