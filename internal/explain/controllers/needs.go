// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What a workload needs besides its pods, for those who ask what becomes of it without.

// Mounts returns the Secrets and ConfigMaps that the containers of a workload are given,
// as Kind/namespace/name. Those that it does without if they are missing are left out.
// There are none when the workload cannot be read, which is noted.
func (f *Finder) Mounts(l *Workload) []string {
	whole, err := f.evidence.Get(l.resource.GroupVersionResource, l.namespace, l.name)
	if err != nil {
		return nil
	}
	template := "spec.template.spec."
	if l.IsPod() {
		template = "spec."
	}
	var mounts []string
	for n := range f.mentions.In(whole) {
		full := n.Kind + "/" + l.namespace + "/" + n.Text
		if (n.Kind == "Secret" || n.Kind == "ConfigMap") && !n.Optional && strings.HasPrefix(n.Field(), template) &&
			!slices.Contains(mounts, full) {
			mounts = append(mounts, full)
		}
	}
	return mounts
}

// Doubts says what could not be read of that which lets a workload, which works, change an
// object: its rights, and its account. There are none where that does not matter.
func (f *Finder) Doubts(l *Workload, n graph.Node) []string {
	var doubts []string
	id, rights := n.Identity(), f.rights()
	if !f.otherwise(l) && len(rights.unread) > 0 && !rights.mayChange(l.Account(), id.Resource.GroupResource(), id.Namespace, id.Name) {
		doubts = append(doubts, rightsUnread)
	}
	accounts, a := evidence.ServiceAccounts.GroupResource(), l.Account()
	known := a.Name == "default" || len(f.evidence.Named(accounts, a.Namespace, a.Name)) > 0 ||
		f.evidence.Covers(accounts, a.Namespace, a.Name)
	if !known && !l.line.Kubeconfig && !f.StateOf(l).leads {
		account := evidence.Identity(evidence.ServiceAccounts, a.Namespace, a.Name).String()
		f.evidence.NoteUnread(evidence.Gap{What: say.Of(accountUnlisted, account)})
		doubts = append(doubts, fmt.Sprintf(accountUnread, account))
	}
	return doubts
}

// GrantedBy names the bindings and the roles that
// let a workload's account update or patch an object.
func (f *Finder) GrantedBy(l *Workload, n graph.Node) []graph.Identity {
	id := n.Identity()
	var names []graph.Identity
	for _, g := range f.rights().grantsOf(l.Account()) {
		if (g.namespace == "" || g.namespace == id.Namespace) && g.covers(id.Resource.GroupResource()) && g.allows(changing...) {
			names = append(names, g.binding, g.role)
			if g.role.Namespace == "" {
				for _, piece := range f.rights().piecesOf(g.role.Name) {
					if allowsChange(piece, n) {
						names = append(names, evidence.Named("ClusterRole", "", piece.Name))
					}
				}
			}
		}
	}
	return names
}

// NodesOf returns the names of the nodes on which a workload has pods; none when that is
// not known.
func (f *Finder) NodesOf(l *Workload) []string {
	own, err := f.podsOf(l)
	if err != nil {
		return nil
	}
	var names []string
	for _, pod := range own {
		name, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
		if name == "" {
			return nil
		}
		names = append(names, name)
	}
	return names
}
