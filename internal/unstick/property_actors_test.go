// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// event is what happens at a request: something that another one does right before or after it is carried out, or what becomes of it.
type event struct {
	// Of is the kind of the request (read, write, look), and N its number among those of its kind, at which it happens first; Times is how
	// often.
	Of       string
	N, Times int
	// Do is a deed of deeds, or a fault of faults; After is when. With is what of.
	Do    string
	After bool
	With  int
}

func (e event) String() string {
	return fmt.Sprintf("%s %s %d, %d times: %s %d", map[bool]string{true: "after", false: "before"}[e.After], e.Of, e.N, e.Times, e.Do, e.With)
}

// at reports whether it happens at a request.
func (e event) at(kind string, n int, after bool) bool {
	return e.Of == kind && n >= e.N && n < e.N+e.Times && e.After == after
}

// faults of a write: no answer, and it is never made, or it was, or it is made later (before so many other requests, or after all), or the
// server says no, or the disk of the journal is full for a while, or the run is killed, maybe while the write is in flight, or interrupted.
// Of a look it may be that a type could not be listed.
var faults = []string{"lost", "late", "late", "late", "429", "500", "invalid", "kill", "kill in flight", "kill in flight", "disk", "interrupt"}

// deeds of others, each of one object of those for which it makes sense.
var deeds = map[string]func(p *play, with int){
	"beat": func(p *play, with int) {
		p.edit(with, nil, func(o *unstructured.Unstructured) { put(o, time.Now().Format(time.RFC3339), "status", "seen") })
	},
	"label": func(p *play, with int) {
		p.edit(with, nil, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"n": fmt.Sprint(with)}) })
	},
	"drain": func(p *play, with int) {
		p.edit(with, holding("x/"), func(o *unstructured.Unstructured) { put(o, "draining", "status", "phase") })
	},
	"finish": func(p *play, with int) { p.edit(with, holding("x/"), dropFirst) },
	"reorder": func(p *play, with int) {
		p.edit(with, holding("x/"), func(o *unstructured.Unstructured) {
			finalizers := o.GetFinalizers()
			slices.Reverse(finalizers)
			o.SetFinalizers(finalizers)
		})
	},
	"hold": func(p *play, with int) {
		p.edit(with, func(o *unstructured.Unstructured) bool {
			return o.GetDeletionTimestamp() == nil && o.GetNamespace() == "s"
		}, func(o *unstructured.Unstructured) {
			o.SetFinalizers(append([]string{"x/new"}, o.GetFinalizers()...))
		})
	},
	"rescue": func(p *play, with int) { // kubectl delete --cascade=orphan
		p.edit(with, holding(metav1.FinalizerDeleteDependents), func(o *unstructured.Unstructured) {
			finalizers := slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == metav1.FinalizerDeleteDependents })
			o.SetFinalizers(append(finalizers, metav1.FinalizerOrphanDependents))
		})
	},
	"disown": func(p *play, with int) {
		p.edit(with, owned1, func(o *unstructured.Unstructured) { o.SetOwnerReferences(o.GetOwnerReferences()[1:]) })
	},
	"own": func(p *play, with int) {
		p.edit(with, inS, func(o *unstructured.Unstructured) {
			owner := string(rune('a' + with%4))
			if owner != o.GetName() && !slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.Name == owner }) {
				blocks := true
				o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: types.UID("uid-" + owner), BlockOwnerDeletion: &blocks}))
			}
		})
	},
	"delete": func(p *play, with int) {
		p.edit(with, inS, func(o *unstructured.Unstructured) {
			if o.GetDeletionTimestamp() == nil {
				o.SetDeletionTimestamp(new(metav1.Now()))
			}
		})
	},
	"remove": func(p *play, with int) { p.remove(with, inS) },
	"recreate": func(p *play, with int) {
		if o := p.remove(with, func(o *unstructured.Unstructured) bool { return o.GetKind() != served["volume"].Kind }); o != nil {
			o.SetUID(types.UID(fmt.Sprint("again-", p.requests, "-", o.GetName())))
			o.SetDeletionTimestamp(nil)
			p.server.Put(idOf(o), o.Object)
		}
	},
	"scale": func(p *play, with int) {
		p.server.Edit(refTo("deploy", "ctl"), func(o *unstructured.Unstructured) { put(o, int64(with%3), "spec", "replicas") })
	},
	"reclaim": func(p *play, with int) {
		p.edit(with, ofKind("volume"), func(o *unstructured.Unstructured) {
			put(o, []string{"Delete", "Retain"}[with%2], "spec", "persistentVolumeReclaimPolicy")
		})
	},
	"prepend": func(p *play, _ int) {
		p.server.Edit(refTo("hooks", "g"), func(o *unstructured.Unstructured) {
			hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
			put(o, append([]any{map[string]any{"name": fmt.Sprintf("new%d-%d.example.com", p.requests, len(hooks)), "failurePolicy": "Fail"}}, hooks...), "webhooks")
		})
	},
	"unhook": func(p *play, with int) {
		p.hooks(with, func(_ map[string]any) bool { return false })
	},
	"expect": func(p *play, with int) { // an expression of theirs before ours
		p.selectors(with, func(expressions []any) []any {
			return append([]any{map[string]any{"key": fmt.Sprint("theirs", p.requests), "operator": "DoesNotExist"}}, expressions...)
		})
	},
	"same": func(p *play, with int) {
		p.selectors(with, func(expressions []any) []any {
			return append(expressions, map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{"s"}})
		})
	},
	"widen": func(p *play, with int) { // ours becomes another
		p.selectors(with, func(expressions []any) []any {
			for _, e := range expressions {
				if e := e.(map[string]any); e["operator"] == "NotIn" {
					e["values"] = []any{"s", "t"}
				}
			}
			return expressions
		})
	},
	"harden": func(p *play, with int) {
		p.hooks(with, func(hook map[string]any) bool {
			hook["failurePolicy"] = "Fail"
			hook["timeoutSeconds"] = int64(3)
			return true
		})
	},
	"soften": func(p *play, with int) {
		p.hooks(with, func(hook map[string]any) bool { hook["failurePolicy"] = "Ignore"; return true })
	},
	"revert": func(p *play, _ int) { // a controller that has its object as it was before the last of our changes
		if n := len(p.made); n > 0 && p.made[n-1].After != nil && p.made[n-1].Before != nil {
			before := p.made[n-1].Before
			p.server.Edit(idOf(before), func(o *unstructured.Unstructured) {
				if o.GetUID() == before.GetUID() {
					o.Object = before.DeepCopy().Object
				}
			})
		}
	},
	"collect":     func(p *play, _ int) { p.collect() },
	"controllers": func(p *play, _ int) { p.controllers() },
}

var deedNames = func() []string {
	var names []string
	for name := range deeds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

var eventGen = rapid.Custom(func(t *rapid.T) event {
	e := event{Times: rapid.SampledFrom([]int{1, 1, 4}).Draw(t, "times"), After: rapid.Bool().Draw(t, "after"), With: rapid.IntRange(0, 11).Draw(t, "with")}
	if rapid.IntRange(0, 2).Draw(t, "fault") == 0 {
		e.Of, e.Do = "write", rapid.SampledFrom(faults).Draw(t, "do")
		if e.After && e.Do != "kill" && e.Do != "interrupt" && e.Do != "lost" && e.Do != "500" {
			e.After = false
		}
	} else if rapid.IntRange(0, 9).Draw(t, "look") == 0 {
		e.Of, e.Do = "look", rapid.SampledFrom([]string{"unlisted", "interrupt", "kill"}).Draw(t, "do")
	} else {
		e.Of, e.Do = rapid.SampledFrom([]string{"write", "write", "look", "read"}).Draw(t, "of"), rapid.SampledFrom(deedNames).Draw(t, "do")
	}
	e.N = rapid.IntRange(0, map[string]int{"write": 6, "look": 5, "read": 24}[e.Of]).Draw(t, "n")
	return e
})

func holding(prefix string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		return o.GetDeletionTimestamp() != nil && slices.ContainsFunc(o.GetFinalizers(), func(f string) bool { return strings.HasPrefix(f, prefix) })
	}
}

func inS(o *unstructured.Unstructured) bool    { return o.GetNamespace() == "s" }
func owned1(o *unstructured.Unstructured) bool { return len(o.GetOwnerReferences()) > 0 }
func ofKind(word string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool { return o.GetKind() == served[word].Kind }
}

func put(o *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err)
	}
}

func dropFirst(o *unstructured.Unstructured) {
	finalizers := o.GetFinalizers()
	at := slices.IndexFunc(finalizers, func(f string) bool { return strings.HasPrefix(f, "x/") })
	o.SetFinalizers(slices.Delete(finalizers, at, at+1))
}

// edit changes one of the objects for which that makes sense.
func (p *play) edit(with int, sense func(*unstructured.Unstructured) bool, change func(*unstructured.Unstructured)) {
	if o := p.pick(with, sense); o != nil {
		p.server.Edit(idOf(o), change)
	}
}

func (p *play) pick(with int, sense func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	all := slices.DeleteFunc(p.server.Objects(), func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Namespace" || sense != nil && !sense(o)
	})
	if len(all) == 0 {
		return nil
	}
	return all[with%len(all)]
}

func (p *play) remove(with int, sense func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	o := p.pick(with, sense)
	if o != nil {
		p.server.Remove(idOf(o))
	}
	return o
}

// hooks changes a webhook, or removes it when that is false.
func (p *play) hooks(with int, change func(map[string]any) bool) {
	p.server.Edit(refTo("hooks", "g"), func(o *unstructured.Unstructured) {
		hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		if len(hooks) > 0 && !change(hooks[with%len(hooks)].(map[string]any)) {
			hooks = slices.Delete(hooks, with%len(hooks), with%len(hooks)+1)
		}
		put(o, hooks, "webhooks")
	})
}

// selectors changes the expressions of a webhook or of the binding.
func (p *play) selectors(with int, change func([]any) []any) {
	in := func(holder map[string]any) {
		expressions, _, _ := unstructured.NestedSlice(holder, "namespaceSelector", "matchExpressions")
		if changed := change(expressions); len(changed) > 0 {
			_ = unstructured.SetNestedSlice(holder, changed, "namespaceSelector", "matchExpressions")
		}
	}
	if with%2 == 0 {
		p.hooks(with/2, func(hook map[string]any) bool { in(hook); return true })
		return
	}
	p.server.Edit(refTo("policy", "binding"), func(o *unstructured.Unstructured) {
		resources, _, _ := unstructured.NestedMap(o.Object, "spec", "matchResources")
		if resources == nil {
			resources = map[string]any{}
		}
		in(resources)
		put(o, resources, "spec", "matchResources")
	})
}

// controllers removes x/a of what is being deleted, if its controller runs and nothing refuses that. What lets it work is to blame.
func (p *play) controllers() {
	operator := p.server.Object(refTo("deploy", "ctl"))
	if operator == nil {
		return
	}
	if replicas, _, _ := unstructured.NestedInt64(operator.Object, "spec", "replicas"); replicas == 0 {
		return
	}
	for _, o := range p.server.Objects() {
		if !holding("x/a")(o) || inS(o) && len(guards(p.server)) > 0 {
			continue
		}
		p.blame = p.enabler(o)
		p.server.Edit(idOf(o), func(o *unstructured.Unstructured) {
			o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == "x/a" }))
		})
		p.see()
		p.blame = nil
	}
}

// enabler is what let the controller of an object work: the last of our changes of that or of what refused it.
func (p *play) enabler(o *unstructured.Unstructured) *send {
	for i := len(p.made) - 1; i >= 0; i-- {
		if word := wordOf(idOf(p.made[i].Object())); word == "deploy" || inS(o) && (word == "hooks" || word == "policy") {
			return p.sent[p.made[i].Op]
		}
	}
	return nil
}

// collect deletes what has only owners that are gone, as a garbage collector would that is late. Who removed the owner is to blame.
func (p *play) collect() {
	for _, o := range p.server.Objects() {
		refs := o.GetOwnerReferences()
		alive := slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool {
			owner := p.server.Object(refTo("cm", r.Name))
			return owner != nil && owner.GetUID() == r.UID
		})
		if len(refs) == 0 || alive || o.GetDeletionTimestamp() != nil {
			continue
		}
		for _, r := range refs {
			if by := p.removed[r.UID]; by != nil {
				p.blame = by
			}
		}
		p.server.Edit(idOf(o), func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(new(metav1.Now())) })
		p.see()
		p.blame = nil
	}
}

// leaves are all values in an object, with how often, by their paths; entries of lists by their names or values.
func leaves(o *unstructured.Unstructured) map[string]int {
	all := map[string]int{}
	if o == nil {
		return all
	}
	copied := o.DeepCopy()
	copied.SetResourceVersion("")
	copied.SetDeletionTimestamp(nil)
	addLeaves(all, "", plain(copied.Object))
	return all
}

func addLeaves(all map[string]int, path string, value any) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		delete(v, "matchPolicy") // a default, which stays
		for key, each := range v {
			addLeaves(all, path+"/"+key, each)
		}
	case []any:
		for _, each := range v {
			m, _ := each.(map[string]any)
			uid, _ := m["uid"].(string)
			name, _ := m["name"].(string)
			if uid+name != "" {
				addLeaves(all, path+"["+uid+name+"]", each)
			} else {
				all[path+"="+marshal(each)]++
			}
		}
	default:
		all[path+"="+marshal(v)]++
	}
}

// difference is what a version adds and removes.
func difference(before, after *unstructured.Unstructured) (added, removed []string) {
	was, is := leaves(before), leaves(after)
	for leaf, n := range is {
		for range n - was[leaf] {
			added = append(added, leaf)
		}
	}
	for leaf, n := range was {
		for range n - is[leaf] {
			removed = append(removed, leaf)
		}
	}
	slices.Sort(added)
	slices.Sort(removed)
	return added, removed
}

// intent is what a change is to add and to remove, by the object that was looked at.
type intent struct{ added, removed []string }

func intentOf(before *unstructured.Unstructured, op remedy.Op) intent {
	scratch := scratch(before)
	if before == nil || op.Verb == remedy.Collect || op.Verb == remedy.Delete {
		return intent{}
	}
	if err := scratch.Apply(&op); err != nil {
		return intent{}
	}
	var i intent
	i.added, i.removed = difference(before, scratch.Object(op.Object))
	if after := scratch.Object(op.Object); after == nil { // with its last finalizer
		i.added = nil
		i.removed = slices.DeleteFunc(i.removed, func(leaf string) bool { return !strings.HasPrefix(leaf, "/metadata/finalizers=") })
	}
	return i
}
