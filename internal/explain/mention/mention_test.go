// SPDX-License-Identifier: Apache-2.0

package mention

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestSurest: how sure it is that an object of the namespace s names another of it, and where.
func TestSurest(t *testing.T) {
	of := func(group, kind, resource string) *Target {
		gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
		return To(graph.Identity{Resource: graph.Resource{GroupVersionResource: gvr, Kind: kind, Namespaced: true}, Namespace: "s", Name: "x"})
	}
	space := of("", "Namespace", "namespaces")
	space.Namespace, space.full = "", nil
	secret, cluster := of("", "Secret", "secrets"), of("db.example.com", "Cluster", "clusters")
	for _, test := range []struct {
		target *Target
		object string
		path   string
		sure   Sure
	}{
		{secret, `{"spec":{"a":[{"kind":"Secret","name":"x"}]}}`, "spec.a[0].name", Stated},
		{secret, `{"spec":{"a":{"kind":"Secret","name":"x","apiGroup":"other.example.com"}}}`, "", No},
		{secret, `{"spec":{"a":{"kind":"Secret","name":"x","namespace":"t"}}}`, "", No},
		{secret, `{"spec":{"a":{"resource":"secrets","name":"x"}}}`, "spec.a.name", Stated},
		{secret, `{"spec":{"a":{"resource":"secret","name":"x"},"b":{"kind":"ConfigMap","name":"x"}}}`, "spec.a.name", Stated},
		{secret, `{"spec":{"a":{"kind":"SECRET","name":"x"}}}`, "spec.a.name", Stated},
		{secret, `{"spec":{"a":{"kind":"basic","name":"x"}}}`, "spec.a.name", Text},
		{secret, `{"spec":{"a":{"group":"core","kind":"Secret","name":"x"}}}`, "spec.a.name", Stated},
		{secret, `{"spec":{"manifest":{"kind":"Secret","metadata":{"name":"x"}}}}`, "spec.manifest.metadata.name", Text},
		{secret, `{"status":{"inventory":{"entries":[{"id":"s_x__Secret"},{"id":"s_y__Secret"}]}}}`, "status.inventory.entries[0].id", Stated},
		{secret, `{"spec":{"map":{"s/x":{}}}}`, "spec.map.s/x", Text},
		{secret, `{"spec":{"transport":{"tls":{"secretName":"x"}},"port":"x","container":"x"}}`, "spec.transport.tls.secretName", Called},
		{secret, `{"spec":{"image":{"pullSecretName":"x"},"nodeSelector":{"a":"x"}}}`, "spec.image.pullSecretName", Near},
		{secret, `{"spec":{"env":[{"kind":"Secret","name":"x"}],"volumes":[{"name":"x"}]}}`, "spec.env[0].name", Stated},
		{secret, `{"spec":{"volumes":[{"type":"Secret","name":"x"}]}}`, "spec.volumes[0].name", Text},
		{secret, `{"spec":{"a":{"kind":"core/v1/Secret","name":"x"},"b":{"kind":"ConfigMap","name":"x"}}}`, "spec.a.name", Text},
		{secret, `{"spec":{"a":{"resource":"v1/secrets","name":"x"}}}`, "spec.a.name", Text},
		{secret, `{"spec":{"a":{"apiGroup":"v1","kind":"Secret","name":"x"}}}`, "spec.a.name", Text},
		{secret, `{"spec":{"tokenSecretRef":{"name":"x","key":"k"}}}`, "spec.tokenSecretRef.name", Field},
		{secret, `{"spec":{"env":[{"valueFrom":{"secretKeyRef":{"name":"x"}}}]}}`, "spec.env[0].valueFrom.secretKeyRef.name", Field},
		{secret, `{"spec":{"githubConfigSecret":"x"}}`, "spec.githubConfigSecret", Field},
		{secret, `{"spec":{"targetSecretRef":{"name":"x"}}}`, "spec.targetSecretRef.name", Called},
		{secret, `{"spec":{"secretName":"x"}}`, "spec.secretName", Called},
		{secret, `{"spec":{"secret":{"name":"x"}}}`, "spec.secret.name", Called},
		{secret, `{"spec":{"pullSecrets":["x"]}}`, "spec.pullSecrets[0]", Near},
		{secret, `{"spec":{"existing":"x"}}`, "spec.existing", Text},
		{secret, `{"data":{"x":"1"}}`, "data.x", Text},
		{secret, `{"spec":{"args":["--tls=x"]}}`, "spec.args[0]", Text},
		{secret, `{"spec":{"args":["--tls=a-x"],"configMapName":"x","selector":{"a":"x"},"volumes":[{"name":"x"}]},"metadata":{"labels":{"a":"x"},"name":"x"}}`, "", No},
		{secret, `{"metadata":{"namespace":"t"},"spec":{"secretRef":{"name":"x"},"a":{"kind":"Secret","name":"x"}}}`, "", No},
		{secret, `{"metadata":{"namespace":"t"},"spec":{"secretRef":{"name":"x","namespace":"s"}}}`, "spec.secretRef.name", Field},
		{secret, `{"metadata":{"namespace":"t"},"spec":{"namespace":"s","secretRef":{"name":"x"}}}`, "spec.secretRef.name", Text},
		{secret, `{"metadata":{"namespace":"t"},"spec":{"tenant":"s","a":{"kind":"Secret","name":"x"}}}`, "spec.a.name", Text},
		{secret, `{"metadata":{"namespace":"t"},"spec":{"namespaces":["s"],"items":[{"secretName":"x"}]}}`, "spec.items[0].secretName", Text},
		{secret, `{"metadata":{"namespace":"t"},"spec":{"args":["--namespace=s","--tls=x"]}}`, "spec.args[1]", Text},
		{secret, `{"metadata":{"namespace":"t"},"spec":{"namespace":"s","map":{"x":{}}}}`, "spec.map.x", Text},
		{secret, `{"metadata":{"namespace":"t"},"spec":{"secretNamespace":"s","secretName":"x"}}`, "spec.secretName", Called},
		{secret, `{"metadata":{"namespace":"t"},"spec":{"namespace":"s-1","secretRef":{"name":"x"},"a":{"namespace":"u","name":"x"},"configMapName":"x"}}`, "", No},
		{secret, `{"spec":{"namespace":"x","namespaces":["x"]}}`, "", No},
		{space, `{"spec":{"a":{"kind":"Namespace","name":"x"}}}`, "spec.a.name", Stated},
		{space, `{"spec":{"args":["--watch-namespace=x","--app=x"]}}`, "spec.args[0]", Text},
		{space, `{"spec":{"env":[{"name":"APP","value":"x"},{"name":"WATCH_NAMESPACE","value":"x"}]}}`, "spec.env[1].value", Text},
		{space, `{"spec":{"targetNamespace":"x"}}`, "spec.targetNamespace", Called},
		{space, `{"spec":{"watchNamespaces":["y","x"]}}`, "spec.watchNamespaces[1]", Called},
		{space, `{"spec":{"destination":{"namespace":"x","server":"y"}}}`, "spec.destination.namespace", Called},
		{space, `{"spec":{"a":{"namespace":"x","name":"y"}}}`, "spec.a.namespace", Text},
		{space, `{"spec":{"namespaceSelector":{"matchNames":["x"]},"namespaces":[{"name":"y"}]}}`, "spec.namespaceSelector.matchNames[0]", Text},
		{space, `{"metadata":{"namespace":"x","name":"x"},"spec":{"app":"x","a":{"kind":"Secret","name":"x"},"secretRef":{"name":"x"},"namespaced":"x-y"}}`, "", No},
		{cluster, `{"spec":{"clusterName":"x","target":"x"}}`, "spec.clusterName", Called},
		{cluster, `{"spec":{"cluster":{"name":"x"}}}`, "spec.cluster.name", Called},
		{cluster, `{"spec":{"targetClusterName":"x"}}`, "spec.targetClusterName", Near},
	} {
		var reader Reader
		n, sure := test.target.Surest(reader.In(read(t, test.object)))
		path := ""
		if n != nil {
			path = n.Path
		}
		if path != test.path || sure != test.sure {
			t.Errorf("%s in %s: %q, %d; want %q, %d", test.target.Identity, test.object, path, sure, test.path, test.sure)
		}
	}
}

// TestKinds: of which kind the field says that a name is, for who asks what an object names.
func TestKinds(t *testing.T) {
	want := map[string]string{
		"spec.storeRefs.name": "Store", "spec.nodeClassRef.name": "EC2NodeClass", "spec.passwordSecretKeyRef.name": "Secret", "spec.gatewayClassName": "GatewayClass",
		"spec.cluster.name": "Cluster", "spec.configMap.name": "ConfigMap", "spec.writeToRef.name": "WriteTo", "spec.free": "",
	}
	var reader Reader
	for n := range reader.In(read(t, `{"spec":{"storeRefs":[{"name":"a"}],"nodeClassRef":{"kind":"EC2NodeClass","name":"b"},"passwordSecretKeyRef":{"name":"c","optional":true},
		"gatewayClassName":"d","cluster":{"name":"e"},"configMap":{"name":"f"},"writeToRef":{"name":"g"},"free":"h"}}`)) {
		if n.isKey {
			continue
		}
		if kind, known := want[n.Field()]; !known || kind != n.Kind || !n.InSpec() || n.Optional != (n.Text == "c") {
			t.Errorf("%s: %q, optional %t; want %q", n.Field(), n.Kind, n.Optional, kind)
		}
		delete(want, n.Field())
	}
	for field := range want {
		t.Errorf("%s was not read", field)
	}
}
