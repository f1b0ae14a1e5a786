// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
)

// workloadKinds are the types of which a controller usually is one.
var workloadKinds = []struct {
	resource schema.GroupVersionResource
	kind     string
}{{deployments, "Deployment"}, {statefulSets, "StatefulSet"}, {daemonSets, "DaemonSet"}}

// Workloads are the Deployments, StatefulSets and DaemonSets of a cluster. They are read
// once, when somebody first asks, or ahead, while other things are done. Its methods may be
// called by several goroutines.
type Workloads struct {
	ctx     context.Context // of the run
	cluster evidence.Cluster
	ahead   atomic.Bool
	once    sync.Once
	lists   []workloadList // by workloadKinds
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

// ReadAhead begins to read, if nobody has, and does not wait.
func (w *Workloads) ReadAhead() {
	if !w.ahead.Swap(true) {
		go w.once.Do(w.read)
	}
}

func (w *Workloads) all() []workloadList {
	w.once.Do(w.read)
	return w.lists
}

// read makes three lists. Of each workload it keeps what may be asked of any, and no more:
// there may be tens of thousands.
func (w *Workloads) read() {
	for _, kind := range workloadKinds {
		var list workloadList
		words := interner{}
		list.err = w.cluster.EachTyped(w.ctx, kind.resource, kind.kind, "", func() { list.items = nil }, func(o runtime.Object) error {
			if l := newWorkload(kind.resource, o, words); l != nil {
				list.items = append(list.items, l)
			}
			return nil
		})
		if list.err != nil {
			list.items = nil // a part of a list is none
		}
		w.lists = append(w.lists, list)
	}
}

// inventory is every workload of the cluster that counts as there.
type inventory struct {
	workloads []*Workload
	// called are the names that their programs have, and their own.
	called map[string]bool
	// unread says what could not be listed.
	unread []string
}

// inventory returns the workloads, which other Finders share.
func (f *Finder) inventory() *inventory {
	if f.running != nil {
		return f.running
	}
	f.running = &inventory{called: map[string]bool{}}
	for i, list := range f.workloads.all() {
		resource := workloadKinds[i].resource
		if list.err != nil {
			f.evidence.NoteList(resource, list.err)
			f.running.unread = append(f.running.unread, resource.GroupResource().String())
		}
		for _, l := range list.items {
			if !f.evidence.IsGone(l.ID.UID) {
				f.running.workloads = append(f.running.workloads, l)
			}
		}
	}
	slices.SortFunc(f.running.workloads, func(a, b *Workload) int { return a.ID.Compare(b.ID) })
	for _, l := range f.running.workloads {
		f.running.called[l.ID.Name] = true
		for _, program := range l.programs {
			f.running.called[program] = true
		}
	}
	return f.running
}

// interner keeps one of each of the strings that repeat.
type interner map[string]string

func (in interner) one(s string) string {
	if known, ok := in[s]; ok {
		return known
	}
	in[s] = s
	return s
}
