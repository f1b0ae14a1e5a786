// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/test/cluster"
)

const (
	moduleUsage = "`directory` of the module test/cluster (default: the one around the current directory)"
	stateUsage  = "`directory` of the state of up (default: the cache directory)"
)

// settings are the values of the flags of run and up.
type settings struct {
	options cluster.Options // without Binaries
	module  string
	state   string
	path    bool
}

// newFlags returns the flags of the command with this name, run or up.
func newFlags(command string) (*flag.FlagSet, *settings) {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // dispatch prints errors and the manual
	s := &settings{}
	o := &s.options
	flags.StringVar(&o.Controllers, "controllers", cluster.ControllersNone,
		"`which` controllers run: none, gc (the garbage collector alone), all, or a\n"+
			"list for kube-controller-manager --controllers")
	flags.Func("user", "add a user: `NAME` or NAME=GROUP,... (repeatable)", func(value string) error {
		o.Users = append(o.Users, parseUser(value))
		return nil
	})
	flags.Func("apiserver-arg", "`--name=value` for kube-apiserver, in place of a default (repeatable)",
		appendTo(&o.APIServerArgs))
	flags.Func("controller-manager-arg", "`--name=value` for kube-controller-manager, in place of a default (repeatable)",
		appendTo(&o.ControllerManagerArgs))
	flags.BoolVar(&o.AuditLog, "audit-log", false, "write an audit log of all requests")
	flags.IntVar(&o.FakeNodes, "fake-nodes", 0, "`number` of nodes to fake; a fake kubelet schedules and runs pods on them")
	flags.DurationVar(&o.GraceCap, "grace-cap", 0,
		"longest `time` that a terminating pod takes on a fake node\n(default: its whole grace period)")
	flags.BoolVar(&o.Keep, "keep", false, "keep the directory with logs and data at the end")
	flags.StringVar(&s.module, "module", "", moduleUsage)
	flags.StringVar(&s.state, "state", "",
		"`directory` that keeps the state of up (default: the cache directory). With\n"+
			"run: record the control plane there for up and down, and ignore stdin")
	flags.BoolVar(&s.path, "path", false, "with up: also print a line that puts kubectl and the other programs in PATH")
	return flags, s
}

// parse parses args and refuses arguments that are not flags.
func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("parsing the flags of %s: %w", flags.Name(), err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("parsing the flags of %s: unexpected argument %q", flags.Name(), flags.Arg(0))
	}
	return nil
}

// parseUser reads NAME or NAME=GROUP,GROUP.
func parseUser(value string) cluster.User {
	name, groups, found := strings.Cut(value, "=")
	user := cluster.User{Name: name}
	if found {
		user.Groups = strings.Split(groups, ",")
	}
	return user
}

// appendTo returns the function of a repeatable flag.
func appendTo(list *[]string) func(string) error {
	return func(value string) error {
		if !strings.HasPrefix(value, "--") {
			return fmt.Errorf("%q does not start with --", value)
		}
		*list = append(*list, value)
		return nil
	}
}
