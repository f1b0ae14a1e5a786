// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
)

// model is the garbage collector as semantics C and D describe it, for a few
// objects, with one thing left open: in which order its workers take what is
// on their queues. All orders together give every end that the garbage
// collector's own races can have. A case with one end has to end like that
// everywhere; of a case with several each world may choose one.
//
// It shares no code with the engine or the simulator.
type model struct {
	objects []modelObject
	// original: it is the garbage collector itself. Unblocking a custom resource,
	// it makes all references non-blocking by its JSON merge patch; the engine
	// leaves alone those that do not block. And of several references with the
	// same UID that are dropped it sees only the last: if that does not block, the
	// owner that another one blocked is forgotten (garbagecollector/
	// graph_builder.go, referencesDiffs).
	original bool
	// once: the blocking dependents of an owner in foreground deletion are looked
	// at once, which is what the engine does: the garbage collector looks at them
	// again whenever something else that blocked is gone. That matters to objects
	// that it gave up and whose owners were changed since.
	once bool
	// restarts: the garbage collector may be started anew at any time, and so forget
	// what cannot be seen.
	restarts bool
	// limits are those of a collection that is limited to a namespace, nil for
	// none. The garbage collector knows no such thing: what is done inside is what it
	// may do.
	limits *limits
	// vanished are the instances of a definition that was dropped, which nobody sees,
	// with the definition.
	vanished uint16
	// beside is a user's delete that comes at any time, nil for none.
	beside *gctest.Action
}

// limits say what a limited collection may write to, the objects inside, and what
// it sees. Outside it may do no more than finish owners, and need not, unless it
// orphaned the last dependent of one. With only the namespace in view it must not finish owners that have none: what depends on
// them may be anywhere.
type limits struct {
	inside, seen uint16
	only         bool
}

// modelObject is what does not change.
type modelObject struct {
	object *gctest.Object
	refs   []modelRef
	custom bool
	// namespace is the object's as an action has it, empty for none.
	namespace string
	// instance: its kind is one that the scenario defines.
	instance bool
}

// modelRef is an owner reference: uid and at are the object that has the stated
// UID and the one at the stated coordinates, -1 for none.
type modelRef struct {
	uid, at int
	// unresolvable: the kind is not served. impossible: it is namespaced, and
	// the object is not. nameless: the name is no segment of a path. strays: the
	// garbage collector's GET reads something else with it, a Namespace or a
	// subresource that is not there, and so the reference dangles; with other names it
	// fails, and with .. also where there is no Namespace above (semantics J5).
	unresolvable, impossible, nameless, strays bool
	// leads: its kind and name are those of the object that has the UID.
	leads bool
	// own: its kind is one that the scenario defines.
	own   bool
	owner gctest.Owner
}

// status is what changes of an object. The graph's flags stay once they are
// set.
type status struct {
	gone, deleting, foreground, orphan, held bool
	knownDeleting, knownForeground           bool
	// retried: the last attempt failed, and another follows.
	retried bool
	// refs says of each reference whether it is still there and what it blocks.
	refs [4]refStatus
}

type refStatus uint8

const (
	refGone refStatus = iota
	refUnset
	refBlocks
	refDoesNot
)

const maxObjects = 8

// world is everything that changes: the objects, and the queues of those to
// attempt to delete and to orphan the dependents of. It is comparable.
type world struct {
	objects          [maxObjects]status
	attempts, orphan uint16
	// retries are attempts that the garbage collector makes again after a pause, which
	// may be longer than anybody waits.
	retries uint16
	// entered are the owners of which once speaks.
	entered uint16
	// beside: that of the model is yet to come.
	beside bool
}

// newModel takes a scenario apart.
func newModel(s *gctest.Scenario, original bool) *model {
	stage := gctest.NewStage(s, "model")
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, k := range stage.Kinds() {
		k.AddTo(mapper)
	}
	for _, o := range s.Objects {
		stage.UIDs[o.Path] = types.UID(o.Path.String())
	}
	m := &model{original: original}
	for i := range s.Objects {
		o := &s.Objects[i]
		mo := modelObject{object: o, custom: stage.Kind(o.Kind).Group == gctest.CustomGroup}
		mo.instance = stage.Kind(o.Kind).Group == stage.Group()
		if stage.Kind(o.Kind).Namespaced {
			mo.namespace = cmp.Or(o.Namespace, gctest.Here)
		}
		for _, owner := range o.Owners {
			mo.refs = append(mo.refs, newModelRef(stage, mapper, o, owner))
		}
		m.objects = append(m.objects, mo)
	}
	return m
}

func newModelRef(stage *gctest.Stage, mapper meta.RESTMapper, o *gctest.Object, owner gctest.Owner) modelRef {
	ref := stage.OwnerReference(owner)
	if ref.APIVersion == aliasVersion {
		ref.APIVersion = gctest.CustomGroup + "/v1" // leads to the same
	}
	r := modelRef{uid: -1, at: -1, owner: owner, nameless: slices.Contains(impossibleNames, ref.Name)}
	mapping, err := mapper.RESTMapping(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(),
		schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Version)
	r.unresolvable = err != nil
	r.own = err == nil && mapping.Resource.Group == stage.Group()
	namespace := ""
	if err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace = stage.NamespaceOf(o.Path)
		r.impossible = namespace == ""
	}
	r.strays = ref.Name == "a/b" || ref.Name == ".." && namespace != ""
	for j := range stage.Scenario.Objects {
		other := &stage.Scenario.Objects[j]
		called := err == nil && stage.Kind(other.Kind).GroupResource() == mapping.Resource.GroupResource() && stage.NameOf(other.Path) == ref.Name
		if stage.UIDs[other.Path] == ref.UID {
			r.uid, r.leads = j, called
		}
		if called && stage.NamespaceOf(other.Path) == namespace {
			r.at = j
		}
	}
	return r
}

// begin returns the world after the objects were created and those that begin
// so were deleted, before the garbage collector has seen any of it.
func (m *model) begin() world {
	var w world
	for i, o := range m.objects {
		st := &w.objects[i]
		st.held = slices.Contains(o.object.Finalizers, hold)
		st.foreground = slices.Contains(o.object.Finalizers, metav1.FinalizerDeleteDependents)
		st.orphan = slices.Contains(o.object.Finalizers, metav1.FinalizerOrphanDependents)
		for k, r := range o.refs {
			st.refs[k] = map[gctest.Block]refStatus{
				gctest.Unset: refUnset, gctest.Blocks: refBlocks, gctest.DoesNotBlock: refDoesNot,
			}[r.owner.Block]
		}
	}
	for i, o := range m.objects {
		if o.object.Deleting != "" {
			m.request(&w, i, metav1.DeletionPropagation(o.object.Deleting))
		}
	}
	return w
}

// request is a DELETE in the API server. The objects have no grace periods.
func (m *model) request(w *world, i int, policy metav1.DeletionPropagation) {
	st := &w.objects[i]
	if st.gone {
		return
	}
	switch policy {
	case metav1.DeletePropagationForeground:
		st.foreground, st.orphan = true, false
	case metav1.DeletePropagationOrphan:
		st.foreground, st.orphan = false, true
	case metav1.DeletePropagationBackground:
		st.foreground, st.orphan = false, false
	}
	st.deleting = true
	m.removeIfFree(w, i)
}

func (m *model) removeIfFree(w *world, i int) {
	if st := &w.objects[i]; st.deleting && !st.foreground && !st.orphan && !st.held {
		st.gone = true
	}
}

// start returns the worlds that a garbage collector may see when it starts: all
// of it at once. Whether it meets dependents that do not block before their
// owner in foreground deletion, and then does not look at them, is open.
func (m *model) start(w world) []world {
	var loose []int
	w.attempts, w.orphan, w.retries = 0, 0, 0
	for i := range m.objects {
		st := &w.objects[i]
		st.retried = false
		if !m.sees(i) {
			continue
		}
		st.knownDeleting, st.knownForeground = st.deleting, st.deleting && st.foreground
		switch {
		case st.gone:
		case st.deleting && st.orphan && (m.within(i) || m.dependents(&w, i)&m.limits.inside != 0):
			w.orphan |= 1 << i
		case st.deleting && st.orphan:
		case st.deleting && st.foreground:
			w.attempts |= 1 << i
		}
		if !st.gone && m.refersAmiss(&w, i) {
			w.attempts |= 1 << i
		}
	}
	for i := range m.objects {
		for k, r := range m.objects[i].refs {
			st := &w.objects[i]
			switch {
			case st.gone || st.refs[k] == refGone || r.uid < 0 || w.objects[r.uid].gone || !w.objects[r.uid].knownForeground || !m.sees(r.uid):
			case m.limits != nil && st.refs[k] == refBlocks:
				w.attempts |= 1 << i // whatever is done about its owner
			case w.attempts&(1<<i) == 0 && !slices.Contains(loose, i):
				loose = append(loose, i)
			}
		}
	}
	worlds := []world{w}
	for _, i := range loose {
		for _, w := range slices.Clone(worlds) {
			w.attempts |= 1 << i
			worlds = append(worlds, w)
		}
	}
	if m.original {
		worlds = m.misplaced(m.halfSeen(worlds))
	}
	return worlds
}

// misplaced adds the worlds in which the garbage collector decides about an object without
// namespace before it has seen it: it knows it from a reference of a dependent then, takes
// it for one in the dependent's namespace, and looks for its owners there (garbagecollector/
// graph_builder.go, addDependentToOwners; garbagecollector.go, isDangling).
func (m *model) misplaced(worlds []world) []world {
	for i, o := range m.objects {
		if o.namespace != "" || !slices.ContainsFunc(o.refs, func(r modelRef) bool { return r.impossible }) {
			continue
		}
		for _, dependent := range m.objects {
			leads := slices.ContainsFunc(dependent.refs, func(r modelRef) bool { return r.uid == i && r.leads })
			if !leads || dependent.namespace == "" {
				continue
			}
			for _, w := range slices.Clone(worlds) {
				before := w
				if !w.objects[i].deleting {
					m.decide(&w, i, dependent.namespace)
				}
				if w != before {
					worlds = append(worlds, w)
				}
			}
		}
	}
	return worlds
}

// halfSeen adds the worlds in which the garbage collector has completed
// deletions in progress before it had seen all dependents: its workers start
// when everything is listed, and not when all that is in the graph
// (garbagecollector/garbagecollector.go, Run).
func (m *model) halfSeen(worlds []world) []world {
	for i := range m.objects {
		for _, w := range slices.Clone(worlds) {
			dependents := m.dependents(&w, i)
			switch {
			case dependents == 0:
			case w.orphan&(1<<i) != 0:
				for seen := (dependents - 1) & dependents; ; seen = (seen - 1) & dependents { // every proper subset
					next := w
					next.orphan &^= 1 << i
					m.orphanThese(&next, i, seen)
					worlds = append(worlds, next)
					if seen == 0 {
						break
					}
				}
			case w.objects[i].knownForeground && w.attempts&(1<<i) != 0:
				w.attempts &^= 1 << i
				m.removeFinalizer(&w, i, func(st *status) { st.foreground = false })
				worlds = append(worlds, w)
			}
		}
	}
	return worlds
}

// refersAmiss reports whether the garbage collector looks at an object when it
// first sees it: an owner is not there, or not where the reference says.
func (m *model) refersAmiss(w *world, i int) bool {
	for k, r := range m.objects[i].refs {
		if w.objects[i].refs[k] != refGone && (r.uid < 0 || r.uid != r.at || w.objects[r.uid].gone) {
			return true
		}
	}
	return false
}

// delete returns the worlds after a user's DELETE that the garbage collector
// has seen.
func (m *model) delete(w world, target int, policy metav1.DeletionPropagation) world {
	before := w.objects[target]
	m.request(&w, target, policy)
	m.observe(&w, target, before)
	return w
}

// observe does what the graph does about a change of an object's deletion.
func (m *model) observe(w *world, i int, before status) {
	st := &w.objects[i]
	if st.gone {
		if !before.gone {
			m.observeGone(w, i)
		}
		return
	}
	st.knownDeleting = st.knownDeleting || st.deleting
	switch {
	case st.deleting && st.orphan && !(before.deleting && before.orphan):
		w.orphan |= 1 << i
	case st.deleting && st.foreground && !(before.deleting && before.foreground):
		st.knownForeground = true
		w.attempts |= 1<<i | m.dependents(w, i)
	}
}

func (m *model) observeGone(w *world, i int) {
	w.attempts |= m.dependents(w, i)
	for k, r := range m.objects[i].refs {
		if w.objects[i].refs[k] != refGone {
			m.queueForegroundOwner(w, r.uid)
		}
	}
	w.attempts &^= 1 << i
	w.retries &^= 1 << i
}

func (m *model) queueForegroundOwner(w *world, owner int) {
	if owner >= 0 && !w.objects[owner].gone && w.objects[owner].knownForeground {
		w.attempts |= 1 << owner
	}
}

// dependents returns the objects that reference the UID of the i-th.
func (m *model) dependents(w *world, i int) uint16 {
	return m.dependentsWith(w, i, func(refStatus) bool { return true })
}

func (m *model) dependentsWith(w *world, i int, with func(refStatus) bool) uint16 {
	var found uint16
	for j := range m.objects {
		for k, r := range m.objects[j].refs {
			if st := w.objects[j].refs[k]; r.uid == i && st != refGone && !w.objects[j].gone && m.sees(j) && with(st) {
				found |= 1 << j
			}
		}
	}
	return found
}

// tooMany is how many worlds are looked at before a case counts as too large.
const tooMany = 20000

// run returns every world at rest that can be reached, or false when there are
// too many on the way.
func (m *model) run(from []world) ([]world, bool) {
	seen := map[world]bool{}
	var ends []world
	for stack := slices.Clone(from); len(stack) > 0; {
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[w] {
			continue
		}
		seen[w] = true
		if len(seen) > tooMany {
			return nil, false
		}
		if w.attempts|w.orphan == 0 && !w.beside {
			ends = append(ends, w)
		}
		if w.beside {
			next := w
			next.beside = false
			stack = append(stack, m.delete(next, m.index(m.beside.Paths[0]), m.beside.Policy))
		}
		if m.restarts {
			stack = append(stack, m.forget(w))
		}
		for i := range m.objects {
			if w.attempts&(1<<i) != 0 {
				next := w
				next.attempts &^= 1 << i
				m.attempt(&next, i)
				stack = append(stack, next)
			}
			if w.orphan&(1<<i) != 0 {
				next := w
				stack = append(stack, m.orphan(&next, i)...)
			}
			if w.retries&(1<<i) != 0 {
				next := w
				next.retries &^= 1 << i
				m.attempt(&next, i)
				stack = append(stack, next)
			}
			if w.attempts&(1<<i) != 0 && (!m.within(i) || m.isPromised(&w, i)) {
				next := w
				next.attempts &^= 1 << i
				stack = append(stack, next)
			}
		}
	}
	return ends, true
}

// sees reports whether the object is in view.
func (m *model) sees(i int) bool { return m.limits == nil || m.limits.seen&(1<<i) != 0 }

// within reports whether the object may be written to.
func (m *model) within(i int) bool { return m.limits == nil || m.limits.inside&(1<<i) != 0 }

// mayEnd reports whether it may be known that nothing depends on the object any
// more.
func (m *model) mayEnd(i int) bool {
	return m.limits == nil || m.sees(i) && !(m.limits.only && m.objects[i].namespace == "")
}

// isPromised reports whether an owner orphans the object that may not be finished. The
// garbage collector releases such an object or, if the reference leads elsewhere, may
// delete it before; to leave it is in the spirit of who asked for its orphaning.
func (m *model) isPromised(w *world, i int) bool {
	for k, r := range m.objects[i].refs {
		if w.objects[i].refs[k] == refGone || r.uid < 0 || !m.sees(r.uid) || m.mayEnd(r.uid) {
			continue
		}
		if owner := w.objects[r.uid]; !owner.gone && owner.deleting && owner.orphan {
			return true
		}
	}
	return false
}

// dropped returns the model of what is without the definition of the instances.
func (m *model) dropped() *model {
	dropped := *m
	for i, o := range m.objects {
		if o.instance || o.object.Kind == "crd" {
			dropped.vanished |= 1 << i
		}
	}
	there := uint16(1<<len(m.objects)-1) &^ dropped.vanished
	dropped.limits = &limits{inside: there, seen: there}
	return &dropped
}

// limited returns the model for a collection that starts in the world.
func (m *model) limited(w *world, a gctest.Action) *model {
	l := &limits{only: a.Only}
	for i, o := range m.objects {
		if o.namespace == a.In {
			l.inside |= 1 << i
		}
	}
	l.seen = 1<<len(m.objects) - 1
	if a.Only {
		l.seen = m.withOwners(w, l.inside)
	}
	limited := *m
	limited.limits = l
	return &limited
}

// withOwners adds the owners without namespace of objects, and theirs, which are
// read one by one.
func (m *model) withOwners(w *world, objects uint16) uint16 {
	for before := uint16(0); before != objects; {
		before = objects
		for i, o := range m.objects {
			for k, r := range o.refs {
				if objects&(1<<i) != 0 && !w.objects[i].gone && w.objects[i].refs[k] != refGone && r.at >= 0 && m.objects[r.at].namespace == "" {
					objects |= 1 << r.at
				}
			}
		}
	}
	return objects
}

// attempt is one attempt to delete an object.
func (m *model) attempt(w *world, i int) {
	st := &w.objects[i]
	switch {
	case st.gone, st.knownDeleting && !st.knownForeground:
		return
	case st.knownForeground:
		m.finishForeground(w, i)
		return
	case !m.within(i):
		return
	}
	m.decide(w, i, m.objects[i].namespace)
}

// decide deletes an object, or not, by what its references mean in a namespace.
func (m *model) decide(w *world, i int, namespace string) {
	st := &w.objects[i]
	solid, dangling, waiting, failure := m.classify(w, i, namespace)
	st.retried = failure == retried
	any := m.dependents(w, i)
	switch {
	case failure != none, dangling+waiting == 0:
	case solid > 0:
		m.removeRefs(w, i, m.amiss(w, i, namespace))
	case waiting > 0 && any != 0:
		if m.someForeground(w, any) && m.unblock(w, i) {
			w.attempts |= 1 << i // the delete that follows is in conflict with the patch
			return
		}
		m.collect(w, i, metav1.DeletePropagationForeground)
	default:
		m.collect(w, i, "")
	}
}

func (m *model) collect(w *world, i int, policy metav1.DeletionPropagation) {
	before := w.objects[i]
	m.request(w, i, policy)
	m.observe(w, i, before)
}

// failure is why an attempt came to nothing: an attempt that failed because the
// kind of an owner is not served is made again, one at a cluster-scoped object
// with a namespaced owner is not.
type failure int

const (
	none failure = iota
	retried
	forgotten
)

// classify counts references by what they mean, up to the first that cannot be
// told.
func (m *model) classify(w *world, i int, namespace string) (solid, dangling, waiting int, _ failure) {
	for k := range m.objects[i].refs {
		if w.objects[i].refs[k] == refGone {
			continue
		}
		r := m.objects[i].refs[k]
		switch {
		case r.unresolvable, r.own && m.vanished != 0:
			return 0, 0, 0, retried
		case r.impossible && namespace == "":
			return 0, 0, 0, forgotten
		case r.nameless && !(m.original && r.strays):
			return 0, 0, 0, retried
		case m.dangles(w, r, namespace):
			dangling++
		case m.waits(w, r, namespace):
			waiting++
		default:
			solid++
		}
	}
	return solid, dangling, waiting, none
}

// leadsTo returns the object at which a reference is looked for in a namespace, -1 for none.
func (m *model) leadsTo(r modelRef, namespace string) int {
	if r.impossible && namespace != "" && r.leads && m.objects[r.uid].namespace == namespace {
		return r.uid
	}
	return r.at
}

func (m *model) dangles(w *world, r modelRef, namespace string) bool {
	at := m.leadsTo(r, namespace)
	return at < 0 || at != r.uid || w.objects[at].gone
}

func (m *model) waits(w *world, r modelRef, namespace string) bool {
	return !m.dangles(w, r, namespace) && w.objects[r.uid].deleting && w.objects[r.uid].foreground
}

// amiss returns the UIDs of references that keep nothing, as a set of objects;
// those of nobody are the bit above them.
func (m *model) amiss(w *world, i int, namespace string) uint16 {
	var uids uint16
	for k, r := range m.objects[i].refs {
		if w.objects[i].refs[k] != refGone && (m.dangles(w, r, namespace) || m.waits(w, r, namespace)) {
			uids |= 1 << uidBit(r)
		}
	}
	return uids
}

// uidBit numbers UIDs. The generator has one of nobody.
func uidBit(r modelRef) int {
	if r.uid < 0 {
		return maxObjects
	}
	return r.uid
}

func (m *model) someForeground(w *world, objects uint16) bool {
	for j := range m.objects {
		if objects&(1<<j) != 0 && w.objects[j].knownForeground {
			return true
		}
	}
	return false
}

// removeRefs removes all references with the UIDs.
func (m *model) removeRefs(w *world, i int, uids uint16) {
	changed := false
	for k, r := range m.objects[i].refs {
		if st := &w.objects[i].refs[k]; *st != refGone && uids&(1<<uidBit(r)) != 0 {
			if !m.hidden(w, i, k) {
				m.queueForegroundOwner(w, r.uid)
			}
			*st = refGone
			changed = true
		}
	}
	switch { // it is being retried anyway, and now with other references
	case !changed || !w.objects[i].retried:
	case m.original:
		w.retries |= 1 << i
	default:
		w.attempts |= 1 << i
	}
}

// hidden reports whether the k-th reference is one of which the garbage
// collector does not see what becomes of it.
func (m *model) hidden(w *world, i, k int) bool {
	refs := m.objects[i].refs
	for later := k + 1; m.original && later < len(refs); later++ {
		if refs[later].uid == refs[k].uid && w.objects[i].refs[later] != refGone {
			return true
		}
	}
	return m.original && w.objects[i].refs[k] != refBlocks
}

// unblock makes blocking references non-blocking, and reports whether that
// changed anything.
func (m *model) unblock(w *world, i int) bool {
	refs, changed := &w.objects[i].refs, false
	for k, r := range m.objects[i].refs {
		switch {
		case refs[k] == refBlocks:
			if !m.hidden(w, i, k) {
				m.queueForegroundOwner(w, r.uid)
			}
		case refs[k] == refUnset && m.objects[i].custom && m.original:
		default:
			continue
		}
		refs[k], changed = refDoesNot, true
	}
	return changed
}

// finishForeground goes on with an object in foreground deletion.
func (m *model) finishForeground(w *world, i int) {
	blocking := m.dependentsWith(w, i, func(st refStatus) bool { return st == refBlocks })
	if blocking != 0 {
		if m.once && w.entered&(1<<i) != 0 {
			return
		}
		if m.once {
			w.entered |= 1 << i
		}
		for j := range m.objects {
			if blocking&(1<<j) != 0 && !w.objects[j].knownForeground {
				w.attempts |= 1 << j
			}
		}
		return
	}
	if m.mayEnd(i) {
		m.removeFinalizer(w, i, func(st *status) { st.foreground = false })
	}
}

func (m *model) removeFinalizer(w *world, i int, remove func(*status)) {
	before := w.objects[i]
	remove(&w.objects[i])
	m.removeIfFree(w, i)
	m.observe(w, i, before)
}

// orphan is a step of orphaning the dependents: of one it removes the references,
// or when there is none, or none that may be written to, it is done. It returns
// all that the step may be, for the dependents come in any order, and something
// may happen between two of them.
func (m *model) orphan(w *world, i int) []world {
	if !m.mayEnd(i) {
		w.orphan &^= 1 << i
		return []world{*w}
	}
	dependents := m.dependents(w, i)
	var steps []world
	for j := range m.objects {
		if dependents&(1<<j) != 0 && m.within(j) {
			next := *w
			m.removeRefs(&next, j, 1<<i)
			steps = append(steps, next)
		}
	}
	if len(steps) > 0 {
		return steps
	}
	w.orphan &^= 1 << i
	if dependents != 0 {
		return []world{*w}
	}
	m.orphanThese(w, i, 0)
	if late := m.releasedBy(w, i); late != 0 {
		overtaken := *w
		overtaken.attempts |= late
		return []world{*w, overtaken}
	}
	return []world{*w}
}

// releasedBy returns the objects that an owner which is gone has orphaned, and at
// which there is something left to decide: the garbage collector looks at them when it
// hears of the owner's end before it hears that they have lost it, for these come by
// different watches.
func (m *model) releasedBy(w *world, owner int) uint16 {
	var late uint16
	for i := range m.objects {
		for k, r := range m.objects[i].refs {
			if st := &w.objects[i]; w.objects[owner].gone && r.uid == owner && st.refs[k] == refGone && !st.gone && m.amiss(w, i, m.objects[i].namespace) != 0 {
				late |= 1 << i
			}
		}
	}
	return late
}

// orphanThese removes the references of some dependents, and then the finalizer.
func (m *model) orphanThese(w *world, i int, dependents uint16) {
	for j := range m.objects {
		if dependents&(1<<j) != 0 {
			m.removeRefs(w, j, 1<<i)
		}
	}
	if !w.objects[i].gone {
		m.removeFinalizer(w, i, func(st *status) { st.orphan = false })
	}
}

// end is what is left in a world, as scenarios write it.
func (m *model) end(w world) map[gctest.Path]gctest.State {
	states := map[gctest.Path]gctest.State{}
	for i, o := range m.objects {
		st := w.objects[i]
		state := gctest.State{Fate: gctest.Intact}
		switch {
		case st.gone, m.vanished&(1<<i) != 0:
			states[o.object.Path] = gctest.State{Fate: gctest.Gone}
			continue
		case st.deleting:
			state.Fate = gctest.Terminating
		}
		for _, f := range []struct {
			has  bool
			name string
		}{{st.held, hold}, {st.foreground, metav1.FinalizerDeleteDependents}, {st.orphan, metav1.FinalizerOrphanDependents}} {
			if f.has {
				state.Finalizers = append(state.Finalizers, f.name)
			}
		}
		for k, r := range o.refs {
			if st.refs[k] != refGone {
				owner := r.owner
				owner.Block = map[refStatus]gctest.Block{refBlocks: gctest.Blocks, refDoesNot: gctest.DoesNotBlock}[st.refs[k]]
				state.Owners = append(state.Owners, owner.String())
			}
		}
		states[o.object.Path] = state
	}
	return states
}

// outcome is what a world may be like after an action, by what is left.
type outcome map[string][]world

// after returns what a pass of collection or a deletion leads to, from any of
// the worlds. The garbage collector goes on with what it knows: a pass is its
// start, and it starts once.
func (m *model) after(from []world, a gctest.Action) (outcome, bool) {
	if a.In != "" {
		return m.afterLimited(from, a)
	}
	var starts []world
	for _, w := range from {
		if a.Verb == gctest.Collect {
			starts = append(starts, m.start(w)...)
		} else {
			starts = append(starts, m.delete(w, m.index(a.Paths[0]), a.Policy))
		}
	}
	return m.outcome(starts)
}

// afterLimited is after for a collection of one namespace.
func (m *model) afterLimited(from []world, a gctest.Action) (outcome, bool) {
	all := outcome{}
	for _, w := range from {
		limited := m.limited(&w, a)
		if ends, ok := limited.outcome(limited.start(w)); !all.add(ends, ok) {
			return nil, false
		}
	}
	return all, true
}

// afterAfresh is after for the engine, which knows nothing of what was before,
// where that makes a difference: see remembers.
func (m *model) afterAfresh(from []world, a gctest.Action) (outcome, bool) {
	var starts []world
	for _, w := range from {
		target := m.index(a.Paths[0])
		if !m.remembers(w, target) {
			continue
		}
		w = m.forget(w)
		before := w.objects[target]
		next := m.delete(w, target, a.Policy)
		m.takeUp(&next, target, before)
		starts = append(starts, next)
	}
	return m.outcome(starts)
}

func (m *model) outcome(starts []world) (outcome, bool) {
	for i := range starts {
		starts[i].entered = 0
	}
	ends, ok := m.run(starts)
	result := outcome{}
	for _, w := range ends {
		w.entered = 0
		what := m.text(m.end(w))
		result[what] = append(result[what], w)
	}
	return result, ok
}

func (m *model) index(p gctest.Path) int {
	return slices.IndexFunc(m.objects, func(o modelObject) bool { return o.object.Path == p })
}

// givesUp reports whether there is an object that the garbage collector gives
// up: it is cluster-scoped and has a namespaced owner.
func (m *model) givesUp() bool {
	return slices.ContainsFunc(m.objects, func(o modelObject) bool {
		return slices.ContainsFunc(o.refs, func(r modelRef) bool { return r.impossible })
	})
}

// remembers reports whether what the garbage collector knows and cannot be seen
// may matter: there was a foreground deletion that ended, and the object is
// still there (the graph's flag is never cleared); or the target is in
// foreground deletion already, or gone, and has dependents that the garbage
// collector decided about when something else was so.
func (m *model) remembers(w world, target int) bool {
	for i := range m.objects {
		if st := w.objects[i]; !st.gone && st.knownForeground && !(st.deleting && st.foreground) {
			return true
		}
	}
	st := w.objects[target]
	return (st.gone || st.deleting && st.foreground) && m.dependents(&w, target) != 0
}

// forget sets what the graph knows to what can be seen.
func (m *model) forget(w world) world {
	for i := range m.objects {
		st := &w.objects[i]
		st.knownDeleting, st.knownForeground = st.deleting, st.deleting && st.foreground
	}
	return w
}

// takeUp goes on with a deletion that the user's delete leaves as it was.
func (m *model) takeUp(w *world, i int, before status) {
	switch st := w.objects[i]; {
	case before.gone:
		w.attempts |= m.dependents(w, i)
	case !st.gone && before.deleting && before.foreground && st.foreground:
		w.attempts |= 1<<i | m.dependents(w, i)
	}
}

// text returns what is left, in a line for each object.
func (m *model) text(states map[gctest.Path]gctest.State) string {
	var b strings.Builder
	for _, o := range m.objects {
		fmt.Fprintf(&b, "%s %s\n", o.object.Path, states[o.object.Path])
	}
	return b.String()
}
