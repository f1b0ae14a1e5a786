// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/version"
)

func TestClientVersion(t *testing.T) {
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: modified},
		}
	}
	for _, test := range []struct {
		name     string
		released [4]string // version, commit, date, state of the tree
		build    *debug.BuildInfo
		want     version.Info
	}{
		{name: "no build information", want: version.Info{GitVersion: "(devel)"}},
		{
			name:  "go install of a module",
			build: &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}},
			want:  version.Info{GitVersion: "v1.2.3"},
		},
		{
			name:  "go build in a clone",
			build: &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: vcs("true")},
			want:  version.Info{GitVersion: "(devel)", GitCommit: "abc", BuildDate: "2026-01-02T03:04:05Z", GitTreeState: "dirty"},
		},
		{
			name:     "a release",
			released: [4]string{"v1.2.4", "def", "2026-02-03T04:05:06Z", "clean"},
			build:    &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: vcs("true")},
			want:     version.Info{GitVersion: "v1.2.4", GitCommit: "def", BuildDate: "2026-02-03T04:05:06Z", GitTreeState: "clean"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			releaseVersion, releaseCommit, releaseDate, releaseTree = test.released[0], test.released[1], test.released[2], test.released[3]
			t.Cleanup(func() { releaseVersion, releaseCommit, releaseDate, releaseTree = "", "", "", "" })
			test.want.GoVersion, test.want.Compiler, test.want.Platform = runtime.Version(), runtime.Compiler, runtime.GOOS+"/"+runtime.GOARCH
			if diff := cmp.Diff(test.want, clientVersion(test.build)); diff != "" {
				t.Errorf("clientVersion (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProgramNames(t *testing.T) {
	for argv0, want := range map[string][2]string{
		"/usr/bin/kubectl-gc":                     {"kubectl-gc", "kubectl gc"},
		"kubectl-gc.exe":                          {"kubectl-gc", "kubectl gc"},
		"kubectl-ownership_gc":                    {"kubectl-ownership_gc", "kubectl ownership-gc"},
		"/home/a/.krew/bin/kubectl_complete-gc":   {"kubectl-gc", "kubectl gc"},
		"kubectl_complete-ownership_gc":           {"kubectl-ownership_gc", "kubectl ownership-gc"},
		"./gc":                                    {"gc", "gc"},
		"/opt/kubectl-gc/collector-of-references": {"collector-of-references", "collector-of-references"},
	} {
		program := programName(argv0)
		if got := [2]string{program, displayName(program)}; got != want {
			t.Errorf("%s: names %q, want %q", argv0, got, want)
		}
	}
}
