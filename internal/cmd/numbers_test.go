// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// numbering is unstick with the arguments, about a cause of an object, on a cluster.
func numbering(server, namespace, id string, args ...string) (*unstickOptions, *look) {
	o := &unstickOptions{explainOptions: explainOptions{globals: &globals{name: "kubectl gc", config: genericclioptions.NewConfigFlags(false)}}}
	o.args, o.picks, o.numbers = args, []unstick.Pick{{Way: 1}}, []string{"1"}
	at := graph.Identity{Resource: graph.Resource{Kind: "Deployment"}, Namespace: "ops", Name: "operator", UID: "u"}
	scale := explain.Remedy{Risk: explain.Safe, Effect: say.Plain("scale it up"), Action: explain.Action{Operation: new(remedy.ScaleOf(at, remedy.Replicas{Wanted: 1}))}}
	c := &explain.Cause{Kind: explain.Kind{ID: id}, Object: at, Remedies: []explain.Remedy{scale}}
	return o, &look{session: &session{config: &rest.Config{Host: server}, namespace: namespace}, report: &explain.Report{Causes: []*explain.Cause{c}}}
}

// A number is that of an answer to the same question, about the same cluster, of the last hour; its file is for its user alone.
func TestNumbers(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	shown, l := numbering("https://a", "shop", "fin-dead", "pod/x")
	shown.keepNumbers(l.session, l.report)
	dir := filepath.Join(state, "kubectl-gc", "screens")
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, files[0]: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, want %o (%v)", path, info.Mode(), want, err)
		}
	}
	taken := func(server, namespace, id string, args ...string) string {
		o, l := numbering(server, namespace, id, args...)
		picked, err := o.takeNumbers(l)
		return strings.TrimSpace(fmt.Sprint(len(picked), " ", err))
	}
	const none = "0 number 1: no answer about these objects has shown numbers"
	for name, test := range map[string]struct{ got, want string }{
		"the same":          {taken("https://a", "shop", "fin-dead", "pod/x"), "1 <nil>"},
		"another cause":     {taken("https://a", "shop", "fin-manual", "pod/x"), "there is no such cause any more"},
		"another cluster":   {taken("https://b", "shop", "fin-dead", "pod/x"), none},
		"another namespace": {taken("https://a", "store", "fin-dead", "pod/x"), none},
		"another object":    {taken("https://a", "shop", "fin-dead", "pod/y"), none},
	} {
		if !strings.HasSuffix(test.got, test.want) {
			t.Errorf("%s: %s, want %s", name, test.got, test.want)
		}
	}
	aged(t, files[0], 61*time.Minute)
	if got := taken("https://a", "shop", "fin-dead", "pod/x"); !strings.Contains(got, "0 number 1 was shown at ") || !strings.Contains(got, ", as --cause=fin-dead@deployment/ops/operator:") {
		t.Error("after an hour:", got)
	}
	// Where nothing can be kept nothing is said, and the number is refused.
	t.Setenv("XDG_STATE_HOME", files[0])
	shown.keepNumbers(l.session, l.report)
	if got := taken("https://a", "shop", "fin-dead", "pod/x"); got != none {
		t.Error("without a directory:", got)
	}
}

// aged makes what was kept older.
func aged(t *testing.T, file string, by time.Duration) {
	t.Helper()
	var kept numbered
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	kept.Time = kept.Time.Add(-by)
	if text, err = json.Marshal(kept); err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
