// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/mention"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Leftover is an object that was to stay, and its state now.
type Leftover struct {
	// Object is as it is, or as the plan has it when it does not exist.
	Object graph.Identity
	// Gone: it provably does not exist.
	Gone bool
	// Held is why it is kept, nil when nothing was found that needs it.
	Held *Hold
	// Belongs is the sign by which it belongs to what was removed, empty for what the tool keeps. A sign is no proof.
	Belongs say.Text
	// Changed: it has another version than in the plan.
	Changed bool
	// Instances are those of a definition, which are deleted with it.
	Instances []graph.Identity
}

// Unknown reports whether it is not known if the object is in use.
func (l *Leftover) Unknown() bool {
	return l.Held != nil && (l.Held.Why == NotRead || l.Held.Why == NamedBy)
}

// Hold is why a leftover is kept.
type Hold struct {
	Why    Holding
	Detail say.Text
	// by is the object that keeps it unless that is no longer needed, too; empty when nothing changes it.
	by types.UID
}

// Holding says why a leftover is kept.
type Holding string

// The reasons.
const (
	// Replaced: another object has its name. NotRead: what has to be known is not, which is Detail.
	Replaced Holding = "Replaced"
	NotRead  Holding = "NotRead"
	// ByTool: the tool keeps it. Changed: it is not as it was in the plan. Data: its deletion might destroy the data of a volume.
	// HasInstances: it is a definition with instances. Runs: it is a workload that another one has made. Finalizers: controllers that somebody
	// installed have some on it.
	ByTool       Holding = "KeptByTool"
	Runs         Holding = "Runs"
	Finalizers   Holding = "Finalizers"
	Changed      Holding = "Changed"
	Data         Holding = "Data"
	HasInstances Holding = "HasInstances"
	// OwnedBy an object, or OwnerOf one. DeliveredBy another release or tool. Unlabelled: it has lost the label by which it belonged.
	// Repointed: it does not call the service any more by which it did.
	OwnedBy     Holding = "OwnedBy"
	OwnerOf     Holding = "OwnerOf"
	DeliveredBy Holding = "DeliveredBy"
	Unlabelled  Holding = "Unlabelled"
	Repointed   Holding = "Repointed"
	// Back: what it belonged to exists, which is Detail. Calls a service that exists, or what is outside the cluster.
	Back  Holding = "Back"
	Calls Holding = "Calls"
	// UsedBy an object that names it, or who has rights by it. NamedBy one that has its name, maybe for something else. ClaimedBy a
	// StatefulSet. Leased by the holder of a lease. Holds something, as a namespace.
	UsedBy    Holding = "UsedBy"
	NamedBy   Holding = "NamedBy"
	ClaimedBy Holding = "ClaimedBy"
	Leased    Holding = "Leased"
	Holds     Holding = "Holds"
)

// judging is how they are judged. What is judged is the cluster as it is: of the plan only count which objects are meant, and how they
// belonged.
type judging struct {
	*World
	*Saved
	all []candidate
	// namesakes returns the releasesNamed, which are looked for once.
	namesakes func() []graph.Node
	// present returns the runnersNow, which are read once.
	present func() []runner
}

// candidate is a leftover with everything that keeps it.
type candidate struct {
	Leftover
	left  Left
	node  graph.Node
	whole *unstructured.Unstructured
	holds []Hold
}

func (c *candidate) hold(why Holding, detail any, by types.UID) {
	c.holds = append(c.holds, Hold{why, say.Plain(detail), by})
}

// Leftovers returns the state of the objects that were to stay, in the order of their identities. The caller has called Over before: what
// was to be deleted is gone, so anything that has its name is another object.
func (w *World) Leftovers(s *Saved) []Leftover {
	j := &judging{World: w, Saved: s}
	j.namesakes, j.present = sync.OnceValue(j.releasesNamed), sync.OnceValue(j.runnersNow)
	for _, l := range s.Left {
		j.find(l)
	}
	for _, k := range s.Kept {
		switch {
		case k.Object.UID != "":
			j.find(Left{Object: k.Object, Version: k.Version})
		case k.Reason == HookMade: // otherwise nothing shows that it existed
			for _, n := range w.Evidence.Named(w.resourceNow(k.Object), k.Object.Namespace, k.Object.Name) {
				j.find(Left{Object: n.Identity()})
			}
		}
	}
	j.read()
	for i := range j.all {
		if c := &j.all[i]; c.whole != nil {
			j.judge(c)
		}
	}
	j.mentioned()
	for i := range j.all {
		if c := &j.all[i]; c.whole != nil {
			j.spare(c)
		}
	}
	j.settle()
	var found []Leftover
	for i := range j.all {
		found = append(found, j.all[i].Leftover)
	}
	graph.SortByIdentity(found, func(l *Leftover) graph.Identity { return l.Object })
	return found
}

// find looks for an object by its UID: what has its name now is another one.
func (j *judging) find(l Left) {
	if slices.ContainsFunc(j.all, func(c candidate) bool { return c.left.Object.UID == l.Object.UID }) {
		return
	}
	c := candidate{Leftover: Leftover{Object: l.Object, Belongs: l.Says()}, left: l}
	n, known := j.Graph.Node(l.Object.UID)
	gvk, resource := l.Object.Resource.GroupVersionKind(), j.resourceNow(l.Object)
	switch {
	case known && !n.Virtual() && n.Name() == l.Object.Name && n.Namespace() == l.Object.Namespace && n.Resource().Kind == gvk.Kind:
		c.node, c.Object = n, n.Identity()
	case known && !n.Virtual(), len(j.Evidence.Named(resource, l.Object.Namespace, l.Object.Name)) > 0:
		c.hold(Replaced, "", "")
	case j.Graph.Snapshot().Covers(resource, l.Object.Namespace, l.Object.Name), !j.served(l.Object):
		c.Gone = true
	default:
		c.hold(NotRead, resource.String(), "")
	}
	j.all = append(j.all, c)
}

// read reads the candidates whole.
func (j *judging) read() {
	var nodes []graph.Node
	for i := range j.all {
		if c := &j.all[i]; !c.Gone && len(c.holds) == 0 {
			nodes = append(nodes, c.node)
		}
	}
	j.Evidence.Together(nodes)
	for i := range j.all {
		c := &j.all[i]
		if c.Gone || len(c.holds) > 0 {
			continue
		}
		o, err := j.Evidence.Whole(c.node)
		if err != nil {
			c.hold(NotRead, c.node.Resource().GroupResource().String(), "")
			continue
		}
		c.whole = o
		// which are renewed
		c.Changed = c.Object.Resource.GroupResource() != evidence.Leases.GroupResource() && c.left.Version.changedTo(versionOf(o))
	}
}

// settle decides: an object that is no longer needed itself keeps no other.
func (j *judging) settle() {
	goes := map[types.UID]bool{}
	for i := range j.all {
		if c := &j.all[i]; c.whole != nil {
			goes[c.Object.UID] = true
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range j.all {
			c := &j.all[i]
			at := slices.IndexFunc(c.holds, func(h Hold) bool { return h.by == "" || !goes[h.by] })
			if at >= 0 && c.Held == nil {
				c.Held, changed = &c.holds[at], true
				delete(goes, c.Object.UID)
			}
		}
	}
}

// blind is something of a namespace, or with an empty one of the cluster, that could not be listed.
func (j *judging) blind(namespace string) string {
	snapshot := j.Graph.Snapshot()
	for _, u := range snapshot.Unlisted() {
		elsewhere := namespace != "" && u.Namespace != "" && u.Namespace != namespace
		if elsewhere || u.Resource != "" && snapshot.ListedIn(u.GroupResource(), namespace) {
			continue
		}
		if u.Resource == "" {
			return u.GroupVersion().String()
		}
		return u.GroupResource().String()
	}
	return ""
}

// blindAbroad is a type of which objects of other namespaces could not be listed, and may name one: those of Kubernetes name nothing
// outside their own, but for the accounts of RoleBindings.
func (j *judging) blindAbroad(id graph.Identity) string {
	snapshot := j.Graph.Snapshot()
	for _, u := range snapshot.Unlisted() {
		binds := u.Resource == "rolebindings" && id.Resource.GroupResource() == evidence.ServiceAccounts.GroupResource()
		if u.Resource != "" && !snapshot.ListedIn(u.GroupResource(), "") && (binds || !graph.BuiltinGroup(u.Group)) {
			return u.GroupResource().String()
		}
	}
	return ""
}

// mentioned holds what other objects name, or may name.
func (j *judging) mentioned() {
	var ids []graph.Identity
	for i := range j.all {
		if c := &j.all[i]; c.whole != nil && nameable(c.Object) {
			ids = append(ids, c.Object)
		}
	}
	found := j.usersOf(ids)
	for i := range j.all {
		c := &j.all[i]
		if c.whole == nil || !nameable(c.Object) {
			continue
		}
		for _, u := range found.of[c.Object] {
			if u.sure < leastSure(c.Object) {
				continue
			}
			if u.sure >= mention.Near { // otherwise it may be the name of something else
				c.hold(UsedBy, u.by, u.by.UID)
			} else {
				c.hold(NamedBy, say.Of(namedIn, u.by, u.at), u.by.UID)
			}
		}
		if unread := found.unread[c.Object]; unread != "" {
			c.hold(NotRead, unread, "")
		} else if blind := cmp.Or(j.blind(c.Object.Namespace), j.blindAbroad(c.Object)); blind != "" {
			c.hold(NotRead, blind, "")
		}
	}
}

// nameable reports whether other objects may name one like it.
func nameable(id graph.Identity) bool {
	return id.Resource.GroupResource() != evidence.Leases.GroupResource()
}

// leastSure is how sure a name must be: the configurations of webhooks are often called as what serves them.
func leastSure(id graph.Identity) mention.Sure {
	switch id.Resource.GroupResource() {
	case evidence.ValidatingWebhooks.GroupResource(), evidence.MutatingWebhooks.GroupResource(), evidence.APIServices.GroupResource():
		return mention.Field
	}
	return mention.Text
}
