// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
)

// pruneOptions are what the command line of uninstall prune says.
type pruneOptions struct {
	uninstallOptions
	recursive bool
	// by is who prunes, as it was said.
	by []string
	// sets are the objects of the files, which are read once.
	sets *[2][]uninstall.Item
}

const uninstallPruneLong = `Show what a prune takes away when manifests are replaced by others: the objects
of OLD that NEW does not have, everything that is deleted with them, and what is
left hanging.

OLD and NEW are files or directories of manifests; - is standard input. Objects
that state no namespace are in that of -n. In which order a prune deletes
differs from tool to tool, so that none is assumed.

Who prunes is who has all of OLD that exists: a Kustomization, Application,
release or apply set. If that is not one, say it with --by.

Exit codes: as those of uninstall.`

func newUninstallPrune(g *globals) *cobra.Command {
	o := &pruneOptions{uninstallOptions: uninstallOptions{globals: g}}
	cmd := &cobra.Command{
		Use:   "prune OLD NEW",
		Short: "Show what a prune deletes and leaves hanging",
		Long:  uninstallPruneLong,
		Example: g.example(`  # What the new manifests do not have any more
  NAME uninstall prune old/ new/`),
		RunE: runs(o, &o.args),
	}
	cmd.Flags().BoolVarP(&o.recursive, "recursive", "R", false, "Follow the directories into their subdirectories")
	cmd.Flags().StringSliceVar(&o.by, "by", nil,
		"Who prunes, as kind/namespace/name, such as kustomization/flux-system/apps; none for who leaves no marks, as kubectl")
	o.addFlags(cmd)
	o.uninstallOptions.manifests = o.digest
	o.plans = func(_ context.Context, _ *session, w *uninstall.World) (*uninstall.Plan, error) { return o.plan(w) }
	return cmd
}

func (o *pruneOptions) validate() error {
	if err := o.validateArgs(2, "the old manifests and the new ones"); err != nil {
		return err
	}
	if o.args[0] == o.args[1] {
		return usageError{errors.New("the old manifests and the new ones are the same")}
	}
	if slices.Contains(o.args, "-") && (slices.Contains(o.from, "-") || o.saved == "-") {
		return usageError{errors.New("standard input can be read once")}
	}
	return nil
}

func (o *pruneOptions) plan(w *uninstall.World) (*uninstall.Plan, error) {
	manifests, err := o.digest()
	if err != nil {
		return nil, err
	}
	p, err := uninstall.Prune(w, o.sets[0], o.sets[1], o.by)
	var unknown *uninstall.WhoPrunesError
	if errors.As(err, &unknown) {
		var flags []string
		for _, share := range unknown.Has {
			flags = append(flags, "--by="+share.By.String())
		}
		flags = append(flags, "--by="+uninstall.NoPruner+" for who leaves no marks")
		return nil, hintedError{err, "say who prunes: " + strings.Join(flags, ", or ")}
	}
	switch {
	case err != nil:
		return nil, err
	case o.prepare && len(o.by) == 0 && len(p.By) > 0:
		return nil, hintedError{errors.New("--prepare deletes ahead of who prunes, and that was not said"), "say who prunes: --by=" + p.By.String()}
	case len(o.by) == 0 && len(p.By) > 0:
		o.stated = []string{"--by=" + p.By.String()}
	}
	p.Manifests = manifests
	return p, nil
}

// digest is of which objects the old and the new manifests have, whatever else is in them.
func (o *pruneOptions) digest() (string, error) {
	if err := o.read(); err != nil {
		return "", err
	}
	var names [2][]string
	for i, items := range o.sets {
		for j := range items {
			names[i] = append(names[i], items[j].GroupVersionKind.GroupKind().String()+" "+items[j].Namespace+"/"+items[j].Name)
		}
		slices.Sort(names[i])
		names[i] = slices.Compact(names[i])
	}
	return preview.Checksum(names), nil
}

// read reads the manifests, once.
func (o *pruneOptions) read() error {
	if o.sets != nil {
		return nil
	}
	var sets [2][]uninstall.Item
	for i, name := range o.args {
		files := []string{name}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			var below []string
			if files, below, err = manifestsIn(name, o.recursive); err != nil {
				return err
			}
			if err := o.noneIn(name, below); err != nil {
				return err
			}
		}
		for _, file := range files {
			items, err := o.manifest(file)
			if err != nil {
				return err
			}
			sets[i] = append(sets[i], items...)
		}
	}
	if len(sets[0]) == 0 {
		return fmt.Errorf("reading %s: there are no objects in it", calledFile(o.args[0]))
	}
	o.sets = &sets
	return nil
}

// manifestsIn returns the files of a directory, or of what a link leads to, that may be manifests by the ends of their names, as kubectl
// reads them, and those below it that kubectl does not read: in its subdirectories unless they are to be read, and in directories that
// links lead to. A directory without any is an error: what is not read would count as gone.
func manifestsIn(directory string, recursive bool) (files, below []string, err error) {
	var all []string
	at, err := filepath.EvalSymlinks(directory)
	if err == nil {
		all, err = filesIn(at)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", directory, reason(err))
	}
	for _, file := range all {
		switch within, err := filepath.Rel(at, file); {
		case recursive || err == nil && filepath.Base(within) == within:
			files = append(files, file)
		case !strings.HasPrefix(within, ".."): // in which mounted ConfigMaps have what their links lead to
			below = append(below, file)
		}
	}
	err = filepath.WalkDir(at, func(path string, entry fs.DirEntry, err error) error {
		info, missing := os.Stat(path)
		// as mounted ConfigMaps have
		if err != nil || entry.Type()&fs.ModeSymlink == 0 || missing != nil || !info.IsDir() || strings.HasPrefix(entry.Name(), "..") {
			return err
		}
		linked, err := filesIn(path + string(filepath.Separator))
		below = append(below, linked...)
		return err
	})
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("reading %s: %w", directory, reason(err))
	case len(files) == 0:
		return nil, nil, hintedError{
			fmt.Errorf("reading %s: there are no files in it that end with %s", directory, strings.Join(resource.FileExtensions, ", ")),
			"-R reads its subdirectories, too; where there are no manifests any more, give an empty file",
		}
	}
	return files, below, nil
}

// filesIn returns the files of a directory and its subdirectories that may be manifests.
func filesIn(directory string) (files []string, err error) {
	visitors, err := resource.ExpandPathsToFileVisitors(nil, directory, true, resource.FileExtensions, nil)
	for _, visitor := range visitors {
		files = append(files, visitor.(*resource.FileVisitor).Path)
	}
	return files, err
}

// noneIn returns an error if one of the files that are not read of a directory has objects, or may: what is not for Kubernetes has no
// apiVersion.
func (g *globals) noneIn(directory string, unread []string) error {
	for _, file := range unread {
		text, err := g.content(file)
		if err != nil {
			return err
		}
		items, err := uninstall.ReadManifest(text)
		kustomize := strings.HasPrefix(filepath.Base(file), "kustomization.")
		if len(items) > 0 || err != nil && (kustomize || bytes.Contains(text, []byte("apiVersion"))) {
			return hintedError{fmt.Errorf("reading %s: %s is a manifest in a subdirectory", directory, file),
				"-R reads subdirectories, too, but for those that links lead to"}
		}
	}
	return nil
}

// manifest reads the objects of a file.
func (g *globals) manifest(name string) ([]uninstall.Item, error) {
	text, err := g.content(name)
	if err != nil {
		return nil, err
	}
	items, err := uninstall.ReadManifest(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", calledFile(name), err)
	}
	return items, nil
}

// content reads a file.
func (g *globals) content(name string) ([]byte, error) {
	in, size, err := g.random(name)
	if err != nil {
		return nil, err
	}
	if in == nil {
		return nil, fmt.Errorf("reading %s: it is a directory", name)
	}
	text, err := io.ReadAll(io.NewSectionReader(in, 0, size))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", calledFile(name), reason(err))
	}
	return text, nil
}
