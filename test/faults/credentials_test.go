// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The credentials of TestCredentialsAreNotPrinted.
const (
	secretToken    = "the-token-that-nobody-may-see"
	secretPassword = "the-password-that-nobody-may-see"
	secretOfPlugin = "the-token-of-the-plugin-that-nobody-may-see"
)

// TestCredentialsAreNotPrinted runs commands at the highest verbosity with each kind of
// credentials, while all goes well and while requests fail, and looks for the credentials
// in all that they print.
func TestCredentialsAreNotPrinted(t *testing.T) {
	t.Parallel()
	w, err := newReadWorld(t)
	if err != nil {
		t.Fatal(err)
	}
	plugin := filepath.Join(t.TempDir(), "plugin")
	answer := `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"` + secretOfPlugin + `"}}`
	if err := os.WriteFile(plugin, []byte("#!/bin/sh\necho '"+answer+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	users := map[string]*clientcmdapi.AuthInfo{
		"token":    {Token: secretToken},
		"password": {Username: "somebody", Password: secretPassword},
		"plugin": {Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: plugin, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}},
		"flag": {},
	}
	faults := map[string][]Rule{
		"nothing":         nil,
		"unauthorized":    {{Fault: Status(401, metav1.StatusReasonUnauthorized, 0)}},
		"forbidden lists": {{URI: regexp.MustCompile(`^GET .*/(secrets|configmaps)`), Fault: Status(403, metav1.StatusReasonForbidden, 0)}},
		"cut":             {{URI: regexp.MustCompile(`^GET .*/deployments`), Fault: Cut()}},
	}
	for user, info := range users {
		for name, rules := range faults {
			if user != "token" && len(rules) > 0 && name != "unauthorized" {
				continue // what goes wrong is the same for each
			}
			t.Run(user+"/"+name, func(t *testing.T) {
				t.Parallel()
				kubeconfig := behind(t, w, info, rules)
				for _, words := range [][]string{w.commands[1], {"explain-stuck", "-n", w.namespace}, {"delete", "deployment/web", "-n", w.namespace, "--dry-run=server"}} {
					words = slices.Concat(words, []string{"-v=10", hurried})
					if user == "flag" {
						words = append(words, "--token="+secretToken)
					}
					r, err := run(t.Context(), kubeconfig, words...)
					if err != nil {
						t.Fatal(err)
					}
					if all := r.stdout + r.stderr; credentials.MatchString(all) {
						t.Errorf("%q prints %s", words, credentials.FindString(all))
					}
					if len(rules) == 0 && r.code != 0 && r.code != 2 {
						t.Errorf("%q tells nothing: %s", words, r)
					}
				}
			})
		}
	}
}

// credentials matches them, the password also as it is sent.
var credentials = regexp.MustCompile(strings.Join([]string{
	secretToken, secretPassword, secretOfPlugin, base64.StdEncoding.EncodeToString([]byte("somebody:" + secretPassword)),
}, "|"))

// behind returns the path of a kubeconfig of a user of a proxy. The API server does not
// see the user's credentials.
func behind(t *testing.T, w *readWorld, user *clientcmdapi.AuthInfo, rules []Rule) string {
	t.Helper()
	proxy, err := Start(w.Config, Options{TLS: true}, rules...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := proxy.WriteKubeconfigOf(path, user); err != nil {
		t.Fatal(err)
	}
	return path
}
