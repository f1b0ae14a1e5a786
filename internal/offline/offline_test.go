// SPDX-License-Identifier: Apache-2.0

package offline_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/offline"
)

var ended = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pods is a list of n pods in each of the namespaces a and ab.
func addPods(t testing.TB, w *offline.Writer, n int) {
	must(t, w.Begin(&offline.List{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true, Holds: offline.Parts}))
	for _, namespace := range []string{"a", "ab"} {
		for i := range n {
			e, err := offline.NewEntry(schema.GroupResource{Resource: "pods"}, map[string]any{
				"metadata": map[string]any{
					"name": fmt.Sprintf("p%05d", i), "namespace": namespace, "uid": fmt.Sprintf("%s-%d", namespace, i),
					"labels": map[string]any{"odd": fmt.Sprint(i%2 == 1)},
				},
				"spec": map[string]any{"nodeName": fmt.Sprintf("node%d", i%3)},
			})
			must(t, err)
			e.Ready, e.Status = "1/1", "Running"
			must(t, w.Add(e))
		}
	}
	must(t, w.End(offline.End{ResourceVersion: "7"}))
}

// snapshot writes a file: pods, a list that was refused, and one owner that was.
func snapshot(t testing.TB, pods int) []byte {
	t.Helper()
	var text bytes.Buffer
	w, err := offline.NewWriter(&text, offline.Header{Begun: ended, Contents: []offline.Content{{Resource: "pods", Version: "v1", Holds: offline.Parts}}})
	must(t, err)
	must(t, w.Answer(&offline.Answer{Path: "/version", Code: 200, ContentType: "application/json", Body: []byte(`{"gitVersion":"v1.36.3"}`)}))
	addPods(t, w, pods)
	must(t, w.Begin(&offline.List{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true, Holds: offline.Metadata}))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no rights"))
	must(t, w.End(offline.End{Error: offline.StatusOf(forbidden, "", false)}))
	must(t, w.One(&offline.One{Resource: "secrets", Namespace: "a", Name: "gone", Error: apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "gone").ErrStatus}))
	must(t, w.Close(ended))
	return text.Bytes()
}

func open(t testing.TB, file []byte) *offline.Server {
	t.Helper()
	f, err := offline.Open(bytes.NewReader(file), int64(len(file)))
	must(t, err)
	return offline.NewServer(f)
}

const (
	asMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
	asTable    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asWhole    = "application/json"
)

// ask sends a GET and returns the code and the body.
func ask(t testing.TB, s *offline.Server, path, accept string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://snapshot.invalid"+path, http.NoBody)
	must(t, err)
	request.Header.Set("Accept", accept)
	response, err := s.RoundTrip(request)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	if response.Header.Get("Date") != "Fri, 02 Jan 2026 03:04:05 GMT" && s.Now().Equal(ended) {
		t.Errorf("GET %s: the time is %s", path, response.Header.Get("Date"))
	}
	return response.StatusCode, string(body)
}

// list follows the pages of a list and returns the names.
func list(t testing.TB, s *offline.Server, path, accept string) []string {
	t.Helper()
	var names []string
	for token := ""; ; {
		code, body := ask(t, s, path+"&continue="+token, accept)
		if code != http.StatusOK {
			t.Fatalf("GET %s: %d: %s", path, code, body)
		}
		var page metav1.PartialObjectMetadataList
		must(t, json.Unmarshal([]byte(body), &page))
		for i := range page.Items {
			names = append(names, page.Items[i].Namespace+"/"+page.Items[i].Name)
		}
		if token = page.Continue; token == "" {
			return names
		}
	}
}

func TestLists(t *testing.T) {
	s := open(t, snapshot(t, 3000))
	for path, want := range map[string]int{
		"/api/v1/pods?limit=500":                                        6000,
		"/api/v1/pods?limit=97":                                         6000,
		"/api/v1/pods?":                                                 6000,
		"/api/v1/namespaces/a/pods?limit=500":                           3000,
		"/api/v1/namespaces/ab/pods?limit=500":                          3000,
		"/api/v1/namespaces/b/pods?":                                    0,
		"/api/v1/pods?labelSelector=odd%3Dtrue&limit=100":               3000,
		"/api/v1/pods?fieldSelector=metadata.name%3Dp00042":             2,
		"/api/v1/namespaces/a/pods?fieldSelector=spec.nodeName%3Dnode1": 1000,
		"/api/v1/pods?fieldSelector=spec.nodeName%21%3Dnode1&limit=999": 4000,
	} {
		for _, accept := range []string{asMetadata} {
			names := list(t, s, path, accept)
			distinct := map[string]bool{}
			for _, name := range names {
				distinct[name] = true
			}
			if len(names) != want || len(distinct) != want {
				t.Errorf("GET %s: %d objects, %d distinct, want %d", path, len(names), len(distinct), want)
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	s := open(t, snapshot(t, 10))
	for _, test := range []struct {
		path, accept string
		code         int
		has          string
	}{
		{"/version", asWhole, 200, "v1.36.3"},
		{"/api/v1/namespaces/a/pods/p00003", asWhole, 200, `"nodeName":"node0"`},
		{"/api/v1/namespaces/a/pods/p00003", asTable, 200, `"cells":["1/1","Running"]`},
		{"/api/v1/namespaces/a/pods/p00003", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", 200, `"kind":"PartialObjectMetadata"`},
		{"/api/v1/namespaces/a/pods/p3", asWhole, 404, `"name":"p3"`},
		{"/api/v1/namespaces/a/pods/p00003/log", asWhole, 503, "NotInSnapshot"},
		{"/api/v1/nodes", asWhole, 503, "NotInSnapshot"},
		{"/api/v1/nodes/n", asWhole, 503, "NotInSnapshot"},
		{"/api/v1/secrets", asMetadata, 403, "no rights"},
		{"/api/v1/namespaces/a/secrets/s", asMetadata, 403, "no rights"},
		{"/api/v1/namespaces/a/secrets/gone", asMetadata, 404, "gone"},
		{"/api/v1/pods?watch=true", asWhole, 503, "NotInSnapshot"},
		{"/api/v1/pods?fieldSelector=spec.serviceAccount%3Dx", asWhole, 400, "field label not supported"},
		{"/api/v1/pods?labelSelector=%3D%3D", asWhole, 400, "BadRequest"},
		{"/api/v1/pods?continue=x", asWhole, 400, "continue"},
		{"/healthz", asWhole, 503, "NotInSnapshot"},
	} {
		code, body := ask(t, s, test.path, test.accept)
		if code != test.code || !strings.Contains(body, test.has) {
			t.Errorf("GET %s: %d: %s", test.path, code, body)
		}
	}
}

// Nothing but a GET is answered.
func TestWritesAreRefused(t *testing.T) {
	s := open(t, snapshot(t, 1))
	for _, method := range []string{http.MethodDelete, http.MethodPatch, http.MethodPost, http.MethodPut} {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://snapshot.invalid/api/v1/namespaces/a/pods/p00000?dryRun=All", http.NoBody)
		must(t, err)
		response, err := s.RoundTrip(request)
		must(t, err)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s: %s", method, response.Status)
		}
	}
}

// Where a version could not be listed, another does not stand for it; where it was not
// tried, it does.
func TestVersions(t *testing.T) {
	var text bytes.Buffer
	w, err := offline.NewWriter(&text, offline.Header{})
	must(t, err)
	failed := apierrors.NewInternalError(errors.New("conversion webhook failed"))
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	for _, version := range []string{"v2", "v1"} {
		must(t, w.Begin(&offline.List{Group: "example.com", Version: version, Resource: "widgets", Kind: "Widget", Namespaced: true, Holds: offline.Summary}))
		if version == "v2" {
			must(t, w.End(offline.End{Error: offline.StatusOf(failed, "", false)}))
			continue
		}
		e, err := offline.NewEntry(widgets, map[string]any{"metadata": map[string]any{"name": "w", "namespace": "a"}})
		must(t, err)
		must(t, w.Add(e))
		must(t, w.End(offline.End{}))
	}
	must(t, w.Close(ended))
	s := open(t, text.Bytes())
	for version, want := range map[string]int{"v1": 200, "v2": 500, "v3": 200} {
		for _, path := range []string{"/widgets", "/namespaces/a/widgets", "/namespaces/a/widgets/w"} {
			if code, body := ask(t, s, "/apis/example.com/"+version+path, asWhole); code != want {
				t.Errorf("GET %s of %s: %d, want %d: %s", path, version, code, want, body)
			}
		}
	}
}

// A second look counts once time has passed.
func TestSecondLook(t *testing.T) {
	var text bytes.Buffer
	w, err := offline.NewWriter(&text, offline.Header{})
	must(t, err)
	for _, again := range []bool{false, true} {
		must(t, w.Begin(&offline.List{Group: "coordination.k8s.io", Version: "v1", Resource: "leases", Kind: "Lease", Namespaced: true, Again: again}))
		must(t, w.Add(&offline.Entry{Object: []byte(fmt.Sprintf(`{"metadata":{"name":"l","namespace":"n","resourceVersion":"%v"}}`, again)), Whole: true}))
		must(t, w.End(offline.End{}))
	}
	must(t, w.One(&offline.One{Resource: "pods", Namespace: "n", Name: "p", Again: true, Error: apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p").ErrStatus}))
	must(t, w.Close(ended))
	s := open(t, text.Bytes())
	const path = "/apis/coordination.k8s.io/v1/namespaces/n/leases/l"
	if _, body := ask(t, s, path, asWhole); !strings.Contains(body, `"resourceVersion":"false"`) || !s.LooksTwice() {
		t.Errorf("the first look: %s", body)
	}
	s.Pass()
	if _, body := ask(t, s, path, asWhole); !strings.Contains(body, `"resourceVersion":"true"`) {
		t.Errorf("the second look: %s", body)
	}
	if code, body := ask(t, s, "/api/v1/namespaces/n/pods/p", asWhole); code != http.StatusNotFound {
		t.Errorf("what has gone: %d %s", code, body)
	}
}

// addList adds a list of objects, and then one of a few of them that were read by themselves.
func addList(t testing.TB, w *offline.Writer, l offline.List, entries ...*offline.Entry) {
	t.Helper()
	must(t, w.Begin(&l))
	for _, e := range entries {
		must(t, w.Add(e))
	}
	must(t, w.End(offline.End{}))
}

// twoLooks is a file with Secrets of which a list has the metadata, and with Pods; some Secrets were read by themselves, some objects
// again.
func twoLooks(t testing.TB) *offline.Server {
	t.Helper()
	secret := func(i int, uid, has string) *offline.Entry {
		return &offline.Entry{Whole: has != "", Object: []byte(fmt.Sprintf(`{"metadata":{"name":"o%d","namespace":"n","uid":"%s%d"%s}}`, i, uid, i, has))}
	}
	const fuller, later = `,"managedFields":[{"manager":"m"}]`, `,"managedFields":[{"manager":"m"}],"resourceVersion":"2"`
	pod := func(i int, version string) *offline.Entry {
		return &offline.Entry{Whole: true, Object: []byte(fmt.Sprintf(`{"metadata":{"name":"o%d","namespace":"n","uid":"p%d","resourceVersion":"%s"},"status":{"phase":"Running"}}`, i, i, version))}
	}
	var secrets, pods []*offline.Entry
	for i := range 6 {
		secrets, pods = append(secrets, secret(i, "s", "")), append(pods, pod(i, "1"))
		pods[i].Ready, pods[i].Status = "1/1", "Running"
	}
	ofSecrets := offline.List{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true, Holds: offline.Metadata}
	ofPods := offline.List{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true, Holds: offline.Parts}
	var text bytes.Buffer
	w, err := offline.NewWriter(&text, offline.Header{})
	must(t, err)
	addList(t, w, ofSecrets, secrets...)
	addList(t, w, ofPods, pods...)
	ofSecrets.Single, ofPods.Single = true, true
	addList(t, w, ofSecrets, secret(0, "s", fuller), secret(1, "other", fuller))
	addList(t, w, ofSecrets, secret(2, "s", fuller))
	ofSecrets.Again, ofPods.Again = true, true
	addList(t, w, ofSecrets, secret(2, "s", later), secret(3, "other", later))
	addList(t, w, ofPods, pod(4, "2"))
	for _, resource := range []string{"secrets", "pods"} {
		must(t, w.One(&offline.One{Resource: resource, Namespace: "n", Name: "o5", Again: true, Error: apierrors.NewNotFound(schema.GroupResource{Resource: resource}, "o5").ErrStatus}))
	}
	must(t, w.Close(ended))
	return open(t, text.Bytes())
}

// What a file knows of an object is the same whether it is asked for by itself or in a list, in every form: the fullest that it has of
// that very object, at each look.
func TestListsHaveWhatGetsHave(t *testing.T) {
	s := twoLooks(t)
	for _, look := range []struct{ secrets, pods string }{
		{"o0 s0 full, o1 s1, o2 s2 full, o3 s3, o4 s4, o5 s5", "o0 p0 1, o1 p1 1, o2 p2 1, o3 p3 1, o4 p4 1, o5 p5 1"},
		{"o0 s0 full, o1 s1, o2 s2 full 2, o3 other3 full 2, o4 s4", "o0 p0 1, o1 p1 1, o2 p2 1, o3 p3 1, o4 p4 2"},
	} {
		for resource, want := range map[string]string{"secrets": look.secrets, "pods": look.pods} {
			for _, accept := range []string{asMetadata, asTable, asWhole} {
				for _, query := range []string{"?", "?fieldSelector=metadata.namespace%3Dn", "?includeObject=Object"} {
					for path := range map[string]bool{"/api/v1/namespaces/n/" + resource: true, "/api/v1/" + resource: true} {
						var got []string
						for _, o := range items(t, s, path+query, accept) {
							if single := items(t, s, "/api/v1/namespaces/n/"+resource+"/"+o.Object.Metadata.Name+query, strings.Replace(accept, "MetadataList", "Metadata", 1)); resource == "pods" || accept == asMetadata {
								if diff := cmp.Diff([]printedObject{o}, single); diff != "" {
									t.Errorf("%s%s as %s: the list has other than the GET:\n%s", path, query, accept, diff)
								}
							}
							got = append(got, o.String())
						}
						same := strings.Join(got, ", ")
						if accept == asTable && resource == "pods" {
							same = strings.ReplaceAll(same, " 1/1 Running", "")
						}
						if same != want {
							t.Errorf("%s%s as %s has %s, want %s", path, query, accept, same, want)
						}
					}
				}
			}
		}
		s.Pass()
	}
}

// printedObject is an object of an answer, maybe with its columns.
type printedObject struct {
	Cells  []any
	Object struct {
		Metadata struct {
			Name, UID, ResourceVersion string
			ManagedFields              []any
		}
		Status struct{ Phase string }
	}
}

func (o *printedObject) String() string {
	m := o.Object.Metadata
	words := []string{m.Name, m.UID}
	if len(m.ManagedFields) > 0 {
		words = append(words, "full")
	}
	if m.ResourceVersion != "" {
		words = append(words, m.ResourceVersion)
	}
	for _, cell := range o.Cells {
		if cell != nil {
			words = append(words, fmt.Sprint(cell))
		}
	}
	return strings.Join(words, " ")
}

// items are the objects of an answer in any form.
func items(t testing.TB, s *offline.Server, path, accept string) []printedObject {
	t.Helper()
	code, body := ask(t, s, path, accept)
	if code != http.StatusOK {
		return nil
	}
	var answer struct {
		Kind  string
		Items []json.RawMessage
		Rows  []printedObject
	}
	must(t, json.Unmarshal([]byte(body), &answer))
	if answer.Items == nil {
		answer.Items = []json.RawMessage{[]byte(body)}
	}
	if (answer.Kind == "Table") != (accept == asTable) {
		t.Errorf("GET %s as %s: %s", path, accept, answer.Kind)
	}
	if answer.Kind == "Table" {
		return answer.Rows
	}
	objects := make([]printedObject, len(answer.Items))
	for i := range objects {
		must(t, json.Unmarshal(answer.Items[i], &objects[i].Object))
	}
	return objects
}

// zipped is a file of some members, of which the last is the index.
func zipped(t testing.TB, members ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i, text := range members {
		name := "index.jsonl"
		if i < len(members)-1 {
			name = fmt.Sprint(i)
		}
		m, err := z.Create(name)
		must(t, err)
		_, err = io.WriteString(m, text)
		must(t, err)
	}
	must(t, z.Close())
	return out.Bytes()
}

// texts are those of the members of a file.
func texts(t testing.TB, file []byte) (all []string) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	must(t, err)
	for _, m := range z.File {
		in, err := m.Open()
		must(t, err)
		text, err := io.ReadAll(in)
		must(t, err)
		all = append(all, string(text))
	}
	return all
}

const header = `{"apiVersion":"kubectl-gc/v1","kind":"Snapshot","format":2}` + "\n"

// What is no complete snapshot is an error that says so.
func TestOpenErrors(t *testing.T) {
	file := snapshot(t, 3000)
	bomb := strings.Repeat("\x00", 15<<20)
	for name, test := range map[string]struct {
		file []byte
		says string
	}{
		"empty":             {nil, "truncated"},
		"no members":        {zipped(t), "no index"},
		"no snapshot":       {zipped(t, "hello\n"), "first line"},
		"another kind":      {zipped(t, `{"apiVersion":"v1","kind":"List"}`), "first line"},
		"older":             {[]byte{0x1f, 0x8b, 8, 0}, "earlier versions"},
		"newer":             {zipped(t, strings.Replace(header, `"format":2`, `"format":3`, 1)), "newer format"},
		"newer API":         {zipped(t, strings.Replace(header, "gc/v1", "gc/v2", 1)), "newer format"},
		"header alone":      {zipped(t, header), "corrupted"},
		"half of it":        {file[:len(file)/2], "truncated"},
		"all but the end":   {file[:len(file)-1], "truncated"},
		"wrong count":       {zipped(t, header+`{"trailer":{"objects":1,"lists":0}}`), "corrupted"},
		"wrong list":        {zipped(t, header+`{"list":{"resource":"pods","objects":3}}`+"\n"+`{"trailer":{"objects":3,"lists":1}}`), "corrupted"},
		"no such member":    {zipped(t, header+`{"list":{"resource":"pods","objects":3,"chunks":[{"in":0,"objects":3}]}}`+"\n"+`{"trailer":{"objects":3,"lists":1}}`), "corrupted"},
		"something after":   {zipped(t, header+`{"trailer":{}}`+"\n{}"), "corrupted"},
		"an unknown line":   {zipped(t, header+`{"surprise":{}}`), "corrupted"},
		"a bomb of a line":  {zipped(t, strings.Repeat("\x00", 129<<20)), "exhaust memory"},
		"a bomb of members": {zipped(t, bomb, bomb, bomb, bomb, bomb, header), "exhaust memory"},
	} {
		_, err := offline.Open(bytes.NewReader(test.file), int64(len(test.file)))
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: error %v, want %q", name, err, test.says)
		}
	}
}

// However a file is cut, that is noticed.
func TestTruncated(t *testing.T) {
	file := snapshot(t, 20)
	for n := range file {
		if _, err := offline.Open(bytes.NewReader(file[:n]), int64(n)); err == nil {
			t.Fatalf("%d of %d bytes are taken for all", n, len(file))
		}
	}
}

// Wherever a byte is another one, no object is taken to be absent for that.
func TestFlipped(t *testing.T) {
	file := snapshot(t, 20)
	want := list(t, open(t, file), "/api/v1/pods?", asMetadata)
	noticed := 0
	for at := range file {
		flipped := bytes.Clone(file)
		flipped[at] ^= 0x10
		f, err := offline.Open(bytes.NewReader(flipped), int64(len(flipped)))
		if err != nil {
			noticed++
			continue
		}
		s := offline.NewServer(f)
		if code, body := ask(t, s, "/api/v1/pods", asMetadata); code != http.StatusOK {
			noticed++
		} else if diff := cmp.Diff(want, list(t, s, "/api/v1/pods?", asMetadata)); diff != "" {
			t.Fatalf("byte %d of %d: %s\n%s", at, len(file), diff, body)
		}
	}
	if noticed < len(file)/2 {
		t.Errorf("of %d bytes %d mattered", len(file), noticed)
	}
}

// everything asks for whatever a file may have: nothing of it may panic.
func everything(t *testing.T, s *offline.Server) {
	for _, path := range []string{
		"/api", "/apis", "/version", "/api/v1/pods?limit=2", "/api/v1/pods?fieldSelector=status.phase%3DRunning", "/api/v1/namespaces/a/pods",
		"/api/v1/namespaces/a/pods/p00000", "/api/v1/secrets", "/api/v1/namespaces/a", "/api/v1/pods?continue=99.1&labelSelector=a",
		"/apis/apps/v1/deployments", "/apis/apps/v1/namespaces/shop/deployments/web",
	} {
		for _, accept := range []string{asWhole, asMetadata, asTable} {
			ask(t, s, path, accept)
		}
	}
}

// FuzzOpen reads bytes as a file.
func FuzzOpen(f *testing.F) {
	f.Add(snapshot(f, 3))
	f.Add(zipped(f, header))
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, file []byte) {
		if opened, err := offline.Open(bytes.NewReader(file), int64(len(file))); err == nil {
			everything(t, offline.NewServer(opened))
		}
	})
}

// FuzzText reads text as what a file holds.
func FuzzText(f *testing.F) {
	members := texts(f, snapshot(f, 3))
	f.Add(members[0], members[1])
	f.Add("", header+`{"trailer":{}}`)
	f.Add(`{"object":{"metadata":null}}`, header+`{"list":{"version":"v1","resource":"pods","kind":"Pod","objects":1,"chunks":[{"in":0,"at":0,"objects":1,"first":"a/b","last":"a/b"}]}}`+"\n"+`{"trailer":{"objects":1,"lists":1}}`)
	f.Fuzz(func(t *testing.T, objects, index string) {
		file := zipped(t, objects, index)
		if opened, err := offline.Open(bytes.NewReader(file), int64(len(file))); err == nil {
			everything(t, offline.NewServer(opened))
		}
	})
}

// FuzzPrinted reads text as what kubectl printed.
func FuzzPrinted(f *testing.F) {
	f.Add(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"1"}}]}`)
	f.Add("apiVersion: v1\nkind: Pod\nmetadata: &m\n  name: p00000\n  namespace: a\nspec: *m\n---\n# nothing\n---\nkind: List\napiVersion: v1\nitems: []\n")
	f.Add("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c]")
	f.Fuzz(func(t *testing.T, text string) {
		if opened, err := offline.FromPrinted([]offline.Source{{Name: "fuzz", In: strings.NewReader(text)}}, ended); err == nil {
			everything(t, offline.NewServer(opened))
		}
	})
}

// What kubectl printed is what there is, and not all there is.
func TestPrinted(t *testing.T) {
	const text = `
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop, uid: u1}
- apiVersion: shop.example.com/v1
  kind: Cart
  metadata: {name: basket, namespace: shop, uid: u2, ownerReferences: [{apiVersion: other.example.com/v1, kind: Thing, name: t, uid: u9}]}
---
apiVersion: v1
kind: PodList
items:
- metadata: {name: p, namespace: shop, uid: u3}
`
	file, err := offline.FromPrinted([]offline.Source{{Name: "x", In: strings.NewReader(text)}}, ended)
	must(t, err)
	s := offline.NewServer(file)
	for _, test := range []struct {
		path string
		code int
		has  string
	}{
		{"/apis", 200, `"version":"v1","freshness":"Stale"`},
		{"/apis/apps/v1/namespaces/shop/deployments/web", 200, `"kind":"Deployment"`},
		{"/apis/shop.example.com/v1/namespaces/shop/carts", 200, `"continue":"1.0"`},
		{"/apis/shop.example.com/v1/namespaces/shop/carts?continue=1.0", 503, "PartialList"},
		{"/api/v1/namespaces/shop/pods/p", 200, `"kind":"Pod"`},
		{"/api/v1/namespaces/shop/pods/q", 503, "NotInSnapshot"},
		{"/api/v1/namespaces/shop/secrets", 503, "NotInSnapshot"},
	} {
		if code, body := ask(t, s, test.path, asWhole); code != test.code || !strings.Contains(body, test.has) {
			t.Errorf("GET %s: %d: %s", test.path, code, body)
		}
	}
	if got := file.Header.ContextNamespace; got != "shop" {
		t.Errorf("the namespace is %q", got)
	}
}

func TestPrintedErrors(t *testing.T) {
	for text, says := range map[string]string{
		"":               "empty",
		"# nothing\n":    "no object",
		"hello":          "a JSON string where an object belongs",
		"- a\n- b":       "a JSON array where an object belongs",
		`{"kind":"Pod"}`: "without an apiVersion",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","labels":7}}`: `Pod "x": metadata.labels is a JSON number`,
		`{"apiVersion":`: "no JSON",
		"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
			"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]": "excessive aliasing",
	} {
		_, err := offline.FromPrinted([]offline.Source{{Name: "x", In: strings.NewReader(text)}}, ended)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want %q", text, err, says)
		}
	}
}

// secretive has a secret in every place where one may be.
const secretive = `{
	"apiVersion": "v1", "kind": "X", "data": {"k": "S3CRET"}, "stringData": {"k": "S3CRET"}, "binaryData": {"k": "S3CRET"},
	"metadata": {"name": "x", "namespace": "n", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "S3CRET", "vault/token": "S3CRET"},
		"finalizers": ["a/b"], "managedFields": [{"manager": "m", "operation": "Update", "fieldsV1": {"f:metadata": {"f:annotations": {"f:S3CRET": {}}, "f:finalizers": {"v:\"a/b\"": {}}}, "f:data": {"f:S3CRET": {}}}}]},
	"spec": {"password": "S3CRET", "csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"a": "S3CRET"}}, "nfs": {"path": "S3CRET"},
		"containers": [{"name": "c", "image": "i", "command": ["run", "--password=S3CRET"], "args": ["S3CRET", "--kubeconfig=S3CRET"], "env": [{"name": "A", "value": "S3CRET"}]}],
		"volumes": [{"name": "v", "configMap": {"name": "S3CRET"}}],
		"template": {"metadata": {"annotations": {"a": "S3CRET"}}, "spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "S3CRET"}]}]}},
		"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "c", "args": ["S3CRET"]}]}}}}},
	"status": {"password": "S3CRET", "conditions": [{"type": "Ready", "status": "False", "message": "broken"}]}
}`

// Nothing that may be a secret is held, of whatever type.
func TestReduce(t *testing.T) {
	for _, resource := range []string{"secrets", "configmaps", "pods", "deployments.apps", "statefulsets.apps", "cronjobs.batch", "jobs.batch", "persistentvolumes", "carts.shop.example.com", "widgets.example.com"} {
		var object map[string]any
		must(t, json.Unmarshal([]byte(secretive), &object))
		switch resource { // of these the spec is held, and has no such field
		case "pods", "deployments.apps", "statefulsets.apps", "cronjobs.batch", "jobs.batch", "persistentvolumes":
			spec := object["spec"].(map[string]any)
			delete(spec, "password")
			delete(object["status"].(map[string]any), "password")
			if resource != "persistentvolumes" {
				delete(spec, "csi")
				delete(spec, "nfs")
			}
			if resource != "pods" {
				delete(spec, "containers")
				delete(spec, "volumes")
			}
			if resource != "cronjobs.batch" {
				delete(spec, "jobTemplate")
			}
			if resource == "persistentvolumes" || resource == "cronjobs.batch" {
				delete(spec, "template")
			}
		}
		e, err := offline.NewEntry(schema.ParseGroupResource(resource), object)
		must(t, err)
		if strings.Contains(string(e.Object), "S3CRET") {
			t.Errorf("%s: %s", resource, e.Object)
		}
		if !strings.Contains(string(e.Object), `"v:\"a/b\""`) {
			t.Errorf("%s: who set the finalizer is lost: %s", resource, e.Object)
		}
	}
}

// Redacted names are nowhere, and the same everywhere: in other fields, and in what is said.
func TestRedact(t *testing.T) {
	var text bytes.Buffer
	w, err := offline.NewWriter(&text, offline.Header{Redacted: true, ContextNamespace: "umbra"})
	must(t, err)
	w.KeepOriginals()
	add := func(l offline.List, object string) {
		must(t, w.Begin(&l))
		must(t, w.Add(&offline.Entry{Object: []byte(object), Whole: true}))
		must(t, w.End(offline.End{}))
	}
	add(offline.List{Version: "v1", Resource: "nodes", Kind: "Node"}, `{"metadata":{"name":"umbra-node","uid":"1"},"status":{"conditions":[{"type":"Ready","status":"True","message":"umbra is fine"}]}}`)
	add(offline.List{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true},
		`{"metadata":{"name":"umbra-web-84cd44fcbb-x7x2z","namespace":"umbra","uid":"2","labels":{"app":"umbra"},"finalizers":["umbra.example.com/f","do-not-delete/umbra"],
		"managedFields":[{"manager":"umbra","fieldsV1":{"f:metadata":{"f:finalizers":{".":{},"v:\"do-not-delete/umbra\"":{}}}}}]},
		"spec":{"nodeName":"umbra-node","containers":[{"name":"c","image":"registry.umbra.com/umbra/web:1"}]},
		"status":{"message":"secrets \"umbra-db\" is forbidden: User \"system:serviceaccount:umbra:umbra-web\" cannot get resource \"secrets\" in API group \"\" in the namespace \"umbra\"","storage":"5Gi"}}`)
	must(t, w.Begin(&offline.List{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true, Namespace: "umbra"}))
	must(t, w.End(offline.End{Error: &metav1.Status{Message: "umbra may not", Reason: "Forbidden", Code: 403}}))
	must(t, w.Close(ended))
	all := strings.Join(texts(t, text.Bytes()), "")
	if strings.Contains(all, "umbra") {
		t.Errorf("a name is left:\n%s", all)
	}
	s := open(t, text.Bytes())
	names := list(t, s, "/api/v1/nodes?", asMetadata)
	_, pods := ask(t, s, "/api/v1/pods", asWhole)
	var got struct{ Items []redactedPod }
	must(t, json.Unmarshal([]byte(pods), &got))
	pod := got.Items[0]
	if diff := cmp.Diff(names, []string{"/" + pod.Spec.NodeName}); diff != "" {
		t.Errorf("the node of the pod has another name than the node:\n%s", diff)
	}
	if !regexp.MustCompile(`^x\w{9}-web-\w{10}-\w{5}$`).MatchString(strings.ReplaceAll(pod.Metadata.Name, wordFor(w, "web"), "web")) {
		t.Errorf("the pod %s does not look like one of a Deployment", pod.Metadata.Name)
	}
	umbra := wordFor(w, "umbra")
	for field, values := range map[string][2]string{
		"finalizer": {pod.Metadata.Finalizers[1], "do-not-delete/" + umbra},
		"manager":   {fmt.Sprint(pod.Metadata.ManagedFields), "do-not-delete/" + umbra},
		"message": {pod.Status.Message, `secrets "` + umbra + `-` + wordFor(w, "db") + `" is forbidden: User "system:serviceaccount:` + umbra + `:` + umbra + "-" + wordFor(w, "web") +
			`" cannot get resource "secrets" in API group "" in the namespace "` + umbra + `"`},
		"quantity": {pod.Status.Storage, "5Gi"},
	} {
		if !strings.Contains(values[0], values[1]) {
			t.Errorf("%s: %s has no %s", field, values[0], values[1])
		}
	}
}

// What tools delete depends on words that stay where they are options, and on names that are replaced within longer texts.
func TestRedactOptions(t *testing.T) {
	var text bytes.Buffer
	w, err := offline.NewWriter(&text, offline.Header{Redacted: true})
	must(t, err)
	w.KeepOriginals()
	must(t, w.Answer(&offline.Answer{Path: "/api/v1", Code: 200, Body: []byte(`{"resources":[{"name":"configmaps","kind":"ConfigMap"},{"name":"applications","kind":"Application","group":"argoproj.io"}]}`)}))
	e, err := offline.NewEntry(schema.GroupResource{Group: "argoproj.io", Resource: "applications"}, map[string]any{
		"metadata": map[string]any{"name": "umbra", "namespace": "umbra", "annotations": map[string]any{
			"argocd.argoproj.io/sync-options": "Delete=false, Prune=confirm,Umbra=true", "argocd.argoproj.io/sync-wave": "-5", "helm.sh/resource-policy": "keep",
			"kustomize.toolkit.fluxcd.io/prune": "Disabled", "argocd.argoproj.io/tracking-id": "umbra:/ConfigMap:umbra/umbra",
			"applyset.kubernetes.io/contains-group-kinds": "ConfigMap,Umbra.umbra.com", "applyset.kubernetes.io/additional-namespaces": "umbra,kube-system",
		}},
		"spec":   map[string]any{"destination": map[string]any{"server": "https://kubernetes.default.svc", "name": "in-cluster"}, "project": "umbra", "source": "S3CRET", "syncPolicy": map[string]any{"syncOptions": []any{"Delete=false"}}},
		"status": map[string]any{"controllerNamespace": "umbra", "resources": []any{map[string]any{"kind": "ConfigMap", "version": "v1", "name": "umbra", "namespace": "umbra"}}},
	})
	must(t, err)
	addList(t, w, offline.List{Group: "argoproj.io", Version: "v1", Resource: "applications", Kind: "Application", Namespaced: true}, e)
	must(t, w.Close(ended))
	umbra := wordFor(w, "umbra")
	_, got := ask(t, open(t, text.Bytes()), "/apis/argoproj.io/v1/namespaces/"+umbra+"/applications/"+umbra, asWhole)
	for _, want := range []string{
		`"Delete=false, Prune=confirm,` + wordFor(w, "Umbra") + `=true"`, `"-5"`, `"keep"`, `"Disabled"`, `"` + umbra + `:/ConfigMap:` + umbra + `/` + umbra + `"`,
		`"syncOptions":["Delete=false"]`, `"controllerNamespace":"` + umbra + `"`, `"ConfigMap,` + wordFor(w, "Umbra") + `.` + umbra + `.com"`, `"` + umbra + `,kube-system"`,
		`"https://kubernetes.default.svc"`, `"in-cluster"`, `"project":"` + umbra + `"`, `"name":"` + umbra + `","namespace":"` + umbra + `"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	for _, gone := range []string{"umbra", "Umbra", "S3CRET"} {
		if strings.Contains(got, gone) {
			t.Errorf("%s is in %s", gone, got)
		}
	}
}

// redactedPod is what TestRedact looks at.
type redactedPod struct {
	Metadata struct {
		Name          string
		Finalizers    []string
		ManagedFields []any
	}
	Spec   struct{ NodeName string }
	Status struct{ Message, Storage string }
}

// wordFor is what stands for a word.
func wordFor(w *offline.Writer, original string) string {
	for word, of := range w.Originals() {
		if of == original {
			return word
		}
	}
	return original
}

// A file of 50,000 objects is written and read without most of it being in memory.
func TestBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 50,000 objects")
	}
	path := filepath.Join(t.TempDir(), "large.snapshot")
	out, err := os.Create(path)
	must(t, err)
	w, err := offline.NewWriter(out, offline.Header{})
	must(t, err)
	must(t, w.Begin(&offline.List{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}))
	most := newPeak()
	for i := range 50_000 {
		must(t, w.Add(&offline.Entry{Object: fmt.Appendf(nil, `{"metadata":{"name":"object-%06d","namespace":"n","uid":"%08x-0000-4000-8000-%012x","resourceVersion":"%d","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"a%d"}}}`, i, i*7919, i*104729, i, i%50)}))
		if i%10_000 == 0 {
			most.look()
		}
	}
	must(t, w.End(offline.End{}))
	must(t, w.Close(ended))
	info, err := out.Stat()
	must(t, err)
	f, err := offline.Open(out, info.Size())
	must(t, err)
	s := offline.NewServer(f)
	count := 0
	for token := ""; ; {
		_, body := ask(t, s, "/api/v1/configmaps?limit=500&continue="+token, asMetadata)
		var page struct {
			Metadata metav1.ListMeta   `json:"metadata"`
			Items    []json.RawMessage `json:"items"`
		}
		must(t, json.Unmarshal([]byte(body), &page))
		if count += len(page.Items); count%10_000 == 0 {
			most.look()
		}
		if token = page.Metadata.Continue; token == "" {
			break
		}
	}
	must(t, out.Close())
	t.Logf("%d objects in %d kB; at most %d kB of heap more", count, info.Size()/1000, most.more()/1000)
	if count != 50_000 || most.more() > 20<<20 {
		t.Errorf("%d objects; %d bytes of heap more", count, most.more())
	}
}

// peak is the most heap that was in use.
type peak struct{ base, most uint64 }

func newPeak() *peak {
	p := &peak{}
	p.look()
	p.base = p.most
	return p
}

func (p *peak) look() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	p.most = max(p.most, m.HeapAlloc)
}

func (p *peak) more() uint64 { return p.most - p.base }
