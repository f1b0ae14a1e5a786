// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// seenAs returns the object as another type of these tests shows it, under another
// name unless that is empty.
func seenAs(o graph.Object, kind, name string) graph.Object {
	o.Resource = served[kind]
	if name != "" {
		o.Name = name
	}
	return o
}

// A UID does not say which object is meant when several have it, or none has one.
// What cannot be told from another is left alone, whoever asks for it.
func TestIdentity(t *testing.T) {
	app := parseObject(t, "configmap/app")
	tag := seenAs(app, "widget", "app:old")
	alias := seenAs(app, "widget", "")
	nameless := parseObject(t, "configmap/none")
	nameless.UID = ""
	late := seenAs(nameless, "configmap", "late")
	label := parseWorld(t, "secret/label < configmap/app")[0]
	tagLabel := parseWorld(t, "secret/label < configmap/app widget/app:old@app")[0]
	child := parseWorld(t, "configmap/child < configmap/ghost")[0]
	child.UID = ""
	for _, test := range []struct {
		name    string
		objects []graph.Object
		// targets are deleted; without there is a collection.
		targets            []graph.Object
		requests, outcomes string
	}{
		{
			"another name for the same UID is named", []graph.Object{app, label}, []graph.Object{tag}, "",
			"configmap/app Unknown: Widget/shop/app:old was named, which has the same UID\nsecret/label Untouched: its owner ConfigMap/app still exists",
		},
		{
			"it was read, and one of the two is named", []graph.Object{app, tag}, []graph.Object{app}, "",
			"configmap/app Unknown: Widget/shop/app:old has the same UID, so a write could be meant for either",
		},
		{
			"both are", []graph.Object{app, tag}, []graph.Object{app, tag}, "",
			"configmap/app Unknown: Widget/shop/app:old has the same UID, so a write could be meant for either",
		},
		{
			"another group serves the object", []graph.Object{app, alias, label}, []graph.Object{alias}, "DELETE widget/app Background\nDELETE secret/label Background",
			"configmap/app Deleted\nsecret/label Deleted",
		},
		{
			"both groups are named", []graph.Object{app, alias}, []graph.Object{alias, app}, "DELETE widget/app Background",
			"configmap/app Deleted",
		},
		{
			"it is not known that another group serves it", []graph.Object{app}, []graph.Object{alias}, "",
			"configmap/app Unknown: Widget/shop/app was named, which has the same UID",
		},
		{
			"no UID", []graph.Object{nameless, late}, []graph.Object{nameless}, "",
			"configmap/none Unknown: it has no UID, so it cannot be told from another object of its name",
		},
		{
			"a dependent without UID", []graph.Object{parseObject(t, "configmap/ghost"), child, late}, []graph.Object{parseObject(t, "configmap/ghost")},
			"DELETE configmap/ghost Background",
			"configmap/child Unknown: it has no UID, so it cannot be told from another object of its name\nconfigmap/ghost Deleted",
		},
		{
			"garbage without UID", []graph.Object{child, late}, nil, "",
			"configmap/child Unknown: it has no UID, so it cannot be told from another object of its name",
		},
		{
			"garbage with an ambiguous UID", []graph.Object{label, seenAs(label, "widget", "label:1")}, nil, "",
			"secret/label Unknown: Widget/shop/label:1 has the same UID, so a write could be meant for either",
		},
		{
			"an owner that is another name for an object", []graph.Object{app, tag, tagLabel}, nil, "GET widget/app:old",
			"secret/label Untouched: owned by ConfigMap/app",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t, nil, "")
			f.shows(test.objects)
			c := New(f, graphOf(test.objects), Options{})
			var r *Report
			var err error
			if test.targets == nil {
				r, err = c.Collect(t.Context(), "")
			} else {
				var targets []Target
				for _, o := range test.targets {
					targets = append(targets, Target{Identity: o.Identity()})
				}
				r, err = c.Delete(t.Context(), targets, DeleteOptions{Policy: "Background"})
			}
			if diff := cmp.Diff([][]string{lines(test.requests), lines(test.outcomes)}, [][]string{slices.Clone(f.log), outcomes(r)}); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// News of an object are not about another with its UID, and make it one of which
// nothing is certain. Those that come by another group are.
func TestNewsOfAnother(t *testing.T) {
	app := parseObject(t, "configmap/app")
	tag, alias := seenAs(app, "widget", "app:old"), seenAs(app, "widget", "")
	nameless := parseObject(t, "secret/none")
	nameless.UID = ""
	for name, test := range map[string]struct {
		event Event
		gone  bool
		also  string
	}{
		"the end of another name":                 {Event{Object: tag, Removed: true}, false, "Widget/shop/app:old"},
		"another name":                            {Event{Object: tag}, false, "Widget/shop/app:old"},
		"the end, as another group shows it":      {Event{Object: alias, Removed: true}, true, ""},
		"another group":                           {Event{Object: alias}, false, ""},
		"another group is not served any more":    {Event{Object: alias, Lost: true}, false, ""},
		"the end of an object without UID":        {Event{Object: nameless, Removed: true}, false, ""},
		"the end of the object under its own UID": {Event{Object: app, Removed: true}, true, ""},
	} {
		c := New(newFake(t, nil, ""), graphOf([]graph.Object{app}), Options{})
		c.builder.apply(test.event)
		v, _ := c.state.view(c.state.of("app"))
		if v.gone != test.gone || v.also != test.also || v.lost || v.object.Identity() != app.Identity() {
			t.Errorf("%s: gone %t, lost %t, also %q, %s", name, v.gone, v.lost, v.also, v.object.Identity())
		}
		if _, known := c.state.view(c.state.of("")); known {
			t.Errorf("%s: there is an object without UID", name)
		}
	}
}
