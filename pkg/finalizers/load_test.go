// SPDX-License-Identifier: Apache-2.0

package finalizers_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

func TestLoad(t *testing.T) {
	const text = `---
# Ours.
product: Acme
controller: acme
workloads: [{kind: Deployment, namespace: acme, name: acme}]
finalizers:
- finalizer: acme.com/one
- controller: helper
  finalizers:
  - finalizer: acme.com/two
    workloads: []
    kinds: [Widget.acme.com]
  - finalizer: acme.com/<n>
    product: Acme Plus
    controller:
    builtin: kube-apiserver
    helpers: [{name: helper-<n>}]
    leases: [{namespace: <namespace>, name: lock}]
    harmless: true
    whileUsed: only
    examples: [acme.com/3]
- finalizer: acme.com/hold
  field: spec.finalizers
  kinds: [Namespace]
`
	acme := []finalizers.Workload{{Kind: "Deployment", Namespace: "acme", Name: "acme"}}
	want := []finalizers.Entry{
		{Finalizer: "acme.com/one", Field: finalizers.Metadata, Product: "Acme", Controller: "acme", Workloads: acme},
		{
			Finalizer: "acme.com/two", Field: finalizers.Metadata, Kinds: []string{"Widget.acme.com"}, Product: "Acme",
			Controller: "helper", Workloads: []finalizers.Workload{},
		},
		{
			Finalizer: "acme.com/<n>", Field: finalizers.Metadata, Product: "Acme Plus", Builtin: finalizers.APIServer, Workloads: acme,
			Helpers: []finalizers.Workload{{Name: "helper-<n>"}}, Leases: []finalizers.Lease{{Namespace: finalizers.ObjectNamespace, Name: "lock"}},
			WhileUsed: finalizers.OnlyWaits, Harmless: true, Examples: []string{"acme.com/3"},
		},
		{
			Finalizer: "acme.com/hold", Field: finalizers.Spec, Kinds: []string{"Namespace"}, Product: "Acme", Controller: "acme",
			Workloads: acme,
		},
	}
	if diff := cmp.Diff(want, slices.Collect(load(t, text).Entries())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := load(t, `{"finalizers": []}`); c.Len() != 0 {
		t.Errorf("%d entries in an empty list", c.Len())
	}
}

func TestLoadBadFiles(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", `want a mapping with a list "finalizers"`},
		{"a list", "- a", `want a mapping with a list "finalizers"`},
		{"no list", "finalizers: x", `want a mapping with a list "finalizers"`},
		{"null", "finalizers:", `want a mapping with a list "finalizers"`},
		{"not YAML", "a: b\nc: [\n", "parsing finalizers: yaml: line 2: did not find expected node content"},
		{"key twice", "finalizers: []\nfinalizers: []\n", "parsing finalizers: yaml: unmarshal errors:\n  line 2: key \"finalizers\" already set in map"},
		{"two documents", "---\nfinalizers: []\n# more\n---\nfinalizers: []\n", "line 4: a second document starts: all finalizers have to be in one"},
		{"text for an entry", "finalizers: [x]", "finalizers[0]: want a mapping with the fields of an entry"},
		{"unknown field", "finalizers: [{finalizer: a.b/c, product: p, kind: Pod}]",
			"finalizers[0] (a.b/c): kind: no such field; there are finalizer, field, kinds, product, controller, builtin, workloads, helpers, leases, " +
				"offCluster, place, names, waitsFor, whileUsed, users, creates, leaks, harmless, note, examples, source and finalizers"},
		{"unknown field of a group", "finalizers: [{Product: p, finalizers: []}]",
			"finalizers[0]: Product: no such field; there are finalizer, field, kinds, product, controller, builtin, workloads, helpers, leases, " +
				"offCluster, place, names, waitsFor, whileUsed, users, creates, leaks, harmless, note, examples, source and finalizers"},
		{"a group with a finalizer", "finalizers: [{finalizer: a.b/c, finalizers: []}]",
			`finalizers[0]: finalizer: with a list "finalizers" it has to be in the entries of that`},
		{"a group without a list", "finalizers: [{product: p, finalizers: x}]", `finalizers[0]: want a mapping with a list "finalizers"`},
		{"nothing in it", "finalizers: [{}]",
			"finalizers[0]: finalizer: Required value: a string or a pattern\nfinalizers[0]: product: Required value: what the finalizer belongs to"},
		{"white space", "finalizers: [{finalizer: a b, product: p}]", `finalizers[0] (a b): finalizer: Invalid value: "a b": no finalizer has white space in it`},
		{"number", "finalizers: [{finalizer: 1, product: p}]", "finalizers[0]: finalizer: want text"},
		{"use", "finalizers: [{finalizer: a.b/c, product: p, whileUsed: sometimes}]", "finalizers[0] (a.b/c): whileUsed: Unsupported value: \"sometimes\": supported values: \"only\", \"also\""},
		{"named", "finalizers: [{finalizer: a.b/<n>, product: p, names: <n>}]", "finalizers[0] (a.b/<n>): names: Invalid value: \"<n>\": want <plural>.<group> and a placeholder of the finalizer"},
		{"truth", "finalizers: [{finalizer: a.b/c, product: p, harmless: maybe}]", "finalizers[0] (a.b/c): harmless: want true or false"},
		{"one kind", "finalizers: [{finalizer: a.b/c, product: p, kinds: Pod}]", "finalizers[0] (a.b/c): kinds: want a list of text"},
		{"empty kind", "finalizers: [{finalizer: a.b/c, product: p, kinds: [~]}]", "finalizers[0] (a.b/c): kinds: want a list of text"},
		{"no kind", "finalizers: [{finalizer: a.b/c, product: p, kinds: [Pod, v1/Pod, .x]}]",
			`finalizers[0] (a.b/c): kinds[1]: Invalid value: "v1/Pod": want Kind or Kind.group, with "*" for any characters` + "\n" +
				`finalizers[0] (a.b/c): kinds[2]: Invalid value: ".x": want Kind or Kind.group, with "*" for any characters`},
		{"field", "finalizers: [{finalizer: a.b/c, product: p, field: spec}]",
			`finalizers[0] (a.b/c): field: Unsupported value: "spec": supported values: "metadata.finalizers", "spec.finalizers"`},
		{"spec of another kind", "finalizers: [{finalizer: a.b/c, product: p, field: spec.finalizers, kinds: [Pod]}]",
			`finalizers[0] (a.b/c): field: Invalid value: "spec.finalizers": only namespaces have these: kinds has to be [Namespace]`},
		{"builtin", "finalizers: [{finalizer: a.b/c, product: p, builtin: kcm}]",
			`finalizers[0] (a.b/c): builtin: Unsupported value: "kcm": supported values: "kube-controller-manager", "kube-apiserver", "cloud-controller-manager"`},
		{"kind of a workload", "finalizers: [{finalizer: a.b/c, product: p, workloads: [{name: x}, {kind: Pod, name: z}]}]",
			`finalizers[0] (a.b/c): workloads[1].kind: Unsupported value: "Pod": supported values: "Deployment", "StatefulSet", "DaemonSet"`},
		{"workload without a name", "finalizers: [{finalizer: a.b/c, product: p, helpers: [{namespace: x}]}]",
			`finalizers[0] (a.b/c): helpers[0].name: Required value: with "*" for any characters`},
		{"unknown field of a workload", "finalizers: [{finalizer: a.b/c, product: p, workloads: [{ns: x, name: z}]}]",
			"finalizers[0] (a.b/c): workloads: want a list of mappings of kind, namespace and name to text"},
		{"unknown field of a lease", "finalizers: [{finalizer: a.b/c, product: p, leases: [{kind: Lease, name: z}]}]",
			"finalizers[0] (a.b/c): leases: want a list of mappings of namespace and name to text"},
		{"a workload that is text", "finalizers: [{finalizer: a.b/c, product: p, workloads: [x/y]}]",
			"finalizers[0] (a.b/c): workloads: want a list of mappings of kind, namespace and name to text"},
		{"placeholders that the finalizer does not have", "finalizers: [{finalizer: a.b/<n>, product: p, leases: [{namespace: <m>, name: <n>-<m>}]}]",
			`finalizers[0] (a.b/<n>): leases[0].namespace: Invalid value: "<m>": want a namespace, with placeholders of the finalizer, or <namespace>` + "\n" +
				`finalizers[0] (a.b/<n>): leases[0].name: Invalid value: "<n>-<m>": want a name, with "*" for any characters and placeholders of the finalizer`},
		{"all", `finalizers: [{finalizer: "*", product: p}]`,
			`finalizers[0] (*): finalizer: Invalid value: "*": it would match every finalizer: letters or <group> must be in it`},
		{"all with a slash", `finalizers: [{finalizer: "<a>/*", product: p}]`,
			`finalizers[0] (<a>/*): finalizer: Invalid value: "<a>/*": it would match every finalizer: letters or <group> must be in it`},
		{"adjacent", `finalizers: [{finalizer: "a/<b>*", product: p}]`,
			`finalizers[0] (a/<b>*): finalizer: Invalid value: "a/<b>*": "*" and placeholders need other characters between them`},
		{"twice", `finalizers: [{finalizer: "<b>/a<b>", product: p}]`,
			`finalizers[0] (<b>/a<b>): finalizer: Invalid value: "<b>/a<b>": <b> is there twice, or stands for the object's namespace`},
		{"namespace", `finalizers: [{finalizer: "a/<namespace>", product: p}]`,
			`finalizers[0] (a/<namespace>): finalizer: Invalid value: "a/<namespace>": <namespace> is there twice, or stands for the object's namespace`},
		{"open", `finalizers: [{finalizer: "a/<b", product: p}]`,
			`finalizers[0] (a/<b): finalizer: Invalid value: "a/<b": "<" and ">" have to enclose a placeholder, of letters and "-"`},
		{"example", `finalizers: [{finalizer: a/*, product: p, examples: [a/b, b/a]}]`,
			`finalizers[0] (a/*): examples[1]: Invalid value: "b/a": the finalizer of the entry is no pattern for it`},
		{"example of no pattern", `finalizers: [{finalizer: a/b, product: p, examples: [a/b]}]`,
			`finalizers[0] (a/b): examples[0]: Invalid value: "a/b": the finalizer of the entry is no pattern for it`},
		{"duplicate", "product: p\nfinalizers: [{finalizer: a/b}, {finalizers: [{finalizer: a/c}, {finalizer: a/b}]}]",
			"finalizers[1].finalizers[1] (a/b): finalizer: finalizers[0] (a/b) for any kind already"},
		{"duplicate of a kind", "product: p\nfinalizers: [{finalizer: a/b, kinds: [K, Pod]}, {finalizer: a/b, kinds: [J]}, {finalizer: a/b, kinds: [Pod, J]}]",
			"finalizers[2] (a/b): finalizer: finalizers[0] (a/b) for Pod already\nfinalizers[2] (a/b): finalizer: finalizers[1] (a/b) for J already"},
		{"several", "finalizers: [{finalizer: a.b/c, harmless: 1, kinds: 1}, {finalizer: a/b, product: p}, {product: p}]",
			"finalizers[0] (a.b/c): kinds: want a list of text\nfinalizers[0] (a.b/c): harmless: want true or false\n" +
				"finalizers[2]: finalizer: Required value: a string or a pattern"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := finalizers.Load(strings.NewReader(test.text))
			if err == nil {
				t.Fatalf("got %d entries", c.Len())
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The same finalizer is no duplicate in another field or on another kind.
func TestLoadNoDuplicates(t *testing.T) {
	c := load(t, `
product: p
finalizers:
- {finalizer: a/b, kinds: [Pod]}
- {finalizer: a/b, kinds: [Namespace]}
- {finalizer: a/b, kinds: [Namespace], field: spec.finalizers}
- {finalizer: a/b}
- {finalizer: a/*}
`)
	if got := c.Find("a/b", schema.GroupKind{Kind: "Namespace"}); len(got) != 5 {
		t.Errorf("got\n%s", summaries(got))
	}
}

func TestLoadReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	if _, err := finalizers.Load(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		"finalizers: [{finalizer: a.b/<c>, product: p, kinds: [K.g], workloads: [{name: <c>}]}]",
		"a: &a {finalizers: [{finalizer: x}]}\nfinalizers: [*a, *a]",
		"finalizers: [{finalizers: [{finalizers: [{}]}]}]", "{", "--- x\n---",
		"product: p\nfinalizers:\n- finalizer: a.b/c\n  kinds: [\"*.d\", E]\n  harmless: true\n- {finalizer: <plural>.<group>, examples: [a.b]}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := finalizers.Load(strings.NewReader(string(data)))
		if (c == nil) == (err == nil) {
			t.Fatalf("%v and %v", c, err)
		}
		if err != nil {
			return
		}
		for e := range c.Entries() {
			c.Find(e.Finalizer, schema.GroupKind{Kind: "K", Group: "g"})
		}
	})
}

// A catalogue of one's own, before what the program knows by itself.
func ExampleLoad() {
	ours, err := finalizers.Load(strings.NewReader(`
product: Acme
controller: Acme operator
workloads: [{kind: Deployment, namespace: acme-system, name: acme-<shard>}]
finalizers:
- finalizer: <shard>.acme.example/cleanup
  kinds: ["*.acme.example"]
  leaks: the bucket
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	known := finalizers.Builtin().Merge(ours)
	for _, m := range known.Find("eu.acme.example/cleanup", schema.GroupKind{Group: "acme.example", Kind: "Site"}) {
		fmt.Println(m.Controller, m.Workloads, m.Leaks)
	}
	// Output: Acme operator [{Deployment acme-system acme-eu}] the bucket
}
