// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Who is not the controller of a finalizer, although he works and may change the
// object: rights alone do not say so, least of all those of the type's own operator,
// which has them anyway.

// isAnother reports whether a workload is a bystander for certain: it answers webhooks beside a controller; the catalogue gives the
// finalizer to the pods of an instance that exists; or to a controller of which
// nobody is in its place or called so, and has the workload as the controller of others; or it gives it to one that runs
// elsewhere, and nothing but the type points at the workload.
func (f *Finder) isAnother(n graph.Node, s *Search, c *Candidate) bool {
	if s.instance != nil && c.uid != s.instance.uid && !c.Named {
		return true
	}
	if _, only := s.beside(c.Workload); only {
		return true
	}
	if c.strong && f.setBy(n, s, c) || len(f.inventory().unread) > 0 || s.placed {
		return false
	}
	return s.Vacant() && f.livesElsewhere(s, c.Workload) || f.Elsewhere(s) != ""
}

// beside returns the candidate that runs as the account of a workload which answers webhooks, and of which nothing else tells that it is
// the controller; nil for none. By their names it may be for certain that it does only that.
func (s *Search) beside(l *Workload) (controller *Candidate, only bool) {
	admits := func(c *Candidate) bool {
		return slices.ContainsFunc(c.Signs,
			func(e evidence.Fact) bool { return e.Path == byConversion || strings.HasPrefix(e.Path, "webhooks[") })
	}
	called := func(c *Workload, words ...string) bool {
		is := func(word string) bool { return slices.Contains(words, strings.TrimSuffix(word, "s")) }
		return slices.ContainsFunc(notWords().Split(strings.Join(append(slices.Clone(c.programs), c.name), " "), -1), is)
	}
	at := slices.IndexFunc(s.candidates, func(c *Candidate) bool { return c.uid == l.uid })
	if at < 0 || s.candidates[at].Named || !admits(s.candidates[at]) {
		return nil, false
	}
	webhook := called(l, "webhook", "admission")
	for _, c := range s.candidates {
		if c.uid == l.uid || c.Account() != l.Account() || admits(c) || called(c.Workload, "webhook", "admission") ||
			!webhook && called(l, controllerWords...) {
			continue
		}
		if controller = c; called(c.Workload, controllerWords...) || webhook && strings.HasPrefix(l.name, c.name+"-") {
			return c, true
		}
	}
	return controller, false
}

// madeFor reports whether the object owns the workload, which goes after it.
func (f *Finder) madeFor(n graph.Node, l *Workload) bool {
	return slices.ContainsFunc(f.evidence.Named(l.resource.GroupResource(), l.namespace, l.name), func(made graph.Node) bool {
		return slices.ContainsFunc(made.Object().OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == n.UID() })
	})
}

// bound reports whether a candidate is the controller of an object in a namespace even if it may not change that. What is called after its
// image alone may be of another product, and so may what has lost a role that is gone, and is called so; what has rights to another group
// of the product alone may be a later version, which has no such objects.
func (f *Finder) bound(s *Search, k *Contender, namespace string) bool {
	switch {
	case !k.strong:
		return false
	case k.knows, slices.Contains(s.inPlace, k.ID()):
		return true
	case k.foreign, f.rights().beside(k.Account(), s.resource.Group):
		return f.rights().lost(k.Account(), namespace, !k.isFound())
	}
	return slices.ContainsFunc(s.Setters, func(setter string) bool { return setter == k.name || strings.HasPrefix(k.name, setter+"-") })
}

// deputies are the pods that belong to no workload and the CronJobs that run as the account of one that does not run.
func (f *Finder) deputies(s *Search, c *Candidate) []*Workload {
	if c.account == "default" {
		return nil
	}
	its := func(a Account) bool { return a == c.Account() }
	return slices.DeleteFunc(slices.Concat(f.podsIn(s, c.namespace, its), f.periodic(s)), func(l *Workload) bool {
		return !its(l.Account()) || f.StateOf(l).Liveness == Dead
	})
}

// setBy reports whether the workload has set the finalizer on the object itself, as far
// as can be told.
func (f *Finder) setBy(n graph.Node, s *Search, c *Candidate) bool {
	setters, _ := f.managersIn(n, s.Finalizer)
	return len(setters) == 0 || slices.ContainsFunc(setters, c.calledBy) || !slices.ContainsFunc(s.Setters, c.calledBy)
}

// Vacant reports whether the catalogue has places for the controller, and nobody is in
// one of them or called so.
func (s *Search) Vacant() bool {
	return !s.placed && slices.ContainsFunc(s.Known, func(m finalizers.Match) bool {
		return len(m.Workloads) > 0 && m.OffCluster == ""
	})
}

// ownNames returns the names under which the finalizer was set that are somebody's: those
// of programs, and not common ones or people's tools.
func ownNames(setters []string) []string {
	return slices.DeleteFunc(slices.Clone(setters), func(m string) bool { return IsCommon(m) || isPerson(m) })
}

// maySet reports whether what has a name may have set the finalizer: where those who did have names of their own, it shares a word with
// one.
func (s *Search) maySet(name string) bool {
	own := ownNames(s.Setters)
	return len(own) == 0 || slices.ContainsFunc(own, func(setter string) bool { return shareWord(setter, name) })
}

// setBesides reports whether nobody but people set the finalizer on an object, and the
// workload has set another one there under a name of its own: what it sets itself is its
// own, and this need not be.
func (f *Finder) setBesides(n graph.Node, s *Search, c *Candidate) bool {
	setters, _ := f.managersIn(n, s.Finalizer)
	if len(s.Known) > 0 || len(setters) == 0 || slices.ContainsFunc(setters, func(m string) bool { return !isPerson(m) }) {
		return false
	}
	return slices.ContainsFunc(n.Finalizers(), func(other string) bool {
		others, _ := f.managersIn(n, other)
		return other != s.Finalizer && slices.ContainsFunc(others, c.calledBy)
	})
}

// against says who is known to have set the finalizer, or to have changed such objects since their
// deletion, when that are all others and nothing but its rights to the type points at the workload:
// that it may change the objects is no proof that it serves the finalizer. It is empty otherwise. Where only people
// set the finalizer, a rule for the type's finalizers is no proof either; and when such a finalizer names no domain,
// the workload must be called after the finalizer itself, as it has nothing of the type.
func (f *Finder) against(n graph.Node, s *Search, c *Candidate, down bool) say.Text {
	setters, _ := f.managersIn(n, s.Finalizer)
	if len(setters) == 0 {
		setters = s.Setters
	}
	manual := len(setters) > 0 && !slices.ContainsFunc(setters, func(m string) bool { return !isPerson(m) })
	owns := !manual && !c.personal() && f.rights().ownsFinalizers(c.Account(), s.resource.GroupResource())
	made := f.madeFor(n, c.Workload) // and is called after it, and has rights to it, as an agent
	if !made && (owns || c.kindred(s, manual && finalizers.Domain(s.Finalizer) == "", down)) || c.identified {
		return say.Text{}
	}
	if strangers := f.strangers(s); len(strangers) > 0 {
		return s.changed(strangers[0])
	}
	switch {
	case len(setters) > 0:
		return say.Of(setByOther, strings.Join(setters, `", "`))
	case (down || made || c.personal()) && !slices.ContainsFunc(c.Signs, func(e evidence.Fact) bool { return e.Path != byRule }):
		return say.Of(nothingButRights)
	}
	return say.Text{}
}

// kindred reports whether a name or label of the workload is one of the finalizer's, or, unless that must be, of its
// domain, or of the type's group when that is the domain's. A label does not say that it is the controller, nor does a name with a word
// for something else, like widgets-exporter and widgets-backup-controller.
func (c *Candidate) kindred(s *Search, itself, controller bool) bool {
	group := s.resource.Group
	if last := strings.LastIndexByte(group, '.'); last >= 0 {
		group = group[:last]
	}
	names := append(slices.Clone(c.programs), c.name)
	if !c.personal() {
		names = append(names, c.account)
	}
	if !controller {
		labels := c.labels()
		if c.whole != nil {
			labels = c.whole.GetLabels()
		}
		names = slices.AppendSeq(names, maps.Values(labels))
		if c.origin != nil {
			names = append(append(names, c.origin.release), c.origin.labels[:]...)
		}
	}
	return slices.ContainsFunc(names, func(name string) bool {
		if controller {
			name = calling(name)
		}
		return s.sharesWord(name) || !itself && (s.similar(name) || s.own && shareWord(name, group))
	})
}

// calling returns what makes a name a controller's, with the word before it, which is what it controls; empty for no such name. A name of
// one word is one.
func calling(name string) string {
	words := notWords().Split(strings.ToLower(name), -1)
	last := len(words)
	for last > 1 && (slices.Contains(controllerWords, words[last-1]) || slices.Contains(clusterWords, words[last-1])) {
		last--
	}
	if last == len(words) && last > 1 {
		return ""
	}
	return strings.Join(words[last-1:], "-")
}

// akin reports whether a name or label of the workload is one of the finalizer's or of the type's.
func (c *Candidate) akin(s *Search) bool {
	return c.kindred(s, false, false) || shareWord(strings.Join(append(slices.Clone(c.programs), c.name), " "),
		strings.ToLower(s.resource.Kind)+" "+s.resource.Group)
}

// strangers are who has changed such objects since their deletion and is no workload that is there, nor a component
// of Kubernetes. One that has no right to the objects has not changed them, whatever it is called.
func (f *Finder) strangers(s *Search) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.wrote)), func(m string) bool {
		are := func(all []*Candidate) bool {
			return slices.ContainsFunc(all, func(c *Candidate) bool { return c.calledBy(m) })
		}
		return slices.Contains(components, m) || f.calledSo(m) && (are(s.candidates) || !are(s.namesakes))
	})
}

// changed says what a field manager has changed since the deletion.
func (s *Search) changed(manager string) say.Text {
	if !slices.Contains(s.workers, manager) {
		return say.Of(changedLiving, manager, s.workedOn[manager])
	}
	return say.Of(changedByOther, manager, s.workedOn[manager])
}

// apart reports whether a workload is there for the objects of other namespaces, as one
// installation of a product is of which there is one in each. That is so when all its rights to
// the type are for its own namespace; when it has some elsewhere, and another account of the
// same name has them here; and when it has none at all, and those of others of its name are for
// their own namespaces. Otherwise it is given a right in every namespace that it is to serve, and
// may have lost this.
func (f *Finder) apart(s *Search, c *Candidate, namespace string) bool {
	resource, own := s.resource.GroupResource(), c.Account()
	if namespace == "" || c.namespace == namespace {
		return false
	}
	switch within := f.rights().within(own, resource); {
	case within[""]:
		return false
	case isOnly(within, c.namespace):
		return true
	}
	return slices.ContainsFunc(f.rights().holders(resource), func(g *grant) bool {
		return g.namespace == namespace && g.subject.Kind == "ServiceAccount" && g.subject.Name == own.Name &&
			g.subject.Namespace != own.Namespace
	})
}

// isOnly reports whether a namespace is the only one.
func isOnly(namespaces map[string]bool, one string) bool {
	return len(namespaces) == 1 && namespaces[one]
}

// ofAnother says why a controller that is there for other namespaces need not be the one.
func (f *Finder) ofAnother(n graph.Node, a *Answer) say.Text {
	name := described(a.best.Workload, a.best.State.Liveness)
	idle := slices.Concat(a.outside, a.lost)
	if i := slices.IndexFunc(idle, func(g *grant) bool { return g.namespace == n.Namespace() }); i >= 0 {
		return say.Of(ofOtherNamespaces, idle[i].subject, name)
	}
	return say.Of(withoutRightThere, name, n.Namespace())
}

// implementations has, for the types whose objects name who implements them, the field that does.
var implementations = map[string][]string{
	"gatewayclasses.gateway.networking.k8s.io":      {"spec", "controllerName"},
	"ingressclasses.networking.k8s.io":              {"spec", "controller"},
	"storageclasses.storage.k8s.io":                 {"provisioner"},
	"volumesnapshotclasses.snapshot.storage.k8s.io": {"driver"},
	"deviceclasses.resource.k8s.io":                 {"spec", "controllerName"},
}

// implementation returns the implementation that an object names, empty for none.
func (f *Finder) implementation(n graph.Node) string {
	path, has := implementations[n.Resource().GroupResource().String()]
	if !has {
		return ""
	}
	full, err := f.evidence.Whole(n)
	if err != nil {
		return ""
	}
	return evidence.Nested(full, path...)
}

// mayBe reports whether the workload may be an implementation with the name, which begins with a
// domain: a label of the domain, but for the last, is in a name of it, or the other way round.
func (c *Candidate) mayBe(implementation string) bool {
	domain, rest, _ := strings.Cut(implementation, "/")
	labels := strings.Split(domain, ".")
	if len(labels) > 1 {
		labels = labels[:len(labels)-1]
	}
	labels = append(labels, rest)
	for _, name := range append(slices.Clone(c.programs), c.name) {
		for _, word := range notWords().Split(strings.ToLower(name), -1) {
			if len(word) > 2 && !slices.Contains(controllerWords, word) && !slices.Contains(apiWords, word) &&
				slices.ContainsFunc(labels, func(label string) bool { return strings.Contains(strings.ToLower(label), word) }) {
				return true
			}
		}
	}
	return false
}

// apiWords are those of the APIs that have implementations, which tell nothing of which it is.
var apiWords = []string{"gateway", "ingress", "class", "gatewayclass", "networking", "csi", "driver", "storage",
	"provisioner", "k8s", "api", "proxy"}

// managersIn returns the field managers that have set a finalizer on an object, and all
// that have written to it but for people.
func (f *Finder) managersIn(n graph.Node, finalizer string) (setters, writers []string) {
	if f.latest.of != n.UID() || f.latest.finalizer != finalizer {
		f.latest = fieldManagers{of: n.UID(), finalizer: finalizer}
		f.latest.setters, f.latest.writers = f.readManagersIn(n, finalizer)
	}
	return f.latest.setters, f.latest.writers
}

// fieldManagers are those of an object, with regard to a finalizer.
type fieldManagers struct {
	of               types.UID
	finalizer        string
	setters, writers []string
}

func (f *Finder) readManagersIn(n graph.Node, finalizer string) (setters, writers []string) {
	full, err := f.evidence.Whole(n)
	if err != nil {
		return nil, nil
	}
	for _, entry := range full.GetManagedFields() {
		if entry.FieldsV1 != nil && evidence.SetsFinalizer(entry.FieldsV1.Raw, finalizer) {
			setters = append(setters, entry.Manager)
		}
		if !isPerson(entry.Manager) {
			writers = append(writers, entry.Manager)
		}
	}
	return setters, writers
}

// shareWord reports whether two names have a word in common that tells something.
func shareWord(a, b string) bool {
	words := notWords().Split(strings.ToLower(b), -1)
	return slices.ContainsFunc(notWords().Split(strings.ToLower(a), -1), func(word string) bool {
		return len(word) > 1 && !slices.Contains(controllerWords, word) && !slices.Contains(finalizerWords, word) && slices.Contains(words, word)
	})
}

// livesElsewhere reports whether the catalogue has the workload, by namespace and name,
// as the controller of other finalizers.
func (f *Finder) livesElsewhere(s *Search, l *Workload) bool {
	for e := range f.catalogue.Entries() {
		if slices.ContainsFunc(s.Known, func(m finalizers.Match) bool { return m.Product == e.Product && m.Controller == e.Controller }) {
			continue
		}
		for _, usual := range e.Workloads {
			if usual.Namespace != "" && usual.Namespace != finalizers.ObjectNamespace && !strings.ContainsAny(usual.Name+usual.Namespace, "*<") &&
				usual.Is(l.resource.Kind, l.namespace, l.name, "") {
				return true
			}
		}
	}
	return false
}

// calledSo reports whether the manager is a name of a workload that is there.
func (f *roster) calledSo(manager string) bool {
	i := f.inventory()
	found, known := i.called[manager]
	if !known {
		found = slices.ContainsFunc(i.workloads, func(l *Workload) bool { return l.calledBy(manager) })
		i.called[manager] = found
	}
	return found
}

// Missing returns the name under which the finalizer was set when it is a program's and
// no workload has it, empty otherwise.
func (f *Finder) Missing(s *Search) string {
	names := ownNames(s.Setters)
	if len(names) != 1 || len(s.Setters) != 1 || f.calledSo(names[0]) {
		return ""
	}
	return names[0]
}
