// SPDX-License-Identifier: Apache-2.0

// Package rules has what all rules share, such as what is known of kube-controller-manager. A rule says what keeps an object
// that is being deleted: it is a function over Facts, which only reads, and returns values. The rules are below, a package a
// subject. None of them knows the walk from object to object, nor the causes that were found before.
package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Facts are all that a rule may touch.
type Facts struct {
	*evidence.Reader
	Finder    *controllers.Finder
	Admission *admission.Reviewer
	Graph     *graph.Graph
	// Unlisted is what the snapshot lacks.
	Unlisted []graph.Unlisted
	// Outcomes are what the engine does with objects when nothing else acts.
	Outcomes map[types.UID]gc.Outcome
	// Outlived are the namespaces that do not exist, and in which an object has been seen since.
	Outlived map[string]bool
	// Together are the webhooks of causes that are one for several, and Exemptions are by what they are from.
	Together   map[*finding.Cause][]*admission.Webhook
	Exemptions map[string]Exemption
	// manager is what Manager has found out.
	manager *Manager
	// Each: what has to be done to each of many objects is wanted for all of them, not for the first few.
	Each bool
	// Note keeps what could not be found out.
	Note func(say.Text)
	// once are the causes that are found out once.
	once map[string]*finding.Cause
	// untouched is what Untouched has found, by namespace, and tried what TryContent has asked.
	untouched map[string][]graph.Node
	tried     map[types.UID]*tries
	// removals are the answers that Removal has got.
	removals map[string]admission.Reply
	// counts is what Count has counted, and names what Gather has.
	counts map[string]int
	names  map[string][]string
}

// Count returns how often it was called with the key, this time included.
func (f *Facts) Count(key string) int {
	if f.counts == nil {
		f.counts = map[string]int{}
	}
	f.counts[key]++
	return f.counts[key]
}

// Gather returns the names that it was called with for the key, and whether this one is new.
func (f *Facts) Gather(key, name string) (all []string, added bool) {
	if slices.Contains(f.names[key], name) {
		return f.names[key], false
	}
	if f.names == nil {
		f.names = map[string][]string{}
	}
	f.names[key] = append(f.names[key], name)
	return f.names[key], true
}

// Removal returns what the API server answers to the removal of a finalizer, which is asked once.
func (f *Facts) Removal(n graph.Node, finalizer string) admission.Reply {
	key := string(n.UID()) + " " + finalizer
	r, asked := f.removals[key]
	if asked {
		return r
	}
	if f.removals == nil {
		f.removals = map[string]admission.Reply{}
	}
	f.removals[key] = f.Admission.TryRemoval(n, finalizer)
	return f.removals[key]
}

// Once returns the cause of a kind with the key, wherever it is met. It is found out when it is first met, and may grow.
func (f *Facts) Once(kind finding.Kind, key string, fill func(*finding.Cause)) *finding.Cause {
	c := f.once[kind.ID+" "+key]
	if c == nil {
		c = &finding.Cause{Kind: kind, Key: key, Shared: true, Grows: true, Verdict: finding.Unknown}
		if f.once == nil {
			f.once = map[string]*finding.Cause{}
		}
		f.once[kind.ID+" "+key] = c
		fill(c)
	}
	return c
}

// Namespaced reports whether objects of a type are in namespaces, if that is known.
func (f *Facts) Namespaced(resource schema.GroupVersionResource) (namespaced, known bool) {
	kind, err := f.Graph.Snapshot().Mapper.KindFor(resource)
	if err != nil {
		return false, false
	}
	mapping, err := f.Graph.Snapshot().Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, false
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}

// Exemption is the way out to exempt namespaces from what refuses writes: a policy, or so many webhooks.
type Exemption struct {
	Namespaces []string
	Webhooks   int
	// Protected are objects of which a change was denied on purpose.
	Protected []graph.Identity
	Way       finding.Way
}

// Mark is a finalizer at its index in the list of an object.
type Mark struct {
	graph.Node
	Index int
	Key   string
}

// Rule returns what a finalizer waits for. It is false when the API does not show that, so that the question is who
// should act.
type Rule func(*Facts, Mark) ([]finding.Blocker, bool)

// DriverDelay is for how long an external driver may have the same failure before that counts.
const DriverDelay = 10 * time.Minute

// CollectorDelay is how long the garbage collector, or the API server, may take for one step.
const CollectorDelay = 10 * time.Second

// Age is how long ago the object's deletion was asked for.
func (f *Facts) Age(n graph.Node) time.Duration { return f.Now.Sub(evidence.Requested(n.Object())) }

// Changeable reports whether an object can be changed although its namespace does not exist, by the version of the API
// server or a dry run.
func (f *Facts) Changeable(n graph.Node) bool {
	if f.Server().ChangesWithoutNamespace() {
		return true
	}
	for _, finalizer := range n.Finalizers() {
		return f.Admission.TryRemoval(n, finalizer).Kind == answer.Accepted
	}
	return false
}

// Change changes an object that was read whole, which is kept in a file before, and can be taken back.
func (f *Facts) Change(at graph.Identity, whole *unstructured.Unstructured, steps ...remedy.Step) remedy.Op {
	return remedy.PatchOf(at, steps...).Saved(f.Version(at)).TakenBack(whole.Object)
}

// Pending reports whether the engine removed the garbage collector's finalizer.
func (f *Facts) Pending(n graph.Node, finalizer string) bool {
	o, concerned := f.Outcomes[n.UID()]
	return concerned && (o.Result == gc.Deleted || o.Object.BeingDeleted() && !o.Object.HasFinalizer(finalizer))
}

// Incomplete says which lists, which might have dependents of an object, could not be read; it is nil for none.
func (f *Facts) Incomplete() say.Text {
	if len(f.Unlisted) == 0 {
		return say.Text{}
	}
	return f.Missing(f.Unlisted)
}

// Missing says of some of what the snapshot lacks that it could not be listed.
func (f *Facts) Missing(unlisted []graph.Unlisted) say.Text {
	snapshot := f.Graph.Snapshot()
	name, where := say.Plain(unlisted[0].GroupResource()), snapshot.Beyond(unlisted[0])
	if slices.ContainsFunc(unlisted, func(u graph.Unlisted) bool { return snapshot.Beyond(u) != where }) && where != "" {
		name, where = say.Plain(unlisted[0].GroupResource().String()+" ("+where+")"), ""
	} else if where != "" {
		where = " " + where
	}
	if unlisted[0].Resource == "" {
		name = say.Of(TypesOf, unlisted[0].GroupVersion())
	}
	if more := len(unlisted) - 1; more > 0 {
		return say.Of(MoreUnlisted, name, more, where)
	}
	return say.Of(NotListed, name, where)
}

// FirstManager names the program that created an object, by its field managers; it is empty for a user.
func (f *Facts) FirstManager(n graph.Node) string {
	full, err := f.Whole(n)
	if err != nil {
		return ""
	}
	first := ""
	var when metav1.Time
	for _, entry := range full.GetManagedFields() {
		// No object is created by its status, and the times are of seconds.
		if entry.Subresource == "" && entry.Time != nil && (first == "" || entry.Time.Before(&when)) {
			first, when = entry.Manager, *entry.Time
		}
	}
	if strings.HasPrefix(first, "kubectl") || first == "Mozilla" {
		return ""
	}
	return first
}

// WholeOr reads an object that is to be judged. Without it, the blockers say why it could not be read.
func (f *Facts) WholeOr(n graph.Node, because say.Text, what string) (*unstructured.Unstructured, []finding.Blocker) {
	full, err := f.Whole(n)
	switch {
	case apierrors.IsNotFound(err):
		return nil, []finding.Blocker{{Because: say.Of(Deleted)}}
	case err != nil:
		return nil, Unread(n, because, what, err)
	}
	return full, nil
}

// Unread is an object of which something that decides could not be read.
func Unread(n graph.Node, because say.Text, what string, err error) []finding.Blocker {
	return []finding.Blocker{{Because: because, Cause: &finding.Cause{
		Kind: finding.NotRead, At: n.Identity(), Key: what, Verdict: finding.Unknown,
		Summary: say.Of(Unreadable, what), Evidence: []finding.Fact{finding.At(what, "", err.Error())},
	}}}
}

// Link leads to an object of a type that must be deleted, or change, first: by the graph when it is being deleted, to its
// cause when it is not.
func (f *Facts) Link(symptom finding.Kind, because say.Text, of schema.GroupVersionResource, o *unstructured.Unstructured,
	cause func() *finding.Cause) finding.Blocker {
	b := finding.Blocker{Symptom: symptom, Because: because}
	if m, known := f.Node(of.GroupResource(), o.GetNamespace(), o.GetUID()); known && m.BeingDeleted() {
		b.Next = &m
	} else {
		b.Cause = cause()
	}
	return b
}

// Warnings are the failures that events tell of an object since its deletion was asked for; with reasons only those of
// these.
func Warnings(r *evidence.Reader, n graph.Node, reasons ...string) []finding.Fact {
	asked := evidence.Requested(n.Object())
	var facts []finding.Fact
	for _, o := range r.Events(n.Namespace(), n.UID()) {
		e := evidence.NewEvent(&o)
		if e.Type != "Warning" || e.Last.Before(asked) || len(reasons) > 0 && !slices.Contains(reasons, e.Reason) {
			continue
		}
		if len(facts) < evidence.MaxShown {
			facts = append(facts, e.Fact())
		}
	}
	return facts
}

// skew is how far clocks may differ without a mention.
const skew = time.Minute

// Future is an object that was deleted in the future: only pods have a grace period, so clocks differ, and no age can be
// trusted.
func (f *Facts) Future(n graph.Node) []finding.Blocker {
	ahead := evidence.Requested(n.Object()).Sub(f.Now)
	if ahead <= skew {
		return nil
	}
	return []finding.Blocker{{Because: say.Of(InTheFuture), Cause: &finding.Cause{
		Kind: finding.ClockSkew, At: n.Identity(), Shared: true, Verdict: finding.Unknown,
		Summary: say.Of(RequestedAhead, duration.HumanDuration(ahead)),
		Evidence: []finding.Fact{
			finding.Field(n, "metadata.deletionTimestamp", n.Object().DeletionTimestamp.UTC().Format(time.RFC3339)),
			finding.At("the API server", "Date", f.Now.UTC().Format(time.RFC3339)),
		},
		Ways: []finding.Way{{Effect: say.Of(SyncClocks)}},
	}}}
}

// RemoveFinalizer removes a finalizer from its object, as long as it is at the index at which it was seen. loss is what
// its controller does not clean up then.
func RemoveFinalizer(m Mark, loss []remedy.Loss) finding.Way {
	at := fmt.Sprintf("/metadata/finalizers/%d", m.Index)
	way := finding.Does(remedy.PatchOf(m.Identity(), remedy.Test(at, m.Key), remedy.Remove(at)), ByHand)
	way.Risk, way.Loss = finding.Dangerous, loss
	return way
}

// ControllerOf returns the reference of an object to its controller, nil without one.
func ControllerOf(n graph.Node) *metav1.OwnerReference {
	return metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: n.Object().OwnerReferences})
}

// Evidence shows the finalizer.
func (m Mark) Evidence() finding.Fact {
	return finding.Field(m.Node, fmt.Sprintf("metadata.finalizers[%d]", m.Index), m.Key)
}
