// SPDX-License-Identifier: Apache-2.0

package finalizers

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Field is the list of an object in which a finalizer sits.
type Field string

// The fields. Only namespaces have finalizers in their spec.
const (
	Metadata Field = "metadata.finalizers"
	Spec     Field = "spec.finalizers"
)

// Component is a part of Kubernetes that runs controllers.
type Component string

// The components.
const (
	ControllerManager      Component = "kube-controller-manager"
	APIServer              Component = "kube-apiserver"
	CloudControllerManager Component = "cloud-controller-manager"
)

// Use says what a controller does whose finalizer stays for as long as its object is used.
type Use string

// The uses.
const (
	OnlyWaits Use = "only" // it waits until the object is not used
	AlsoEnds  Use = "also" // it ends something besides
)

// ClaimProtection is on PersistentVolumeClaims that a pod may use
// (pkg/controller/volume/pvcprotection).
const ClaimProtection = "kubernetes.io/pvc-protection"

// ObjectNamespace stands in Workload.Namespace and Lease.Namespace for the
// namespace of the object that has the finalizer. A controller there goes down
// with the namespace.
const ObjectNamespace = "<namespace>"

// Always ends an Entry's OffCluster when the controller runs nowhere else.
const Always = ", always"

// Entry is what is known of one finalizer, or of all that have one form. What
// is not known is empty. The slices are shared and must not be changed.
type Entry struct {
	// Finalizer is the finalizer or, with a "*" or a <placeholder> in it, the
	// form of many. The top of catalogue.yaml says what they stand for.
	Finalizer string
	Field     Field
	// Kinds are the kinds that it is put on, as schema.ParseGroupKind has them,
	// with "*" for any characters; empty for any kind.
	Kinds      []string
	Product    string
	Controller string
	// Builtin is the part of Kubernetes that the controller is in, empty for
	// controllers that somebody installed.
	Builtin Component
	// Workloads are the places where the controller usually runs: any one of
	// them does. An Instance that exists comes before all others.
	Workloads []Workload
	// Helpers have to run as well, or the controller gets nowhere.
	Helpers []Workload
	Leases  []Lease
	// OffCluster says where the controller runs out of sight, if it can. Nothing
	// follows then from not finding it.
	OffCluster string
	// Place is the object that stands for where that is: its type, the field of the object that has its name, and, if there is one, what
	// comes before the name there: "<plural>.<group> <field.of.the.object> <prefix>".
	Place string
	// Names is the object that a placeholder names, and without which the controller leaves the finalizer alone:
	// "<plural>.<group> <placeholder>".
	Names    string
	WaitsFor string
	// WhileUsed is set when others have to bring that about: however well the
	// controller works, the finalizer stays for as long as something uses the object.
	WhileUsed Use
	// Users are the fields by which others use the object, where these are not of its own API or
	// are no references with a kind: "<plural>.<group> <field.of.the.object>".
	Users []string
	// Creates is what the controller creates in the namespace of the object to clean up, which nobody can once that is being
	// deleted: "<what>", or "<what> if <field.of.the.object>", which must be true.
	Creates string
	// Leaks is what is left behind when the finalizer is removed by hand.
	Leaks string
	// Harmless: that is nothing that matters. Removing the finalizer is safe if,
	// and only if, its controller is gone for good.
	Harmless bool
	Note     string
	// Examples are finalizers of the form, when there is one.
	Examples []string
	// Source is where the string is defined.
	Source string
}

// Workload is where a controller usually runs, by its project's own charts and
// manifests. Users rename them: another name is no proof of absence.
type Workload struct {
	// Kind is Deployment, StatefulSet or DaemonSet, Kind.group for an instance, or empty if it is not known.
	Kind string
	// Namespace is empty if it is not known, and may be ObjectNamespace.
	Namespace string
	// Name may have "*" for any characters, and "<field.of.the.object>" for what that holds.
	Name string
}

// Instance reports whether the workload is an object of a product, whose own pods the controller runs in.
func (w Workload) Instance() bool { return strings.Contains(w.Kind, ".") }

// Is reports whether a workload with this kind, namespace and name may be the
// one that is meant, for an object in objectNamespace.
func (w Workload) Is(kind, namespace, name, objectNamespace string) bool {
	return (w.Kind == "" || w.Kind == kind) && isAt(w.Namespace, w.Name, namespace, name, objectNamespace)
}

// Lease is a Lease that a controller may hold.
type Lease struct {
	// Namespace is empty if it is not known, and may be ObjectNamespace.
	Namespace string
	// Name may have "*" for any characters.
	Name string
}

// Is reports whether a Lease with this namespace and name may be the one that
// is meant, for an object in objectNamespace.
func (l Lease) Is(namespace, name, objectNamespace string) bool {
	return isAt(l.Namespace, l.Name, namespace, name, objectNamespace)
}

func isAt(wantNamespace, wantName, namespace, name, objectNamespace string) bool {
	if wantNamespace == ObjectNamespace {
		wantNamespace = objectNamespace
	}
	return (wantNamespace == "" || wantNamespace == namespace) && glob(wantName, name)
}

// glob reports whether the pattern, in which only "*" is special, stands for
// the text. Neither has a slash.
func glob(pattern, text string) bool {
	ok, err := path.Match(pattern, text)
	return ok && err == nil
}

// isPutOn reports whether the entry says that it is put on objects of the kind.
func (e *Entry) isPutOn(kind schema.GroupKind) bool {
	if kind.Empty() {
		return false
	}
	for _, pattern := range e.Kinds {
		if glob(pattern, kind.String()) {
			return true
		}
	}
	return len(e.Kinds) == 0
}
