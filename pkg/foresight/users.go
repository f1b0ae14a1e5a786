// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// naming is how objects of one type name one of another, without which they do not work.
type naming struct {
	named, user schema.GroupResource
	// at is the field with the name, which may be in a list and beside a kind.
	at string
	// kind is what the object has for this type; of another it names something else.
	// When byDefault is set, it may be missing.
	kind      string
	byDefault bool
	// without says what becomes of the users.
	without string
}

// namings are those that are known.
var namings = []naming{
	{named: schema.GroupResource{Group: "networking.k8s.io", Resource: "ingressclasses"}, user: schema.GroupResource{Group: "networking.k8s.io", Resource: "ingresses"},
		at: "spec.ingressClassName", without: ignoresIngress},
	{named: schema.GroupResource{Group: "gateway.networking.k8s.io", Resource: "gatewayclasses"}, user: schema.GroupResource{Group: "gateway.networking.k8s.io", Resource: "gateways"},
		at: "spec.gatewayClassName", without: ignoresGateway},
	{named: schema.GroupResource{Group: "storage.k8s.io", Resource: "storageclasses"}, user: evidence.Claims.GroupResource(),
		at: "spec.storageClassName", without: provisionsNone},
	{named: schema.GroupResource{Group: "external-secrets.io", Resource: "secretstores"}, user: schema.GroupResource{Group: "external-secrets.io", Resource: "externalsecrets"},
		at: "spec.secretStoreRef.name", kind: "SecretStore", byDefault: true, without: refreshesNone},
	{named: schema.GroupResource{Group: "external-secrets.io", Resource: "clustersecretstores"}, user: schema.GroupResource{Group: "external-secrets.io", Resource: "externalsecrets"},
		at: "spec.secretStoreRef.name", kind: "ClusterSecretStore", without: refreshesNone},
	{named: schema.GroupResource{Group: "external-secrets.io", Resource: "secretstores"}, user: schema.GroupResource{Group: "external-secrets.io", Resource: "pushsecrets"},
		at: "spec.secretStoreRefs.name", kind: "SecretStore", byDefault: true, without: pushesNone},
	{named: schema.GroupResource{Group: "external-secrets.io", Resource: "clustersecretstores"}, user: schema.GroupResource{Group: "external-secrets.io", Resource: "pushsecrets"},
		at: "spec.secretStoreRefs.name", kind: "ClusterSecretStore", without: pushesNone},
	{named: schema.GroupResource{Group: "cert-manager.io", Resource: "issuers"}, user: schema.GroupResource{Group: "cert-manager.io", Resource: "certificates"},
		at: "spec.issuerRef.name", kind: "Issuer", byDefault: true, without: renewsNone},
	{named: schema.GroupResource{Group: "cert-manager.io", Resource: "clusterissuers"}, user: schema.GroupResource{Group: "cert-manager.io", Resource: "certificates"},
		at: "spec.issuerRef.name", kind: "ClusterIssuer", without: renewsNone},
}

// isNamed reports whether others are known to name objects of a type.
func isNamed(resource schema.GroupResource) bool {
	return slices.ContainsFunc(namings, func(n naming) bool { return n.named == resource })
}

// users are what stays with a name that leads nowhere.
func (l *looker) users() []Break {
	var all []Break
	for i := range namings {
		how := &namings[i]
		var named []graph.Node
		for uid := range l.going {
			if n, ok := l.node(uid); ok && n.Resource().GroupResource() == how.named {
				named = append(named, n)
			}
		}
		if len(named) == 0 {
			continue
		}
		slices.SortFunc(named, graph.Node.Compare)
		for _, n := range named {
			if left := l.left(how, n); len(left) > 0 {
				all = append(all, Break{Object: n.Identity(), Why: stillNamed(left, how.without), Certain: true})
			}
		}
	}
	return all
}

// left returns what stays and names an object.
func (l *looker) left(how *naming, of graph.Node) []graph.Identity {
	var left []graph.Identity
	for n := range l.then.evidence.Instances(how.user) { // which says in which version they are
		items, err := l.then.evidence.List(n.Resource().GroupVersionResource, of.Namespace())
		if err != nil {
			return nil // it is noted as unread
		}
		for i := range items {
			if o := &items[i]; how.names(o, of.Name()) {
				left = append(left, evidence.IdentityOf(n.Resource().GroupVersionResource, n.Resource().Kind, o))
			}
		}
		break
	}
	slices.SortFunc(left, graph.Identity.Compare)
	return left
}

// names reports whether an object names the other one.
func (how *naming) names(o *unstructured.Unstructured, name string) bool {
	for at, kind := range controllers.NamedAt(o, how.at) {
		if at == name && (kind == how.kind || how.byDefault && kind == "") {
			return true
		}
	}
	return false
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
