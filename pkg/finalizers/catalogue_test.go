// SPDX-License-Identifier: Apache-2.0

package finalizers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

func TestFind(t *testing.T) {
	for _, test := range []struct {
		name, finalizer, kind, want string
	}{
		{"exact", "foregroundDeletion", "Deployment.apps", "foregroundDeletion: Kubernetes, exact, of the kind"},
		{"unknown", "example.com/cleanup", "Widget.example.com", ""},
		{"empty", "", "Pod", ""},
		{"case counts", "ForegroundDeletion", "Pod", ""},
		{
			"exact before the forms, the closest of these first", "wrangler.cattle.io/on-helm-chart-remove", "HelmChart.helm.cattle.io",
			"wrangler.cattle.io/on-helm-chart-remove: k3s, exact, of the kind\n" +
				"wrangler.cattle.io/<handler>: wrangler (Rancher, Fleet, Harvester, k3s, RKE2), of the kind",
		},
		{
			"exact of another kind before the form of the kind", "deletion.finalizers.rabbitmqclusters.rabbitmq.com", "Queue.rabbitmq.com",
			"deletion.finalizers.rabbitmqclusters.rabbitmq.com: RabbitMQ cluster operator, exact\n" +
				"deletion.finalizers.<plural>.rabbitmq.com: RabbitMQ messaging topology operator",
		},
		{
			"provider before all providers", "awsmachine.infrastructure.cluster.x-k8s.io", "AWSMachine.infrastructure.cluster.x-k8s.io",
			"awsmachine.infrastructure.cluster.x-k8s.io: Cluster API provider AWS, exact, of the kind\n" +
				"*.infrastructure.cluster.x-k8s.io: Cluster API infrastructure provider, of the kind",
		},
		{
			"form of its kind", "cephblockpool.ceph.rook.io", "CephBlockPool.ceph.rook.io",
			"<kind>.ceph.rook.io: Rook, of the kind",
		},
		{"form of another kind", "cephcluster.ceph.rook.io", "CephBlockPool.ceph.rook.io", "<kind>.ceph.rook.io: Rook"},
		{"form, kind unknown", "cephcluster.ceph.rook.io", "", "<kind>.ceph.rook.io: Rook"},
		{"one label only", "a.b.ceph.rook.io", "CephCluster.ceph.rook.io", ""},
		{
			"generated reconciler", "brokers.eventing.knative.dev", "Broker.eventing.knative.dev",
			"<plural>.eventing.knative.dev: Knative Eventing, of the kind\n<plural>.<group>: knative/pkg (Knative, Tekton and others), of the kind",
		},
		{"not of another group", "brokers.eventing.knative.dev", "Broker.example.com", "<plural>.eventing.knative.dev: Knative Eventing"},
		{"plural and group of any kind", "policies.example.com", "Policy.example.com", "<plural>.<group>: knative/pkg (Knative, Tekton and others)"},
		{"no such plural", "cleanup.example.com", "Policy.example.com", ""},
		{"both prefixes", "clusterscoped.controller.cattle.io/grb-sync_c-1", "GlobalRoleBinding.management.cattle.io", "*controller.cattle.io/<handler>: Rancher, of the kind"},
		{"nothing behind the slash", "group.ingress.k8s.aws/", "Ingress.networking.k8s.io", ""},
		{"an operator's own prefix", "example.com/populate-target-protection", "PersistentVolumeClaim", "<prefix>/populate-target-protection: volume populator, of the kind"},
		{"a group under a domain", "finalizer.managedresource.crossplane.io", "Bucket.s3.aws.upbound.io", "finalizer.managedresource.crossplane.io: Crossplane, exact, of the kind"},
	} {
		t.Run(test.name, func(t *testing.T) {
			matches := finalizers.Builtin().Find(test.finalizer, schema.ParseGroupKind(test.kind))
			if diff := cmp.Diff(test.want, summaries(matches)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// One finalizer of three controllers: the kind says whose.
func TestFindByKind(t *testing.T) {
	for kind, want := range map[string]string{
		"Kustomization.kustomize.toolkit.fluxcd.io": "kustomize-controller",
		"HelmRelease.helm.toolkit.fluxcd.io":        "helm-controller",
		"GitRepository.source.toolkit.fluxcd.io":    "source-controller",
	} {
		matches := finalizers.Builtin().Find("finalizers.fluxcd.io", schema.ParseGroupKind(kind))
		if len(matches) != 3 || matches[0].Controller != want || !matches[0].KindFits || matches[1].KindFits {
			t.Errorf("%s:\n%s", kind, summaries(matches))
		}
	}
}

func TestPlaceholdersAreFilled(t *testing.T) {
	for _, test := range []struct {
		finalizer, kind string
		workloads       []finalizers.Workload
		leases          []finalizers.Lease
	}{
		{
			"finalizers.s3.services.k8s.aws/Bucket", "Bucket.s3.services.k8s.aws",
			[]finalizers.Workload{{Kind: "Deployment", Namespace: "ack-system", Name: "ack-s3-controller"}}, nil,
		},
		{
			"external-attacher/ebs-csi-aws-com", "VolumeAttachment.storage.k8s.io",
			nil, []finalizers.Lease{{Name: "external-attacher-leader-ebs-csi-aws-com"}},
		},
		{
			"strimzi.io/topic-operator", "KafkaTopic.kafka.strimzi.io",
			[]finalizers.Workload{{Kind: "Deployment", Namespace: finalizers.ObjectNamespace, Name: "my-entity-operator"}}, nil,
		},
		{
			"cnpg.io/deleteDatabase", "Database.postgresql.cnpg.io",
			[]finalizers.Workload{
				{Kind: "Cluster.postgresql.cnpg.io", Namespace: finalizers.ObjectNamespace, Name: "*"},
				{Kind: "Deployment", Namespace: "cnpg-system", Name: "cnpg-controller-manager"},
				{Kind: "Deployment", Namespace: finalizers.ObjectNamespace, Name: "cnpg-controller-manager"},
			}, nil,
		},
	} {
		// Twice: filling in must not change the catalogue.
		for range 2 {
			m := finalizers.Builtin().Find(test.finalizer, schema.ParseGroupKind(test.kind))[0]
			m = m.For(func(path string) string { return map[string]string{"metadata.labels.strimzi.io/cluster": "my"}[path] })
			if !slices.Equal(m.Workloads, test.workloads) || !slices.Equal(m.Leases, test.leases) || !m.KindFits {
				t.Errorf("%s: got %v %v", test.finalizer, m.Workloads, m.Leases)
			}
		}
	}
}

func TestNamedIsFilled(t *testing.T) {
	m := finalizers.Builtin().Find("metacontroller.io/compositecontroller-a.b", schema.GroupKind{Kind: "Pod"})[0]
	if m.Names != "compositecontrollers.metacontroller.k8s.io a.b" {
		t.Errorf("it names %q", m.Names)
	}
}

func TestIs(t *testing.T) {
	entity := finalizers.Workload{Kind: "Deployment", Namespace: finalizers.ObjectNamespace, Name: "*-entity-operator"}
	anywhere := finalizers.Workload{Name: "operator"}
	for _, test := range []struct {
		workload              finalizers.Workload
		kind, namespace, name string
		want                  bool
	}{
		{entity, "Deployment", "kafka", "prod-entity-operator", true},
		{entity, "Deployment", "other", "prod-entity-operator", false},
		{entity, "StatefulSet", "kafka", "prod-entity-operator", false},
		{entity, "Deployment", "kafka", "prod-kafka", false},
		{anywhere, "DaemonSet", "anywhere", "operator", true},
		{anywhere, "DaemonSet", "anywhere", "my-operator", false},
	} {
		if got := test.workload.Is(test.kind, test.namespace, test.name, "kafka"); got != test.want {
			t.Errorf("%v, %s %s/%s: got %v", test.workload, test.kind, test.namespace, test.name, got)
		}
		lease := finalizers.Lease{Namespace: test.workload.Namespace, Name: test.workload.Name}
		if got := lease.Is(test.namespace, test.name, "kafka"); got != test.want && test.kind != "StatefulSet" {
			t.Errorf("%v, %s/%s: got %v", lease, test.namespace, test.name, got)
		}
	}
}

func TestDomain(t *testing.T) {
	for finalizer, want := range map[string]string{
		"ceph.rook.io/disaster-protection": "ceph.rook.io",
		"cephcluster.ceph.rook.io":         "cephcluster.ceph.rook.io",
		"a.b/c/d":                          "a.b",
		"profile-finalizer":                "",
		"mongodbatlas/finalizer":           "",
		"foregroundDeletion":               "",
		"Example.com/x":                    "",
		"a..b/c":                           "",
		"/x.y":                             "",
		"":                                 "",
	} {
		if got := finalizers.Domain(finalizer); got != want {
			t.Errorf("%q: got %q, want %q", finalizer, got, want)
		}
	}
}

func load(t testing.TB, text string) *finalizers.Catalogue {
	t.Helper()
	c, err := finalizers.Load(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMerge(t *testing.T) {
	const own = `
product: ours
finalizers:
- finalizer: finalizers.fluxcd.io
  kinds: [HelmRelease.helm.toolkit.fluxcd.io]
- finalizer: finalizer.keda.sh
- finalizer: longhorn.io
  kinds: [Volume.longhorn.io]
- finalizer: <kind>.ceph.rook.io
  kinds: [CephCluster.ceph.rook.io, CephFilesystem.ceph.rook.io]
- finalizer: "*.example.com"
- finalizer: "*.infrastructure.cluster.x-k8s.io"
  kinds: ["*.x-k8s.io"]
`
	builtin := finalizers.Builtin()
	before := slices.Collect(builtin.Entries())
	user := load(t, own)
	merged := builtin.Merge(user)
	for _, test := range []struct{ name, finalizer, kind, want string }{
		{
			"takes the place of the entry for the kind alone", "finalizers.fluxcd.io", "HelmRelease.helm.toolkit.fluxcd.io",
			"finalizers.fluxcd.io: ours, exact, of the kind\nfinalizers.fluxcd.io: Flux, exact\nfinalizers.fluxcd.io: Flux, exact",
		},
		{
			"leaves other kinds alone", "finalizers.fluxcd.io", "Kustomization.kustomize.toolkit.fluxcd.io",
			"finalizers.fluxcd.io: Flux, exact, of the kind\nfinalizers.fluxcd.io: ours, exact\nfinalizers.fluxcd.io: Flux, exact",
		},
		{"any kind", "finalizer.keda.sh", "ScaledJob.keda.sh", "finalizer.keda.sh: ours, exact, of the kind"},
		{"comes first on its kind", "longhorn.io", "Volume.longhorn.io", "longhorn.io: ours, exact, of the kind\nlonghorn.io: Longhorn, exact, of the kind"},
		{"comes second on others", "longhorn.io", "Replica.longhorn.io", "longhorn.io: Longhorn, exact, of the kind\nlonghorn.io: ours, exact"},
		{"form", "cephcluster.ceph.rook.io", "CephCluster.ceph.rook.io", "<kind>.ceph.rook.io: ours, of the kind\n<kind>.ceph.rook.io: Rook, of the kind"},
		{"form in place of a form", "a.infrastructure.cluster.x-k8s.io", "A.infrastructure.cluster.x-k8s.io", "*.infrastructure.cluster.x-k8s.io: ours, of the kind"},
		{"form with more of its own", "widgets.example.com", "Widget.example.com", "*.example.com: ours, of the kind\n<plural>.<group>: knative/pkg (Knative, Tekton and others)"},
		{"the rest stays", "kubernetes.io/pvc-protection", "PersistentVolumeClaim", "kubernetes.io/pvc-protection: Kubernetes, exact, of the kind"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, summaries(merged.Find(test.finalizer, schema.ParseGroupKind(test.kind)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(before, slices.Collect(builtin.Entries())); diff != "" || merged.Len() != builtin.Len()+user.Len()-3 {
		t.Errorf("%d of %d and %d\n%s", merged.Len(), builtin.Len(), user.Len(), diff)
	}
}

// The last file that is merged wins, however many there are.
func TestMergeAgain(t *testing.T) {
	c := &finalizers.Catalogue{}
	for i := range 3 {
		c = c.Merge(load(t, fmt.Sprintf("finalizers: [{finalizer: a.b/c, product: p%d, kinds: [K%d, X]}]", i, i)))
	}
	want := "a.b/c: p2, exact, of the kind\na.b/c: p1, exact, of the kind\na.b/c: p0, exact, of the kind"
	if diff := cmp.Diff(want, summaries(c.Find("a.b/c", schema.GroupKind{Kind: "X"}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	lower := load(t, "finalizers: [{finalizer: a.b/c, product: lowest, kinds: [X, Z]}]").Merge(c)
	if got := lower.Find("a.b/c", schema.GroupKind{Kind: "X"}); len(got) != 4 || got[0].Product != "p2" || got[3].Product != "lowest" {
		t.Errorf("got\n%s", summaries(got))
	}
}

// The words that finalizers, forms and kinds are drawn from are few, so that
// they meet.
var (
	drawnName  = rapid.SampledFrom([]string{"a.example.com", "widgets.example.com", "widget.example.com", "a.example.com/b", "b.c/d", "ab.c/d"})
	drawnForm  = rapid.SampledFrom([]string{"*.example.com", "<kind>.example.com", "<plural>.<group>", "<x>.c/d", "*b.c/<y>", "a.example.com/*", "a*.example.com/b"})
	drawnKind  = rapid.SampledFrom([]string{"Widget.example.com", "Gadget.example.com", "Pod", "", "Widget.other.io"})
	drawnKinds = rapid.SampledFrom([]string{"", "Widget.example.com", "*.example.com", "Pod, Gadget.example.com", "Widget.*"})
)

// drawLines draws the entries of a file that has no duplicates.
func drawLines(t *rapid.T) []string {
	names := rapid.SliceOfDistinct(rapid.OneOf(drawnName, drawnForm), rapid.ID[string]).Draw(t, "finalizers")
	var lines []string
	for i, name := range names {
		lines = append(lines, fmt.Sprintf("- {finalizer: %q, product: p%d, kinds: [%s]}", name, i, quoted(drawnKinds.Draw(t, "kinds"))))
	}
	return lines
}

func quoted(kinds string) string {
	if kinds == "" {
		return ""
	}
	return `"` + strings.ReplaceAll(kinds, ", ", `", "`) + `"`
}

func file(lines []string) string { return "finalizers:\n" + strings.Join(lines, "\n") + "\n" }

// What is found does not depend on the order of entries, and is ordered: exact
// entries before forms, and in both those of the kind before others.
func TestFindIsOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := drawLines(t)
		if len(lines) == 0 {
			return
		}
		builtin := finalizers.Builtin()
		c := builtin.Merge(mustLoad(t, file(lines)))
		shuffled := builtin.Merge(mustLoad(t, file(rapid.Permutation(lines).Draw(t, "order"))))
		finalizer, kind := drawnName.Draw(t, "finalizer"), schema.ParseGroupKind(drawnKind.Draw(t, "kind"))
		matches := c.Find(finalizer, kind)
		if diff := cmp.Diff(matches, shuffled.Find(finalizer, kind)); diff != "" {
			t.Fatalf("in another order:\n%s", diff)
		}
		rank := func(m finalizers.Match) int {
			switch {
			case m.Exact && m.KindFits:
				return 0
			case m.Exact:
				return 1
			case m.KindFits:
				return 2
			default:
				return 3
			}
		}
		if !slices.IsSortedFunc(matches, func(a, b finalizers.Match) int { return rank(a) - rank(b) }) {
			t.Fatalf("got\n%s", summaries(matches))
		}
		for _, m := range matches {
			if m.Exact != (m.Finalizer == finalizer) || m.KindFits && kind.Empty() {
				t.Fatalf("got\n%s", summaries(matches))
			}
		}
	})
}

// Whatever stands in for the wildcards of a form is found by it, and exact
// entries for that go before it.
func TestFormsAreFound(t *testing.T) {
	label := rapid.StringMatching(`[a-z]([a-z0-9-]{0,6}[a-z0-9])?`)
	var forms []finalizers.Entry
	for e := range finalizers.Builtin().Entries() {
		if strings.ContainsAny(e.Finalizer, "*<") && !strings.Contains(e.Finalizer, "<group>") {
			forms = append(forms, e)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		form := rapid.SampledFrom(forms).Draw(t, "form")
		name := form.Finalizer
		for strings.ContainsAny(name, "*<") {
			start := strings.IndexAny(name, "*<")
			end := start + 1
			if name[start] == '<' {
				end = strings.Index(name, ">") + 1
			}
			name = name[:start] + label.Draw(t, "label") + name[end:]
		}
		isForm := func(m finalizers.Match) bool { return m.Finalizer == form.Finalizer && !m.Exact }
		if matches := finalizers.Builtin().Find(name, schema.GroupKind{}); !slices.ContainsFunc(matches, isForm) {
			t.Fatalf("%s: got\n%s", name, summaries(matches))
		}
		c := finalizers.Builtin().Merge(mustLoad(t, fmt.Sprintf("finalizers: [{finalizer: %q, product: ours}]", name)))
		if matches := c.Find(name, schema.GroupKind{}); !matches[0].Exact || matches[0].Product != "ours" || !slices.ContainsFunc(matches, isForm) {
			t.Fatalf("%s: got\n%s", name, summaries(matches))
		}
	})
}

func mustLoad(t *rapid.T, text string) *finalizers.Catalogue {
	c, err := finalizers.Load(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func FuzzFind(f *testing.F) {
	for e := range finalizers.Builtin().Entries() {
		f.Add(e.Finalizer, "Widget", "example.com")
	}
	f.Add("widgets.example.com", "Widget", "example.com")
	f.Add("[a/\xff", "", "")
	c := finalizers.Builtin().Merge(load(f, `finalizers: [{finalizer: "<x>-<y>.a/*", product: p, workloads: [{name: "<x>*"}], leases: [{name: "<y>"}]}]`))
	f.Fuzz(func(t *testing.T, finalizer, kind, group string) {
		for i, m := range c.Find(finalizer, schema.GroupKind{Group: group, Kind: kind}) {
			if m.Exact && m.Finalizer != finalizer || m.Exact && i > 3 {
				t.Errorf("%q: match %d is %s", finalizer, i, m.Finalizer)
			}
			for _, w := range m.Workloads {
				w.Is("Deployment", "x", finalizer, "y")
			}
		}
		finalizers.Domain(finalizer)
	})
}
