// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// evil is text that does something to a terminal: it clears the screen, sets the title,
// begins a line anew, rings, and turns the direction of what follows.
const evil = "evil\x1b[2J\x1b]0;title\x07\r\n\u202e\u009b31m\x00\x7f"

// evilStatus is an answer of an API server with such a message.
func evilStatus(code int) Fault {
	f := Status(code, "", 0)
	f.before = func(_ *Proxy, w http.ResponseWriter, _ *http.Request) bool {
		data, err := json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reasons[code],
			Code: int32(code), Message: evil, Details: &metav1.StatusDetails{Name: evil, Kind: evil, Causes: []metav1.StatusCause{{Field: evil, Message: evil}}},
		})
		if err != nil {
			panic(err) // it has nothing that cannot be written
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write(data)
		return true
	}
	return f
}

// evilObjects are objects in which every text is evil that the API server takes so.
const evilObjects = `
- {apiVersion: v1, kind: ConfigMap, metadata: {name: dependent, ownerReferences: [{apiVersion: EVIL, kind: EVIL, name: EVIL, uid: EVIL}, {apiVersion: v1, kind: Secret, name: EVIL, uid: EVIL2}]}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: owner, annotations: {example.com/text: EVIL}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: pod, finalizers: [example.com/hold]}
  spec: {containers: [{name: c, image: EVIL}], nodeName: gone}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, annotations: {example.com/text: EVIL}}
  spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: EVIL}]}}}
- {apiVersion: v1, kind: Event, metadata: {name: event}, involvedObject: {kind: Pod, name: pod, namespace: NAMESPACE, uid: EVIL}, reason: EVIL, message: EVIL, reportingComponent: EVIL, source: {component: EVIL}, type: Warning}
`

// evilStatuses are what stands in the status of some of them.
var evilStatuses = map[string]string{
	"pods/pod":        `{"status":{"phase":"Running","message":"EVIL","reason":"EVIL","conditions":[{"type":"Ready","status":"False","reason":"EVIL","message":"EVIL"}]}}`,
	"deployments/web": `{"status":{"conditions":[{"type":"Progressing","status":"False","reason":"EVIL","message":"EVIL"}]}}`,
}

// prepareEvil makes a namespace of such objects, and begins to delete one.
func prepareEvil(ctx context.Context, client dynamic.Interface, namespace string) error {
	quoted := func(text string) string {
		word := ""
		for _, r := range evil {
			if unicode.IsPrint(r) {
				word += string(r)
			} else {
				word += fmt.Sprintf(`\u%04x`, r)
			}
		}
		return strings.NewReplacer("EVIL2", word+"2", "EVIL", word, "NAMESPACE", namespace).Replace(text)
	}
	inYAML := strings.NewReplacer("EVIL2", `"EVIL2"`, "EVIL", `"EVIL"`)
	var objects []map[string]any
	if err := yaml.Unmarshal([]byte(quoted(inYAML.Replace(evilObjects))), &objects); err != nil {
		return err
	}
	places := map[string]schema.GroupVersionResource{
		"ConfigMap": {Version: "v1", Resource: "configmaps"}, "Pod": {Version: "v1", Resource: "pods"},
		"Deployment": {Group: "apps", Version: "v1", Resource: "deployments"}, "Event": {Version: "v1", Resource: "events"},
	}
	for _, object := range objects {
		o := &unstructured.Unstructured{Object: object}
		place := places[o.GetKind()]
		o.SetNamespace(namespace)
		if _, err := client.Resource(place).Namespace(namespace).Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating %s: %w", o.GetKind(), err)
		}
		if status := evilStatuses[place.Resource+"/"+o.GetName()]; status != "" {
			if _, err := client.Resource(place).Namespace(namespace).Patch(ctx, o.GetName(), types.MergePatchType, []byte(quoted(status)), metav1.PatchOptions{}, "status"); err != nil {
				return fmt.Errorf("setting the status of %s: %w", o.GetKind(), err)
			}
		}
	}
	return client.Resource(places["Pod"]).Namespace(namespace).Delete(ctx, "pod", metav1.DeleteOptions{})
}

// TestTerminal prints evil text in every way, and looks for a character that a terminal
// would obey.
func TestTerminal(t *testing.T) {
	t.Parallel()
	_, world := connect(t)
	const namespace = "terminal"
	if err := world.CreateNamespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if err := prepareEvil(t.Context(), world.Client, namespace); err != nil {
		t.Fatal(err)
	}
	everyWrite := Rule{URI: writes, Fault: evilStatus(http.StatusInternalServerError)}
	rules := map[string][]Rule{
		"nothing":       nil,
		"lists":         {{URI: regexp.MustCompile(`^GET .*/(secrets|endpoints)\?`), Fault: evilStatus(http.StatusForbidden)}, everyWrite},
		"single":        {{URI: regexp.MustCompile(`^GET .*/(pods|deployments|events)/`), Fault: evilStatus(http.StatusInternalServerError)}, everyWrite},
		"plain text":    {{URI: regexp.MustCompile(`^GET .*/secrets\?`), Fault: Plain(http.StatusInternalServerError, evil)}, {URI: writes, Fault: Plain(http.StatusForbidden, evil)}},
		"discovery":     {{URI: regexp.MustCompile(`^GET /apis?(\?|$)`), Fault: evilStatus(http.StatusForbidden)}},
		"refused":       {{URI: writes, Fault: evilStatus(http.StatusForbidden)}},
		"content types": {{URI: regexp.MustCompile(`^GET .*/secrets\?`), Fault: Body("an evil list", `{"kind":"`+strings.Trim(fmt.Sprintf("%q", "K"), `"`)+`\u001b[2J","items":[]}`)}},
	}
	commands := []string{
		"tree --isolated --show-labels", "tree -owide --status=always --isolated", "tree configmap/dependent --owners", "tree -oname --isolated",
		"tree -ocustom-columns=A:.metadata.name,B:.metadata.uid,C:.kind,D:.metadata.ownerReferences", "tree -ojson", "tree -oyaml", "tree --color=always",
		"check --settle=0s", "check --settle=0s -oname", "check --settle=0s -osarif", "check --settle=0s -ojson", "check --settle=0s -oprometheus",
		"explain-stuck", "explain-stuck pod/pod configmap/owner", "explain-stuck -oyaml", "explain-stuck -oprometheus",
		"graph -omermaid", "graph -osvg", "graph -ohtml", "graph -ographml", "graph -oyaml",
		"delete configmap/owner --dry-run=client", "delete configmap/owner pod/pod --dry-run=server", "delete configmap/owner --dry-run=client -oyaml",
		"delete pod/pod configmap/owner --yes --wait=false", "delete configmap/none --yes", "collect --dry-run=client", "collect --dry-run=server", "collect --yes --wait=false",
	}
	for name, rules := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, err := Start(world.Config, Options{}, rules...)
			if err != nil {
				t.Fatal(err)
			}
			defer proxy.Close()
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			if err := proxy.WriteKubeconfig(kubeconfig); err != nil {
				t.Fatal(err)
			}
			seen := false
			for _, words := range commands {
				if name == "nothing" && strings.Contains(words, "--yes") {
					continue // the world is to stay
				}
				r, err := run(t.Context(), kubeconfig, append(strings.Fields(words), "-n", namespace)...)
				if err != nil {
					t.Fatal(err)
				}
				seen = seen || strings.Contains(r.stdout+r.stderr, "evil")
				obeys(t, r)
			}
			if !seen && name != "discovery" { // of which client-go keeps nothing
				t.Error("no command shows what is evil")
			}
		})
	}
}

// colors are the sequences that --color=always prints.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// obeys reports what a terminal would obey, or what is no text at all.
func obeys(t *testing.T, r *result) {
	t.Helper()
	if strings.Contains(r.line, "--color=always") {
		r.stdout = colors.ReplaceAllString(r.stdout, "")
	}
	for stream, text := range map[string]string{"standard output": r.stdout, "standard error": r.stderr} {
		if !utf8.ValidString(text) {
			t.Errorf("%s: %s is not UTF-8", r.line, stream)
		}
		for line := range strings.Lines(text) {
			bad := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(c rune) bool { return !unicode.IsPrint(c) && c != '\t' })
			if bad >= 0 {
				t.Errorf("%s: %s has %q", r.line, stream, line[max(0, bad-60):min(len(line), bad+30)])
				break
			}
		}
	}
}
