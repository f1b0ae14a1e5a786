// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/uninstall"
)

// fluxOptions are what the command line of uninstall flux says.
type fluxOptions struct {
	uninstallOptions
	releases
}

const uninstallFluxLong = `Show what Flux takes away, keeps and leaves hanging when a Kustomization or a
HelmRelease is deleted.

Of a Kustomization that is the inventory in its status, but for what does not
bear its labels or is marked with kustomize.toolkit.fluxcd.io/prune: disabled;
nothing when it is suspended, does not prune, or its deletionPolicy says so. Of
a HelmRelease it is its release of Helm, as uninstall helm has it.
What Kustomizations, HelmReleases and Applications among the objects delete in
turn is among it.

Exit codes: as those of uninstall.`

func newUninstallFlux(g *globals) *cobra.Command {
	o := &fluxOptions{uninstallOptions{globals: g}, releases{globals: g}}
	cmd := &cobra.Command{
		Use:   "flux kustomization/NAME | helmrelease/NAME",
		Short: "Show what Flux deletes and leaves hanging",
		Long:  uninstallFluxLong,
		Example: g.example(`  # What is deleted with a Kustomization
  NAME uninstall flux kustomization/app -n flux-system

  # What is deleted with a HelmRelease
  NAME uninstall flux helmrelease/web -n shop`),
		RunE: runs(o, &o.args),
	}
	o.releases.addFlags(cmd)
	o.uninstallOptions.addFlags(cmd)
	o.plans = o.plan
	return cmd
}

func (o *fluxOptions) validate() error {
	if err := cmp.Or(o.releases.validate(), o.validateArgs(1, "kustomization/NAME or helmrelease/NAME")); err != nil {
		return err
	}
	_, name, err := o.named()
	if err == nil && name == "" {
		err = usageError{errors.New("needs the name of the object, as in kustomization/NAME")}
	}
	return err
}

// named returns the type and the name of the argument.
func (o *fluxOptions) named() (schema.GroupResource, string, error) {
	kind, name, _ := strings.Cut(o.args[0], "/")
	switch kind, _, _ := strings.Cut(strings.ToLower(kind), "."); kind {
	case "kustomization", "kustomizations", "ks":
		return uninstall.Kustomizations, name, nil
	case "helmrelease", "helmreleases", "hr":
		return uninstall.HelmReleases, name, nil
	}
	return schema.GroupResource{}, "", usageError{fmt.Errorf("%q is neither kustomization/NAME nor helmrelease/NAME", o.args[0])}
}

func (o *fluxOptions) plan(ctx context.Context, s *session, w *uninstall.World) (*uninstall.Plan, error) {
	resource, name, err := o.named()
	if err != nil {
		return nil, err
	}
	n, whole, err := ownOf(w, resource, s.namespace, name)
	if err != nil {
		return nil, err
	}
	if resource == uninstall.Kustomizations {
		return uninstall.Kustomization(w, n, whole), nil
	}
	read := func(namespace, name string) (*uninstall.Release, error) { return o.read(ctx, s, w, namespace, name) }
	p, err := uninstall.HelmReleaseBy(w, n, whole, read, o.versionOf)
	if err != nil {
		return nil, err
	}
	return p, nil
}
