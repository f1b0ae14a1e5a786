// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Saved is what was said of an uninstallation before the tool ran. It says which objects are meant, by UID; what they are like now, the
// cluster alone says.
type Saved struct {
	Tool, Namespace, Name string
	Command               []string
	// Of is that of the Plan.
	Of Deliverers
	// Cluster is the UID of the cluster's namespace kube-system, empty when that could not be read.
	Cluster types.UID
	// Manifests is that of the Plan.
	Manifests string
	// Goes is all that was to be deleted, Left what was to be left behind, and Kept what the tool keeps.
	Goes []graph.Identity
	// Targets are what the tool itself was to delete, but for what was foreseen to return.
	Targets []graph.Identity
	Left    []Left
	Kept    []Kept
}

// Title names what was uninstalled.
func (s *Saved) Title() string {
	if len(s.Command) > 0 {
		return strings.Join(s.Command, " ")
	}
	return strings.TrimSpace(s.Tool + " " + s.Name)
}

// ClusterUID is the UID of the cluster's namespace kube-system, empty when that was not read.
func (w *World) ClusterUID() types.UID {
	for _, n := range w.Evidence.Named(evidence.Namespaces.GroupResource(), "", metav1.NamespaceSystem) {
		return n.UID()
	}
	return ""
}

// Over returns an error unless the tool has done its work in this cluster: what it was to delete is gone, by UID, as far as lists prove
// that, nothing that it was to delete itself exists again under its name, and no release of the name is installed. The error is a
// NotOverError, or says what was not read.
func (w *World) Over(s *Saved) error {
	if here := w.ClusterUID(); here != "" && s.Cluster != "" && here != s.Cluster {
		return anotherCluster
	}
	if len(s.Goes) == 0 {
		return unproven
	}
	snapshot := w.Graph.Snapshot()
	for _, id := range s.Goes {
		switch n, known := w.Graph.Node(id.UID); {
		case known && !n.Virtual() && n.BeingDeleted():
			return ending.of(n.Identity())
		case known && !n.Virtual():
			return stillExists.of(n.Identity())
		case !snapshot.Covers(id.Resource.GroupResource(), id.Namespace, id.Name) && w.served(id):
			return notListed.of(id)
		}
	}
	for _, id := range s.Targets {
		for _, n := range w.Evidence.Named(w.resourceNow(id), id.Namespace, id.Name) {
			if !restored(n) {
				return existsAgain.of(n.Identity())
			}
		}
	}
	for _, release := range s.Of.releases() {
		if err := w.uninstalled(release); err != nil {
			return err
		}
	}
	return nil
}

// uninstalled returns an error unless Helm's records say that a release is not installed, as far as it was to be uninstalled.
func (w *World) uninstalled(release Deliverer) error {
	if release.Records == "" {
		return nil
	}
	for _, n := range w.Evidence.LatestRecords(release.Records, release.Name) {
		switch status := n.Object().Labels["status"]; status { // pkg/storage/driver/secrets.go, newSecretsObject
		case "uninstalled":
		case "uninstalling":
			return uninstalling.of(status, n.Identity())
		default:
			return stillInstalled.of(cmp.Or(status, "unknown"), n.Identity())
		}
	}
	return nil
}

// resourceNow is as the server calls the type of an object of a document now.
func (w *World) resourceNow(id graph.Identity) schema.GroupResource {
	if mapping, err := w.Graph.Snapshot().Mapper.RESTMapping(id.Resource.GroupVersionKind().GroupKind()); err == nil {
		return mapping.Resource.GroupResource()
	}
	return id.Resource.GroupResource()
}

// restored reports whether Kubernetes itself recreates an object under its name: what is in every namespace, its own namespaces, its roles
// and bindings (plugin/pkg/auth/authorizer/rbac/bootstrappolicy), and the APIServices of definitions and of its own groups
// (pkg/controlplane/apiserver/aggregator.go).
func restored(n graph.Node) bool {
	name, labels := n.Name(), n.Object().Labels
	return everywhere(n) || labels["kubernetes.io/bootstrapping"] != "" || labels["kube-aggregator.kubernetes.io/automanaged"] != "" ||
		n.Resource().IsNamespace() && (name == metav1.NamespaceDefault || strings.HasPrefix(name, "kube-"))
}

// served reports whether the server may have objects of a type.
func (w *World) served(id graph.Identity) bool {
	snapshot, kind := w.Graph.Snapshot(), id.Resource.GroupVersionKind()
	if _, err := snapshot.Mapper.RESTMapping(kind.GroupKind()); err == nil {
		return true
	}
	_, err := snapshot.Resolve(kind.GroupVersion().String(), kind.Kind)
	return errors.Is(err, graph.ErrUnlisted)
}

// NotOverError says why nothing is left behind yet, and what to do.
type NotOverError struct{ why, hint string }

func (e NotOverError) of(args ...any) NotOverError {
	return NotOverError{fmt.Sprintf(e.why, args...), e.hint}
}

// Error implements error.
func (e NotOverError) Error() string { return e.why }

// Hint says what to do, by the tool's command.
func (e NotOverError) Hint(command string) string { return strings.ReplaceAll(e.hint, "%s", command) }

// Unread reports whether it is so because something was not read.
func (e NotOverError) Unread() bool { return e.hint == notListed.hint }
