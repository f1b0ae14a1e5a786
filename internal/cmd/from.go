// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/offline"
)

// maxStdin bounds what is read of standard input and of pipes, which is kept in memory.
const maxStdin = 1 << 30

// addFrom adds the flag that names files to read instead of the cluster.
func (g *globals) addFrom(flags *pflag.FlagSet) {
	flags.StringArrayVar(&g.from, "from", nil,
		"Read this file instead of a cluster: a snapshot, what kubectl get -o json or yaml printed, or a directory of such; - is standard input. May be repeated for what kubectl printed")
	flags.StringVar(&g.redactKey, "redact-key", "",
		"With --from: the file that 'snapshot --redact-key' wrote, to read a redacted snapshot with the names as they were")
}

// needsCluster annotates the commands that cannot read a file.
const needsCluster = "needs-cluster"

// validateFiles returns an error when a file is to be read by a command that needs a
// cluster, or when it has no name, as of an empty variable of a script, or when standard
// input is to be read twice.
func (g *globals) validateFiles(cmd *cobra.Command) error {
	if why, needs := cmd.Annotations[needsCluster]; needs && len(g.from) > 0 {
		return usageError{errors.New("--from reads files, and " + why)}
	}
	switch {
	case slices.Contains(g.from, ""):
		return usageError{errors.New("--from needs a file")}
	case g.redactKey != "" && len(g.from) == 0:
		return usageError{errors.New("--redact-key is read with --from")}
	}
	switch reading := readingStdin(cmd.Flags()); {
	case len(reading) < 2:
		return nil
	case reading[0] == reading[1]:
		return usageError{fmt.Errorf("standard input can be read once, and %s names it twice", reading[0])}
	default:
		return usageError{fmt.Errorf("standard input can be read once, and %s and %s both name it", reading[0], reading[1])}
	}
}

// inputFlags are the flags that name files to read, of which - is standard input.
var inputFlags = []string{"from", "filename", "baseline", "finalizers", "remove-leftovers"}

// readingStdin returns the flags that name standard input, as often as they do.
func readingStdin(flags *pflag.FlagSet) []string {
	var reading []string
	for _, name := range inputFlags {
		flag := flags.Lookup(name)
		if flag == nil {
			continue
		}
		values := []string{flag.Value.String()}
		if list, is := flag.Value.(pflag.SliceValue); is {
			values = list.GetSlice()
		}
		for _, value := range values {
			if value == "-" {
				reading = append(reading, "--"+name)
			}
		}
	}
	return reading
}

// opened returns what --from names, nil without it. The files stay open.
func (g *globals) opened() (*offline.Server, error) {
	if len(g.from) == 0 || g.files != nil {
		return g.files, nil
	}
	file, err := g.open(g.from)
	if err != nil {
		return nil, err
	}
	g.files = offline.NewServer(file)
	return g.files, nil
}

// open opens a snapshot, or files that kubectl printed.
func (g *globals) open(paths []string) (*offline.File, error) {
	if len(paths) == 1 {
		in, size, err := g.random(paths[0])
		if err != nil {
			return nil, err
		}
		if in != nil && offline.IsSnapshot(in) {
			key, err := g.key()
			if err != nil {
				return nil, err
			}
			file, err := offline.OpenRedacted(in, size, key)
			if err != nil {
				err = hintedError{fmt.Errorf("reading the snapshot %s: %w", calledFile(paths[0]), err), g.snapshotHint(err)}
			}
			return file, err
		}
		if in != nil {
			return g.printed([]offline.Source{{Name: calledFile(paths[0]), In: io.NewSectionReader(in, 0, size)}})
		}
	}
	sources, err := g.sources(paths)
	if err != nil {
		return nil, err
	}
	return g.printed(sources)
}

// key reads the words that names were replaced by.
func (g *globals) key() (offline.Key, error) {
	if g.redactKey == "" {
		return nil, nil
	}
	text, err := os.ReadFile(g.redactKey)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", g.redactKey, reason(err))
	}
	key, err := offline.ReadKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s is %w", g.redactKey, err)
	}
	return key, nil
}

// snapshotHint says what to do about a snapshot that cannot be read.
func (g *globals) snapshotHint(err error) string {
	if errors.Is(err, offline.ErrNewer) {
		return "a newer release of the plugin wrote it, and reads it"
	}
	return "'" + g.name + " snapshot -o FILE' writes one; --from also takes what kubectl get -o json or yaml printed"
}

// printed reads what kubectl printed.
func (g *globals) printed(sources []offline.Source) (*offline.File, error) {
	file, err := offline.FromPrinted(sources, time.Now())
	if err != nil {
		return nil, hintedError{fmt.Errorf("reading %w", err), "--from takes a file of '" + g.name +
			" snapshot', or what kubectl get -o json or yaml printed"}
	}
	return file, nil
}

// sources opens files that kubectl printed, and those of directories.
func (g *globals) sources(paths []string) ([]offline.Source, error) {
	var sources []offline.Source
	for _, path := range paths {
		in, size, err := g.random(path)
		switch {
		case err != nil:
			return nil, err
		case in == nil:
			more, err := offline.Directory(path)
			if err != nil {
				return nil, fmt.Errorf("reading the directory: %w", err)
			}
			sources = append(sources, more...)
		case offline.IsSnapshot(in):
			return nil, usageError{fmt.Errorf("--from %s is a snapshot, which stands alone: it says of a whole cluster what is there", path)}
		default:
			sources = append(sources, offline.Source{Name: calledFile(path), In: io.NewSectionReader(in, 0, size)})
		}
	}
	return sources, nil
}

// calledFile is what messages call a file.
func calledFile(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// random opens a file for reading at any place. It returns nothing for a directory.
func (g *globals) random(path string) (io.ReaderAt, int64, error) {
	if path == "-" {
		return inMemory(g.In, calledFile(path))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", path, reason(err))
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("reading %s: %w", path, reason(err))
	case info.IsDir():
		return nil, 0, file.Close()
	case !info.Mode().IsRegular(): // a pipe, as of <(...)
		defer func() { _ = file.Close() }() // it was read
		return inMemory(file, path)
	}
	return file, info.Size(), nil
}

// inMemory reads what can be read only once, and returns it with its length.
func inMemory(in io.Reader, name string) (io.ReaderAt, int64, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxStdin+1))
	if err == nil && len(text) > maxStdin {
		err = errors.New("it is too long; write it to a file")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", name, reason(err))
	}
	return bytes.NewReader(text), int64(len(text)), nil
}

// connectFile is connect for a file.
func (g *globals) connectFile(ctx context.Context, files *offline.Server, pageSize int64) (*session, error) {
	config := g.stats.ReadOnly(&rest.Config{Host: "http://snapshot.invalid", Transport: files})
	namespace, enforced := "", false
	if value := g.config.Namespace; value != nil {
		namespace, enforced = *value, *value != ""
	}
	if pageSize == cluster.AutoPageSize { // an answer is in memory
		pageSize = cluster.DefaultPageSize
	}
	namespace = cmp.Or(namespace, files.Header().ContextNamespace, metav1.NamespaceDefault)
	reader, err := cluster.NewReader(ctx, config, g.stats, cluster.Options{PageSize: pageSize, Namespace: namespace})
	if err != nil {
		return nil, fmt.Errorf("reading what --from names: %w", err)
	}
	return &session{ConfigFlags: g.config, reader: reader, config: config, namespace: namespace, enforced: enforced, files: files}, nil
}

// now is the time that ages are counted to: that of a file is its own.
func (s *session) now() time.Time {
	if s.files != nil {
		return s.files.Now()
	}
	return time.Now()
}

// passing returns what tells how much time has passed since now, nil when none does.
func (s *session) passing() func() time.Duration {
	if s.files != nil {
		return nil
	}
	since := time.Now()
	return func() time.Duration { return time.Since(since) }
}

// waiting returns what lets time pass for a second look, nil when there is none.
func (s *session) waiting() func(context.Context, time.Duration) {
	switch {
	case s.files == nil:
		return wait
	case s.files.LooksTwice():
		return func(context.Context, time.Duration) { s.files.Pass() }
	}
	return nil
}
