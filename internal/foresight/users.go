// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"

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
	needs func(l *forecaster, named, user *unstructured.Unstructured) bool
}

// needsClass reports whether a claim or StatefulSet needs its StorageClass, or may. Volumes that nobody provisions are bound by its name
// alone (pkg/controller/volume/persistentvolume/util.go, IsDelayBindingMode).
func needsClass(_ *forecaster, class, user *unstructured.Unstructured) bool {
	provisioner, _, _ := unstructured.NestedString(class.Object, "provisioner")
	expands, _, _ := unstructured.NestedBool(class.Object, "allowVolumeExpansion")
	return provisioner != "kubernetes.io/no-provisioner" && (expands || evidence.Nested(user, "spec", "volumeName") == "")
}

// needsDriver reports whether a volume needs its CSIDriver: without one it would have to be attached (pkg/volume/csi/csi_plugin.go,
// skipAttach).
func needsDriver(_ *forecaster, driver, _ *unstructured.Unstructured) bool {
	attaches, said, _ := unstructured.NestedBool(driver.Object, "spec", "attachRequired")
	return said && !attaches
}

// needsRole reports whether a binding gives the rights of a role to users, or to accounts that stay.
func needsRole(l *forecaster, role, user *unstructured.Unstructured) bool {
	var b rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
	if !evidence.Decode(user, &b) || (b.RoleRef.Kind == "Role") != (role.GetNamespace() != "") {
		return false
	}
	return slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
		return s.Kind != rbacv1.ServiceAccountKind ||
			len(l.then.evidence.Named(evidence.ServiceAccounts.GroupResource(), cmp.Or(s.Namespace, b.Namespace), s.Name)) > 0
	})
}

// workloads have templates of pods.
var workloads = []string{"deployments.apps", "statefulsets.apps", "daemonsets.apps", "replicationcontrollers", "cronjobs.batch"}

// namings are those that are known.
var namings = []naming{
	{"ingressclasses.networking.k8s.io", []string{"ingresses.networking.k8s.io"}, "", ignoresIngress, nil},
	{"gatewayclasses.gateway.networking.k8s.io", []string{"gateways.gateway.networking.k8s.io"}, "", ignoresGateway, nil},
	{"storageclasses.storage.k8s.io", []string{"persistentvolumeclaims", "statefulsets.apps"}, "", provisionsNone, needsClass},
	{"csidrivers.storage.k8s.io", []string{"persistentvolumes"}, "spec.csi.driver", attachesNone, needsDriver},
	{"deviceclasses.resource.k8s.io", []string{"resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"},
		"", allocatesNone, nil},
	{"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", []string{"flowschemas.flowcontrol.apiserver.k8s.io"}, "", ignoresSchema, nil},
	{"clusterroles.rbac.authorization.k8s.io", []string{"clusterrolebindings.rbac.authorization.k8s.io",
		"rolebindings.rbac.authorization.k8s.io"}, "roleRef.name", grantsNone, needsRole},
	{"roles.rbac.authorization.k8s.io", []string{"rolebindings.rbac.authorization.k8s.io"}, "roleRef.name", grantsNone, needsRole},
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
func (l *forecaster) users() []Break {
	var all []*named
	by := map[string][]*named{} // type of the users
	for i := range namings {
		how, first := &namings[i], len(all)
		for uid := range l.going {
			n, ok := l.node(uid)
			if !ok || n.Resource().GroupResource().String() != how.named || l.Plan.ComeBack[uid].Certain {
				continue
			}
			d := &named{naming: how, Node: n, target: mention.To(n.Identity()), left: map[string][]graph.Identity{}}
			all = append(all, d)
			for _, user := range how.users {
				by[user] = append(by[user], d)
			}
		}
		slices.SortFunc(all[first:], func(a, b *named) int { return a.Compare(b.Node) })
	}
	for user, named := range by {
		l.look(user, named)
	}
	var breaks []Break
	for _, d := range all {
		for _, user := range d.users {
			if left := d.left[user]; len(left) > 0 {
				slices.SortFunc(left, graph.Identity.Compare)
				breaks = append(breaks, Break{Object: d.Identity(), Users: left, Why: stillNamed(left, d.without), Certain: true})
			}
		}
	}
	return breaks
}

// named is an object that goes, and what stays and names it, by its type.
type named struct {
	*naming
	graph.Node
	target *mention.Target
	left   map[string][]graph.Identity
}

// look finds what of a type stays and names objects. It reads the type once.
func (l *forecaster) look(user string, of []*named) {
	var resource *graph.Resource
	for n := range l.then.evidence.Instances(schema.ParseGroupResource(user)) { // which says in which version they are
		resource = n.Resource()
		break
	}
	if resource == nil {
		return
	}
	var texts []string
	in := sets.New[string]()
	for _, d := range of {
		texts = append(texts, d.Name())
		in.Insert(d.Namespace())
	}
	for _, namespace := range l.then.evidence.Where(resource.GroupResource(), in) {
		l.lookIn(user, namespace, resource, texts, of)
	}
}

// lookIn is look for a namespace, empty for all. The texts are the names.
func (l *forecaster) lookIn(user, namespace string, resource *graph.Resource, texts []string, of []*named) {
	var reader mention.Reader
	var found map[*named][]graph.Identity
	begin := func() { found = map[*named][]graph.Identity{} }
	err := l.then.evidence.EachNaming(resource.GroupVersionResource, namespace, texts, begin, func(o *unstructured.Unstructured) {
		for _, d := range of {
			if (d.Namespace() == "" || d.Namespace() == o.GetNamespace()) && d.in(&reader, o) && l.wants(d, o) {
				found[d] = append(found[d], evidence.IdentityOf(resource.GroupVersionResource, resource.Kind, o))
			}
		}
	})
	if err != nil {
		return // it is noted as unread
	}
	for d, users := range found {
		d.left[user] = append(d.left[user], users...)
	}
}

// in reports whether an object names it.
func (d *named) in(reader *mention.Reader, o *unstructured.Unstructured) bool {
	for n := range reader.In(o) {
		sure := d.target.Named(n)
		if d.at == "" && sure >= mention.Called && n.InSpec() && !n.Optional || d.at == n.Path && sure > mention.No && n.Text == d.Name() {
			return true
		}
	}
	return false
}

// wants reports whether a user needs what it names, as far as that could be read.
func (l *forecaster) wants(d *named, user *unstructured.Unstructured) bool {
	if d.needs == nil {
		return true
	}
	whole, err := l.now.evidence.Whole(d.Node)
	return err == nil && d.needs(l, whole, user) // an error is noted as unread
}

// used looks for what uses an object whose controller waits until nothing does. With what uses it it can go first, if all of that goes;
// what stays keeps it.
func (l *forecaster) used(s *FinalizerForecast, n graph.Node, a *controllers.Answer, does say.Text) {
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
