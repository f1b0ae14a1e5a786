// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/mention"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// naming is that objects of one type name one of another, without which they do not work.
type naming struct {
	named, user schema.GroupResource
	// without says what becomes of the users.
	without string
}

// namings are those that are known.
var namings = []naming{
	{schema.GroupResource{Group: "networking.k8s.io", Resource: "ingressclasses"}, schema.GroupResource{Group: "networking.k8s.io", Resource: "ingresses"}, ignoresIngress},
	{schema.GroupResource{Group: "gateway.networking.k8s.io", Resource: "gatewayclasses"}, schema.GroupResource{Group: "gateway.networking.k8s.io", Resource: "gateways"}, ignoresGateway},
	{schema.GroupResource{Group: "storage.k8s.io", Resource: "storageclasses"}, evidence.Claims.GroupResource(), provisionsNone},
	{schema.GroupResource{Group: "external-secrets.io", Resource: "secretstores"}, schema.GroupResource{Group: "external-secrets.io", Resource: "externalsecrets"}, refreshesNone},
	{schema.GroupResource{Group: "external-secrets.io", Resource: "clustersecretstores"}, schema.GroupResource{Group: "external-secrets.io", Resource: "externalsecrets"}, refreshesNone},
	{schema.GroupResource{Group: "external-secrets.io", Resource: "secretstores"}, schema.GroupResource{Group: "external-secrets.io", Resource: "pushsecrets"}, pushesNone},
	{schema.GroupResource{Group: "external-secrets.io", Resource: "clustersecretstores"}, schema.GroupResource{Group: "external-secrets.io", Resource: "pushsecrets"}, pushesNone},
	{schema.GroupResource{Group: "cert-manager.io", Resource: "issuers"}, schema.GroupResource{Group: "cert-manager.io", Resource: "certificates"}, renewsNone},
	{schema.GroupResource{Group: "cert-manager.io", Resource: "clusterissuers"}, schema.GroupResource{Group: "cert-manager.io", Resource: "certificates"}, renewsNone},
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
	var reader mention.Reader
	target := mention.To(of.Identity())
	for n := range l.then.evidence.Instances(how.user) { // which says in which version they are
		items, err := l.then.evidence.List(n.Resource().GroupVersionResource, of.Namespace())
		if err != nil {
			return nil // it is noted as unread
		}
		for i := range items {
			if at, sure := target.Surest(reader.In(&items[i])); sure >= mention.Called && at.InSpec() {
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
