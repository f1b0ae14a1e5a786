// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
)

// TestAt: answers name the cluster that the flags and the kubeconfig lead to, and no password.
func TestAt(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "prod",
		"clusters": [{"name": "a", "cluster": {"server": "https://me:secret@10.0.0.1:6443"}}, {"name": "b", "cluster": {"server": "https://rancher.example.com/k8s/clusters/c-1"}}],
		"contexts": [{"name": "prod", "context": {"cluster": "a"}}, {"name": "test", "context": {"cluster": "b"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := os.DevNull
	for _, test := range []struct{ kubeconfig, context, cluster, server, want string }{
		{kubeconfig, "", "", "", "context prod, server https://10.0.0.1:6443"},
		{kubeconfig, "test", "", "", "context test, server https://rancher.example.com/k8s/clusters/c-1"},
		{kubeconfig, "", "b", "", "context prod, server https://rancher.example.com/k8s/clusters/c-1"},
		{kubeconfig, "", "", "https://me:secret@other", "context prod, server https://other"},
		{kubeconfig, "", "", "me:secret@other:8080", "context prod, server http://other:8080"},
		{empty, "", "", "https://other:6443", "server https://other:6443"},
	} {
		config := genericclioptions.NewConfigFlags(true)
		config.KubeConfig, config.Context, config.ClusterName, config.APIServer = &test.kubeconfig, &test.context, &test.cluster, &test.server
		g := &globals{config: config}
		client, err := config.ToRESTConfig()
		if err != nil {
			t.Errorf("%+v: %v", test, err)
			continue
		}
		if g.at(client); g.where.String() != test.want {
			t.Errorf("%+v: %q", test, g.where)
		}
	}
	g := &globals{config: genericclioptions.NewConfigFlags(true)}
	g.config.KubeConfig = &empty
	if g.at(&rest.Config{Host: "https://10.96.0.1:443"}); g.where.String() != "server https://10.96.0.1:443" {
		t.Errorf("in a cluster: %q", g.where)
	}
}

// The first of the variables that is set says whether the terminal takes UTF-8.
func TestUTF8Locale(t *testing.T) {
	for _, test := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", false},
		{"", "", "C.UTF-8", true},
		{"", "", "en_GB.utf8", true},
		{"C", "", "C.UTF-8", false},
		{"", "de_DE.ISO-8859-1", "de_DE.UTF-8", false},
		{"", "de_DE.UTF-8", "C", true},
	} {
		t.Setenv("LC_ALL", test.all)
		t.Setenv("LC_CTYPE", test.ctype)
		t.Setenv("LANG", test.lang)
		if got := utf8Locale(); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}
