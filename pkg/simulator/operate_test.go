// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/testworld"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// TestDo makes each change that a remedy may be, on the object that it was made for and on another with its name.
func TestDo(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	world := testworld.World{Types: testworld.Served(), Now: now, UID: testworld.Name}
	for _, line := range []string{
		"Namespace/s deleted=60", "Node/off",
		"ConfigMap/s/held deleted=60 finalizers=example.com/x,example.com/y",
		"ConfigMap/s/live",
		"ConfigMap/lost/a deleted=60 finalizers=example.com/x",
		"StatefulSet/t/db", "Pod/t/db-0 owners=StatefulSet/db*", "Pod/t/other", "Pod/t/ended deleted=60",
	} {
		if _, err := world.Add(strings.Fields(line), nil); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := &graph.Snapshot{Mapper: testworld.Mapper(world.Types)}
	for i := range world.Types {
		snapshot.Types = append(snapshot.Types, &world.Types[i])
		snapshot.MarkListed(world.Types[i].GroupResource(), "", "1")
	}
	ids := map[types.UID]graph.Identity{}
	for _, o := range world.Objects {
		snapshot.Add(o)
		ids[o.UID] = o.Identity()
	}
	snapshot.Facts = graph.Facts{
		Namespaces: map[types.UID]graph.NamespaceFacts{"s": {Finalizers: []string{"kubernetes", "example.com/n"}}},
		Nodes:      map[string]bool{"off": false}, NodesRead: true,
		Pods: map[types.UID]graph.PodFacts{"db-0": {}, "other": {}, "ended": {NodeName: "off"}},
	}
	held := ids["held"]
	cases := []struct {
		op   remedy.Op
		want string // what becomes of objects, or of the request
	}{
		{remedy.DeleteOf(ids["live"], metav1.DeleteOptions{}), "live gone"},
		{remedy.DeleteOf(held, metav1.DeleteOptions{}), ""},
		{remedy.PatchOf(held, remedy.Test("/metadata/finalizers/0", "example.com/x"), remedy.Remove("/metadata/finalizers/0")), "held [example.com/y]"},
		{remedy.PatchOf(held, remedy.Test("/metadata/finalizers/0", "example.com/y"), remedy.Remove("/metadata/finalizers/0")), "changed"},
		{remedy.PatchOf(held, remedy.Remove("/metadata/finalizers/1"), remedy.Remove("/metadata/finalizers/0")), "held gone"},
		{remedy.PatchOf(held, remedy.Replace("/spec/x", 1)), "not modelled"},
		{remedy.PatchOf(ids["a"], remedy.Remove("/metadata/finalizers/0")), "not found"},
		{remedy.Op{Verb: remedy.Create, Object: graph.Identity{Resource: ids["s"].Resource, Name: "lost"}}, ""},
		{remedy.Op{Verb: remedy.Finalize, Object: ids["s"], Value: "example.com/n"}, ""},
		{remedy.Op{Verb: remedy.Finalize, Object: ids["s"], Value: "example.com/other"}, "changed"},
		{remedy.TaintOf(ids["off"], "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"), "live gone, ended gone"}, // and the namespace is emptied meanwhile,
		{remedy.TaintOf(ids["off"], "example.com/other:NoExecute"), "not modelled"},
		{remedy.ScaleOf(ids["db"], remedy.Replicas{Current: 1}), "db-0 gone"},
		{remedy.ScaleOf(ids["db"], remedy.Replicas{Current: 0, Wanted: 1}), "not modelled"},
		{remedy.Op{Verb: remedy.Restart, Object: ids["db"]}, "not modelled"},
		{remedy.Op{Verb: remedy.Collect, Object: ids["s"]}, ""},
	}
	for _, c := range cases {
		t.Run(c.op.Command(remedy.Programs{Kubectl: "kubectl", Plugin: "kubectl gc"}), func(t *testing.T) {
			server := simulator.New(snapshot, simulator.Options{Now: now, Actors: simulator.Actors{NamespaceController: true, PodGC: true}})
			var text []string
			err := server.Do(t.Context(), &c.op)
			switch {
			case errors.Is(err, remedy.ErrChanged):
				text = append(text, "changed")
			case errors.Is(err, simulator.ErrNotModelled):
				text = append(text, "not modelled")
			case apierrors.IsNotFound(err):
				text = append(text, "not found")
			case err != nil:
				t.Fatal(err)
			}
			if c.op.Verb == remedy.Taint { // the pod garbage collector takes its time
				for err == nil {
					_, err = server.Events(t.Context(), true)
				}
				if err != nil && !errors.Is(err, gc.ErrAtRest) && !errors.Is(err, simulator.ErrNotModelled) {
					t.Fatal(err)
				}
			}
			for _, o := range world.Objects {
				now, fate := server.Object(o.UID)
				switch {
				case fate.State == simulator.Gone:
					text = append(text, o.Name+" gone")
				case len(now.Finalizers) != len(o.Finalizers):
					text = append(text, fmt.Sprintf("%s %s", o.Name, now.Finalizers))
				}
			}
			if got := strings.Join(text, ", "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if c.op.Object.UID == "" || c.op.Verb == remedy.Collect {
				return
			}
			other := c.op
			other.Object.UID = "another"
			if c.op.Verb == remedy.Delete {
				other = remedy.DeleteOf(other.Object, *c.op.Options)
			}
			if err := server.Do(t.Context(), &other); !errors.Is(err, remedy.ErrChanged) && !apierrors.IsNotFound(err) {
				t.Errorf("on another object with that name: %v", err)
			}
		})
	}
}
