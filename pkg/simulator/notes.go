// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// overdueAfter is how long after the grace period a kubelet that reports should
// be done with a pod.
const overdueAfter = 30 * time.Second

// The labels of objects that the API server keeps making.
const (
	// bootstrapLabel marks default roles and bindings (pkg/registry/rbac/rest).
	bootstrapLabel = "kubernetes.io/bootstrapping"
	// automanagedLabel marks APIServices that the API server registers
	// (kube-aggregator/pkg/controllers/autoregister).
	automanagedLabel = "kube-aggregator.kubernetes.io/automanaged"
)

// Labels are the keys of the labels that the simulation looks at.
func Labels() []string { return []string{bootstrapLabel, automanagedLabel} }

func (x *fates) notesOfGone(o *graph.Object) []say.Text {
	var notes []say.Text
	if note := x.overdue(o); note != "" {
		notes = append(notes, say.Plain(note))
	}
	if note := x.comesBack(o).Says; note != "" {
		notes = append(notes, say.Plain(note))
	}
	return notes
}

func (x *fates) notesOfTerminating(o *graph.Object) []say.Text {
	notes := x.notesOfLive(o)
	if x.view.unchangeable(o) {
		notes = append(notes, say.Of(namespaceAbsent))
	}
	if spec, read := x.view.specFinalizers(o.UID); is(o, namespaceResource) && read && len(spec)+len(o.Finalizers) == 0 {
		notes = append(notes, say.Of(deleteAgain))
	}
	return notes
}

func (x *fates) notesOfLive(o *graph.Object) []say.Text {
	if x.view.unserved[o.Resource.GroupResource()] {
		return []say.Text{say.Of(OutOfReach)}
	}
	return nil
}

// overdue says by how much the kubelet was late with a pod when the snapshot
// was taken. That the pod goes then is a guess: its kubelet reports.
func (x *fates) overdue(o *graph.Object) string {
	was, known := x.view.snapshot.Object(o.UID)
	if !known || !is(o, podResource) || !was.BeingDeleted() || x.view.nothingButFinalizers(&was) {
		return ""
	}
	late := x.began.Sub(was.DeletionTimestamp.Time)
	if facts := x.view.snapshot.Facts.Pods[o.UID]; late < overdueAfter || x.view.node(facts.NodeName) != NodeReports {
		return ""
	}
	return fmt.Sprintf("its kubelet reports but had not ended it %s after its grace period", late.Truncate(time.Second))
}

// Maker is who creates an object anew.
type Maker struct {
	// Says says who, empty for nobody.
	Says string
	// Certain is unset where that depends on what is not known.
	Certain bool
}

// comesBack returns who creates a removed object anew.
func (x *fates) comesBack(o *graph.Object) Maker {
	h, _ := x.view.snapshot.Handle(o.UID) // there are no others
	switch {
	case x.view.snapshot.Label(h, bootstrapLabel) == "rbac-defaults", x.view.snapshot.Label(h, automanagedLabel) == "onstart":
		return Maker{"recreated when a kube-apiserver starts", false}
	case x.view.snapshot.Label(h, automanagedLabel) != "":
		return ofServer
	case o.Namespace != "" && !x.view.namespaceActive(o.Namespace):
		return Maker{} // nothing is created in a terminating namespace
	case o.Namespace == "kube-node-lease" && o.Resource.Resource == "leases":
		return x.kubeletMakes(o)
	}
	return cmp.Or(x.systemMakes(o), x.kubeletMakes(o), x.controllerMakes(o))
}

var (
	// ofSelector is who makes what has the addresses of the pods of a Service.
	ofSelector = Maker{"recreated for its Service if that has a selector", false}
	ofServer   = Maker{"recreated by kube-apiserver", true}
	ofManager  = Maker{"recreated by kube-controller-manager", true}
)

// kept are the objects that the system keeps making, by their resource and "*" or a namespace; their names, none for all.
var kept = []struct {
	resource, namespace string
	names               []string
	by                  Maker
}{
	{"configmaps", "*", []string{"kube-root-ca.crt"}, ofManager},
	{"serviceaccounts", "*", []string{"default"}, ofManager},
	{"leases.coordination.k8s.io", "*", nil, Maker{"recreated by its holder if that runs", false}},
	{"ipaddresses.networking.k8s.io", "", nil,
		Maker{"recreated by kube-apiserver in minutes if its Service exists; another might get the address before", false}},
	{"namespaces", "", []string{"kube-node-lease"}, ofServer},
	{"services", metav1.NamespaceDefault, []string{"kubernetes"}, ofServer},
	{"endpoints", metav1.NamespaceDefault, []string{"kubernetes"}, ofServer},
	{"endpointslices.discovery.k8s.io", metav1.NamespaceDefault, []string{"kubernetes"}, ofServer},
	{"configmaps", metav1.NamespaceSystem,
		[]string{"extension-apiserver-authentication", "kube-apiserver-legacy-service-account-token-tracking"}, ofServer},
	{"servicecidrs.networking.k8s.io", "", []string{"kubernetes"}, ofServer},
	// k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap
	{"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", "", []string{
		"exempt", "catch-all", "system", "node-high", "leader-election", "workload-high", "workload-low", "global-default",
	}, ofServer},
	{"flowschemas.flowcontrol.apiserver.k8s.io", "", []string{
		"exempt", "catch-all", "probes", "system-leader-election", "system-node-high", "system-nodes",
		"kube-controller-manager", "kube-scheduler",
		"kube-system-service-accounts", "service-accounts", "global-default",
	}, ofServer},
}

// systemMakes knows what the system keeps making.
func (x *fates) systemMakes(o *graph.Object) Maker {
	gr := o.Resource.GroupResource()
	for i := range kept {
		k := &kept[i]
		if k.resource == gr.String() && (k.namespace == o.Namespace || k.namespace == "*") &&
			(k.names == nil || slices.Contains(k.names, o.Name)) {
			return k.by
		}
	}
	if gr == endpointsResource && x.view.isLive(location{serviceResource, o.Namespace, o.Name}) {
		return ofSelector
	}
	return Maker{}
}

// kubeletMakes knows mirrors of static pods, and nodes' leases.
func (x *fates) kubeletMakes(o *graph.Object) Maker {
	node := ""
	switch facts := x.view.snapshot.Facts.Pods[o.UID]; {
	case facts.Mirror:
		node = facts.NodeName
	case o.Namespace == "kube-node-lease" && o.Resource.Resource == "leases":
		node = o.Name
	default:
		return Maker{}
	}
	switch x.view.node(node) {
	case NodeReports:
		return Maker{"recreated by the kubelet of node " + node, true}
	case NodeAbsent:
		return Maker{}
	}
	return Maker{"recreated by the kubelet of node " + node + " when it reports", true}
}

// makers are controllers that replace what they lack, by kind of controller and
// of dependent. Others may: a Deployment makes only its current ReplicaSet, a
// Job that is finished makes no pods.
var makers = map[[2]schema.GroupKind]bool{
	{{Group: "apps", Kind: "ReplicaSet"}, {Kind: "Pod"}}:  true,
	{{Group: "apps", Kind: "StatefulSet"}, {Kind: "Pod"}}: true,
	{{Group: "apps", Kind: "DaemonSet"}, {Kind: "Pod"}}:   true,
	{{Kind: "ReplicationController"}, {Kind: "Pod"}}:      true,
}

// Replaces reports whether a controller of a kind makes another dependent of a kind in
// the place of one that is gone.
func Replaces(controller, dependent schema.GroupKind) bool {
	return makers[[2]schema.GroupKind{controller, dependent}]
}

// controllerMakes knows controllers: one that is there and not terminating
// replaces what it lacks.
func (x *fates) controllerMakes(o *graph.Object) Maker {
	i := slices.IndexFunc(o.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.Controller != nil && *ref.Controller })
	if i < 0 {
		return Maker{}
	}
	controller, gone, known := x.view.look(o.OwnerReferences[i].UID)
	if !known || gone || controller.BeingDeleted() {
		return Maker{}
	}
	owner := controller.Resource.GroupVersionKind().GroupKind()
	name := owner.Kind + "/" + controller.Name
	switch {
	case x.replacedBefore(o, owner):
		return Maker{}
	case owner == (schema.GroupKind{Kind: "Service"}):
		return ofSelector
	case owner.Kind == "DaemonSet" && o.Resource.IsPod() && x.view.node(x.view.snapshot.Facts.Pods[o.UID].NodeName) == NodeAbsent:
		return Maker{}
	case owner == (schema.GroupKind{Group: "apps", Kind: "StatefulSet"}) && o.Resource.IsPod():
		return Maker{"recreated by its controller " + name + " unless that is scaled down", false}
	case Replaces(owner, o.Resource.GroupVersionKind().GroupKind()):
		return Maker{"recreated by its controller " + name, true}
	case owner == (schema.GroupKind{Group: "apps", Kind: "Deployment"}) && x.isOld(o, controller.UID):
		return Maker{}
	case owner == (schema.GroupKind{Group: "batch", Kind: "CronJob"}):
		return Maker{"its controller " + name + " creates another when it is due, unless it is suspended", false}
	}
	return Maker{"might be recreated by its controller " + name, false}
}

// replacedBefore reports whether an object was a pod that its controller did not count any more
// before all this, and has replaced, if it wants one in its place (pkg/controller/
// controller_utils.go, IsPodActive). Others wait until such a pod has gone.
func (x *fates) replacedBefore(o *graph.Object, controller schema.GroupKind) bool {
	h, _ := x.view.snapshot.Handle(o.UID)
	before, phase := x.view.snapshot.Unlabelled(h), x.view.snapshot.Facts.Pods[o.UID].Phase
	ended := phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed)
	switch controller {
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Kind: "ReplicationController"}:
		return o.Resource.IsPod() && (ended || before.BeingDeleted())
	case schema.GroupKind{Group: "batch", Kind: "Job"}: // one that is terminating it may wait for
		return o.Resource.IsPod() && ended
	}
	return false
}

// isOld reports whether a ReplicaSet is of an earlier revision of its Deployment: it had no pods, another had, and others were made after
// it.
func (x *fates) isOld(o *graph.Object, deployment types.UID) bool {
	if x.manned == nil {
		x.manned, x.sets = map[types.UID]bool{}, map[types.UID][]graph.Object{}
		for h, head := range x.view.snapshot.Heads() {
			if pod := head.Resource.IsPod(); pod && !head.BeingDeleted || head.Resource.GroupResource() == replicaSets {
				before := x.view.snapshot.Unlabelled(h)
				for _, ref := range before.OwnerReferences {
					if x.manned[ref.UID] = x.manned[ref.UID] || pod; !pod {
						x.sets[ref.UID] = append(x.sets[ref.UID], before)
					}
				}
			}
		}
	}
	sets := x.sets[deployment]
	return !x.manned[o.UID] && slices.ContainsFunc(sets, func(other graph.Object) bool { return x.manned[other.UID] }) &&
		slices.ContainsFunc(sets, func(other graph.Object) bool { return o.CreationTimestamp.Before(&other.CreationTimestamp) })
}

var replicaSets = schema.GroupResource{Group: "apps", Resource: "replicasets"}
