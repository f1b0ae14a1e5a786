// SPDX-License-Identifier: Apache-2.0

// Package cmd holds the commands: each turns flags into options and runs
// them. It is the only package that knows cobra and cli-runtime.
package cmd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // credential plugins, as kubectl has them
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
)

// The exit codes of every command.
const (
	exitDone        = 0   // done, nothing to report
	exitError       = 1   // an error; nothing was changed, or the message says what was
	exitFindings    = 2   // something remains that should be gone, or is wrong
	exitIncomplete  = 3   // --strict, or a change was refused, because something unreadable could change the answer
	exitInterrupted = 130 // interrupted by the user
)

const exitCodeHelp = `Exit codes:
  0    done, nothing to report
  1    error; diff: something differs, and 2 is an error
  2    delete, collect: something remains; explain-stuck: something is stuck;
       check: an owner reference is wrong
  3    with --strict: incomplete, because something could not be read
  130  interrupted`

// errIncomplete ends a command with exitIncomplete. The command has said on
// stderr what could not be read.
var errIncomplete = errors.New("the answer is incomplete (--strict)")

// incompleteError is an error that ends a command with exitIncomplete.
type incompleteError struct{ error }

// Is implements errors.Is.
func (e incompleteError) Is(target error) bool { return target == errIncomplete }

// errRemaining ends a command with exitFindings. The report has said what
// remains.
var errRemaining = errors.New("something remains")

// Run executes the command line, whose first word is the program's name, and
// returns the exit code.
func Run(ctx context.Context, argv []string, streams genericiooptions.IOStreams) int {
	// client-go logs errors that it also returns; the user gets them once.
	utilruntime.ErrorHandlers = nil
	root := newRoot(argv, streams)
	root.SetArgs(arguments(argv))
	command, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, errRemaining):
		return exitFindings
	case errors.Is(err, errDifferent):
		return exitError
	}
	printError(streams.ErrOut, err, command.CommandPath())
	if errors.Is(err, errIncomplete) || errors.As(err, new(*change.IncompleteError)) {
		return exitIncomplete
	}
	if _, compares := command.Annotations[exitsAsDiff]; compares {
		return exitTrouble
	}
	return exitError
}

// completerPrefix begins the name under which kubectl looks for the program
// that completes a plugin's arguments.
const completerPrefix = "kubectl_complete-"

// programName is the base name of the program that the user runs. A link to it
// named kubectl_complete-gc stands for kubectl-gc.
func programName(argv0 string) string {
	base := strings.TrimSuffix(filepath.Base(argv0), ".exe")
	if plugin, ok := strings.CutPrefix(base, completerPrefix); ok {
		return "kubectl-" + plugin
	}
	return base
}

// displayName is how the user called the program: "kubectl gc" for a plugin
// named kubectl-gc, the program's own name otherwise. An underscore in a
// plugin's file name stands for a dash.
func displayName(program string) string {
	if plugin, ok := strings.CutPrefix(program, "kubectl-"); ok {
		return "kubectl " + strings.ReplaceAll(plugin, "_", "-")
	}
	return program
}

// arguments returns the words after the program's name. As
// kubectl_complete-gc the program gets the words to complete.
func arguments(argv []string) []string {
	if strings.HasPrefix(filepath.Base(argv[0]), completerPrefix) {
		return append([]string{cobra.ShellCompRequestCmd}, argv[1:]...)
	}
	return argv[1:]
}

// runner is what the command line of a command says.
type runner interface {
	// validate finds mistakes before the server is asked anything.
	validate() error
	run(ctx context.Context) error
}

// runs returns the body of a command, which puts its arguments into args if that
// is not nil.
func runs(o runner, args *[]string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, words []string) error {
		if args != nil {
			*args = words
		}
		if err := o.validate(); err != nil {
			return err
		}
		return o.run(cmd.Context())
	}
}

func noArguments(args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q", args[0])}
	}
	return nil
}

// globals are what all commands share.
type globals struct {
	genericiooptions.IOStreams
	name   string
	config *genericclioptions.ConfigFlags
	strict bool
	color  string
	// verbosity is the value of -v.
	verbosity int
	// argv are the words of the command line after the program's name, ran the command that they name, and ranWith its arguments.
	argv, ranWith []string
	ran           *cobra.Command
	// from names files to read instead of a cluster, files what they hold.
	from []string
	// redactKey is the file of words of a redacted snapshot.
	redactKey string
	files     *offline.Server
	// stats counts the requests of the command, which may read everything more than once.
	stats *cluster.Stats
	// where is the cluster that the command is about, nil for a file.
	where *answer.Where
}

// example returns the examples of a command, in whose text NAME stands where
// the program's name goes.
func (g *globals) example(text string) string { return strings.ReplaceAll(text, "NAME", g.name) }

// logRequests hands -v to client-go's logger, whose low levels say nothing
// that concerns a user: the errors among it are returned, too.
func (g *globals) logRequests() {
	if g.verbosity < 6 {
		klog.SetLogger(klog.Logger{}) // which discards
		return
	}
	klog.ClearLogger()
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	_ = flags.Set("v", strconv.Itoa(g.verbosity)) // an integer is always accepted
}

// validateTimeout returns an error for a --request-timeout that is none. client-go would say
// so when it makes a configuration, and only if there is a cluster; a negative one it takes.
func (g *globals) validateTimeout() error {
	value := *g.config.Timeout
	timeout, err := clientcmd.ParseTimeout(value)
	if err == nil && timeout >= 0 {
		return nil
	}
	return usageError{fmt.Errorf("invalid --request-timeout %q: must be a number of seconds, or one with a unit, as in 1s, 2m or 3h", value)}
}

// Command returns the command with its subcommands, for programs that write
// documentation. program is the name of the plugin's file, which the texts
// follow.
func Command(program string) *cobra.Command {
	return newRoot([]string{program}, genericiooptions.NewTestIOStreamsDiscard())
}

// addProxy adds a flag that kubectl has and the cli-runtime of go.mod has not yet.
func addProxy(config *genericclioptions.ConfigFlags, flags *pflag.FlagSet) {
	proxy := flags.String("proxy-url", "", "Proxy URL to use for requests to the API server")
	config.WrapConfigFn = func(c *rest.Config) *rest.Config {
		if *proxy != "" {
			c.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(*proxy) }
		}
		return c
	}
}

func newRoot(argv []string, streams genericiooptions.IOStreams) *cobra.Command {
	program := programName(argv[0])
	name := displayName(program)
	g := &globals{IOStreams: streams, name: name, argv: argv[1:], config: genericclioptions.NewConfigFlags(true), stats: cluster.NewStats()}
	root := &cobra.Command{
		Use:   program,
		Short: "Show, preview and drive garbage collection",
		Long: `Find out why an object hangs in Terminating, and free it; preview exactly what a
deletion does, and run it from here; show what owns what in a cluster, as
Kubernetes' garbage collector sees it.

Every owner reference has a state: Solid (the owner exists), Dangling (it does
not), WaitingForDependentsDeletion (it is in foreground deletion) or Unknown
(the owner could not be looked for, or the garbage collector cannot decide).

` + exitCodeHelp,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return suggested(fmt.Errorf("unknown command %q", args[0]), args[0], commandNames(cmd))
			}
			return cmd.Help()
		},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, err, argv[1:]) })
	build, _ := debug.ReadBuildInfo() // nil without one
	root.Version = clientVersion(build).GitVersion
	flags := root.PersistentFlags()
	g.config.AddFlags(flags)
	addProxy(g.config, flags)
	flags.Lookup("request-timeout").Usage = "How long a single request may take, with a unit (1s, 2m, 3h); 0 means a minute"
	_ = flags.MarkHidden("cache-dir") // scripts may pass it to all plugins; nothing is cached
	flags.BoolVar(&g.strict, "strict", false, "Exit with code 3 when something that could change the answer could not be read")
	flags.StringVar(&g.color, "color", "auto", `Use colour and line drawing: "auto" (on a terminal), "always" or "never"`)
	flags.IntVarP(&g.verbosity, "v", "v", 0,
		"Log level; from 1 on, name all types that could not be read, from 2 on, say at the end what was asked of the server, from 6 on log every request")
	g.addFrom(flags)
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		g.ran, g.ranWith = cmd, args
		g.logRequests()
		if err := g.validateTimeout(); err != nil {
			return err
		}
		return g.validateFiles(cmd)
	}
	root.AddCommand(newTree(g), newDelete(g), newCollect(g), newExplain(g), newUnstick(g), newUndo(g), newHistory(g), newRevive(g),
		newCheck(g), newGraph(g), newSnapshot(g), newDiff(g), newUninstall(g), newVersion(g))
	g.registerCompletions(root)
	addCompletion(root, program, name)
	g.addHelp(root)
	completeOthers(root)
	return root
}
