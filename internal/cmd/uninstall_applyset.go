// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

const uninstallApplySetLong = `Show what "kubectl apply --prune --applyset=PARENT" takes away, keeps and leaves
hanging when no manifest is left.

PARENT is NAME of a Secret, or TYPE/NAME or TYPE.GROUP/NAME, as with kubectl.
The objects are those that bear its label, as far as it names their types and
namespaces.

Exit codes: as those of uninstall.`

func newUninstallApplySet(g *globals) *cobra.Command {
	o := &applySetOptions{uninstallOptions{globals: g}}
	cmd := &cobra.Command{
		Use:   "applyset PARENT",
		Short: "Show what a prune of an apply set deletes and leaves hanging",
		Long:  uninstallApplySetLong,
		Example: g.example(`  # All members of an apply set whose parent is a Secret
  NAME uninstall applyset web -n shop

  # One whose parent is a ConfigMap
  NAME uninstall applyset configmap/web -n shop`),
		RunE: runs(o, &o.args),
	}
	o.addFlags(cmd)
	o.plans = o.plan
	return cmd
}

type applySetOptions struct{ uninstallOptions }

func (o *applySetOptions) validate() error { return o.validateArgs(1, "the parent of an apply set") }

func (o *applySetOptions) plan(_ context.Context, s *session, w *uninstall.World) (*uninstall.Plan, error) {
	kind, name, typed := strings.Cut(o.args[0], "/")
	if !typed {
		kind, name = "secrets", kind
	}
	mapper, err := s.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	resource, err := mapper.ResourceFor(schema.ParseGroupResource(kind).WithVersion(""))
	if err != nil {
		return nil, err
	}
	n, whole, err := ownOf(w, resource.GroupResource(), s.namespace, name)
	if err != nil {
		return nil, err
	}
	return uninstall.ApplySet(w, n, whole), nil
}

// ownOf reads a tool's own object, of a type without namespaces or in the namespace.
func ownOf(w *uninstall.World, resource schema.GroupResource, namespace, name string) (graph.Node, *unstructured.Unstructured, error) {
	for n := range w.Evidence.Instances(resource) {
		if n.Name() == name && (n.Namespace() == namespace || n.Namespace() == "") {
			whole, err := w.Evidence.Whole(n)
			if err != nil {
				return n, nil, fmt.Errorf("reading %s: %w", n.Identity(), err)
			}
			return n, whole, nil
		}
	}
	if _, served := w.Evidence.Served(resource); !served {
		return graph.Node{}, nil, fmt.Errorf("the server has no %s", resource)
	}
	if w.Graph.Snapshot().Covers(resource, namespace, name) {
		return graph.Node{}, nil, hintedError{fmt.Errorf("%s %q does not exist in namespace %s", resource, name, namespace),
			"-n names another namespace"}
	}
	return graph.Node{}, nil, errors.New("the " + resource.String() + " of namespace " + namespace + " could not be listed")
}
