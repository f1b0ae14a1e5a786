// SPDX-License-Identifier: Apache-2.0

// Package namespace has the rules of namespaces: what is left in one, what keeps its controller from knowing that, and the
// controller itself.
package namespace

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/definition"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/workload"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Namespaces: pkg/controller/namespace/deletion, namespaced_resources_deleter.go.

// MostAsked is how many objects of a namespace are asked about, to find those that cannot be deleted: the namespace controller
// deletes collections, and the server does not tell it which object it fails at.
const MostAsked = 50

// Gone is an object whose namespace does not exist. A namespace whose deletion finished in the ordinary way was empty: only
// an object that still exists after the namespace was missed was left behind, and one is enough to know that of the
// namespace. It is true for an object that went as well.
func Gone(f *rules.Facts, n graph.Node) ([]finding.Blocker, bool) {
	id := n.Identity()
	if !f.Outlived[id.Namespace] {
		o, err := f.Anew(id.Resource.GroupVersionResource, id.Namespace, id.Name)
		switch {
		case apierrors.IsNotFound(err), err == nil && o.GetUID() != id.UID:
			return []finding.Blocker{{Because: say.Of(rules.Deleted)}}, true
		case err != nil:
			return rules.Unread(n, say.Of(Missing), "the object", err), false
		}
		f.Outlived[id.Namespace] = true
	}
	if f.Changeable(n) {
		return nil, false
	}
	at := evidence.Identity(evidence.Namespaces, "", id.Namespace)
	return []finding.Blocker{{Because: say.Of(Missing), Cause: &finding.Cause{
		Kind: finding.NsForcedLeftovers, At: at, Key: id.Namespace, Shared: true, Verdict: finding.Stuck, Summary: say.Of(LeftBehind),
		Evidence: []finding.Fact{finding.At(at, "", evidence.DoesNotExist)},
		Ways:     []finding.Way{finding.Does(remedy.Op{Verb: remedy.Create, Object: at}, Recreate)},
	}}}, false
}

// Whole reads a namespace. Without it, the blockers say why it could not be read, and what is in it.
func Whole(f *rules.Facts, n graph.Node) (*unstructured.Unstructured, []finding.Blocker) {
	full, unread := f.WholeOr(n, say.Of(SpecUnknown), "its spec")
	if full == nil && unread[0].Cause != nil {
		unread = append(unread, contents(f, n)...)
	}
	return full, unread
}

// waits are what the finalizer of the namespace controller waits for: the contents are deleted first. The conditions are
// hints: they have been seen to say that the namespace is empty while pods were left.
func waits(f *rules.Facts, n graph.Node, full *unstructured.Unstructured) []finding.Blocker {
	return slices.Concat(discovery(f, n, full), contents(f, n), versions(n, full), unseen(f, n, full))
}

// contents are those that have to be deleted first: the pods, then the rest.
func contents(f *rules.Facts, n graph.Node) []finding.Blocker {
	all, left := f.In(n.Name()), 0
	for _, m := range all {
		if m.Resource().IsPod() {
			left++
		}
	}
	var blockers []finding.Blocker
	next := heldNext(f, n.Name())
	for _, m := range all {
		if !m.BeingDeleted() {
			continue
		}
		b := finding.Blocker{Symptom: finding.NsContent, Because: say.Of(WaitsForContents, evidence.Number(len(all), "object")).Then(next),
			Next: &m}
		if m.Resource().IsPod() && f.Server().PodsFirst() {
			b.Symptom, b.Because = finding.NsPodsFirst, say.Of(WaitsForPods, evidence.Some(left, "pod")).Then(next)
		}
		blockers = append(blockers, b)
	}
	return blockers
}

// heldNext says what of a namespace's contents, whose turn has not come, will block the namespace next: it has a finalizer
// that no controller removes. It is empty for none, as far as MostAsked of them tell.
func heldNext(f *rules.Facts, namespace string) say.Text {
	held, asked := 0, 0
	var first graph.Node
	blocker := "" // the finalizer of the first
	for _, m := range f.In(namespace) {
		if m.BeingDeleted() || m.Resource().IsPod() || len(m.Finalizers()) == 0 || asked == MostAsked {
			continue
		}
		asked++
		finalizer := unserved(f.Finder, m)
		if finalizer == "" {
			continue
		}
		if held++; held == 1 {
			first, blocker = m, finalizer
		}
	}
	switch held {
	case 0:
		return say.Text{}
	case 1:
		return say.Of(OneBlocksNext, first.Identity(), blocker)
	}
	return say.Of(MoreBlockNext, evidence.Number(held, "object"), first.Identity(), blocker)
}

// unserved returns the first finalizer of an object that certainly no controller removes as things are, empty for none.
func unserved(finder *controllers.Finder, n graph.Node) string {
	for _, finalizer := range n.Finalizers() {
		known := finder.Entries(finalizer, n.Resource().GroupVersionKind().GroupKind(), finalizers.Metadata)
		if graph.IsCollectorFinalizer(finalizer) || len(known) > 0 && known[0].Builtin != "" {
			continue
		}
		switch finder.Find(n, finalizer, finalizers.Metadata).Is {
		case controllers.Unserved, controllers.NotAllowed, controllers.NamespaceGone, controllers.NoController, controllers.Manual:
			return finalizer
		}
	}
	return ""
}

// unseen is content of types that could not be listed. Types that the server itself does not know are another cause.
func unseen(f *rules.Facts, n graph.Node, full *unstructured.Unstructured) []finding.Blocker {
	var blockers []finding.Blocker
	var rest []graph.Unlisted
	for _, u := range f.Unlisted {
		if u.Reason == graph.DiscoveryFailed || u.Name != "" || u.Namespace != "" && u.Namespace != n.Name() {
			continue
		}
		if namespaced, known := f.Namespaced(u.GroupVersionResource); f.Covers(u.GroupResource(), n.Name(), "") || !namespaced && known {
			continue
		}
		if c := definition.Unlisted(f, u); c != nil {
			blockers = append(blockers, finding.Blocker{Symptom: finding.NsContentFailure, Because: say.Of(CannotList), Cause: c})
		} else {
			rest = append(rest, u)
		}
	}
	if len(rest) == 0 {
		return blockers
	}
	c := &finding.Cause{
		Kind: finding.NsContent, At: n.Identity(), Key: "unlisted", Verdict: finding.Unknown, Summary: say.Of(EmptinessUnknown, f.Missing(rest)),
		Evidence: []finding.Fact{finding.Field(n, "spec.finalizers", "kubernetes")},
	}
	var told []string
	for _, kind := range []string{"NamespaceContentRemaining", "NamespaceFinalizersRemaining"} {
		if said, has := evidence.ConditionOf(full, kind); has && said.Status == "True" && said.Message != "" {
			told, c.Evidence = append(told, said.Message), append(c.Evidence, said.Fact(n.Identity()))
		}
	}
	if len(told) > 0 {
		c.Decides = c.Summary
		c.Summary = c.Summary.And(ControllerSays, strings.Join(told, "; "))
	}
	return append(blockers, finding.Blocker{Symptom: finding.NsContent, Because: say.Of(MightWaitFor), Cause: c})
}

// versions is an API whose versions the namespace controller cannot make sense of.
func versions(n graph.Node, full *unstructured.Unstructured) []finding.Blocker {
	failure, _ := evidence.ConditionOf(full, "NamespaceDeletionGroupVersionParsingFailure")
	if failure.Status != "True" {
		return nil
	}
	return []finding.Blocker{{Because: say.Of(CannotDiscover), Cause: &finding.Cause{
		Kind: finding.NsGvParse, At: n.Identity(), Verdict: finding.Stuck, Summary: say.Of(BadVersion), Decides: say.Plain(failure.Message),
		Evidence: finding.Facts(failure.Fact(n.Identity())),
		Ways:     []finding.Way{finding.See(remedy.Get("apiservices -o wide"), RepairAPI)},
	}}}
}

// discovery finds the APIs that keep the namespace controller from knowing what the namespace may hold.
func discovery(f *rules.Facts, n graph.Node, full *unstructured.Unstructured) []finding.Blocker {
	failure, _ := evidence.ConditionOf(full, "NamespaceDeletionDiscoveryFailure")
	failing := failure.Status == "True"
	if !failing && !slices.ContainsFunc(f.Unlisted, func(u graph.Unlisted) bool { return u.Reason == graph.DiscoveryFailed }) {
		return nil
	}
	registered, err := f.List(evidence.APIServices, "")
	if err != nil {
		return rules.Unread(n, say.Of(CannotDiscover), "apiservices.apiregistration.k8s.io", err)
	}
	because, fact := say.Of(CannotDiscover), failure.Fact(n.Identity())
	var blockers []finding.Blocker
	for i := range registered {
		available, known := evidence.ConditionOf(&registered[i], "Available")
		if evidence.Nested(&registered[i], "spec", "service", "name") == "" || known && available.Status == "True" {
			continue
		}
		c := unavailable(f, &registered[i], available)
		if failing {
			c.Verdict, c.Worst, c.First = finding.Stuck, true, &fact
		}
		blockers = append(blockers, finding.Blocker{Symptom: finding.NsDiscovery, Because: because, Cause: c})
	}
	if len(blockers) == 0 && failing {
		blockers = append(blockers, finding.Blocker{Because: because, Cause: &finding.Cause{
			Kind: finding.NsDiscovery, At: n.Identity(), Verdict: finding.Progressing, Summary: say.Of(APIsAnswer),
			Until: f.Now.Add(rules.ContentDelay), Evidence: []finding.Fact{fact},
		}})
	}
	return blockers
}

// unavailable is an aggregated API that does not answer. It stops the deletion of every namespace.
func unavailable(f *rules.Facts, api *unstructured.Unstructured, available evidence.Condition) *finding.Cause {
	at := evidence.IdentityOf(evidence.APIServices, "APIService", api)
	s := f.Admission.Serving(evidence.Nested(api, "spec", "service", "namespace"), evidence.Nested(api, "spec", "service", "name"))
	end := finding.Does(remedy.DeleteOf(at, metav1.DeleteOptions{}).Saved(f.Version(at)), Unregister)
	end.Loss = finding.Lost(remedy.Leaks, graph.Identity{}, LostStoredBy)
	ways := append(workload.Repair(f.Reader, s, say.Of(APIRepaired)), end)
	if s.Uninstalled {
		end.Effect, end.Leftover = say.Of(UnregisterLeftover, evidence.Identity(evidence.Services, s.Namespace, s.Name)), true
		ways = []finding.Way{end}
	}
	return &finding.Cause{
		Kind: finding.NsDiscovery, At: at, Key: api.GetName(), Shared: true, Verdict: finding.Unknown,
		Summary: say.Of(APISilent).Then(workload.Hopeless(s)), Decides: say.Plain(admission.Shortened(available.Said())),
		Evidence: finding.Facts(append([]evidence.Fact{available.Fact(at)}, s.Evidence...)...),
		Ways:     ways,
	}
}
