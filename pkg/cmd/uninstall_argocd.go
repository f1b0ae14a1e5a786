// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kubectl-gc/kubectl-gc/pkg/uninstall"
)

const uninstallArgoCDLong = `Show what Argo CD deletes, keeps and leaves hanging when an Application is
deleted with kubectl.

With a finalizer of Argo CD that is what the Application tracks, by its status,
the last sync wave first, each awaited; but for definitions, and for what is
marked with Delete=false or helm.sh/resource-policy: keep. Without one it is
nothing. "argocd app delete" sets the finalizer itself. What Applications,
ApplicationSets and objects of Flux among the objects delete in turn is among
it.

Exit codes: as those of uninstall.`

type argoOptions struct{ uninstallOptions }

func newUninstallArgoCD(g *globals) *cobra.Command {
	o := &argoOptions{uninstallOptions{globals: g}}
	cmd := &cobra.Command{
		Use:   "argocd APPLICATION",
		Short: "Show what Argo CD deletes and leaves hanging",
		Long:  uninstallArgoCDLong,
		Example: g.example(`  # What is deleted with an Application
  NAME uninstall argocd shop -n argocd`),
		RunE: runs(o, &o.args),
	}
	o.addFlags(cmd)
	o.plans = o.plan
	return cmd
}

func (o *argoOptions) validate() error { return o.validateArgs(1, "the name of an Application") }

func (o *argoOptions) plan(_ context.Context, s *session, w *uninstall.World) (*uninstall.Plan, error) {
	n, whole, err := ownOf(w, uninstall.Applications, s.namespace, o.args[0])
	if err != nil {
		return nil, err
	}
	return uninstall.Application(w, n, whole), nil
}
