// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// A command that is printed has each flag that was set, once, before names that look like flags.
func TestWordsOf(t *testing.T) {
	for given, want := range map[string]string{
		"delete cm/a --dry-run":                             "delete cm/a --dry-run --order=safe",
		"delete --order default cm/a":                       "delete cm/a --order=safe",
		"delete --order=default cm/a --token=s3cret -n x":   "delete cm/a --token=... -n x --order=safe",
		"delete --token s3cret -n=shop -- cm/a --order":     "delete --token=... -n shop --order=safe -- cm/a --order",
		"delete -f a -f b,c -iy --wait=false":               "delete -f a -f b -f c --interactive --yes --wait=false --order=safe",
		"delete -f - --dry-run=server --yes=false -v2 cm/a": "delete cm/a -f - --dry-run=server --yes=false --v=2 --order=safe",
	} {
		cmd := &cobra.Command{Use: "kubectl-gc"}
		var ran []string
		var again string
		del := &cobra.Command{Use: "delete", Run: func(c *cobra.Command, args []string) {
			ran = wordsOf(c, args, []string{"order"}, "--order=safe")
			again = (&globals{name: "kubectl gc", ran: c, ranWith: args}).again(nil)
		}}
		del.Flags().StringSliceP("filename", "f", nil, "")
		del.Flags().BoolP("interactive", "i", false, "")
		del.Flags().BoolP("yes", "y", false, "")
		del.Flags().Bool("wait", true, "")
		del.Flags().String("order", "", "")
		del.Flags().String("dry-run", "", "")
		del.Flags().Lookup("dry-run").NoOptDefVal = "client"
		cmd.PersistentFlags().String("token", "", "")
		cmd.PersistentFlags().StringP("namespace", "n", "", "")
		cmd.PersistentFlags().IntP("v", "v", 0, "")
		cmd.AddCommand(del)
		cmd.SetArgs(strings.Fields(given))
		if err := cmd.Execute(); err != nil {
			t.Fatalf("%s: %v", given, err)
		}
		if !slices.Equal(ran, strings.Fields(want)) {
			t.Errorf("%s: %s, want %s", given, strings.Join(ran, " "), want)
		}
		if strings.HasSuffix(again, " < INPUT") != strings.Contains(given, "-f - ") {
			t.Errorf("%s: again: %s", given, again)
		}
	}
}

// The command of another tool goes to the cluster that was asked, as the user who asked.
func TestCommandOf(t *testing.T) {
	for given, want := range map[string][2]string{
		"":                              {"helm uninstall web", "flux delete kustomization web"},
		"--context prod --kubeconfig=f": {"helm uninstall web --kube-context=prod --kubeconfig=f", "flux delete kustomization web --context=prod --kubeconfig=f"},
		"-s https://a --as-group=x --as-group=y": {
			"helm uninstall web --kube-as-group=x --kube-as-group=y --kube-apiserver=https://a", "flux delete kustomization web --as-group=x --as-group=y --server=https://a",
		},
		"--token s3cret -n shop": {"helm uninstall web --kube-token=...", "flux delete kustomization web --token=..."},
	} {
		cmd := &cobra.Command{Use: "kubectl-gc", Run: func(*cobra.Command, []string) {}}
		genericclioptions.NewConfigFlags(true).AddFlags(cmd.Flags())
		cmd.SetArgs(strings.Fields(given))
		if err := cmd.Execute(); err != nil {
			t.Fatalf("%s: %v", given, err)
		}
		g := &globals{ran: cmd}
		for i, words := range []string{"helm uninstall web", "flux delete kustomization web"} {
			if got := g.commandOf(strings.Fields(words)); strings.ReplaceAll(got, "'", "") != want[i] {
				t.Errorf("%s: %s, want %s", given, got, want[i])
			}
		}
	}
}
