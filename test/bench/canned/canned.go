// SPDX-License-Identifier: Apache-2.0

// Package canned serves the metadata of a cluster of any size, made up page by
// page as it is asked for. It answers discovery and lists as kube-apiserver
// does, in protobuf, and so cheaply that a client is what is measured.
//
// For each application there is a Deployment, a ReplicaSet and five Pods below
// it, two ConfigMaps and a Secret; a namespace has a hundred applications.
package canned

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// PerApplication is the number of objects of an application.
	PerApplication = 10
	// perNamespace is the number of applications in a namespace.
	perNamespace = 100
	// chunk is how many bytes are made up before they are sent.
	chunk = 256 << 10
)

// Server serves a cluster. It is an http.Handler.
type Server struct {
	applications int
	types        []*kind
	buffers      sync.Pool
}

// kind is one type of object.
type kind struct {
	group, version, kind, resource string
	cluster                        bool
	per                            int // objects of an application
	owner                          *kind
	suffix                         int // digits that the name has beyond the owner's
	// template is the metadata of an object in protobuf, whole all of it, and row a row of
	// a table with all of it in JSON.
	template, whole, row *template
}

// New returns a server of a cluster with about that many objects.
func New(objects int) *Server {
	s := &Server{applications: max(1, objects/PerApplication)}
	s.buffers.New = func() any { return new(bytes.Buffer) }
	namespaces := &kind{version: "v1", kind: "Namespace", resource: "namespaces", cluster: true}
	deployments := &kind{group: "apps", version: "v1", kind: "Deployment", resource: "deployments", per: 1}
	replicaSets := &kind{group: "apps", version: "v1", kind: "ReplicaSet", resource: "replicasets", per: 1, owner: deployments, suffix: 10}
	pods := &kind{version: "v1", kind: "Pod", resource: "pods", per: 5, owner: replicaSets, suffix: 5}
	s.types = []*kind{
		namespaces,
		{version: "v1", kind: "ConfigMap", resource: "configmaps", per: 2, suffix: 1},
		{version: "v1", kind: "Secret", resource: "secrets", per: 1},
		pods, deployments, replicaSets,
	}
	for _, k := range s.types {
		k.template, k.whole = newTemplate(k, (*metav1.PartialObjectMetadata).Marshal), newTemplate(k, k.typed)
		k.row = newTemplate(k, k.jsonRow)
	}
	return s
}

// Objects returns the number of objects that are served.
func (s *Server) Objects() int { return s.applications*PerApplication + s.namespaces() }

func (s *Server) namespaces() int { return (s.applications + perNamespace - 1) / perNamespace }

// count returns how many objects there are of a kind.
func (s *Server) count(k *kind) int {
	if k.cluster {
		return s.namespaces()
	}
	return s.applications * k.per
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		s.discovery(w, r.URL.Path == "/api")
		return
	}
	if r.URL.Path == "/version" {
		_ = json.NewEncoder(w).Encode(version.Info{GitVersion: "v1.36.0"})
		return
	}
	k, namespace := s.listed(r.URL.Path)
	if k == nil {
		http.NotFound(w, r)
		return
	}
	query := r.URL.Query()
	from, to := 0, s.count(k)
	if namespace != "" {
		i, _ := strconv.Atoi(strings.TrimPrefix(namespace, "team-"))
		from, to = min(to, i*perNamespace*k.per), min(to, (i+1)*perNamespace*k.per)
	}
	if token, err := strconv.Atoi(query.Get("continue")); err == nil {
		from = token
	}
	end := to
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil && limit > 0 {
		end = min(to, from+limit)
	}
	meta := metav1.ListMeta{ResourceVersion: "1000000"}
	if end < to {
		remaining := int64(to - end)
		meta.Continue, meta.RemainingItemCount = strconv.Itoa(end), &remaining
	}
	switch accept := r.Header.Get("Accept"); {
	case strings.Contains(accept, "as=Table"):
		s.table(w, k, from, end, &meta)
	case strings.Contains(accept, "as=PartialObjectMetadataList"):
		s.page(w, k, page{metadataPages, "meta.k8s.io/v1", "PartialObjectMetadataList", k.template, from, end, &meta})
	default:
		s.page(w, k, page{runtime.ContentTypeProtobuf, k.apiVersion(), k.kind + "List", k.whole, from, end, &meta})
	}
}

const metadataPages = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// page is the objects from one number to another, in protobuf.
type page struct {
	contentType, apiVersion, kind string
	template                      *template
	from, end                     int
	meta                          *metav1.ListMeta
}

// listed returns the kind, and the namespace if any, that a path lists.
func (s *Server) listed(path string) (*kind, string) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for _, k := range s.types {
		root := []string{"api", k.version}
		if k.group != "" {
			root = []string{"apis", k.group, k.version}
		}
		if len(segments) <= len(root) || strings.Join(segments[:len(root)], "/") != strings.Join(root, "/") {
			continue
		}
		switch rest := segments[len(root):]; {
		case len(rest) == 1 && rest[0] == k.resource:
			return k, ""
		case len(rest) == 3 && rest[0] == "namespaces" && rest[2] == k.resource:
			return k, rest[1]
		}
	}
	return nil, ""
}

// page sends objects in protobuf.
func (s *Server) page(w http.ResponseWriter, k *kind, p page) {
	encoded, err := p.meta.Marshal()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	head := appendField(nil, 1, encoded)
	item := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.BytesType), uint64(len(p.template.bytes)))
	length := len(head) + (p.end-p.from)*(len(item)+len(p.template.bytes))

	body := s.buffers.Get().(*bytes.Buffer)
	defer s.buffers.Put(body)
	body.Reset()
	body.WriteString("k8s\x00")
	body.Write(appendField(nil, 1, appendField(appendField(nil, 1, []byte(p.apiVersion)), 2, []byte(p.kind))))
	body.Write(protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.BytesType), uint64(length)))
	w.Header().Set("Content-Type", p.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()+length))
	body.Write(head)
	if k.send(w, body, p.template, p.from, p.end, item) {
		_, _ = body.WriteTo(w)
	}
}

// table sends the objects from one number to another as rows of the table that kubectl
// get prints, in JSON.
func (s *Server) table(w http.ResponseWriter, k *kind, from, end int, meta *metav1.ListMeta) {
	encoded, err := json.Marshal(meta)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body := s.buffers.Get().(*bytes.Buffer)
	defer s.buffers.Put(body)
	body.Reset()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(body, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":%s,`+
		`"columnDefinitions":[{"name":"Ready","type":"string"},{"name":"Status","type":"string"}],"rows":[`, encoded)
	if from < end && k.send(w, body, k.row, from, from+1, nil) && k.send(w, body, k.row, from+1, end, []byte(",")) || from == end {
		body.WriteString("]}")
		_, _ = body.WriteTo(w)
	}
}

// send makes objects of the template, each after the lead, and sends whole chunks. It
// returns false when the client has gone.
func (k *kind) send(w http.ResponseWriter, body *bytes.Buffer, t *template, from, end int, lead []byte) bool {
	for i := from; i < end; i++ {
		body.Write(lead)
		start := body.Len()
		body.Write(t.bytes)
		k.fill(t, body.Bytes()[start:], i)
		if body.Len() < chunk {
			continue
		}
		if _, err := body.WriteTo(w); err != nil {
			return false
		}
	}
	return true
}

func appendField(b []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), content)
}

// template is an encoded object with places to fill in. All objects of a kind
// have the same length.
type template struct {
	bytes                                          []byte
	name, namespace, uid, version, owner, ownerUID int
}

// Placeholders stand where something is filled in.
const (
	namespaceMark = "team-#####"
	uidMark       = "########-####-4###-8###-############"
	ownerUIDMark  = "########-####-4###-8###-###########-"
	versionMark   = "9########"
)

// width is the length of the names of a kind's objects.
func (k *kind) width() int {
	switch {
	case k.cluster:
		return len(namespaceMark)
	case k.owner != nil:
		return k.owner.width() + 1 + k.suffix
	case k.suffix > 0:
		return len("app-########-") + k.suffix
	}
	return len("app-########")
}

// newTemplate makes an object such as controllers leave behind: labels,
// annotations, and the managed fields of three managers. These are about 1.8 kB.
func newTemplate(k *kind, encode func(*metav1.PartialObjectMetadata) ([]byte, error)) *template {
	yes := true
	o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: strings.Repeat("N", k.width()), Namespace: namespaceMark, UID: uidMark, ResourceVersion: versionMark,
		CreationTimestamp: metav1.Unix(1_700_000_000, 0), Generation: 1,
		Labels: map[string]string{
			"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": "shop-production", "app.kubernetes.io/version": "1.42.0",
			"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "shop-1.42.0", "pod-template-hash": "5d4f8c7b9",
		},
		Annotations: map[string]string{"deployment.kubernetes.io/revision": "1", "checksum/config": strings.Repeat("0123456789abcdef", 4)},
	}}
	for i, manager := range []string{"helm", "kube-controller-manager", "kubelet"} {
		o.ManagedFields = append(o.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", Time: &o.CreationTimestamp,
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{` + strings.Repeat(`"f:labels":{".":{},"f:app.kubernetes.io/name":{}},`, 6+i) + `"f:x":{}}}`)},
		})
	}
	if k.cluster {
		o.Name, o.Namespace = namespaceMark, ""
	}
	if k.owner != nil {
		o.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: k.owner.apiVersion(), Kind: k.owner.kind,
			Name: strings.Repeat("O", k.owner.width()), UID: types.UID(ownerUIDMark), Controller: &yes, BlockOwnerDeletion: &yes,
		}}
	}
	encoded, err := encode(&o)
	if err != nil {
		panic(err)
	}
	find := func(mark string) int { return bytes.Index(encoded, []byte(mark)) }
	return &template{
		bytes: encoded, name: find(o.Name), namespace: find(namespaceMark), uid: find(uidMark), version: find(versionMark),
		owner: find(strings.Repeat("O", max(1, k.ownerWidth()))), ownerUID: find(ownerUIDMark),
	}
}

func (k *kind) ownerWidth() int {
	if k.owner == nil {
		return 1000 // is nowhere
	}
	return k.owner.width()
}

const (
	podSpec = `{"nodeName":"node-1","serviceAccountName":"default","restartPolicy":"Always","terminationGracePeriodSeconds":30,` +
		`"containers":[{"name":"main","image":"registry.example.com/shop:1.42.0","command":["/shop","--port=8080"],"ports":[{"name":"http","containerPort":8080}],` +
		`"env":[{"name":"MODE","value":"production"},{"name":"LEVEL","value":"info"}],"resources":{"requests":{"cpu":"100m","memory":"128Mi"}},` +
		`"volumeMounts":[{"name":"config","mountPath":"/etc/shop"}]}],"volumes":[{"name":"config","configMap":{"name":"shop"}}]}`
	podStatus = `{"phase":"Running","podIP":"10.0.0.1","conditions":[{"type":"Initialized","status":"True"},{"type":"Ready","status":"True"}],` +
		`"containerStatuses":[{"name":"main","ready":true,"restartCount":0,"image":"registry.example.com/shop:1.42.0","state":{"running":{"startedAt":"2023-11-14T22:13:20Z"}}}]}`
)

// state is what objects of the kind have beside metadata.
func (k *kind) state() (spec, status string) {
	switch {
	case k.cluster:
		return `{"finalizers":["kubernetes"]}`, `{"phase":"Active"}`
	case k.owner == nil || k.suffix != len("#####"):
		return `{"replicas":5,"selector":{"matchLabels":{"app":"shop"}},"template":{"spec":` + podSpec + `}}`, `{"replicas":5,"readyReplicas":5}`
	}
	return podSpec, podStatus
}

// json is an object of the kind.
func (k *kind) json(o *metav1.PartialObjectMetadata) ([]byte, error) {
	metadata, err := json.Marshal(&o.ObjectMeta)
	spec, status := k.state()
	return fmt.Appendf(nil, `{"metadata":%s,"spec":%s,"status":%s}`, metadata, spec, status), err
}

// jsonRow is a row of a table with an object of the kind.
func (k *kind) jsonRow(o *metav1.PartialObjectMetadata) ([]byte, error) {
	object, err := k.json(o)
	return fmt.Appendf(nil, `{"cells":["1/1","Running"],"object":%s}`, object), err
}

// typed is an object of the kind in protobuf.
func (k *kind) typed(o *metav1.PartialObjectMetadata) ([]byte, error) {
	data, err := k.json(o)
	if err != nil {
		return nil, err
	}
	object, err := scheme.Scheme.New(schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.kind})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, object); err != nil {
		return nil, err
	}
	return object.(interface{ Marshal() ([]byte, error) }).Marshal()
}

func (k *kind) apiVersion() string {
	return schema.GroupVersion{Group: k.group, Version: k.version}.String()
}

// fill makes the i-th object of a copy of a template.
func (k *kind) fill(t *template, b []byte, i int) {
	digits(b[t.version+1:], 8, i)
	k.putUID(b[t.uid:], i)
	if k.cluster {
		digits(b[t.name+len("team-"):], 5, i)
		return
	}
	digits(b[t.namespace+len("team-"):], 5, i/k.per/perNamespace)
	k.putName(b[t.name:], i)
	if k.owner != nil {
		above := i / k.per * k.owner.per
		k.owner.putName(b[t.owner:], above)
		k.owner.putUID(b[t.ownerUID:], above)
	}
}

// putName writes the name of the i-th object: app-00000042-5d4f8c7b9-00003.
func (k *kind) putName(b []byte, i int) {
	copy(b, "app-")
	digits(b[4:], 8, i/k.per)
	n := len("app-########")
	if k.owner != nil && k.owner.owner != nil {
		k.owner.putName(b, i/k.per)
		n = k.owner.width()
	}
	if k.suffix > 0 {
		b[n] = '-'
		digits(b[n+1:], k.suffix, i%k.per)
	}
}

// digits writes the decimal digits of a number.
func digits(b []byte, n, value int) {
	for i := n - 1; i >= 0; i-- {
		b[i] = byte('0' + value%10)
		value /= 10
	}
}

// putUID writes the UID of the i-th object: as random as a UUID, and always the
// same.
func (k *kind) putUID(b []byte, i int) {
	var id [16]byte
	x := uint64(i)<<8 | uint64(k.kind[0])<<1 | uint64(len(k.kind)&1)
	binary.LittleEndian.PutUint64(id[:], mix(x))
	binary.LittleEndian.PutUint64(id[8:], mix(^x))
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:36], id[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
}

// mix is the finalizer of SplitMix64: a permutation of all 64-bit numbers.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// discovery answers /api and /apis.
func (s *Server) discovery(w http.ResponseWriter, core bool) {
	list := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	groups := map[string]*apidiscovery.APIVersionDiscovery{}
	for _, k := range s.types {
		if (k.group == "") != core {
			continue
		}
		if groups[k.group] == nil {
			list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{
				ObjectMeta: metav1.ObjectMeta{Name: k.group},
				Versions:   []apidiscovery.APIVersionDiscovery{{Version: k.version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}},
			})
			groups[k.group] = &list.Items[len(list.Items)-1].Versions[0]
		}
		scope := apidiscovery.ScopeNamespace
		if k.cluster {
			scope = apidiscovery.ScopeCluster
		}
		version := groups[k.group]
		version.Resources = append(version.Resources, apidiscovery.APIResourceDiscovery{
			Resource: k.resource, ResponseKind: &metav1.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.kind},
			Scope: scope, SingularResource: strings.ToLower(k.kind), Verbs: []string{"delete", "get", "list", "watch"},
		})
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	if err := json.NewEncoder(w).Encode(list); err != nil {
		fmt.Println(err)
	}
}
