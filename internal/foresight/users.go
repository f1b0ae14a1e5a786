// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/mention"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// naming is that objects of some types name one of another, without which they do not work.
type naming struct {
	named string
	users []string
	// at is the field where they do, empty for any of the spec that is called after the kind.
	at string
	// without says what becomes of the users.
	without string
	// needs reports whether a user needs what it names; nil: each does.
	needs func(named, user *unstructured.Unstructured) bool
}

// needsClass reports whether a claim or StatefulSet needs its StorageClass, or may. Volumes that nobody provisions are bound by its name
// alone (pkg/controller/volume/persistentvolume/util.go, IsDelayBindingMode).
func needsClass(class, user *unstructured.Unstructured) bool {
	provisioner, _, _ := unstructured.NestedString(class.Object, "provisioner")
	expands, _, _ := unstructured.NestedBool(class.Object, "allowVolumeExpansion")
	return provisioner != "kubernetes.io/no-provisioner" && (expands || evidence.Nested(user, "spec", "volumeName") == "")
}

// needsDriver reports whether a volume needs its CSIDriver: without one it would have to be attached (pkg/volume/csi/csi_plugin.go,
// skipAttach).
func needsDriver(driver, _ *unstructured.Unstructured) bool {
	attaches, said, _ := unstructured.NestedBool(driver.Object, "spec", "attachRequired")
	return said && !attaches
}

// workloads have templates of pods.
var workloads = []string{"deployments.apps", "statefulsets.apps", "daemonsets.apps", "replicationcontrollers", "cronjobs.batch"}

// namings are those that are known.
var namings = []naming{
	{"ingressclasses.networking.k8s.io", []string{"ingresses.networking.k8s.io"}, "", ignoresIngress, nil},
	{"gatewayclasses.gateway.networking.k8s.io", []string{"gateways.gateway.networking.k8s.io"}, "", ignoresGateway, nil},
	{"storageclasses.storage.k8s.io", []string{"persistentvolumeclaims", "statefulsets.apps"}, "", provisionsNone, needsClass},
	{"csidrivers.storage.k8s.io", []string{"persistentvolumes"}, "spec.csi.driver", attachesNone, needsDriver},
	{"deviceclasses.resource.k8s.io", []string{"resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"}, "", allocatesNone, nil},
	{"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", []string{"flowschemas.flowcontrol.apiserver.k8s.io"}, "", ignoresSchema, nil},
	{"priorityclasses.scheduling.k8s.io", workloads, "", startsNone, nil},
	{"runtimeclasses.node.k8s.io", workloads, "", startsNone, nil},
	{"serviceaccounts", workloads, "", startsNone, nil},
	{"clustertrustbundles.certificates.k8s.io", workloads, "", startsNone, nil},
	{"secretstores.external-secrets.io", []string{"externalsecrets.external-secrets.io"}, "", refreshesNone, nil},
	{"clustersecretstores.external-secrets.io", []string{"externalsecrets.external-secrets.io"}, "", refreshesNone, nil},
	{"secretstores.external-secrets.io", []string{"pushsecrets.external-secrets.io"}, "", pushesNone, nil},
	{"clustersecretstores.external-secrets.io", []string{"pushsecrets.external-secrets.io"}, "", pushesNone, nil},
	{"issuers.cert-manager.io", []string{"certificates.cert-manager.io"}, "", renewsNone, nil},
	{"clusterissuers.cert-manager.io", []string{"certificates.cert-manager.io"}, "", renewsNone, nil},
}

// isNamed reports whether others are known to name objects of a type.
func isNamed(resource schema.GroupResource) bool {
	return slices.ContainsFunc(namings, func(n naming) bool { return n.named == resource.String() })
}

// users are what stays with a name that leads nowhere.
func (l *looker) users() []Break {
	var all []Break
	for i := range namings {
		how := &namings[i]
		var named []graph.Node
		for uid := range l.going {
			if n, ok := l.node(uid); ok && n.Resource().GroupResource().String() == how.named && !l.Plan.ComeBack[uid].Certain {
				named = append(named, n)
			}
		}
		slices.SortFunc(named, graph.Node.Compare)
		for _, n := range named {
			for _, user := range how.users {
				if left := l.left(how, schema.ParseGroupResource(user), n); len(left) > 0 {
					all = append(all, Break{Object: n.Identity(), Why: stillNamed(left, how.without), Certain: true})
				}
			}
		}
	}
	return all
}

// left returns what of a type stays and names an object.
func (l *looker) left(how *naming, user schema.GroupResource, of graph.Node) []graph.Identity {
	var left []graph.Identity
	var reader mention.Reader
	target := mention.To(of.Identity())
	var named *unstructured.Unstructured
	if how.needs != nil {
		var err error
		if named, err = l.now.evidence.Whole(of); err != nil {
			return nil // it is noted as unread
		}
	}
	names := func(o *unstructured.Unstructured) bool {
		for n := range reader.In(o) {
			sure := target.Named(n)
			if how.at == "" && sure >= mention.Called && n.InSpec() && !n.Optional || how.at == n.Path && sure > mention.No && n.Text == of.Name() {
				return true
			}
		}
		return false
	}
	for n := range l.then.evidence.Instances(user) { // which says in which version they are
		items, err := l.then.evidence.List(n.Resource().GroupVersionResource, of.Namespace())
		if err != nil {
			return nil // it is noted as unread
		}
		for i := range items {
			if names(&items[i]) && (named == nil || how.needs(named, &items[i])) {
				left = append(left, evidence.IdentityOf(n.Resource().GroupVersionResource, n.Resource().Kind, &items[i]))
			}
		}
		break
	}
	slices.SortFunc(left, graph.Identity.Compare)
	return left
}

// used looks for what uses an object whose controller waits until nothing does. With what uses it it can go first, if all of that goes;
// what stays keeps it.
func (l *looker) used(s *Service, n graph.Node, a *controllers.Answer, does say.Text) {
	used := l.now.finder.UsersOf(n, a.Search)
	if i := slices.IndexFunc(used.By, func(u controllers.User) bool { return !l.going[u.UID()] }); i >= 0 {
		u := &used.By[i]
		age := duration.HumanDuration(l.now.evidence.Now.Sub(u.CreationTimestamp().Time))
		switch {
		case u.BeingDeleted():
			s.whenever(Unclear, does.And(usedByEnding, u.Identity()))
		case u.Stated:
			s.whenever(Stuck, say.Of(StuckBy, does.And(usedByKept, u.Identity(), age)))
		default:
			s.whenever(Unclear, does.And(usedByKept, u.Identity(), age))
		}
		return
	}
	if len(used.Of) == 0 {
		s.whenever(Unclear, does.And(uncheckedUse))
		return
	}
	s.first = does.And(unused)
	s.Why = s.first
	for _, u := range used.By {
		s.users = append(s.users, u.Identity())
	}
	if len(used.By) > 0 {
		s.worsen(Unclear, does.And(usedBy, used.By[0].Identity()))
	}
}
