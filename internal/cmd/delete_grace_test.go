// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/testworld"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What is said before pods are deleted by force: that two of a StatefulSet may run at a time, and that pods which go
// with what is named are not forced.
func TestDangers(t *testing.T) {
	const world = `
StatefulSet/shop/db
Pod/shop/db-0 owner=StatefulSet/db!*
Pod/shop/db-1 owner=apps/v1:StatefulSet:gone:x
Pod/shop/odd owner=example.com/v1:StatefulSet:gone:y
ReplicaSet/shop/web
Pod/shop/web-a owner=ReplicaSet/web!*
Pod/shop/web-b owner=Pod/web-a
ConfigMap/shop/c`
	for _, test := range []struct {
		names, cascade string
		want           []string
	}{
		{"c", "background", nil},
		{"db-0", "background", []string{"pod/db-0 -n shop: belongs to a StatefulSet"}},
		{"db-1", "background", []string{"pod/db-1 -n shop: belongs to a StatefulSet"}}, // which is gone
		{"odd", "background", nil},
		{"db", "background", []string{"pods that are deleted with them"}},
		{"db", "orphan", nil},
		{"db db-0", "background", []string{"pod/db-0 -n shop: belongs to a StatefulSet"}},
		{"web", "foreground", []string{"pods that are deleted with them"}},
		{"web-a", "background", []string{"pods that are deleted with them"}},
		{"web-a web-b", "background", nil},
	} {
		w := testworld.World{Types: testworld.Served(), UID: testworld.Name}
		for line := range strings.Lines(strings.TrimSpace(world)) {
			if _, err := w.Add(strings.Fields(line), nil); err != nil {
				t.Fatal(err)
			}
		}
		s := &graph.Snapshot{Mapper: testworld.Mapper(w.Types)}
		for _, o := range w.Objects {
			s.Add(o)
		}
		g := graph.New(s)
		var targets []graph.Identity
		for n := range g.Nodes() {
			if !n.Virtual() && strings.Contains(" "+test.names+" ", " "+n.Name()+" ") {
				targets = append(targets, n.Identity())
			}
		}
		o := &deleteOptions{force: true, cascade: test.cascade}
		got := o.dangers(g, targets)
		if len(got) != 1+len(test.want) || len(test.want) == 1 && !strings.Contains(got[1], test.want[0]) {
			t.Errorf("%s, %s: %q, want %q", test.names, test.cascade, got, test.want)
		}
		o.force = false
		if got := o.dangers(g, targets); got != nil {
			t.Errorf("%s, not forced: %q", test.names, got)
		}
	}
}
