// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What a value of --allow-incomplete tolerates, and nothing else.
func TestTolerance(t *testing.T) {
	unlisted := []graph.Unlisted{
		{GroupVersionResource: schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1"}, Reason: graph.DiscoveryFailed},
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Reason: graph.Forbidden},
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: "a", Reason: graph.Forbidden},
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: "b", Reason: graph.Forbidden},
	}
	for _, test := range []struct {
		args []string
		left []string
	}{
		{nil, []string{"metrics.k8s.io", "pods", "secrets"}},
		{[]string{"--allow-incomplete"}, nil},
		{[]string{"--allow-incomplete=true"}, nil},
		{[]string{"--allow-incomplete=false"}, []string{"metrics.k8s.io", "pods", "secrets"}},
		{[]string{"--allow-incomplete=metrics.k8s.io"}, []string{"pods", "secrets"}},
		{[]string{"--allow-incomplete=metrics.k8s.io", "--allow-incomplete=core"}, nil},
		{[]string{"--allow-incomplete=metrics.k8s.io, pods"}, []string{"secrets"}},
		{[]string{"--allow-incomplete=pods.metrics.k8s.io"}, []string{"metrics.k8s.io", "pods", "secrets"}},
		{[]string{"--allow-incomplete="}, []string{"metrics.k8s.io", "pods", "secrets"}},
	} {
		var value tolerance
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.Var(&value, "allow-incomplete", "")
		flags.Lookup("allow-incomplete").NoOptDefVal = "true"
		if err := flags.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.left, value.Intolerable(unlisted)); diff != "" {
			t.Errorf("%q leaves (-want +got):\n%s", test.args, diff)
		}
	}
}
