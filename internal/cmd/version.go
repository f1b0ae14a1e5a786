// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
)

// What the linker sets in a release (.goreleaser.yaml), and in a build in a clone
// (Makefile). Other builds are described by what the go command noted in the
// binary.
var (
	releaseVersion string // with a leading v
	releaseCommit  string // the whole hash
	releaseDate    string // of the commit, RFC 3339
	releaseTree    string // "clean" or "dirty", or empty for a snapshot
)

// versionOptions are what the command line of version says.
type versionOptions struct {
	*globals
	client bool
	output string
}

// versions is the document of version, of the same form as kubectl's.
type versions struct {
	Client version.Info  `json:"clientVersion"`
	Server *version.Info `json:"serverVersion,omitempty"` // nil if it was not asked, or did not answer
}

const versionExample = `  # The versions of the plugin and of the cluster
  NAME version

  # That of the plugin alone, without a cluster
  NAME version --client

  # For a program
  NAME version --client -o json`

func newVersion(g *globals) *cobra.Command {
	o := &versionOptions{globals: g}
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Show the versions of the plugin and of the cluster",
		Example:           g.example(versionExample),
		Args:              func(_ *cobra.Command, args []string) error { return noArguments(args) },
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{needsCluster: "version asks a cluster"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.client, "client", false, "Show only the plugin's version, and ask no server")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "Output format: json, yaml")
	g.completeValues(cmd, map[string][]string{"output": {"json", "yaml"}})
	return cmd
}

func (o *versionOptions) validate() error {
	switch o.output {
	case "", "json", "yaml":
		return nil
	}
	return usageError{fmt.Errorf("unknown output format %q: must be one of json, yaml", o.output)}
}

// run prints what is known also when the server does not answer, as kubectl
// does, and returns the error after that.
func (o *versionOptions) run(ctx context.Context) error {
	build, _ := debug.ReadBuildInfo() // nil without one
	v := versions{Client: clientVersion(build)}
	var failed error
	if !o.client {
		v.Server, failed = o.server(ctx)
	}
	if err := v.write(o.Out, o.output); err != nil {
		return err
	}
	return failed
}

// server asks the API server for its version.
func (o *versionOptions) server(ctx context.Context) (*version.Info, error) {
	config, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, kubeconfigError(err)
	}
	config, _ = cluster.ReadOnly(config)
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("configuring the client: %w", err)
	}
	info := new(version.Info)
	raw, err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(raw, info)
	}
	if err != nil {
		return nil, fmt.Errorf("asking the server for its version: %w", err)
	}
	return info, nil
}

// clientVersion describes the binary: by what the linker was told, otherwise
// by what the go command noted, which is the version of the module for "go
// install" and the commit for a build in a clone. build may be nil.
func clientVersion(build *debug.BuildInfo) version.Info {
	info := version.Info{
		GitVersion: releaseVersion, GitCommit: releaseCommit, BuildDate: releaseDate, GitTreeState: releaseTree,
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if build == nil {
		build = &debug.BuildInfo{}
	}
	settings := map[string]string{}
	for _, s := range build.Settings {
		settings[s.Key] = s.Value
	}
	tree := map[string]string{"true": "dirty", "false": "clean"}[settings["vcs.modified"]]
	info.GitTreeState = cmp.Or(info.GitTreeState, tree)
	info.GitVersion = cmp.Or(info.GitVersion, build.Main.Version, "(devel)")
	info.GitCommit = cmp.Or(info.GitCommit, settings["vcs.revision"])
	info.BuildDate = cmp.Or(info.BuildDate, settings["vcs.time"])
	return info
}

func (v *versions) write(w io.Writer, format string) error {
	var document []byte
	var err error
	switch format {
	case "json":
		document, err = json.MarshalIndent(v, "", "  ")
		document = append(document, '\n')
	case "yaml":
		document, err = yaml.Marshal(v)
	default:
		document = v.text()
	}
	if err == nil {
		_, err = w.Write(document)
	}
	return err
}

// text leaves out the lines of what is not known.
func (v *versions) text() []byte {
	commit := v.Client.GitCommit
	if v.Client.GitTreeState == "dirty" {
		commit += " (changed since)"
	}
	lines := []struct{ name, value string }{
		{"Client Version", v.Client.GitVersion},
		{"Commit", commit},
		{"Commit Date", v.Client.BuildDate},
		{"Go Version", v.Client.GoVersion},
		{"Platform", v.Client.Platform},
	}
	if v.Server != nil {
		lines = append(lines, struct{ name, value string }{"Server Version", v.Server.GitVersion})
	}
	var text []byte
	for _, line := range lines {
		if line.value != "" {
			text = fmt.Appendf(text, "%s: %s\n", line.name, line.value)
		}
	}
	return text
}
