// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
)

// toolHelp is the help of a tool with own objects.
type toolHelp struct{ use, short, long, example string }

// toolHelps are those of the tools whose own objects say what they have deployed.
var toolHelps = map[string]toolHelp{
	"flux": {"flux kustomization/NAME | helmrelease/NAME", "Show what Flux deletes and leaves hanging",
		`Show what Flux takes away, keeps and leaves hanging when a Kustomization or a
HelmRelease is deleted.

Of a Kustomization that is the inventory in its status, but for what does not
bear its labels or is marked with kustomize.toolkit.fluxcd.io/prune: disabled;
nothing when it is suspended, does not prune, or its deletionPolicy says so. Of
a HelmRelease it is its release of Helm, as uninstall helm has it.
What Kustomizations, HelmReleases and Applications among the objects delete in
turn is among it.`, `  # What is deleted with a Kustomization
  NAME uninstall flux kustomization/app -n flux-system

  # What is deleted with a HelmRelease
  NAME uninstall flux helmrelease/web -n shop`},
	"argocd": {"argocd APPLICATION", "Show what Argo CD deletes and leaves hanging",
		`Show what Argo CD deletes, keeps and leaves hanging when an Application is
deleted with kubectl.

With a finalizer of Argo CD that is what the Application tracks, by its status,
the last sync wave first, each awaited; but for definitions, and for what is
marked with Delete=false or helm.sh/resource-policy: keep. Without one it is
nothing. "argocd app delete" sets the finalizer itself. What Applications,
ApplicationSets and objects of Flux among the objects delete in turn is among
it.`, `  # What is deleted with an Application
  NAME uninstall argocd shop -n argocd`},
	"olm": {"olm SUBSCRIPTION | csv/NAME", "Show what OLM deletes and leaves hanging",
		`Show what is deleted, kept and left hanging when the Subscription of an operator
and the ClusterServiceVersion that it has installed are deleted, as the page of
the Operator Lifecycle Manager (OLM) has it; with csv/NAME, when that alone is.

OLM deletes cluster-wide rights and webhooks first, then the garbage collector
the operator, and OLM the APIServices. Definitions, and so the custom resources,
are kept: no controller removes their finalizers afterwards.`, `  # Before an operator is removed
  NAME uninstall olm cert-manager -n operators`},
}

// objectOptions are what the command line says of a tool's own object.
type objectOptions struct {
	uninstallOptions
	releases
	of uninstall.Tool
}

func newUninstallObject(g *globals, tool uninstall.Tool) *cobra.Command {
	o, help := &objectOptions{uninstallOptions{globals: g}, releases{globals: g}, tool}, toolHelps[tool.Name]
	cmd := &cobra.Command{
		Use: help.use, Short: help.short, Long: help.long + "\n\nExit codes: as those of uninstall.", Example: g.example(help.example),
		RunE: runs(o, &o.args), ValidArgsFunction: g.completeOne(o.names),
	}
	if slices.ContainsFunc(tool.Kinds, func(k uninstall.Kind) bool { return k.Resource == delivery.HelmReleases }) {
		o.releases.addFlags(cmd)
	}
	o.uninstallOptions.addFlags(cmd)
	o.plans = o.plan
	return cmd
}

func (o *objectOptions) validate() error {
	if err := cmp.Or(o.releases.validate(), o.validateArgs(1, o.wanted())); err != nil {
		return err
	}
	_, name, err := o.named()
	if err == nil && name == "" {
		err = usageError{errors.New("needs the name of the object: " + o.wanted())}
	}
	return err
}

// names are those of the objects, in the forms of the argument.
func (o *objectOptions) names(ctx context.Context, s *session) []string {
	var all []string
	for i, k := range o.of.Kinds {
		lead := k.Words[0] + "/"
		if i == 0 && !o.typed() {
			lead = ""
		}
		all = append(all, names(s.firstPage(ctx, k.Resource.String()), lead)...)
	}
	return all
}

// typed reports whether a name alone is not enough: the tool has several kinds of objects, and none is the usual one.
func (o *objectOptions) typed() bool { return len(o.of.Kinds) > 1 && !o.of.Kinds[0].Alone }

// wanted are the forms of the argument.
func (o *objectOptions) wanted() string {
	var forms []string
	for _, k := range o.of.Kinds {
		forms = append(forms, k.Words[0]+"/NAME")
	}
	return strings.Join(forms, " or ")
}

// named returns the kind and the name of the argument. A name alone is of the usual kind.
func (o *objectOptions) named() (*uninstall.Kind, string, error) {
	word, name, typed := strings.Cut(o.args[0], "/")
	if !typed && !o.typed() {
		return &o.of.Kinds[0], word, nil
	}
	word, _, _ = strings.Cut(strings.ToLower(word), ".")
	for i := range o.of.Kinds {
		if slices.Contains(o.of.Kinds[i].Words, word) {
			return &o.of.Kinds[i], name, nil
		}
	}
	return nil, "", usageError{fmt.Errorf("%q is not %s", o.args[0], o.wanted())}
}

func (o *objectOptions) plan(ctx context.Context, s *session, w *uninstall.World) (*uninstall.Plan, error) {
	kind, name, err := o.named()
	if err != nil {
		return nil, err
	}
	n, whole, err := ownOf(w, kind.Resource, s.namespace, name)
	if err != nil {
		return nil, err
	}
	own := *w // what its own release is may be in a file, and not what is uninstalled in turn
	own.HelmVersion = o.version
	own.Release = func(namespace, name string) (*uninstall.Release, error) { return o.read(ctx, s, w, namespace, name) }
	return kind.Plan(&own, n, whole)
}
