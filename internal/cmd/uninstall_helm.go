// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
)

// helmOptions are what the command line of uninstall helm says.
type helmOptions struct {
	uninstallOptions
	releases
}

const uninstallHelmLong = `Show what "helm uninstall" takes away, keeps and leaves hanging.

The release is read from its Secret; of that, its manifest, its hooks and the
chart's crds/ are used, and nothing else. Who may not read Secrets gives the
manifest with -f; -n is then the namespace of the release.

Helm deletes kind by kind and waits for no object to be gone, so that an
operator can be gone before its finalizers are. Helm 4 deletes webhook
configurations first, and skips objects whose annotations name another release.

Exit codes: as those of uninstall.`

const uninstallHelmExample = `  # What Helm takes away and leaves hanging
  NAME uninstall helm web -n shop

  # With its order, step by step
  NAME uninstall helm web -n shop -o wide

  # Afterwards, what it has left behind; plan.json is what -o json printed before
  NAME uninstall helm web -n shop --remove-leftovers=plan.json

  # Without the right to read the release's Secret
  { helm get manifest web; helm get hooks web; } | NAME uninstall helm web -f -`

func newUninstallHelm(g *globals) *cobra.Command {
	o := &helmOptions{uninstallOptions{globals: g}, releases{globals: g}}
	cmd := &cobra.Command{
		Use:     "helm RELEASE [-f MANIFEST]",
		Short:   "Show what helm uninstall deletes and leaves hanging",
		Long:    uninstallHelmLong,
		Example: g.example(uninstallHelmExample),
		RunE:    runs(o, &o.args),
		ValidArgsFunction: g.completeOne(func(ctx context.Context, s *session) []string {
			releases := sets.New[string]()
			for _, name := range names(s.firstPage(ctx, "secrets"), "") {
				if release, _, is := evidence.RecordOf(name); is {
					releases.Insert(release)
				}
			}
			return sets.List(releases)
		}),
	}
	o.releases.addFlags(cmd)
	o.uninstallOptions.addFlags(cmd)
	o.plans = o.plan
	return cmd
}

func (o *helmOptions) validate() error {
	return cmp.Or(o.releases.validate(), o.validateArgs(1, "the name of a release"))
}

func (o *helmOptions) plan(ctx context.Context, s *session, w *uninstall.World) (*uninstall.Plan, error) {
	release, err := o.read(ctx, s, w, s.namespace, o.args[0])
	if err != nil {
		return nil, err
	}
	return uninstall.Helm(w, release, cmp.Or(o.version, release.Version)), nil
}

// releases are how the releases of Helm are read.
type releases struct {
	*globals
	filename string
	version  int
	// items are those of the file, which is read once.
	items []uninstall.Item
}

func (r *releases) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&r.filename, "filename", "f", "",
		"Take the objects of the release from this file: what helm get manifest and helm get hooks print; - is standard input")
	cmd.Flags().IntVar(&r.version, "helm-version", 0,
		"Major version of the helm that will uninstall: 3 or 4. Without the flag, the version that made the release, as far as it shows, and 3 otherwise")
}

func (r *releases) validate() error {
	if r.version != 0 && r.version != uninstall.Helm3 && r.version != uninstall.Helm4 {
		return usageError{fmt.Errorf("invalid --helm-version %d: must be 3 or 4", r.version)}
	}
	return nil
}

// read reads a release from a file, or from its latest record in a namespace. What a file does not have is that of the record, if that can
// be read; one without hooks may be what helm get manifest prints alone.
func (r *releases) read(ctx context.Context, s *session, w *uninstall.World, namespace, name string) (*uninstall.Release, error) {
	recorded, err := r.recorded(ctx, s, w, namespace, name)
	if r.filename == "" {
		return recorded, err
	}
	if r.items == nil {
		if r.items, err = r.manifest(r.filename); err == nil && len(r.items) == 0 { // as when helm has failed
			err = fmt.Errorf("reading %s: there are no objects in it", calledFile(r.filename))
		}
		if err != nil {
			return nil, err
		}
	}
	release := uninstall.NewRelease(namespace, name, r.items)
	release.HooksUnread = recorded == nil && len(release.Hooks) == 0
	if recorded != nil {
		release.CRDs, release.Version = recorded.CRDs, recorded.Version
	}
	if recorded != nil && len(release.Hooks) == 0 {
		release.Hooks = recorded.Hooks
	}
	return release, nil
}

// recorded reads a release from its latest record in a namespace.
func (r *releases) recorded(ctx context.Context, s *session, w *uninstall.World, namespace, name string) (*uninstall.Release, error) {
	var record string
	for _, n := range w.Evidence.LatestRecords(namespace, name) {
		if n.Resource().GroupVersionResource == evidence.Secrets {
			record = n.Name()
		}
	}
	switch {
	case record == "" && !w.Graph.Snapshot().ListedIn(evidence.Secrets.GroupResource(), namespace):
		return nil, r.unreadable(namespace, name, fmt.Errorf("looking for the release %q: the Secrets of namespace %s could not be listed",
			name, namespace), "list")
	case record == "":
		return nil, hintedError{
			uninstall.NoReleaseError{Namespace: namespace, Name: name},
			"-n names another namespace; '" + r.commandOf([]string{"helm", "list", "-A"}, impersonating...) +
				"' shows them. A release that Helm keeps elsewhere ($HELM_DRIVER) is given with -f: " + r.pipe(namespace, name),
		}
	case s.files != nil:
		return nil, hintedError{errors.New("a snapshot has no data of Secrets, and so no release"),
			"give the manifest with -f: " + r.pipe(namespace, name)}
	}
	data, err := s.reader.HelmRecord(ctx, namespace, record)
	if apierrors.IsForbidden(err) {
		return nil, r.unreadable(namespace, name, fmt.Errorf("reading the release %q: %w", name, err), "get")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the release %q: %w", name, err)
	}
	release, err := uninstall.DecodeRelease(data)
	if err != nil {
		return nil, fmt.Errorf("reading the release %q from Secret %s: %w", name, record, err)
	}
	release.Name, release.Namespace, release.Storage = name, cmp.Or(release.Namespace, namespace), namespace
	return release, nil
}

// unreadable says which right is missing, and how to do without.
func (r *releases) unreadable(namespace, name string, err error, verb string) error {
	return hintedError{err,
		fmt.Sprintf("the right that is missing is to %s secrets in namespace %s; without it, give the manifest with -f: %s", verb, namespace,
			r.pipe(namespace, name))}
}

// impersonating are the flags of a user who may lack the right to read the release, while the one who impersonates has it.
var impersonating = []string{"as", "as-group", "as-uid", "as-user-extra"}

// pipe is the command that does without the right to read the release.
func (r *releases) pipe(namespace, name string) string {
	get := func(what string) string {
		return r.commandOf([]string{"helm", "get", what, name, "-n", namespace}, impersonating...)
	}
	return fmt.Sprintf("{ %s; %s; } | %s", get("manifest"), get("hooks"), r.again([]string{"filename"}, "-f", "-"))
}
