// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"filippo.io/age"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// journaling are the flags about what a run keeps of its changes, and what they lead to.
type journaling struct {
	g       *globals
	backup  string
	secrets bool
	// keys are the public keys for which Secrets are encrypted that are kept, and identity is the file with a private one.
	keys       []string
	recipients []age.Recipient
	identity   string
	// sender sends changes of single objects, and reads these whole.
	sender *cluster.Sender
	// stays: a temporary change of an earlier run was to be taken back, and was not.
	stays bool
	// doubtful is the last run of the user whose journal could not be read, empty for none. Runs are named by their time.
	doubtful string
	// kept is the journal of a run of which whole objects are kept, nil for none.
	kept *change.Journal
}

// undoes is the command that takes back what a run has done of which whole objects were kept, empty for none.
func (j *journaling) undoes() string {
	if !j.kept.Used() {
		return ""
	}
	return j.undoCommand(j.kept.Dir)
}

// undoCommand takes the run back that has its journal in a directory.
func (j *journaling) undoCommand(dir string) string {
	return fmt.Sprintf("%s%s undo %s", j.g.name, j.g.connection(), shell.Quote(dir))
}

// The values of --backup for no journal, and for one where they are by default.
const (
	noBackup    = "none"
	usualBackup = "default"
)

func (j *journaling) addFlags(flags *pflag.FlagSet, usage string) {
	flags.StringVar(&j.backup, "backup", "", usage+`; "none" keeps no journal at all (default: below kubectl-gc/journal in $XDG_STATE_HOME)`)
	flags.Lookup("backup").NoOptDefVal = usualBackup
	flags.BoolVar(&j.secrets, "backup-secrets", false, "Keep the data of Secrets, too, encrypted for --backup-recipient")
	flags.StringArrayVar(&j.keys, "backup-recipient", nil, "Public key, of age or ssh, for which Secrets are encrypted that are kept")
}

// reach makes what sends changes, and finds out which cluster this is.
func (j *journaling) reach(ctx context.Context, dryRun bool) error {
	config, err := j.g.config.ToRESTConfig()
	if err != nil {
		return kubeconfigError(err)
	}
	if j.sender, err = cluster.NewSender(config, j.g.stats, remedy.FieldManager, dryRun); err != nil {
		return err
	}
	j.g.locate(ctx, config, func(ctx context.Context, id graph.Identity) (types.UID, error) {
		system, err := j.sender.Read(ctx, id)
		if err != nil {
			return "", err
		}
		return system.GetUID(), nil
	})
	return nil
}

// writer makes changes of single objects, which are kept in the journal.
func (j *journaling) writer(journal *change.Journal) change.Writer {
	return change.Writer{Read: j.sender.Read, List: j.sender.List, Do: j.sender.Do, Resource: j.resource, Journal: journal,
		Wait: wait, Now: time.Now}
}

// resource finds the type of a kind.
func (j *journaling) resource(kind schema.GroupVersionKind) (graph.Resource, error) {
	mapper, err := j.g.config.ToRESTMapper()
	if err != nil {
		return graph.Resource{}, kubeconfigError(err)
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return graph.Resource{}, err
	}
	return graph.ResourceOf(mapping), nil
}

// state is the directory for what is kept between commands (the XDG base directory specification).
func state(of string) (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "kubectl-gc", of), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "kubectl-gc", of), err
}

// base is the directory below which journals are, empty for none.
func (j *journaling) base() (string, error) {
	switch j.backup {
	case noBackup:
		return "", nil
	case "", usualBackup:
		return state("journal")
	}
	return filepath.Abs(j.backup)
}

// begin makes the journal of this run, nil for none. What is changed temporarily is taken back also when nobody reads the output any more.
func (j *journaling) begin(header change.Header) (*change.Journal, error) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // ignored, but not by programs that this one starts
	base, err := j.base()
	if err != nil || base == "" {
		return nil, withoutBackup(err)
	}
	header.Started, header.Asked, header.Where = time.Now().UTC(), wordsOf(j.g.ran, j.g.ranWith, nil), *j.g.where
	journal, err := change.NewJournal(base, header)
	if err != nil {
		return nil, withoutBackup(err)
	}
	journal.Secrets = j.recipients
	if usual, err := state("journal"); err == nil {
		if err := change.Remember(usual, base); err != nil {
			fmt.Fprintf(j.g.ErrOut, "warning: later runs find the journal of this one only with --backup=%s: %s\n", shell.Quote(base),
				render.Line(err.Error()))
		}
	}
	return journal, nil
}

// validateBackup reads for whom Secrets are encrypted.
func (j *journaling) validateBackup() (err error) {
	if j.secrets != (len(j.keys) > 0) {
		return hintedError{usageError{errors.New("--backup-secrets needs a --backup-recipient, and that is for --backup-secrets: Secrets are kept encrypted alone")}, "a public key of age (age-keygen makes one), or of ssh"}
	}
	j.recipients, err = change.ParseRecipients(j.keys)
	return err
}

// keep makes the journal of a deletion or collection, with its plan and, if that was asked for, whole objects. Without a place for one, and
// when none was asked for, the run goes without.
func (j *journaling) keep(ctx context.Context, reader *cluster.Reader, p *change.Plan) (*change.Journal, error) {
	journal, err := j.begin(change.Header{Digest: p.Digest})
	if err != nil && j.backup == "" {
		fmt.Fprintf(j.g.ErrOut, "warning: this run keeps no journal: %s\n", render.Line(err.Error()))
		return nil, nil
	}
	if err != nil || journal == nil {
		return nil, err
	}
	var whole change.WholeReader
	if j.backup != "" {
		if err := j.reach(ctx, false); err != nil {
			return nil, errors.Join(err, journal.Close())
		}
		if j.g.where.UID == "" {
			return nil,
				hintedError{errors.Join(errors.New("writing the backup: undo could not tell that it is of this cluster: namespace kube-system could not be read"), journal.Close()),
					"nothing was changed; use credentials that may get namespace kube-system, or go without --backup"}
		}
		whole = cluster.Whole{Sender: j.sender, Reader: reader}
	}
	if err := journal.Plan(ctx, p, whole); err != nil {
		return nil, hintedError{errors.Join(fmt.Errorf("writing the backup: %w", err), journal.Close()),
			"nothing was changed; --backup=DIR names another directory"}
	}
	if whole != nil {
		fmt.Fprintf(j.g.ErrOut, "Backup: %s\n", journal.Dir)
		j.kept = journal
	}
	return journal, nil
}

// withoutBackup adds what to do where there can be no journal.
func withoutBackup(err error) error {
	if err == nil {
		return nil
	}
	return hintedError{fmt.Errorf("making the backup directory: %w", err),
		"nothing was changed; --backup=DIR names another, which must be yours alone; --backup=none does without, and without temporary changes"}
}

// recorded are the journals of this cluster below the directory of this run, and all that the usual place knows of, the oldest first; those
// that cannot be read are reported and left out. Of a cluster that is not known there are none.
func (j *journaling) recorded() ([]*change.Recorded, error) {
	base, err := j.base()
	if err != nil || base == "" {
		return nil, err
	}
	var all []*change.Recorded
	for _, dir := range j.dirs(base) {
		r, err := change.ReadJournal(dir)
		switch {
		case err != nil:
			if j.g.unread(err); change.Owned(dir) {
				j.doubtful = max(j.doubtful, filepath.Base(dir))
			}
		case r.Same(j.g.where.UID):
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b *change.Recorded) int { return a.Started.Compare(b.Started) })
	return all, nil
}

// dirs are the directories of journals below one, and below all that the usual place knows of.
func (j *journaling) dirs(base string) []string {
	usual, _ := state("journal") // without a home there is none
	var all []string
	for _, base := range change.Bases(usual, base) {
		dirs, err := change.Journals(base)
		if err != nil {
			j.g.unread(err)
		}
		all = append(all, dirs...)
	}
	return all
}

func (g *globals) unread(err error) {
	fmt.Fprintf(g.ErrOut, "warning: not read: the journal of an earlier run, which might have left a temporary change: %s\n",
		render.Line(err.Error()))
}

// claim holds the journal of a run that is over.
func claim(r *change.Recorded) (release func(), _ error) {
	release, err := r.Claim()
	switch {
	case errors.Is(err, change.ErrGoing):
		return nil, hintedError{err, "wait until it has ended, or interrupt it: it takes back what is temporary"}
	case err != nil:
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	return release, nil
}

// resume takes back what interrupted runs on this cluster have changed for a while, if the user agrees. A dry run only says so.
func (j *journaling) resume(ctx context.Context, c *consenting, journal *change.Journal) error {
	all, err := j.recorded()
	if err != nil {
		return err
	}
	for _, r := range all {
		if len(r.Open()) == 0 {
			continue
		}
		release, err := r.Claim()
		switch {
		case errors.Is(err, change.ErrGoing):
			continue
		case err != nil:
			j.g.unread(err)
			continue
		}
		err = j.finishRun(ctx, c, journal, r)
		release()
		if err != nil {
			return err
		}
	}
	return nil
}

// finishRun takes back what one earlier run has left open.
func (j *journaling) finishRun(ctx context.Context, c *consenting, journal *change.Journal, r *change.Recorded) error {
	open := r.Open()
	if len(open) == 0 { // it has ended since, and has taken back what it had changed
		return nil
	}
	fmt.Fprintf(j.g.ErrOut, "The run of %s has not taken back what it changed temporarily (%s):\n", r.Started.Format(time.RFC3339), r.Dir)
	for i := range open {
		fmt.Fprintln(j.g.ErrOut, "  open: "+render.Change(open[i].Op))
	}
	switch {
	case c.dryRun != "none":
		return nil
	case !c.yes && !isTerminal(j.g.In):
		fmt.Fprintf(j.g.ErrOut, "  It stays open; take it back: %s undo --temporary %s\n", j.g.name, shell.Quote(r.Dir))
		return nil
	case !c.yes:
		answer, err := j.g.ask(ctx, fmt.Sprintf("Take back %s of that run first? (y/N): ", counted(len(open), "change")), false)
		if err != nil || !change.Agrees(answer, "") {
			return err
		}
	}
	w := j.writer(journal)
	for i := range open {
		j.stays = !j.takeBack(ctx, &w, r, &open[i]) || j.stays
	}
	return nil
}

// takeBack ends one temporary change of an earlier run. It reports whether it has ended.
func (j *journaling) takeBack(ctx context.Context, w *change.Writer, r *change.Recorded, e *change.Entry) bool {
	made := r.TakeBack(ctx, w, e)
	fmt.Fprintln(j.g.ErrOut, "  "+render.TakenBack(&made, "kubectl"+j.g.connection()))
	if made.Status != change.TakenBack {
		return false
	}
	if err := r.MarkTakenBack(time.Now(), e.Number); err != nil {
		fmt.Fprintf(j.g.ErrOut, "warning: writing the journal: %s\n", render.Line(err.Error()))
	}
	return true
}
