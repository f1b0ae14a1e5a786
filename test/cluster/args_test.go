// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"
)

func TestOverride(t *testing.T) {
	defaults := []string{"--a=1", "--b=2", "--c"}
	for _, test := range []struct {
		name        string
		extra, want []string
	}{
		{"nothing", nil, []string{"--a=1", "--b=2", "--c"}},
		{"replace", []string{"--b=3"}, []string{"--a=1", "--c", "--b=3"}},
		{"replace a flag without a value", []string{"--c=false"}, []string{"--a=1", "--b=2", "--c=false"}},
		{"add", []string{"--ab=1"}, []string{"--a=1", "--b=2", "--c", "--ab=1"}},
		{"keep all that is extra", []string{"--a=2", "--a=3"}, []string{"--b=2", "--c", "--a=2", "--a=3"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := override(defaults, test.extra); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestChoosePorts(t *testing.T) {
	p, err := choosePorts()
	if err != nil {
		t.Fatal(err)
	}
	ports := []int{p.etcd, p.etcdPeer, p.apiserver, p.controllerManager}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 4 || ports[0] < minPort || ports[len(ports)-1] >= maxPort {
		t.Errorf("got %+v, want four different ports from %d to %d", p, minPort, maxPort-1)
	}
}

func TestLinkerFlags(t *testing.T) {
	got := linkerFlags("v1.36.3")
	want := "-s -w" +
		" -X k8s.io/component-base/version.gitVersion=v1.36.3" +
		" -X k8s.io/component-base/version.gitMajor=1" +
		" -X k8s.io/component-base/version.gitMinor=36" +
		" -X k8s.io/component-base/version.gitTreeState=clean" +
		" -X k8s.io/client-go/pkg/version.gitVersion=v1.36.3" +
		" -X k8s.io/client-go/pkg/version.gitMajor=1" +
		" -X k8s.io/client-go/pkg/version.gitMinor=36" +
		" -X k8s.io/client-go/pkg/version.gitTreeState=clean"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
