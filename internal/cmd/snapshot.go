// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
)

// snapshotOptions are what the command line of snapshot says.
type snapshotOptions struct {
	*globals
	output    string
	overwrite bool
	redact    bool
	redactKey string
	// secondLook: it is waited to see what moves.
	secondLook bool
}

const snapshotLong = `Write one file with everything that the other commands need to know of the
cluster. They read it with --from FILE, without the cluster, and give the
answers that they would have given at that moment.

The file has the metadata of all objects, and of some types what explanations
use beside it: the states of nodes, pods, volumes and workloads, rights,
webhooks, leases, events. It never has the data of Secrets and ConfigMaps, nor
the values of environment variables, nor the arguments of containers, nor
annotations irrelevant to deletion. The first line of its index says which;
unzip -p FILE index.jsonl | head -1 shows it.

--redact replaces names, in messages as well, word by word and each word
everywhere by the same other one. It keeps types, numbers, the words of publicly
known finalizers, and the words of error messages: the answers are the same but
for the names. --redact-key FILE keeps which word stands for which, for you
alone.

With --second-look, leases and what is being deleted are read again after 12
seconds, where a controller may work that no lease shows. Without it, answers
from the file call that Unknown.

A file that exists is replaced with --overwrite only.

With -n only objects of that namespace are read, and those without a namespace.
Nothing is changed.

Exit codes:
  0    done
  1    error; there is no file then
  3    with --strict: something could not be read; the file says what
  130  interrupted`

const snapshotExample = `  # The whole cluster, as far as you are allowed to read it; then look at it, anywhere
  NAME snapshot -o cluster.snapshot && NAME explain-stuck -A --from cluster.snapshot

  # One namespace
  NAME snapshot -n default -o default.snapshot

  # For people outside: with other names; the key stays with you
  NAME snapshot --redact --redact-key report.key -o report.snapshot

  # Without a file
  NAME snapshot -o - | NAME tree -A --from -`

func newSnapshot(g *globals) *cobra.Command {
	o := &snapshotOptions{globals: g}
	cmd := &cobra.Command{
		Use:               "snapshot -o FILE",
		Short:             "Write everything that the other commands need into a file",
		Long:              snapshotLong,
		Example:           g.example(snapshotExample),
		Args:              func(_ *cobra.Command, args []string) error { return noArguments(args) },
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              runs(o, nil),
		Annotations:       map[string]string{needsCluster: "snapshot writes one"},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "The file to write; - is standard output")
	cmd.Flags().BoolVar(&o.overwrite, "overwrite", false, "Replace files that exist")
	cmd.Flags().BoolVar(&o.redact, "redact", false, "Replace names, also in messages, each word by the same other word everywhere")
	cmd.Flags().BoolVar(&o.secondLook, "second-look", false, "Wait for 12 seconds, where that may show who is at work")
	cmd.Flags().StringVar(&o.redactKey, "redact-key", "",
		"With --redact: the file to write which word stands for which to, readable by you alone")
	return cmd
}

func (o *snapshotOptions) validate() error {
	switch {
	case o.output == "":
		return usageError{errors.New("-o must name the file to write")}
	case o.output == "-" && isTerminal(o.Out):
		return usageError{errors.New("a snapshot is compressed; -o must name a file when standard output is a terminal")}
	case o.redactKey != "" && !o.redact:
		return usageError{errors.New("--redact-key requires --redact")}
	case o.redactKey == "-" || o.redactKey != "" && filepath.Clean(o.redactKey) == filepath.Clean(o.output):
		return usageError{errors.New("--redact-key must name another file than -o")}
	}
	return nil
}

func (o *snapshotOptions) run(ctx context.Context) error {
	config, err := o.config.ToRESTConfig()
	if err != nil {
		return kubeconfigError(err)
	}
	config, recording := cluster.Record(config)
	s, err := o.connectWith(ctx, config, cluster.AutoPageSize)
	if err != nil {
		return err
	}
	out, err := createFile(o.output, o.Out, o.overwrite)
	if err != nil {
		return err
	}
	defer out.discard()
	key, err := o.createKey()
	if err != nil {
		return err
	}
	defer key.discard()
	w, err := o.write(ctx, s, recording, out)
	if err != nil {
		return err
	}
	if err := errors.Join(writeKey(key, w), key.keep(), out.keep()); err != nil {
		return err
	}
	return o.conclude(s, w, out)
}

// createKey returns the file of --redact-key, which goes nowhere without it.
func (o *snapshotOptions) createKey() (*newFile, error) {
	if o.redactKey == "" {
		return &newFile{Writer: io.Discard}, nil
	}
	return createFile(o.redactKey, nil, o.overwrite)
}

// writeKey writes which word stands for which, a pair a line.
func writeKey(key io.Writer, w *offline.Writer) error {
	originals := w.Originals()
	for _, word := range slices.Sorted(maps.Keys(originals)) {
		if _, err := fmt.Fprintln(key, word, originals[word]); err != nil {
			return fmt.Errorf("writing the key: %w", err)
		}
	}
	return nil
}

// write writes the snapshot. The writer tells what that came to.
func (o *snapshotOptions) write(ctx context.Context, s *session, recording *cluster.Recording, out io.Writer) (*offline.Writer, error) {
	begun := s.reader.Now(ctx)
	header := offline.Header{
		Begun: begun.UTC(), Server: recording.Version(), ContextNamespace: s.namespace, Redacted: o.redact, Contents: s.reader.Contents(),
	}
	options := cluster.SaveOptions{Begun: begun}
	if o.secondLook {
		options.Wait = wait
	}
	if s.enforced {
		options.Namespace, header.Namespace = s.namespace, s.namespace
	}
	if isTerminal(o.ErrOut) {
		options.Progress = func(resource string) { fmt.Fprintf(o.ErrOut, "\r\x1b[K%s", resource) }
		defer fmt.Fprint(o.ErrOut, "\r\x1b[K")
	}
	w, err := offline.NewWriter(out, header)
	if err != nil {
		return nil, err
	}
	if o.redactKey != "" {
		w.KeepOriginals()
	}
	for _, answer := range recording.Answers() {
		if err := w.Answer(answer); err != nil {
			return nil, err
		}
	}
	if err := s.reader.Save(ctx, w, options); err != nil {
		return nil, err
	}
	return w, w.Close(s.reader.Now(ctx).UTC())
}

// conclude says what was written, and what could not be.
func (o *snapshotOptions) conclude(s *session, w *offline.Writer, out *newFile) error {
	failed := w.Failed()
	for _, what := range failed {
		fmt.Fprintln(o.ErrOut, "warning: could not read "+render.Line(what))
	}
	if len(failed) > 0 {
		fmt.Fprintln(o.ErrOut, "warning: the snapshot is incomplete; what depends on the above is Unknown in its answers, too")
	}
	fmt.Fprintf(o.ErrOut, "%d objects in %s", w.Objects(), calledFile(o.output))
	if out.written > 0 {
		fmt.Fprintf(o.ErrOut, ", %.1f kB", float64(out.written)/1000)
	}
	fmt.Fprintln(o.ErrOut)
	if o.verbosity >= 2 {
		fmt.Fprintln(o.ErrOut, s.reader.Stats())
	}
	fmt.Fprintln(o.ErrOut, o.shown())
	if o.strict && len(failed) > 0 {
		return errIncomplete
	}
	return nil
}

// shown says whether names are in the file.
func (o *snapshotOptions) shown() string {
	switch {
	case o.redactKey != "":
		return "redacted; " + o.redactKey + " says which word stands for which: keep it to yourself"
	case o.redact:
		return "redacted"
	}
	return "NOT redacted: it has names, labels and messages; --redact replaces them"
}

// newFile is a file that is there under its name only when it is complete.
type newFile struct {
	io.Writer
	path    string
	file    *os.File // nil for standard output, and when it was kept
	written int64
	// overwrite: another file may have the name.
	overwrite bool
}

// createFile returns a file, or standard output for -. It is readable by its owner alone.
func createFile(path string, stdout io.Writer, overwrite bool) (*newFile, error) {
	if path == "-" {
		return &newFile{Writer: stdout}, nil
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && !overwrite {
		return nil, existsError(path)
	}
	if err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return nil, fmt.Errorf("writing the snapshot: %s is a directory", path)
		}
		file, err := os.OpenFile(path, os.O_WRONLY, 0) // a device or a pipe
		if err != nil {
			return nil, fmt.Errorf("writing the snapshot: %w", err)
		}
		return &newFile{Writer: file}, nil
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fmt.Errorf("writing the snapshot %s: %w", path, reason(err))
	}
	return &newFile{Writer: file, path: path, file: file, overwrite: overwrite}, nil
}

func existsError(path string) error {
	return hintedError{fmt.Errorf("%s exists", path), "--overwrite replaces it"}
}

// reason is an error of a file without its name, which is one for the time being.
func reason(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// Write implements io.Writer.
func (f *newFile) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	f.written += int64(n)
	return n, err
}

// keep gives the file its name.
func (f *newFile) keep() error {
	if f.file == nil {
		return nil
	}
	if _, err := os.Stat(f.path); err == nil && !f.overwrite { // since it was begun
		return existsError(f.path)
	}
	err := errors.Join(f.file.Close(), os.Rename(f.file.Name(), f.path))
	if err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	f.file = nil
	return nil
}

// discard removes a file that was not kept.
func (f *newFile) discard() {
	if f.file != nil {
		_ = f.file.Close()
		_ = os.Remove(f.file.Name()) // there is nothing more to do about it
	}
}
