// SPDX-License-Identifier: Apache-2.0

package argv_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-gc/kubectl-gc/internal/argv"
)

func TestRead(t *testing.T) {
	for words, want := range map[string]argv.Line{
		"":                                    {},
		"/manager -v2":                        {},
		"/manager --watch-label-selector=a=b": {Watches: "a=b"},
		"/manager --watch-label-selector !a --log-level=info":          {Watches: "!a"},
		"/manager --watch-label-selector=a --watch-label-selector b":   {Watches: "b"},
		"/manager --watch-label-selector":                              {},
		"/manager --watch-namespace=a --leader-elect":                  {Namespaces: "a"},
		"/manager --namespaces a,b":                                    {Namespaces: "a,b"},
		"/manager --namespaces=$(POD_NAMESPACE) --managed-namespace=*": {Namespaces: "$(POD_NAMESPACE)"},
		"/manager --namespace=a --namespace b":                         {Namespace: "b"},
		"/manager --watch-label-selectors=a":                           {},
		"/manager --kubeconfig /etc/kubeconfig":                        {Kubeconfig: true},
		"/manager --set=kubeconfigs --watch-label-selector=kubeconfig": {Kubeconfig: true, Watches: "kubeconfig"},
	} {
		got := argv.Read(strings.Fields(words), nil)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", words, diff)
		}
		if diff := cmp.Diff(got, argv.Read(got.Words(), nil)); diff != "" {
			t.Errorf("%s: what is left of it reads otherwise: %s", words, diff)
		}
	}
	if got := argv.Read(nil, []string{"A=b", "WATCH_NAMESPACE=" + argv.Own, "STRIMZI_RESOURCE_LABELS=a=b"}); got != (argv.Line{Namespaces: argv.Own, Watches: "a=b"}) {
		t.Errorf("variables read %v", got)
	}
	variables := []string{argv.Annotation(argv.TargetNamespaces, "a,b"), argv.Variable("OWN", "", "metadata.namespace", true), argv.Variable("OF_A_SECRET", "", "", true)}
	for from, want := range map[string]string{
		"$(OWN),c": ".,c", "$(OF_A_SECRET)": "$()", "$(metadata.annotations['olm.targetNamespaces'])": "a,b",
	} {
		for _, got := range []argv.Line{argv.Read([]string{argv.NamespacesFlag + "=" + from}, variables), argv.Read(nil, append(variables, "WATCH_NAMESPACE="+from))} {
			if got.Namespaces != want {
				t.Errorf("%s reads %q", from, got.Namespaces)
			}
		}
	}
	if !argv.Read(nil, []string{"KUBECONFIG"}).Kubeconfig || argv.Read(nil, []string{"KUBECONFIGS"}).Kubeconfig {
		t.Error("a variable KUBECONFIG is one, and no other")
	}
}
