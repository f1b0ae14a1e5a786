// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// workloadKinds are the types of which a controller usually is one.
var workloadKinds = [...]graph.Resource{
	{GroupVersionResource: deployments, Kind: "Deployment", Namespaced: true},
	{GroupVersionResource: evidence.StatefulSets, Kind: "StatefulSet", Namespaced: true},
	{GroupVersionResource: daemonSets, Kind: "DaemonSet", Namespaced: true},
}

// Workloads are the Deployments, StatefulSets and DaemonSets of a cluster. They are read
// once, when somebody first asks, or ahead, while other things are done, or along with
// their metadata. Its methods may be called by several goroutines.
type Workloads struct {
	ctx     context.Context // of the run
	cluster evidence.Cluster
	wanted  atomic.Bool
	ahead   atomic.Bool
	once    sync.Once
	mu      sync.Mutex
	lists   [len(workloadKinds)]*workloadList // by workloadKinds; nil when it was not read
	// searched are the lists that every search looks at, when they are read ahead.
	searched *evidence.Begun
}

// workloadList is a list, or why it could not be read.
type workloadList struct {
	items []*Workload
	err   error
}

// NewWorkloads returns the workloads of a cluster, of which nothing is read yet.
func NewWorkloads(ctx context.Context, cluster evidence.Cluster) *Workloads {
	return &Workloads{ctx: ctx, cluster: cluster}
}

// WorkloadTypes are the types of Workloads.
func WorkloadTypes() []schema.GroupVersionResource {
	types := make([]schema.GroupVersionResource, len(workloadKinds))
	for i, kind := range workloadKinds {
		types[i] = kind.GroupVersionResource
	}
	return types
}

// Want says that they will be asked for: who is about to read a list of one of the types may
// as well hand its whole objects to a Taking.
func (w *Workloads) Want() { w.wanted.Store(true) }

// Taking takes the workloads of a type that somebody else reads.
type Taking struct {
	workloads *Workloads
	kind      int
	list      workloadList
	words     *interner
}

// Taking returns what takes the workloads of the type. It returns nil if they are not wanted,
// or the type is another.
func (w *Workloads) Taking(resource schema.GroupVersionResource) *Taking {
	for i, kind := range workloadKinds {
		if w.wanted.Load() && kind.GroupVersionResource == resource {
			return &Taking{workloads: w, kind: i}
		}
	}
	return nil
}

// Begin drops what was taken.
func (t *Taking) Begin() { t.list, t.words = workloadList{}, newInterner() }

// Take takes a workload. Of each it keeps what may be asked of any, and no more: there may be
// tens of thousands. There is no error.
func (t *Taking) Take(o runtime.Object) error {
	if l := newWorkload(&workloadKinds[t.kind], o, t.words); l != nil {
		t.list.items = append(t.list.items, l)
	}
	return nil
}

// Complete is called when all were taken.
func (t *Taking) Complete() {
	t.workloads.mu.Lock()
	defer t.workloads.mu.Unlock()
	t.workloads.lists[t.kind], t.words = &t.list, nil
}

// ReadAhead begins to read, if nobody has, and does not wait: the workloads, and the lists
// that every search for one of them looks at.
func (w *Workloads) ReadAhead() {
	if w.ahead.Swap(true) {
		return
	}
	go w.once.Do(w.read)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.searched = evidence.Begin(w.ctx, w.cluster, searched...)
}

// Wanted reports whether Want was called.
func (w *Workloads) Wanted() bool { return w.wanted.Load() }

// readAhead returns what is read ahead of what every search looks at, nil for nothing.
func (w *Workloads) readAhead() *evidence.Begun {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.searched
}

func (w *Workloads) all() [len(workloadKinds)]*workloadList {
	w.once.Do(w.read)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lists
}

// taken reports whether the workloads of a type are here.
func (w *Workloads) taken(kind int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lists[kind] != nil
}

// read makes the lists that nobody has made yet.
func (w *Workloads) read() {
	for i, kind := range workloadKinds {
		if w.taken(i) {
			continue
		}
		t := &Taking{workloads: w, kind: i}
		if err := w.cluster.EachTyped(w.ctx, kind.GroupVersionResource, kind.Kind, "", t.Begin, t.Take); err != nil {
			t.list = workloadList{err: err} // a part of a list is none
		}
		t.Complete()
	}
}

// inventory is every workload of the cluster that counts as there.
type inventory struct {
	workloads []*Workload
	// called tells, of the names that were asked about, whether a workload is called so.
	called map[string]bool
	// unread says what could not be listed.
	unread []string
}

// inventory returns the workloads, which other Finders share.
func (f *roster) inventory() *inventory {
	if f.running != nil {
		return f.running
	}
	f.running = &inventory{called: map[string]bool{}}
	for i, list := range f.workloads.all() {
		resource := workloadKinds[i].GroupVersionResource
		if list.err != nil {
			f.evidence.NoteList(resource, list.err)
			f.running.unread = append(f.running.unread, resource.GroupResource().String())
		}
		f.running.workloads = slices.Grow(f.running.workloads, len(list.items))
		for _, l := range list.items {
			if !f.evidence.IsGone(l.uid) {
				f.running.workloads = append(f.running.workloads, l)
			}
		}
	}
	slices.SortFunc(f.running.workloads, func(a, b *Workload) int { return a.ID().Compare(b.ID()) })
	return f.running
}

// interner keeps one of each of what repeats.
type interner struct {
	words   map[string]string
	origins map[origin]*origin
}

func newInterner() *interner { return &interner{map[string]string{}, map[origin]*origin{}} }

func (in *interner) one(s string) string {
	if known, ok := in.words[s]; ok {
		return known
	}
	in.words[s] = s
	return s
}

func (in *interner) origin(o origin) *origin {
	if known, ok := in.origins[o]; ok {
		return known
	}
	kept := o // else every o would be made on the heap
	in.origins[o] = &kept
	return &kept
}
