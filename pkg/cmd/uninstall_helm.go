// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
	"github.com/kubectl-gc/kubectl-gc/pkg/uninstall"
)

// helmOptions are what the command line of uninstall helm says.
type helmOptions struct {
	uninstallOptions
	filename string
	version  int
	// items are those of the file, which is read once.
	items []uninstall.Item
}

const uninstallHelmLong = `Show what "helm uninstall" takes away, keeps and leaves hanging.

The release is read from its Secret; of that, its manifest, its hooks and the
chart's crds/ are used, and nothing else. Who may not read Secrets gives the
manifest with -f; -n is then the namespace of the release.

Helm deletes kind by kind and waits for no object to be gone, so that an operator
can be gone before its finalizers are. Helm 4 deletes webhook configurations
first, and skips objects whose annotations name another release.

Exit codes: as those of uninstall.`

const uninstallHelmExample = `  # What Helm takes away and leaves hanging
  NAME uninstall helm web -n shop

  # With its order, step by step
  NAME uninstall helm web -n shop -o wide

  # Without the right to read the release's Secret
  { helm get manifest web -n shop; helm get hooks web -n shop; } |
    NAME uninstall helm web -n shop -f -`

func newUninstallHelm(g *globals) *cobra.Command {
	o := &helmOptions{uninstallOptions: uninstallOptions{globals: g}}
	cmd := &cobra.Command{
		Use:               "helm RELEASE [-f MANIFEST]",
		Short:             "Show what helm uninstall takes away, keeps and leaves hanging",
		Long:              uninstallHelmLong,
		Example:           g.example(uninstallHelmExample),
		RunE:              runs(o, &o.args),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVarP(&o.filename, "filename", "f", "", "Take the objects of the release from this file: what helm get manifest and helm get hooks print; - is standard input")
	cmd.Flags().IntVar(&o.version, "helm-version", 0, "Major version of the helm that will uninstall: 3 or 4. Without the flag, that which made the release, as far as it shows, and 3 otherwise")
	o.addFlags(cmd)
	o.plans = o.plan
	return cmd
}

func (o *helmOptions) validate() error {
	if o.version != 0 && o.version != uninstall.Helm3 && o.version != uninstall.Helm4 {
		return usageError{fmt.Errorf("invalid --helm-version %d: must be 3 or 4", o.version)}
	}
	return o.validateArgs(1, "the name of a release")
}

func (o *helmOptions) plan(ctx context.Context, s *session, w *uninstall.World) (*uninstall.Plan, error) {
	release, err := o.release(ctx, s, w)
	if err != nil {
		return nil, err
	}
	version := o.version
	if version == 0 {
		version = release.Version
	}
	return uninstall.Helm(w, release, version), nil
}

// release reads the release from a file, or from its latest record.
func (o *helmOptions) release(ctx context.Context, s *session, w *uninstall.World) (*uninstall.Release, error) {
	name := o.args[0]
	if o.filename != "" {
		if o.items == nil {
			items, err := o.manifest(o.filename)
			if err != nil {
				return nil, err
			}
			o.items = items
		}
		return uninstall.NewRelease(s.namespace, name, o.items), nil
	}
	secrets := schema.GroupResource{Resource: "secrets"}
	var records []string
	for _, n := range w.Evidence.Within(secrets, s.namespace) {
		records = append(records, n.Name())
	}
	record := uninstall.Latest(name, records)
	switch {
	case record == "" && !w.Graph.Snapshot().ListedIn(secrets, s.namespace):
		return nil, o.unreadable(s, fmt.Errorf("looking for the release %q: the Secrets of namespace %s could not be listed", name, s.namespace), "list")
	case record == "":
		return nil, hintedError{
			fmt.Errorf("no Secret of namespace %s has a release %q", s.namespace, name),
			"-n names another namespace; 'helm list -A' shows them. A release that Helm keeps elsewhere ($HELM_DRIVER) is given with -f: " + o.pipe(s),
		}
	case s.files != nil:
		return nil, hintedError{errors.New("a snapshot has no data of Secrets, and so no release"), "give the manifest with -f: " + o.pipe(s)}
	}
	data, err := s.reader.HelmRecord(ctx, s.namespace, record)
	if apierrors.IsForbidden(err) {
		return nil, o.unreadable(s, fmt.Errorf("reading the release %q: %w", name, err), "get")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the release %q: %w", name, err)
	}
	release, err := uninstall.DecodeRelease(data)
	if err != nil {
		return nil, fmt.Errorf("reading the release %q from Secret %s: %w", name, record, err)
	}
	release.Name, release.Namespace = name, s.namespace
	return release, nil
}

// unreadable says which right is missing, and how to do without.
func (o *helmOptions) unreadable(s *session, err error, verb string) error {
	return hintedError{err, fmt.Sprintf("the right that is missing is to %s secrets in namespace %s; without it, give the manifest with -f: %s", verb, s.namespace, o.pipe(s))}
}

// pipe is the command that does without the right to read the release.
func (o *helmOptions) pipe(s *session) string {
	of := shell.Quote(o.args[0]) + " -n " + shell.Quote(s.namespace)
	return fmt.Sprintf("{ helm get manifest %[1]s; helm get hooks %[1]s; } | %[2]s uninstall helm %[1]s -f -", of, o.name)
}
