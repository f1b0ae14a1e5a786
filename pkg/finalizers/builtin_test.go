// SPDX-License-Identifier: Apache-2.0

package finalizers_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// Every finalizer that was looked up is found, with its source, and there is no
// entry for anything else.
func TestKnown(t *testing.T) {
	sources := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(known)) {
		source, names, _ := strings.Cut(line, " | ")
		sources[source] = true
		for _, finalizer := range strings.Fields(names) {
			fromThere := func(m finalizers.Match) bool { return m.Source == source }
			if matches := finalizers.Builtin().Find(finalizer, schema.GroupKind{}); !slices.ContainsFunc(matches, fromThere) {
				t.Errorf("%s from %s: got %s", finalizer, source, summaries(matches))
			}
		}
	}
	for e := range finalizers.Builtin().Entries() {
		if !sources[e.Source] {
			t.Errorf("%s: known_test.go has no line of its source %s", e.Finalizer, e.Source)
		}
	}
}

// An entry says all that it has to, and is the first that its own finalizers on
// its own kinds find.
func TestEntries(t *testing.T) {
	for e := range finalizers.Builtin().Entries() {
		if e.Product == "" || e.Controller == "" || e.WaitsFor == "" || e.Leaks == "" || e.Source == "" {
			t.Errorf("%s: something is missing: %+v", e.Finalizer, e)
		}
		if e.Builtin == "" && len(e.Workloads) == 0 && e.OffCluster == "" && e.Note == "" && e.Product != "Gateway API" && e.Product != "knative/pkg (Knative, Tekton and others)" {
			t.Errorf("%s: where does its controller run?", e.Finalizer)
		}
		form := strings.ContainsAny(e.Finalizer, "*<")
		if form != (len(e.Examples) > 0) {
			t.Errorf("%s: examples %q", e.Finalizer, e.Examples)
		}
		if !form {
			checkFirst(t, e)
		}
	}
}

func checkFirst(t *testing.T, e finalizers.Entry) {
	t.Helper()
	kinds := e.Kinds
	if len(kinds) == 0 {
		kinds = []string{"Widget.example.com"}
	}
	for _, kind := range kinds {
		kind := schema.ParseGroupKind(strings.ReplaceAll(kind, "*", "x"))
		want := finalizers.Match{Entry: e, Exact: true, KindFits: true}
		if diff := cmp.Diff(want, finalizers.Builtin().Find(e.Finalizer, kind)[0]); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", e.Finalizer, kind, diff)
		}
	}
}

// The rules that decide what may be said of a controller and of a patch hold
// for exactly these.
func TestFlags(t *testing.T) {
	got := map[string][]string{}
	for e := range finalizers.Builtin().Entries() {
		add := func(flag string, set bool) {
			if set && !slices.Contains(got[flag], e.Product) {
				got[flag] = append(got[flag], e.Product)
			}
		}
		add("harmless", e.Harmless)
		add("off cluster", e.OffCluster != "")
		add("own namespace", slices.ContainsFunc(e.Workloads, func(w finalizers.Workload) bool { return w.Namespace == finalizers.ObjectNamespace }))
		add("helpers", len(e.Helpers) > 0)
		add("while used", e.WhileUsed == finalizers.OnlyWaits)
		add("spec", e.Field == finalizers.Spec)
		add(string(e.Builtin), e.Builtin != "")
	}
	want := map[string][]string{
		"harmless": {
			"Kubernetes", "Flux", "OLM v1", "AWS Controllers for Kubernetes (ACK)", "Rancher", "prometheus-operator",
		},
		"off cluster": {
			"Kubernetes", "Argo CD", "kro", "k3s", "wrangler (Rancher, Fleet, Harvester, k3s, RKE2)", "AWS Load Balancer Controller",
			"Karpenter", "Karpenter (AWS)", "AWS Controllers for Kubernetes (ACK)", "Amazon VPC resource controller", "GKE",
			"Gardener", "Karmada", "Open Cluster Management",
		},
		"own namespace": {
			"Argo CD", "Hierarchical Namespace Controller", "Strimzi", "CloudNativePG", "Percona XtraDB Cluster",
			"Percona Server for MongoDB",
		},
		"helpers": {"MinIO DirectPV", "Rancher Fleet", "Chaos Mesh", "KubeVirt"},
		"while used": {
			"CSI external-provisioner", "CSI external-snapshotter", "JuiceFS CSI driver", "Argo CD", "Crossplane", "AWS App Mesh", "Karmada", "Clusternet",
			"Hierarchical Namespace Controller", "Gateway API", "Calico", "External Secrets Operator", "logging-operator", "Kueue", "Actions Runner Controller",
			"Argo Events",
		},
		"spec":                     {"Kubernetes"},
		"kube-controller-manager":  {"Kubernetes"},
		"kube-apiserver":           {"Kubernetes"},
		"cloud-controller-manager": {"Kubernetes"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What somebody may take away without a thought is worth a list of its own.
func TestHarmless(t *testing.T) {
	var got []string
	for e := range finalizers.Builtin().Entries() {
		if e.Harmless {
			got = append(got, e.Finalizer+" "+strings.Join(e.Kinds, " "))
		}
	}
	want := []string{
		"foregroundDeletion ",
		"finalizers.fluxcd.io *.source.toolkit.fluxcd.io",
		"olm.operatorframework.io/cleanup-contentmanager-cache ClusterExtension.olm.operatorframework.io",
		"olm.operatorframework.io/cleanup-unpack-cache ClusterExtension.olm.operatorframework.io",
		"olm.operatorframework.io/delete-server-cache ClusterCatalog.olm.operatorframework.io",
		"finalizers.services.k8s.aws/FieldExport FieldExport.services.k8s.aws",
		"controller.cattle.io/namespace-auth Namespace",
		"monitoring.coreos.com/status-cleanup *.monitoring.coreos.com",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whoever extends the file finds every field at its top.
func TestFieldsAreDescribed(t *testing.T) {
	data, err := os.ReadFile("catalogue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	top, _, _ := strings.Cut(string(data), "\nfinalizers:\n")
	_, err = finalizers.Load(strings.NewReader("finalizers: [{x: y}]"))
	_, names, found := strings.Cut(err.Error(), "there are ")
	names, _, _ = strings.Cut(names, "\n")
	for _, name := range strings.FieldsFunc(strings.ReplaceAll(names, " and ", ","), func(r rune) bool { return r == ',' || r == ' ' }) {
		if !strings.Contains(top, "#   "+name+" ") && name != "finalizers" {
			t.Errorf("the top of catalogue.yaml does not describe %s", name)
		}
	}
	if !found {
		t.Error(err)
	}
}

func summaries(matches []finalizers.Match) string {
	var lines []string
	for _, m := range matches {
		line := m.Finalizer + ": " + m.Product
		if m.Exact {
			line += ", exact"
		}
		if m.KindFits {
			line += ", of the kind"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func BenchmarkBuiltin(b *testing.B) {
	data, err := os.ReadFile("catalogue.yaml")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := finalizers.Load(strings.NewReader(string(data))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("later", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			finalizers.Builtin()
		}
	})
}

func BenchmarkFind(b *testing.B) {
	c := finalizers.Builtin()
	for _, bench := range []struct{ name, finalizer, kind string }{
		{"exact", "kubernetes.io/pvc-protection", "PersistentVolumeClaim"},
		{"form", "cephcluster.ceph.rook.io", "CephCluster.ceph.rook.io"},
		{"unknown", "example.com/cleanup", "Widget.example.com"},
	} {
		kind := schema.ParseGroupKind(bench.kind)
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Find(bench.finalizer, kind)
			}
		})
	}
}
