// SPDX-License-Identifier: Apache-2.0

package toy

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// Image is the image of the containers that run the operator; their arguments are
// its flags.
const Image = "registry.example.com/toy-operator"

// Options are the operator's flags.
type Options struct {
	// Name is its field manager and the name of its Lease.
	Name string
	// Group is the API group of its types, Version the version that it uses.
	Group, Version string
	// Resources are its types, in the plural.
	Resources []string
	// Finalizer is what it keeps on their objects.
	Finalizer string
	// Watch is the namespace that it looks at, or empty for all.
	Watch string
	// Cleanup is how long it takes about an object that is being deleted.
	Cleanup time.Duration
	// Linger makes it work until its pod has ended. Otherwise it stops when it is
	// told to end, as controllers do by default.
	Linger bool
	// Adopt is false for one that takes its finalizer off and never sets it.
	Adopt bool
	// LeaderElect makes it wait for its Lease.
	LeaderElect bool
	// Serve is a list of what it serves on Port: admission, conversion, api.
	Serve string
	// Crash makes it end at once, again and again.
	Crash bool
}

// Port is where an operator serves.
const Port = 9443

// Parse reads the arguments of a container.
func Parse(args []string) (Options, error) {
	var o Options
	flags := flag.NewFlagSet("toy-operator", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.Name, "name", "toy-operator", "")
	flags.StringVar(&o.Group, "group", "foresight.test", "")
	flags.StringVar(&o.Version, "version", "v1", "")
	resources := flags.String("resources", "toys", "")
	flags.StringVar(&o.Finalizer, "finalizer", "foresight.test/cleanup", "")
	flags.StringVar(&o.Watch, "watch", "", "")
	flags.DurationVar(&o.Cleanup, "cleanup", time.Second, "")
	flags.BoolVar(&o.Linger, "linger", false, "")
	flags.BoolVar(&o.Adopt, "adopt", true, "")
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "")
	flags.StringVar(&o.Serve, "serve", "", "")
	flags.BoolVar(&o.Crash, "crash", false, "")
	if err := flags.Parse(args); err != nil {
		return o, fmt.Errorf("reading the arguments of %s: %w", Image, err)
	}
	if *resources != "" {
		o.Resources = strings.Split(*resources, ",")
	}
	return o, nil
}

// serves reports whether it serves one of the things in Serve.
func (o *Options) serves(what string) bool {
	return strings.Contains(","+o.Serve+",", ","+what+",")
}
