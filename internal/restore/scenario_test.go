// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/internal/restore"
	"github.com/kubectl-gc/kubectl-gc/internal/scenarios"
	"github.com/kubectl-gc/kubectl-gc/internal/testworld"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// TestScenarios runs the scenarios in testdata/*.txt: what was kept, what there is by now, and what is done. Objects are as
// testworld.World reads them, with
//
//	generated   its name is one of chance
//	unkept      no manifest of it was kept; partial: without its data
//	stayed      it was not to be deleted; was-going: it was being deleted already
//	had=NAME    it is known that its volume was this one
//	remade      an earlier undo has made it, with the UID made-...; linked: it has had its references to what has the names made-...
//	only        it was asked for, and others are not
//	{...}       what else it has
func TestScenarios(t *testing.T) { scenarios.Run(t, answer) }

// world is what was kept, or is there.
type world struct {
	testworld.World
	whole map[types.UID]*unstructured.Unstructured
	flags map[types.UID]map[string]bool
	had   map[types.UID]string
}

func read(t *testing.T, text string) *world {
	w := &world{
		World: testworld.World{Types: testworld.Served(), Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), UID: testworld.Path},
		whole: map[types.UID]*unstructured.Unstructured{}, flags: map[types.UID]map[string]bool{}, had: map[types.UID]string{},
	}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		words, body, is := strings.Cut(strings.TrimSpace(line), " {")
		flags, had := map[string]bool{}, ""
		o, err := w.Add(strings.Fields(words), func(_ *graph.Object, key, value string) error {
			if flags[key] = true; key == "had" {
				had = value
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		whole := &unstructured.Unstructured{Object: map[string]any{}}
		if is {
			if err := json.Unmarshal([]byte("{"+body), &whole.Object); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		whole.SetGroupVersionKind(o.Resource.GroupVersionKind())
		whole.SetName(o.Name)
		whole.SetNamespace(o.Namespace)
		whole.SetUID(o.UID)
		whole.SetOwnerReferences(o.OwnerReferences)
		whole.SetFinalizers(o.Finalizers)
		whole.SetDeletionTimestamp(o.DeletionTimestamp)
		whole.SetCreationTimestamp(o.CreationTimestamp)
		if flags["generated"] {
			whole.SetGenerateName("x-")
		}
		w.whole[o.UID], w.flags[o.UID], w.had[o.UID] = whole, flags, had
	}
	return w
}

// Find implements restore.Cluster.
func (w *world) Find(id graph.Identity) (*unstructured.Unstructured, error) {
	for _, o := range w.Objects {
		if *o.Resource == id.Resource && o.Namespace == id.Namespace && o.Name == id.Name {
			return w.whole[o.UID], nil
		}
	}
	return nil, nil
}

// Resource implements restore.Cluster.
func (w *world) Resource(kind schema.GroupVersionKind) (graph.Resource, error) {
	r, err := w.Type(kind.Kind, kind.GroupVersion().String())
	if err != nil {
		return graph.Resource{}, err
	}
	return *r, nil
}

// Volumes implements restore.Cluster.
func (w *world) Volumes() (all []unstructured.Unstructured, _ error) {
	for _, o := range w.Objects {
		if o.Resource.Resource == "persistentvolumes" {
			all = append(all, *w.whole[o.UID])
		}
	}
	return all, nil
}

func answer(t *testing.T, body string) string {
	parts := strings.SplitN(body, "--\n", 3)
	if len(parts) < 2 {
		t.Fatal("no line --")
	}
	was, now := read(t, parts[0]), read(t, parts[1])
	var saved []restore.Saved
	only, given := false, restore.Given{}
	for _, o := range was.Objects {
		flags := was.flags[o.UID]
		s := restore.Saved{Object: o.Identity(), Manifest: was.whole[o.UID], Partial: flags["partial"], Stayed: flags["stayed"], Going: flags["was-going"]}
		if had := was.had[o.UID]; had != "" {
			s.Volume = types.UID("PersistentVolume/" + had)
		}
		for _, ref := range o.OwnerReferences {
			if s.Given = given; flags["linked"] {
				given.Add(o.UID, "made-"+ref.UID, "", true)
				given.Add("made-"+o.UID, "made-"+ref.UID, "", true)
			}
		}
		if flags["remade"] {
			s.Made = "made-" + o.UID
		}
		if was.flags[o.UID]["unkept"] {
			s.Manifest = nil
		} else {
			s.Manifest.SetUID("")
		}
		saved, only = append(saved, s), only || was.flags[o.UID]["only"]
	}
	var wanted func(graph.Identity) bool
	if only {
		wanted = func(id graph.Identity) bool { return was.flags[id.UID]["only"] }
	}
	var text strings.Builder
	plan := restore.Of(saved, now, wanted)
	ids, made := map[types.UID]types.UID{}, map[types.UID]*unstructured.Unstructured{}
	for _, i := range plan.Items {
		switch {
		case i.There() && (i.Now == nil || i.Now.GetUID() != i.Object.UID):
			ids[i.Object.UID] = "new-" + i.Object.UID
		case i.There():
			ids[i.Object.UID] = i.Object.UID
		}
		fmt.Fprintf(&text, "%d %s %s", i.Wave, i.Do, i.Object.UID)
		if i.Reason != "" {
			fmt.Fprintf(&text, ": %s", i.Reason)
		}
		if i.By.Name != "" {
			fmt.Fprintf(&text, " (%s/%s)", i.By.Resource.Kind, i.By.Name)
		}
		text.WriteString("\n")
		if i.Then != nil {
			fmt.Fprintf(&text, "    then %s %v\n", i.Then.Object.Name, i.Then.Patch)
		}
		switch i.Do {
		case restore.Make, restore.Await:
			content := i.Content(ids)
			made[i.Object.UID] = content.DeepCopy()
			for _, key := range slices.Sorted(maps.Keys(content.Object)) {
				if value := content.Object[key]; key != "kind" && key != "apiVersion" && key != "status" {
					unstructured.RemoveNestedField(content.Object, "metadata", "creationTimestamp")
					if m, is := value.(map[string]any); is && key == "metadata" {
						delete(m, "name")
						delete(m, "namespace")
						if len(m) == 0 {
							continue
						}
					}
					data, _ := json.Marshal(value)
					fmt.Fprintf(&text, "    %s %s\n", key, data)
				}
			}
		case restore.Link:
			if i.Late {
				text.WriteString("    late\n")
				i.Now = made[i.Object.UID]
			}
			if op := i.Relink(ids, i.Now); op != nil {
				fmt.Fprintf(&text, "    %v\n", op.Patch)
			}
		}
	}
	return parts[0] + "--\n" + parts[1] + "--\n" + strings.TrimRight(text.String(), "\n") + body[len(strings.TrimRight(body, "\n")):]
}
