// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// tableOf returns a table with one row: "NAME=web READY=1/1", and the object of
// the row.
func tableOf(cells, object string) string {
	var columns, values []string
	for _, cell := range strings.Fields(cells) {
		name, value, _ := strings.Cut(cell, "=")
		columns = append(columns, fmt.Sprintf(`{"name": %q, "type": "string"}`, name))
		if strings.Trim(value, "0123456789") != "" {
			value = fmt.Sprintf("%q", value)
		}
		values = append(values, strings.ReplaceAll(value, `"null"`, "null"))
	}
	if object == "" {
		object = "{}"
	}
	return fmt.Sprintf(`{"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": [%s], "rows": [{"cells": [%s], "object": %s}]}`,
		strings.Join(columns, ","), strings.Join(values, ","), object)
}

// What READY and STATUS are, from what kubectl get would print.
func TestStatuses(t *testing.T) {
	const path = "/apis/example.com/v1/namespaces/shop/widgets/w"
	conditions := func(conditions ...string) string {
		var list []string
		for _, c := range conditions {
			f := strings.Split(c, "=")
			list = append(list, fmt.Sprintf(`{"type": %q, "status": %q, "reason": %q}`, f[0], f[1], f[2]))
		}
		return `{"status": {"conditions": [` + strings.Join(list, ",") + `]}}`
	}
	for _, test := range []struct{ name, body, want string }{
		{"pod", tableOf("Name=web Ready=1/2 Status=CrashLoopBackOff Restarts=5", ""), "1/2 CrashLoopBackOff"},
		{"deployment", tableOf("Name=web Ready=2/3 Up-to-date=3", ""), "2/3 "},
		{"replica set: READY is a number", tableOf("Name=web Desired=3 Current=3 Ready=2", ""), "2/3 "},
		{"nothing is ready of what is desired", tableOf("Name=web Desired=3", ""), " "},
		{"job", tableOf("Name=web Status=Running Completions=0/1", ""), "0/1 Running"},
		{"completions do not replace READY", tableOf("Ready=1/1 Completions=0/1", ""), "1/1 "},
		{"namespace: a phase", tableOf("Phase=Active", ""), " Active"},
		{"a status and a phase", tableOf("Status=Bound Phase=Active", ""), " Bound"},
		{"an empty cell", tableOf("Ready=null Status=Bound", ""), " Bound"},
		{"a condition", tableOf("Name=w", conditions("Synced=True=ok", "Ready=False=Failing")), "False Failing"},
		{"another condition", tableOf("Name=w", conditions("Available=True=")), "True "},
		{"both", tableOf("Name=w", conditions("Available=True=Up", "Ready=False=Failing")), "False Failing"},
		{"columns before conditions", tableOf("Status=Odd", conditions("Ready=True=Fine")), " Odd"},
		{"neither", tableOf("Name=w Age=5m", conditions("Synced=True=ok")), " "},
		{"conditions that are none", tableOf("Name=w", `{"status": {"conditions": ["Ready", {"type": 1}]}}`), " "},
		{"an object that is none", tableOf("Name=w", `"w"`), " "},
		{"no row", `{"kind": "Table", "apiVersion": "meta.k8s.io/v1", "rows": []}`, " "},
		{"a server that knows no tables", `{"kind": "Widget", "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Old"}]}}`, "True Old"},
		{"fewer cells than columns", `{"kind": "Table", "columnDefinitions": [{"name": "Ready"}, {"name": "Status"}], "rows": [{"cells": ["1/1"], "object": {}}]}`, "1/1 "},
	} {
		s := newAPIServer(t)
		s.add("widgets shop/w")
		s.raw[path] = test.body
		r := s.reader(Options{})
		o := found(t, s.snapshot(r, Scope{}), "w")
		statuses, failures := r.Statuses(t.Context(), []*graph.Object{&o})
		if got := statuses["w"].Ready + " " + statuses["w"].Status; got != test.want || len(failures) > 0 {
			t.Errorf("%s: got %q, want %q; failures %v", test.name, got, test.want, failures)
		}
	}
}

// Content crosses the wire for custom resources only, and nothing is asked for
// what has no state.
func TestStatusRequests(t *testing.T) {
	s := newAPIServer(t)
	s.add(`pods shop/p
		pods shop/gone
		pods shop/forbidden
		configmaps shop/c
		deployments shop/d
		widgets shop/w
		gizmos g
		nodes n`)
	for _, path := range []string{
		"/api/v1/namespaces/shop/pods/p", "/apis/example.com/v1/namespaces/shop/widgets/w", "/apis/example.com/v1beta1/gizmos/g", "/api/v1/nodes/n",
	} {
		s.raw[path] = tableOf("Ready=1/1", "")
	}
	s.raw["/apis/apps/v1/namespaces/shop/deployments/d"] = "this is no JSON"
	s.on("GET", "/api/v1/namespaces/shop/pods/forbidden", always, forbidden())
	r := s.reader(Options{})
	var objects []*graph.Object
	for o := range s.snapshot(r, Scope{}).Objects() {
		objects = append(objects, &o)
	}
	s.remove("gone")
	before := len(s.log)
	statuses, failures := r.Statuses(t.Context(), objects)
	var got []string
	for uid := range statuses {
		got = append(got, string(uid))
	}
	slices.Sort(got)
	if strings.Join(got, " ") != "g n p w" {
		t.Errorf("statuses of %s", got)
	}
	if len(failures) != 2 || failures["pods"] == nil || !strings.HasPrefix(failures["deployments.apps"].Error(), "reading the table of Deployment/shop/d: ") {
		t.Errorf("failures %v", failures)
	}
	var asked []string
	for _, request := range s.log[before:] {
		asked = append(asked, request.path+" "+strings.Split(request.query, "&")[0])
		if request.accept != "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" {
			t.Errorf("accepts %s", request.accept)
		}
	}
	slices.Sort(asked)
	same(t, "asked", `/api/v1/namespaces/shop/pods/forbidden includeObject=Metadata
		/api/v1/namespaces/shop/pods/gone includeObject=Metadata
		/api/v1/namespaces/shop/pods/p includeObject=Metadata
		/api/v1/nodes/n includeObject=Metadata
		/apis/apps/v1/namespaces/shop/deployments/d includeObject=Metadata
		/apis/example.com/v1/namespaces/shop/widgets/w includeObject=Object
		/apis/example.com/v1beta1/gizmos/g includeObject=Object`, asked)
}

const podBody = `{
	"metadata": {"name": "%[1]s", "uid": "%[1]s", "annotations": {%[4]s}},
	"spec": {"nodeName": "%[2]s", "terminationGracePeriodSeconds": 30, "containers": [{}],
		"volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "own", "ephemeral": {"volumeClaimTemplate": {}}}]},
	"status": {"phase": "%[3]s"}}`

func nodeBody(ready string) string {
	return fmt.Sprintf(`{"metadata": {"name": "n"}, "status": {"conditions": [{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": %q}]}}`, ready)
}

// What a prediction needs beyond metadata. What cannot be read, or is another
// object by now, is missing.
func TestFacts(t *testing.T) {
	s := newAPIServer(t)
	s.add(`pods shop/plain
		pods shop/mirror
		pods shop/pending
		pods shop/forbidden
		pods shop/recreated uid=old
		pods shop/gone
		namespaces shop
		namespaces recreated uid=old
		namespaces forbidden
		configmaps shop/c`)
	pods := "/api/v1/namespaces/shop/pods/"
	s.raw[pods+"plain"] = fmt.Sprintf(podBody, "plain", "ready", "Running", "")
	s.raw[pods+"mirror"] = fmt.Sprintf(podBody, "mirror", "silent", "Failed", `"kubernetes.io/config.mirror": "x"`)
	s.raw[pods+"pending"] = fmt.Sprintf(podBody, "pending", "", "Pending", `"other": "x"`)
	s.raw[pods+"recreated"] = fmt.Sprintf(podBody, "new", "lost", "Running", "")
	s.on("GET", pods+"forbidden", always, forbidden())
	s.raw["/api/v1/nodes/ready"], s.raw["/api/v1/nodes/silent"] = nodeBody("True"), nodeBody("Unknown")
	s.raw["/api/v1/namespaces/shop"] = `{"metadata": {"uid": "shop"}, "spec": {"finalizers": ["kubernetes", "example.com/x"]}}`
	s.raw["/api/v1/namespaces/recreated"] = `{"metadata": {"uid": "new"}, "spec": {"finalizers": ["kubernetes"]}}`
	s.on("GET", "/api/v1/namespaces/forbidden", always, forbidden())
	r := s.reader(Options{})
	var objects []graph.Object
	for o := range s.snapshot(r, Scope{}).Objects() {
		objects = append(objects, o)
	}
	for name, status := range map[string]string{"bound": "Bound", "released": "Released"} {
		resource := graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}, Kind: "PersistentVolume"}
		objects = append(objects, graph.Object{Resource: &resource, Name: name, UID: types.UID(name)})
		s.raw["/api/v1/persistentvolumes/"+name] = fmt.Sprintf(`{"metadata": {"uid": %q}, "spec": {"claimRef": {"uid": "c"}}, "status": {"phase": %q}}`, name, status)
	}
	s.remove("gone")
	before := len(s.log)
	want := graph.Facts{
		Pods: map[types.UID]graph.PodFacts{
			"plain":   {NodeName: "ready", Phase: "Running", TerminationGracePeriodSeconds: 30, Claims: []string{"data", "plain-own"}},
			"mirror":  {NodeName: "silent", Phase: "Failed", TerminationGracePeriodSeconds: 30, Mirror: true, Claims: []string{"data", "mirror-own"}},
			"pending": {Phase: "Pending", TerminationGracePeriodSeconds: 30, Claims: []string{"data", "pending-own"}},
		},
		Namespaces: map[types.UID]graph.NamespaceFacts{"shop": {Finalizers: []string{"kubernetes", "example.com/x"}}},
		CRDs:       map[types.UID]graph.CRDFacts{},
		Volumes:    map[types.UID]types.UID{"bound": "c", "released": ""},
		Nodes:      map[string]bool{"ready": true, "silent": false}, NodesRead: true,
	}
	if diff := cmp.Diff(want, r.Facts(t.Context(), &graph.Snapshot{}, objects)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, request := range s.log[before:] {
		if request.accept != "application/json" || placeOf(request.path).name == "" || placeOf(request.path).resource == "configmaps" {
			t.Errorf("asked for %s, accepting %s", request.path, request.accept)
		}
	}
}

// A node that does not exist is one thing, one that cannot be read another.
func TestNodeFacts(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		body   string
		want   string
	}{
		{"reports", nil, nodeBody("True"), "map[n:true] true"},
		{"does not report", nil, nodeBody("False"), "map[n:false] true"},
		{"says nothing", nil, `{"metadata": {"name": "n"}}`, "map[n:false] true"},
		{"does not exist", status(http.StatusNotFound, metav1.StatusReasonNotFound), "", "map[] true"},
		{"cannot be read", forbidden(), "", "map[] false"},
		{"a proxy's 404", unknownPath, "", "map[] false"},
		{"no JSON", nil, "n", "map[] false"},
	} {
		s := newAPIServer(t)
		s.add("pods shop/p")
		s.raw["/api/v1/namespaces/shop/pods/p"] = fmt.Sprintf(podBody, "p", "n", "Running", "")
		s.raw["/api/v1/nodes/n"] = test.body
		if test.answer != nil {
			s.on("GET", "/api/v1/nodes/n", always, test.answer)
		}
		r := s.reader(Options{})
		f := r.Facts(t.Context(), &graph.Snapshot{}, []graph.Object{found(t, s.snapshot(r, Scope{}), "p")})
		if got := fmt.Sprint(f.Nodes, f.NodesRead); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// Many pods are listed with their namespace, page by page, instead of read one
// by one.
func TestManyPodFacts(t *testing.T) {
	s := newAPIServer(t)
	for i := range maxGets + 1 {
		s.add(fmt.Sprintf("pods shop/p%d\npods other/q%d\npods failing/r%d", i, i, i))
	}
	r := s.reader(Options{PageSize: DefaultPageSize})
	var objects []graph.Object
	for o := range s.snapshot(r, Scope{}).Objects() {
		objects = append(objects, o)
	}
	page := func(pods, token string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": %q}, "items": [%s]}`, token, pods)
		}
	}
	body := func(name string) string { return fmt.Sprintf(podBody, name, "n", "Running", "") }
	s.on("GET", "/api/v1/namespaces/shop/pods", 1, page(body("p0")+","+body("p1"), "next"))
	s.on("GET", "/api/v1/namespaces/shop/pods", 1, page(body("p2"), ""))
	s.on("GET", "/api/v1/namespaces/other/pods", 1, page(body("q0"), "next"))
	s.on("GET", "/api/v1/namespaces/other/pods", 1, forbidden())
	s.on("GET", "/api/v1/namespaces/failing/pods", 1, forbidden())
	f := r.Facts(t.Context(), &graph.Snapshot{}, objects)
	var got []string
	for uid := range f.Pods {
		got = append(got, string(uid))
	}
	slices.Sort(got)
	if strings.Join(got, " ") != "p0 p1 p2 q0" {
		t.Errorf("pods %s", got)
	}
	same(t, "asked", "/api/v1/namespaces/shop/pods?limit=500\n/api/v1/namespaces/shop/pods?continue=next&limit=500",
		s.asked("GET", "/api/v1/namespaces/shop"))
	if f.NodesRead != true || len(s.asked("GET", "/api/v1/nodes/")) != 1 {
		t.Errorf("nodes read %t, asked %s", f.NodesRead, s.asked("GET", "/api/v1/nodes/"))
	}
}

// Pods are listed where most are wanted, and read alone among many others.
func TestReadings(t *testing.T) {
	many := func(namespaces, pods int) map[string]int {
		all := map[string]int{}
		for i := range namespaces {
			all[fmt.Sprint("ns", i)] = pods
		}
		return all
	}
	claims := many(120, 1)
	for i := range 4 {
		claims[fmt.Sprint("ns", i)] = 500
	}
	for _, test := range []struct {
		about         string
		wanted, there map[string]int
		alone         int
		everywhere    bool
	}{
		{"one in each of many, all of four", claims, many(200, 500), 116, false},
		{"one in each of too many", many(200, 1), many(200, 500), 0, true},
		{"some of few namespaces", many(maxLists, 100), many(maxLists, 500), 0, false},
		{"some of each", many(100, 100), many(100, 500), 0, true},
		{"some of a small part", many(100, 100), many(300, 500), 0, false},
		{"none was counted", many(3, 51), nil, 0, false},
	} {
		if alone, everywhere := readings(test.wanted, test.there); len(alone) != test.alone || everywhere != test.everywhere {
			t.Errorf("%s: %d namespaces alone, everywhere %t", test.about, len(alone), everywhere)
		}
	}
}

// Pods of many namespaces, a few in each, many nodes, namespaces and definitions take one list each; and where
// pods may not be listed everywhere, those of each namespace.
func TestManyFacts(t *testing.T) {
	for _, refused := range []bool{false, true} {
		s := newAPIServer(t)
		var pods, nodes, namespaces, crds []string
		for i := range maxGets + 1 {
			s.add(fmt.Sprintf("pods ns%d/p%d\nnamespaces ns%d\ncustomresourcedefinitions c%d", i, i, i, i))
			node := fmt.Sprintf("n%d", i)
			pods = append(pods, fmt.Sprintf(podBody, fmt.Sprintf("p%d", i), node, "Running", ""))
			nodes = append(nodes, fmt.Sprintf(`{"metadata": {"name": %q}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}`, node))
			namespaces = append(namespaces, fmt.Sprintf(`{"metadata": {"name": "ns%d", "uid": "ns%d"}, "spec": {"finalizers": ["kubernetes"]}}`, i, i))
			crds = append(crds, fmt.Sprintf(`{"metadata": {"uid": "c%d"}, "spec": {"group": "g", "names": {"plural": "p"}}}`, i))
		}
		list := func(kind string, items []string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"kind": %q, "apiVersion": "v1", "metadata": {}, "items": [%s]}`, kind, strings.Join(items, ","))
			}
		}
		r := s.reader(Options{PageSize: DefaultPageSize})
		var objects []graph.Object
		for o := range s.snapshot(r, Scope{}).Objects() {
			objects = append(objects, o)
		}
		for i := range maxGets + 1 {
			objects = append(objects, graph.Object{Resource: &definitions, Name: fmt.Sprintf("c%d", i), UID: types.UID(fmt.Sprintf("c%d", i))})
		}
		s.on("GET", "/api/v1/nodes", always, list("NodeList", nodes))
		s.on("GET", "/api/v1/namespaces", always, list("NamespaceList", namespaces))
		s.on("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", always, list("CustomResourceDefinitionList", crds))
		if s.on("GET", "/api/v1/pods", always, list("PodList", pods)); refused {
			s.rules[len(s.rules)-1].answer = forbidden()
			for i := range pods {
				s.on("GET", fmt.Sprintf("/api/v1/namespaces/ns%d/pods", i), always, list("PodList", pods[i:i+1]))
			}
		}
		before := len(s.log)
		f := r.Facts(t.Context(), &graph.Snapshot{}, objects)
		if len(f.Pods) != len(pods) || len(f.Nodes) != len(nodes) || !f.NodesRead || len(f.Namespaces) != len(namespaces) || len(f.CRDs) != len(crds) {
			t.Errorf("refused: %t: %d pods, %d nodes, %d namespaces, %d definitions", refused, len(f.Pods), len(f.Nodes), len(f.Namespaces), len(f.CRDs))
		}
		want := 4
		if refused {
			want += len(pods)
		}
		if n := len(s.log) - before; n != want {
			t.Errorf("refused: %t: %d requests, want %d", refused, n, want)
		}
	}
}

func TestCRDFacts(t *testing.T) {
	const crd = `{"metadata": {"uid": "%s"}, "spec": {"group": "example.com", "names": {"plural": "widgets"}},
		"status": {"conditions": [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": %q}]}}`
	for _, test := range []struct{ name, body, want string }{
		{"established", fmt.Sprintf(crd, "widgets.example.com", "True"), "map[widgets.example.com:{example.com widgets true}]"},
		{"not established", fmt.Sprintf(crd, "widgets.example.com", "False"), "map[widgets.example.com:{example.com widgets false}]"},
		{"another one", fmt.Sprintf(crd, "new", "True"), "map[]"},
		{"nothing", "", "map[]"},
	} {
		s := newAPIServer(t)
		s.raw["/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"] = test.body
		s.add("customresourcedefinitions widgets.example.com")
		resource := graph.Resource{GroupVersionResource: s.objects[0].served.WithResource("customresourcedefinitions"), Kind: "CustomResourceDefinition"}
		f := s.reader(Options{}).Facts(t.Context(), &graph.Snapshot{}, []graph.Object{graph.NewObject(&resource, &s.objects[0].PartialObjectMetadata)})
		if got := fmt.Sprint(f.CRDs); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// The controller manager is alive when somebody holds its lease and renews it.
func TestControllerManagerAlive(t *testing.T) {
	lease := func(age time.Duration, holder string) string {
		return fmt.Sprintf(`{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": %q, "leaseDurationSeconds": 15, "renewTime": %q}}`,
			holder, time.Now().Add(-age).UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
	}
	for _, test := range []struct {
		name, body string
		want       bool
	}{
		{"renewed just now", lease(0, "me"), true},
		{"renewed by a clock that is ahead", lease(-time.Minute, "me"), true},
		{"renewed within the margin", lease(35*time.Second, "me"), true},
		{"not renewed within the margin", lease(45*time.Second, "me"), false},
		{"not renewed any more", lease(time.Hour, "me"), false},
		{"given up", lease(0, ""), false},
		{"never held", `{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "me"}}`, false},
		{"no lease", "", false},
	} {
		s := newAPIServer(t)
		if test.body != "" {
			s.raw["/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"] = test.body
		}
		if got := s.reader(Options{}).ControllerManagerAlive(t.Context(), time.Now()); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}

// The pages of a list grow while they come fast, and shrink when they come slowly.
func TestPageSize(t *testing.T) {
	size := pageSize(0)
	for _, page := range []struct {
		objects int64
		took    time.Duration
	}{
		{500, 9 * time.Second}, {500, 500 * time.Millisecond}, {500, 499 * time.Millisecond},
		{1000, 0}, {2000, 5 * time.Second}, {2000, 0}, {4000, 0}, {8000, 0},
		{8000, 5001 * time.Millisecond}, {4000, time.Minute}, {2000, time.Minute}, {1000, time.Minute},
		{500, time.Minute}, {500, time.Second},
	} {
		if size.objects() != page.objects {
			t.Fatalf("a page of %d objects, want %d, which then took %s", size.objects(), page.objects, page.took)
		}
		size = size.after(page.took)
	}
}

// Of parts of a cluster nothing else is listed, and no owner is read besides; nothing is said to be absent
// of what was not read.
func TestPartsOfACluster(t *testing.T) {
	s := newAPIServer(t)
	s.add("configmaps shop/a\nconfigmaps other/b\npods shop/p\npods other/q")
	pods, maps := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "configmaps"}
	got := s.snapshot(s.reader(Options{PageSize: DefaultPageSize}), Scope{Parts: graph.Parts{
		{Resource: maps, Namespace: "shop"}, {Resource: pods, Labels: "!app"}, {Resource: schema.GroupResource{Resource: "nodes"}},
	}})
	same(t, "lists", "/api/v1/namespaces/shop/configmaps?limit=500\n/api/v1/nodes?limit=500\n/api/v1/pods?labelSelector=%21app&limit=500",
		slices.Sorted(slices.Values(s.asked("GET", "/api/v1/"))))
	for place, want := range map[graph.Part]bool{
		{Resource: maps, Namespace: "shop"}: true, {Resource: maps, Namespace: "other"}: false, {Resource: pods, Namespace: "shop"}: false,
	} {
		if got.Covers(place.Resource, place.Namespace, "gone") != want {
			t.Errorf("%v is covered: %v", place, !want)
		}
	}
}

// Many texts are found as each of them is.
func TestContainsAny(t *testing.T) {
	var many [][]byte
	for i := range 100 {
		many = append(many, fmt.Appendf(nil, `"0000000%d-uid"`, i))
	}
	for _, texts := range [][][]byte{many[:1], many[:4], many[:5], many, append(many[:9:9], []byte("short"))} {
		has := containsAny(texts)
		for _, in := range []string{"", "0000", `"00000003-uid"`, `{"uid":"00000008-uid"}`, `{"uid":"00000099-uid"`, `{"uid":"000000100-uid"}`, `"00000008-ui`, "a short one"} {
			want := slices.ContainsFunc(texts, func(text []byte) bool { return strings.Contains(in, string(text)) })
			if has([]byte(in)) != want {
				t.Errorf("%d texts in %s: want %t", len(texts), in, want)
			}
		}
	}
}
