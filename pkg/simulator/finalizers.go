// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// crdCleanup is the finalizer under which the API server deletes the instances
// of a CustomResourceDefinition.
const crdCleanup = "customresourcecleanup.apiextensions.k8s.io"

// condition is when a finalizer's controller removes it, as far as metadata can
// tell: surely when none of the groups has an object left. Otherwise it is
// unknown, for the reason.
type condition struct {
	groups func(v *view, o *graph.Object) []group
	reason string
}

var claimResource = schema.GroupResource{Resource: "persistentvolumeclaims"}

// conditions are those of Kubernetes' own finalizers whose controllers look at
// more than the object. Every other finalizer goes as soon as the object is
// terminating, if there is someone who acts; those of kube-controller-manager are
// unconditional.
var conditions = map[string]condition{
	// pkg/controller/volume/pvcprotection, podUsesPVCForDeletion: any pod that
	// is on a node counts, also one that has ended.
	finalizers.ClaimProtection: {
		groups: func(_ *view, o *graph.Object) []group {
			return []group{{resource: podResource, namespace: o.Namespace, scheduled: true, claim: o.Name}}
		},
		reason: "unclear whether a pod uses the claim",
	},
	// pkg/controller/volume/pvprotection, isBeingUsed: not while it is bound.
	"kubernetes.io/pv-protection": {groups: claimOf(), reason: volumeBound},
	// pkg/controller/volume/persistentvolume: deleted after it was released.
	"kubernetes.io/pv-controller":                         {groups: claimOf(claimResource), reason: volumeBound},
	"external-provisioner.volume.kubernetes.io/finalizer": {groups: claimOf(claimResource), reason: volumeBound},
	// pkg/controller/volume/vacprotection: claims and volumes name it.
	"kubernetes.io/vac-protection": {
		groups: everywhere(claimResource, schema.GroupResource{Resource: "persistentvolumes"}),
		reason: "unclear whether a claim or a volume uses the class",
	},
	// pkg/controller/servicecidrs: addresses lie in it and in no other.
	"networking.k8s.io/service-cidr-finalizer": {
		groups: everywhere(schema.GroupResource{Group: "networking.k8s.io", Resource: "ipaddresses"}),
		reason: "unclear whether addresses of services lie in no other range",
	},
	// pkg/controller/resourceclaim: reserved for pods.
	"resource.kubernetes.io/delete-protection": {
		groups: inItsNamespace(group{resource: podResource}),
		reason: "unclear whether a pod uses the claim",
	},
	// pkg/controller/scheduling/podgroupprotection: active pods in the group.
	"scheduling.k8s.io/podgroup-protection": {
		groups: inItsNamespace(group{resource: podResource}),
		reason: "unclear whether a pod is in the group",
	},
}

// unconditional are the finalizers of kube-controller-manager that have no
// condition: the job controller removes its own also when the Job is gone.
var unconditional = []string{"batch.kubernetes.io/job-tracking"}

const volumeBound = "unclear whether the volume is bound"

// claimOf is the claim to which a volume is bound; of one that is not bound it is what else may be,, and of one that was not read every
// claim.
func claimOf(others ...schema.GroupResource) func(*view, *graph.Object) []group {
	return func(v *view, o *graph.Object) []group {
		switch claim, read := v.snapshot.Facts.Volumes[o.UID]; {
		case !read:
			return []group{{resource: claimResource}}
		case claim != "":
			return []group{{resource: claimResource, uid: claim}}
		}
		return everywhere(others...)(v, o)
	}
}

func inItsNamespace(g group) func(*view, *graph.Object) []group {
	return func(_ *view, o *graph.Object) []group {
		g.namespace = o.Namespace
		return []group{g}
	}
}

func everywhere(resources ...schema.GroupResource) func(*view, *graph.Object) []group {
	var groups []group
	for _, resource := range resources {
		groups = append(groups, group{resource: resource})
	}
	return func(*view, *graph.Object) []group { return groups }
}

// actor says who removes the finalizer from the object.
func (a *Actors) actor(o *graph.Object, finalizer string) Actor {
	switch {
	case graph.IsCollectorFinalizer(finalizer), finalizer == crdCleanup:
		return Acts
	case a.Finalizer == nil:
		return Unknown
	}
	who, _ := a.Finalizer(o, finalizer)
	return who
}

// unsure says why it is not known who removes the finalizer from the object.
func (a *Actors) unsure(o *graph.Object, finalizer string) say.Text {
	var why say.Text
	if a.Finalizer != nil {
		_, why = a.Finalizer(o, finalizer)
	}
	if why.IsZero() {
		return say.Of(unsureOf, finalizer)
	}
	return why
}

// isControllers reports whether the finalizer is one that a controller of the
// simulation removes.
func (a *Actors) isControllers(o *graph.Object, finalizer string) bool {
	return !graph.IsCollectorFinalizer(finalizer) && finalizer != crdCleanup && a.actor(o, finalizer) == Acts
}

// finalizerControllers remove the finalizers of terminating objects when their conditions hold. They remember
// nothing: what they wait for is among the memberships.
type finalizerControllers struct {
	view   *view
	clock  *clock
	groups *memberships
	actors *Actors
	api    api
}

// planFinalizers plans the work of those who act on a terminating object's
// finalizers.
func (c *finalizerControllers) planFinalizers(o *graph.Object) {
	for _, f := range o.Finalizers {
		if c.actors.isControllers(o, f) {
			c.clock.after(controllerFinalizes, o.UID, controllerDelay)
			return
		}
	}
}

// finalize removes the finalizers whose condition holds, each with a request of
// its own.
func (c *finalizerControllers) finalize(o graph.Object) {
	if !o.BeingDeleted() || c.view.unchangeable(&o) {
		return
	}
	for _, f := range o.Finalizers {
		if !c.actors.isControllers(&o, f) {
			continue
		}
		if why, until := c.groups.unmet(f, &o); why != "" {
			if until != nil {
				c.groups.waitFor(*until, controllerFinalizes, o.UID)
			}
			continue
		}
		after := o
		after.Finalizers = without(o.Finalizers, f)
		o = c.api.update(o, after)
	}
}

// unmet says why it is not known whether the finalizer's condition holds, and of which group nothing
// must be left before it may. It is empty when the condition holds.
func (ms *memberships) unmet(finalizer string, o *graph.Object) (why string, until *group) {
	c, known := conditions[finalizer]
	if !known {
		return "", nil
	}
	groups := c.groups(ms.view, o)
	for i, g := range groups {
		if !ms.view.listed(g) {
			return c.reason, nil
		}
		if ms.left(g) > 0 {
			return cmp.Or(ms.userOf(g), c.reason), &groups[i]
		}
	}
	return "", nil
}

// userOf says which pod uses a claim, or which claim a volume, empty when that is not known of any.
func (ms *memberships) userOf(g group) string {
	if o, _, known := ms.view.look(g.uid); known {
		return "it is deleted once " + strings.ToLower(o.Resource.Kind) + "/" + o.Name + " -n " + o.Namespace +
			", which is bound to it, is deleted"
	}
	if g.claim == "" {
		return ""
	}
	for _, uid := range ms.view.members(g) {
		if facts, read := ms.view.snapshot.Facts.Pods[uid]; read && slices.Contains(facts.Claims, g.claim) {
			o, _, _ := ms.view.look(uid)
			return "it is deleted once pod/" + o.Name + ", which uses it, is deleted"
		}
	}
	return ""
}

// without returns the list without the finalizer, nil when nothing is left.
func without(finalizers []string, finalizer string) []string {
	var rest []string
	for _, f := range finalizers {
		if f != finalizer {
			rest = append(rest, f)
		}
	}
	return rest
}
