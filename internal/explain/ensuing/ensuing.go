// SPDX-License-Identifier: Apache-2.0

// Package ensuing says what others than the garbage collector delete because objects go: the pods of nodes, those that a StatefulSet ends
// after one of them, what a tool's own object has deployed, and what waited for a guard. What the garbage collector deletes is graph.Fall.
package ensuing

import (
	"cmp"
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// By is how an object leads to the end of another.
type By int

// What they are to it.
const (
	// Node: it is a pod that runs on the node (pkg/controller/podgc/gc_controller.go, gcOrphaned).
	Node By = iota
	// NodeOnly: it is a pod on the node that has ended, or is of a DaemonSet.
	NodeOnly
	// Set: it is what a StatefulSet that was made smaller ends after this pod.
	Set
	// Job: it is another pod of the Job, which may fail with this one (pkg/controller/job/job_controller.go, syncJob).
	Job
	// TTL: it is the Job of the pod, and may finish with it; then it expires (pkg/controller/ttlafterfinished).
	TTL
	// Owner: it waits for this blocking dependent.
	Owner
	// Tool: it was deployed by the tool's own object, with which the tool's controller deletes it.
	Tool
	// Pod: it is in a namespace that is being deleted, of which the pods are deleted before the rest
	// (pkg/controller/namespace/deletion/namespaced_resources_deleter.go, OrderedNamespaceDeletion).
	Pod
	// Attachment: it is a volume, which its driver does not delete while it is attached, or the attachment of a node.
	Attachment
	// Token: it is a Secret with a token of the account (pkg/controller/serviceaccount/tokens_controller.go).
	Token
)

// Effect are objects that go, or may, because another does.
type Effect struct {
	Of    graph.Node
	Nodes []graph.Node
	By    By
	// Certain is unset where that depends on what is not known.
	Certain bool
}

// Finder finds what ensues, and reads each thing once. It is for one goroutine.
type Finder struct {
	ctx      context.Context // of the run
	cluster  evidence.Cluster
	reader   *evidence.Reader
	reviewer *admission.Reviewer
	graph    *graph.Graph

	sets  map[types.UID]condemned
	nodes map[string]*OnNode
	leave []graph.Node
	// marked and entries are the objects by what deployed them, and by how an inventory names them.
	marked  map[delivery.Mark][]graph.Node
	entries map[delivery.Entry][]graph.Node
	// rest is what is left, by its namespace, of those that are being deleted, or of garbage.
	rest map[string][]graph.Node
}

type condemned struct {
	nodes []graph.Node
	err   error
}

// New returns a Finder that has read nothing. The reader's and the reviewer's graph is that of the source.
func New(ctx context.Context, source evidence.Source, reader *evidence.Reader, reviewer *admission.Reviewer) *Finder {
	return &Finder{
		ctx: ctx, cluster: source.Cluster, reader: reader, reviewer: reviewer, graph: source.Graph, sets: map[types.UID]condemned{},
		nodes: map[string]*OnNode{},
	}
}

// After returns what goes because of objects that go, of which some certainly do, and those of which it could not be read what that is.
func (f *Finder) After(fresh []graph.Node, certain graph.Set) (all []Effect, unread []graph.Node) {
	var nodes []graph.Node
	tokens, tokensErr := f.tokens(fresh)
	for _, n := range fresh {
		var after []graph.Node
		by := Set
		add := func(by By, nodes []graph.Node) { all = append(all, Effect{n, nodes, by, by == Token}) }
		add(Pod, f.afterPods(n))
		others, expires, err := f.ofJob(n, fresh)
		add(Job, others)
		add(TTL, expires)
		add(Owner, waitingOwners(n))
		switch of := n.Resource().GroupResource(); {
		case of == evidence.Nodes.GroupResource():
			nodes = append(nodes, n)
			by = Attachment
			after, err = f.DetachedFrom(n.Name())
		case n.Resource().IsPod():
			var unknown error
			after, unknown = f.condemned(n, certain)
			err = cmp.Or(err, unknown)
		case of == evidence.ServiceAccounts.GroupResource():
			by = Token
			after, err = tokens[n.UID()], tokensErr
		case of == attachments:
			by = Attachment
			after, err = f.attached(n)
		case delivery.Known(of) && slices.ContainsFunc(n.Finalizers(), func(f string) bool { return !graph.IsCollectorFinalizer(f) }):
			by = Tool
			after, err = f.deployed(n)
		}
		add(by, after)
		if err != nil {
			unread = append(unread, n)
		}
	}
	for _, on := range f.OnNodes(nodes) {
		all = append(all, Effect{on.Node, on.Running, Node, on.Unread == nil}, Effect{on.Node, on.Others, NodeOnly, on.Unread == nil})
		if on.Unread != nil || on.Unknown {
			unread = append(unread, on.Node)
		}
	}
	return slices.DeleteFunc(all, func(e Effect) bool { return len(e.Nodes) == 0 }), unread
}

// condemned are the pods that StatefulSets end once this one is gone, with the claims that they delete then.
func (f *Finder) condemned(pod graph.Node, certain graph.Set) (all []graph.Node, err error) {
	for _, set := range evidence.SetsOf(pod) {
		if certain.Has(set) {
			continue
		}
		c, known := f.sets[set.UID()]
		if !known {
			whole, err := f.reader.Whole(set)
			if c.err = err; err == nil {
				c.nodes = evidence.Condemned(whole, set, f.graph.Nodes())
			}
			f.sets[set.UID()] = c
		}
		if all == nil {
			all = slices.Clip(c.nodes) // it is the same for each pod
		} else {
			all = append(all, c.nodes...)
		}
		err = cmp.Or(err, c.err)
	}
	return all, err
}

// afterPods are the objects that are deleted after the pods of a namespace which is being deleted.
func (f *Finder) afterPods(n graph.Node) []graph.Node {
	if !n.Resource().IsPod() {
		return nil
	}
	if f.rest == nil {
		f.rest = map[string][]graph.Node{}
		for _, m := range f.Leaving() {
			if !m.BeingDeleted() && !m.Resource().IsPod() && m.Namespace() != "" {
				f.rest[m.Namespace()] = append(f.rest[m.Namespace()], m)
			}
		}
	}
	return f.rest[n.Namespace()]
}

var attachments = schema.GroupResource{Group: "storage.k8s.io", Resource: "volumeattachments"}

// attached is the volume of an attachment, if that waits to be reclaimed.
func (f *Finder) attached(n graph.Node) ([]graph.Node, error) {
	whole, err := f.reader.Whole(n)
	if err != nil {
		return nil, err
	}
	volumes := f.reader.Named(evidence.Volumes.GroupResource(), "", evidence.Nested(whole, "spec", "source", "persistentVolumeName"))
	return slices.DeleteFunc(slices.Clone(volumes), func(v graph.Node) bool {
		whole, err := f.reader.Whole(v)
		if err != nil || v.BeingDeleted() {
			return false
		}
		of := types.UID(evidence.Nested(whole, "spec", "claimRef", "uid"))
		claim, there := f.graph.Node(of)
		return of == "" || there && !claim.Virtual()
	}), nil
}

// tokens are the Secrets with tokens of those nodes that are ServiceAccounts, by their UIDs.
func (f *Finder) tokens(of []graph.Node) (map[types.UID][]graph.Node, error) {
	in := sets.New[string]()
	for _, n := range of {
		if n.Resource().GroupResource() == evidence.ServiceAccounts.GroupResource() &&
			len(f.reader.Within(evidence.Secrets.GroupResource(), n.Namespace())) > 0 {
			in.Insert(n.Namespace())
		}
	}
	by := map[types.UID][]graph.Node{}
	for _, namespace := range f.reader.Where(evidence.Secrets.GroupResource(), in) {
		var found []unstructured.Unstructured // their metadata
		begin, keep := func() { found = nil }, func(o *unstructured.Unstructured) { found = append(found, *o) }
		if err := f.reader.EachNaming(evidence.Secrets, namespace, []string{corev1.ServiceAccountUIDKey}, begin, keep); err != nil {
			return nil, err
		}
		for i := range found {
			account := types.UID(found[i].GetAnnotations()[corev1.ServiceAccountUIDKey])
			if n, known := f.graph.Node(found[i].GetUID()); known {
				by[account] = append(by[account], n)
			}
		}
	}
	return by, nil
}

// DetachedFrom are the attachments of a node, which end when that is gone or out of service
// (pkg/controller/volume/attachdetach/reconciler/reconciler.go).
func (f *Finder) DetachedFrom(node string) ([]graph.Node, error) {
	var all []graph.Node
	for n := range f.reader.Instances(attachments) {
		whole, err := f.reader.Whole(n)
		if err != nil {
			return nil, err
		}
		if evidence.Nested(whole, "spec", "nodeName") == node {
			all = append(all, n)
		}
	}
	return all, nil
}

// deployed are the objects that a tool's own object says that it has deployed, as far as they were read.
func (f *Finder) deployed(n graph.Node) ([]graph.Node, error) {
	of := n.Resource().GroupResource()
	whole, err := f.reader.Whole(n)
	if err != nil || delivery.Spares(of, whole) {
		return nil, err
	}
	f.index()
	all := graph.NewSet(f.marked[delivery.Mark{Resource: of, Namespace: n.Namespace(), Name: n.Name()}]...)
	if delivery.Deploys(of) {
		all.AddAll(f.entered(delivery.Inventory(of, whole)))
	}
	return all.Sorted(), nil
}

// Unwanted are the objects that the controller of a type deletes as soon as it acts again, and the objects of the type that could not be
// read.
func (f *Finder) Unwanted(of schema.GroupResource) (all graph.Set, unread []graph.Node) {
	if !delivery.Deploys(of) {
		return all, nil
	}
	for n := range f.reader.Instances(of) {
		whole, err := f.reader.Whole(n)
		if err != nil {
			unread = append(unread, n)
			continue
		}
		all.AddAll(f.entered(delivery.Unwanted(of, whole)))
	}
	return all, unread
}

// entered are the objects of entries of an inventory.
func (f *Finder) entered(entries []delivery.Entry) (all graph.Set) {
	f.index()
	for _, e := range entries {
		e.Version = "" // an object is the same in each
		all.AddAll(graph.NewSet(f.entries[e]...))
	}
	return all
}

// index finds the objects by how those that deployed them name them.
func (f *Finder) index() {
	if f.marked != nil {
		return
	}
	f.marked, f.entries = map[delivery.Mark][]graph.Node{}, map[delivery.Entry][]graph.Node{}
	for m := range f.graph.Nodes() {
		if m.Virtual() {
			continue
		}
		e := evidence.EntryOf(m.Identity())
		f.entries[e] = append(f.entries[e], m)
		for _, mark := range delivery.MarksOf(m.Object().Labels, nil) {
			if !mark.Usual && delivery.Known(mark.Resource) {
				by := delivery.Mark{Resource: mark.Resource, Namespace: mark.Namespace, Name: mark.Name}
				f.marked[by] = append(f.marked[by], m)
			}
		}
	}
}

// ofJob are the other pods of a Job that fails, or may, with some of its pods, and the Job if it expires then.
func (f *Finder) ofJob(pod graph.Node, fresh []graph.Node) (others, expires []graph.Node, err error) {
	if !pod.Resource().IsPod() {
		return nil, nil, nil
	}
	for _, ref := range pod.Owners() {
		job := ref.Owner
		if job.Virtual() || job.BeingDeleted() || job.Resource().GroupResource() != Jobs || slices.Contains(fresh, job) {
			continue
		}
		whole, err := f.reader.Whole(job)
		if err != nil {
			return nil, nil, err
		}
		gone := int64(0)
		for _, d := range job.Dependents() {
			if slices.Contains(fresh, d) {
				gone++
			} else if d.Resource().IsPod() {
				others = append(others, d)
			}
		}
		fails, ends := MayEnd(whole, gone)
		if !fails {
			others = nil
		}
		if ends {
			expires = []graph.Node{job}
		}
		return others, expires, nil
	}
	return nil, nil, nil
}

// MayEnd reports whether a Job may fail when so many of its pods are deleted, and whether it is deleted itself because it may have finished
// then: a pod that ends well when it is told to has succeeded (pkg/controller/job/job_controller.go, syncJob and finishJob).
func MayEnd(job *unstructured.Unstructured, gone int64) (fails, expires bool) {
	_, expires, _ = unstructured.NestedInt64(job.Object, "spec", "ttlSecondsAfterFinished")
	waits := false // for its last pods
	for _, c := range evidence.Conditions(job) {
		switch is := batchv1.JobConditionType(c.Type); {
		case c.Status != "True":
		case is == batchv1.JobComplete || is == batchv1.JobFailed:
			return false, false
		case is == batchv1.JobSuccessCriteriaMet || is == batchv1.JobFailureTarget:
			waits = true
		}
	}
	limit, limited, _ := unstructured.NestedInt64(job.Object, "spec", "backoffLimit")
	failed, _, _ := unstructured.NestedInt64(job.Object, "status", "failed")
	succeeded, _, _ := unstructured.NestedInt64(job.Object, "status", "succeeded")
	wanted, counts, _ := unstructured.NestedInt64(job.Object, "spec", "completions")
	_, rules, _ := unstructured.NestedMap(job.Object, "spec", "podFailurePolicy")
	_, indexes, _ := unstructured.NestedInt64(job.Object, "spec", "maxFailedIndexes")
	_, perIndex, _ := unstructured.NestedInt64(job.Object, "spec", "backoffLimitPerIndex")
	_, some, _ := unstructured.NestedMap(job.Object, "spec", "successPolicy")
	if !limited {
		limit = 6
	}
	fails = !waits && (failed+gone > limit || rules || indexes)
	return fails, expires && (fails || waits || perIndex || some || !counts || succeeded+gone >= wanted)
}

// Jobs are those of Kubernetes.
var Jobs = schema.GroupResource{Group: "batch", Resource: "jobs"}

// waitingOwners are the owners in foreground deletion that wait for a dependent.
func waitingOwners(n graph.Node) []graph.Node {
	var all []graph.Node
	for _, ref := range n.Owners() {
		if ref.State == graph.WaitingForDependentsDeletion && !ref.Owner.Virtual() {
			all = append(all, ref.Owner)
		}
	}
	return all
}

// OnNode is a node with its pods.
type OnNode struct {
	Node graph.Node
	// Running are the pods that have not ended, and are not of DaemonSets.
	Running, Others []graph.Node
	// Unknown: there are pods that are not in the graph.
	Unknown bool
	Unread  error
}

// OnNodes returns the nodes with their pods, each as it was found first, in the order of the nodes.
func (f *Finder) OnNodes(nodes []graph.Node) []*OnNode {
	fresh := map[string]*OnNode{}
	for _, n := range nodes {
		if f.nodes[n.Name()] == nil {
			f.nodes[n.Name()] = &OnNode{Node: n}
			fresh[n.Name()] = f.nodes[n.Name()]
		}
	}
	f.EachPodOn(fresh, func(*OnNode, *corev1.Pod) bool { return true })
	var all []*OnNode
	for _, n := range nodes {
		all = append(all, f.nodes[n.Name()])
	}
	slices.SortFunc(all, func(a, b *OnNode) int { return a.Node.Compare(b.Node) })
	return all
}

// EachPodOn fills nodes, by their names, with those of their pods that go. The Node of one is not needed for that.
func (f *Finder) EachPodOn(nodes map[string]*OnNode, goes func(*OnNode, *corev1.Pod) bool) {
	if len(nodes) == 0 {
		return
	}
	begin := func() {
		for _, on := range nodes {
			on.Running, on.Others, on.Unknown = nil, nil, false
		}
	}
	err := evidence.EachPod(f.ctx, f.cluster, begin, func(pod *corev1.Pod) {
		on := nodes[pod.Spec.NodeName]
		if on == nil || !goes(on, pod) {
			return
		}
		n, known := f.graph.Node(pod.UID)
		if !known || n.Virtual() {
			on.Unknown = true
			return
		}
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if c := metav1.GetControllerOfNoCopy(pod); !ended && (c == nil || c.Kind != "DaemonSet") {
			on.Running = append(on.Running, n)
		} else {
			on.Others = append(on.Others, n)
		}
	})
	for _, on := range nodes {
		on.Unread = err
		slices.SortFunc(on.Running, graph.Node.Compare)
	}
}

// Waiting are the objects that are being deleted, or are to be, whose removal may wait for a guard.
func (f *Finder) Waiting(g *Guard) []graph.Node {
	return slices.DeleteFunc(slices.Clone(f.Leaving()), func(n graph.Node) bool { return !g.Waits(n) })
}

// Leaving are the objects that are being deleted, or are to be.
func (f *Finder) Leaving() []graph.Node {
	if f.leave == nil {
		f.leave = append([]graph.Node{}, graph.Leaving(f.graph)...)
		f.reader.Announce(slices.DeleteFunc(slices.Clone(f.leave), func(n graph.Node) bool {
			return n.Resource().GroupResource() != evidence.Claims.GroupResource()
		}))
	}
	return f.leave
}
