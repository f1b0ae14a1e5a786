// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/unstick"
)

// putBack takes back what an earlier run has changed.
func (o *unstickOptions) putBack(ctx context.Context) error {
	recorded, err := unstick.ReadJournal(o.undo)
	if err != nil {
		return fmt.Errorf("reading the journal: %w", err)
	}
	if err := o.prepare(o.dryRun == "server"); err != nil {
		return err
	}
	if err := o.sameServer(recorded); err != nil {
		return err
	}
	reversals := recorded.Undo(ctx, &unstick.Reading{Read: o.operator.Read, Resource: o.resource})
	possible := 0
	for i := range reversals {
		if err := render.Reversal(o.Out, &reversals[i]); err != nil {
			return err
		}
		if reversals[i].Op != nil {
			possible++
		}
	}
	switch {
	case possible == 0:
		fmt.Fprintln(o.Out, "Nothing to put back.")
		return nil
	case o.dryRun == "client":
		return nil
	case o.dryRun == "none" && !o.yes:
		if !isTerminal(o.In) {
			return hintedError{errors.New("asking for consent: there is no terminal"), "--yes goes ahead"}
		}
		fmt.Fprintf(o.ErrOut, "Put back %s? (y/N): ", counted(possible, "change"))
		answer, err := readLine(ctx, o.In)
		if err != nil {
			return err
		}
		if answer = strings.TrimSpace(answer); !strings.EqualFold(answer, "y") && !strings.EqualFold(answer, "yes") {
			return unstick.ErrNotConfirmed
		}
	}
	return o.reverse(ctx, recorded, reversals)
}

// resource finds the type of a kind.
func (o *unstickOptions) resource(kind schema.GroupVersionKind) (graph.Resource, error) {
	mapper, err := o.config.ToRESTMapper()
	if err != nil {
		return graph.Resource{}, kubeconfigError(err)
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return graph.Resource{}, err
	}
	return graph.Resource{GroupVersionResource: mapping.Resource, Kind: kind.Kind, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}, nil
}

// reverse makes the changes that take others back.
func (o *unstickOptions) reverse(ctx context.Context, recorded *unstick.Recorded, reversals []unstick.Reversal) error {
	var failed []error
	for i := range reversals {
		v := &reversals[i]
		if v.Op == nil {
			continue
		}
		if err := o.operator.Do(ctx, v.Op); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", render.Change(v.Op), err))
			continue
		}
		if o.dryRun == "server" {
			continue
		}
		fmt.Fprintln(o.Out, "done: "+render.Change(v.Op))
		if err := recorded.MarkTakenBack(v.Entry.Number, time.Now()); err != nil {
			failed = append(failed, fmt.Errorf("writing the journal: %w", err))
		}
	}
	return errors.Join(failed...)
}

// sameServer refuses to put back on another cluster what was changed on one: UIDs guard most changes, names the others.
func (o *unstickOptions) sameServer(recorded *unstick.Recorded) error {
	config, err := o.config.ToRESTConfig()
	if err != nil {
		return kubeconfigError(err)
	}
	if config.Host != recorded.Server {
		return hintedError{fmt.Errorf("the run was on %s, and this is %s", recorded.Server, config.Host), "--context and --kubeconfig choose the cluster"}
	}
	return nil
}

// resume takes back what an interrupted run on this cluster has changed for a while, and could not take back.
func (o *unstickOptions) resume(ctx context.Context) error {
	base, err := o.base()
	if err != nil || base == "" {
		return err
	}
	dirs, err := filepath.Glob(filepath.Join(base, "*", "journal.jsonl"))
	if err != nil {
		return err
	}
	for _, file := range dirs {
		recorded, err := unstick.ReadJournal(filepath.Dir(file))
		if err != nil || recorded.Server != o.session.config.Host || len(recorded.Open()) == 0 || runsStill(recorded) {
			continue
		}
		fmt.Fprintf(o.ErrOut, "The run of %s was interrupted before it took back what it had changed for a while:\n", recorded.Started.Format(time.RFC3339))
		for _, e := range recorded.Open() {
			o.takeBack(ctx, recorded, &e)
		}
	}
	return nil
}

// takeBack takes one change of an interrupted run back.
func (o *unstickOptions) takeBack(ctx context.Context, recorded *unstick.Recorded, e *unstick.Entry) {
	err := o.operator.Do(ctx, e.Op.Back)
	text := render.Change(e.Op)
	switch {
	case errors.Is(err, remedy.ErrChanged):
		fmt.Fprintf(o.ErrOut, "not taken back, as it was changed since or never made: %s\n", text)
	case err != nil:
		fmt.Fprintf(o.ErrOut, "NOT taken back: %s: %s\n", text, render.Line(err.Error()))
		return
	default:
		fmt.Fprintf(o.ErrOut, "taken back: %s\n", text)
	}
	if err := recorded.MarkTakenBack(e.Number, time.Now()); err != nil {
		fmt.Fprintf(o.ErrOut, "warning: writing the journal: %s\n", render.Line(err.Error()))
	}
}

// runsStill reports whether the process of a run may still be there: it is on this machine and takes signals, or is on another one.
func runsStill(recorded *unstick.Recorded) bool {
	if host, err := os.Hostname(); err != nil || host != recorded.Host {
		return err == nil && host != recorded.Host && time.Since(recorded.Started) < time.Hour
	}
	p, err := os.FindProcess(recorded.Process)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	return recorded.Process != os.Getpid() && (err == nil || errors.Is(err, syscall.EPERM))
}
