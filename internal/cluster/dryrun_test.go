// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/testnet"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// dryRunner connects a DryRunner.
func (s *apiServer) dryRunner() *DryRunner {
	s.t.Helper()
	d, err := NewDryRunner(&s.stats, &rest.Config{Dial: testnet.Dial, Host: s.URL}, "tester")
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// writes returns the requests that are no reads, with their bodies.
func (s *apiServer) writes() []string {
	var sent []string
	for _, r := range s.log {
		if r.method != http.MethodGet {
			sent = append(sent, r.method+" "+r.path+" "+r.query+" "+strings.TrimSpace(r.body))
		}
	}
	return sent
}

// A dry run sends what the step would, with the object as it was read, and says
// what it is in the parameters as well as in the body.
func TestDryRun(t *testing.T) {
	s := newAPIServer(t)
	s.add("pods shop/p rv=5 finalizers=orphan < v1:Node:n@n")
	d := s.dryRunner()
	snapshot := s.snapshot(s.reader(Options{}), Scope{})
	p := found(t, snapshot, "p")
	later, version := p, "9"
	later.ResourceVersion = version
	policy := metav1.DeletePropagationOrphan
	steps := []gc.Step{
		{Action: gc.ActionDelete, Object: later, Options: metav1.DeleteOptions{
			PropagationPolicy: &policy, GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{ResourceVersion: &version},
		}},
		{Action: gc.ActionRemoveOwnerReferences, Object: later, Patch: gc.Patch{RemoveOwners: []types.UID{"n"}}},
		{Action: gc.ActionRemoveFinalizer, Object: later, Patch: gc.Patch{RemoveFinalizer: "orphan"}},
	}
	for _, step := range steps {
		if err := d.Ask(t.Context(), step, snapshot); err != nil {
			t.Errorf("%s: %v", step.Action, err)
		}
	}
	same(t, "sent", `DELETE /api/v1/namespaces/shop/pods/p dryRun=All {"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"preconditions":{"uid":"p","resourceVersion":"5"},"propagationPolicy":"Orphan","dryRun":["All"]}
		PATCH /api/v1/namespaces/shop/pods/p dryRun=All&fieldManager=tester [{"op":"test","path":"/metadata/uid","value":"p"},{"op":"test","path":"/metadata/resourceVersion","value":"5"},{"op":"test","path":"/metadata/ownerReferences/0/uid","value":"n"},{"op":"remove","path":"/metadata/ownerReferences/0"}]
		PATCH /api/v1/namespaces/shop/pods/p dryRun=All&fieldManager=tester [{"op":"test","path":"/metadata/uid","value":"p"},{"op":"test","path":"/metadata/resourceVersion","value":"5"},{"op":"test","path":"/metadata/finalizers/0","value":"orphan"},{"op":"remove","path":"/metadata/finalizers/0"}]`, s.writes())
	if r := s.log[len(s.log)-3]; r.contentType != "application/json" || r.accept != metadataOnly {
		t.Errorf("the DELETE is %s and wants %s", r.contentType, r.accept)
	}
	if got := s.stats.String(); !strings.Contains(got, ", 3 dry runs; ") {
		t.Errorf("counted %s", got)
	}
	if steps[0].Options.DryRun != nil || *steps[0].Options.Preconditions.ResourceVersion != "9" {
		t.Errorf("the step was changed: %+v", steps[0].Options)
	}
	s.on("DELETE", "/api/v1/namespaces/shop/pods/p", 1, forbidden())
	if err := d.Ask(t.Context(), steps[0], snapshot); !apierrors.IsForbidden(err) {
		t.Errorf("refused: %v", err)
	}
	stranger := gc.Step{Object: graph.Object{Resource: p.Resource, Namespace: "shop", Name: "x", UID: "x"}}
	if err := d.Ask(t.Context(), stranger, snapshot); err == nil || err.Error() != "Pod/shop/x is not in the snapshot" {
		t.Errorf("an unknown object: %v", err)
	}
}

// Nothing is sent to an API that may not know dry runs, and what serves a group
// is found out once.
func TestDryRunOfAggregated(t *testing.T) {
	const registered = "/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com"
	for name, test := range map[string]struct {
		spec string // of the APIService; empty when it cannot be read
		why  string
	}{
		"a definition":    {`{"group":"example.com"}`, ""},
		"aggregated":      {`{"service":{"namespace":"a","name":"a"}}`, "an aggregated API might not support dry runs"},
		"not to be known": {"", "whether an aggregated API serves it could not be read: forbidden"},
	} {
		s := newAPIServer(t)
		s.add("widgets shop/w finalizers=orphan\nwidgets shop/v\npods shop/p")
		if s.raw[registered] = `{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1","spec":` + test.spec + `}`; test.spec == "" {
			s.on("GET", registered, always, forbidden())
		}
		d := s.dryRunner()
		snapshot := s.snapshot(s.reader(Options{}), Scope{})
		for _, step := range []gc.Step{
			{Action: gc.ActionDelete, Object: found(t, snapshot, "w")},
			{Action: gc.ActionRemoveFinalizer, Object: found(t, snapshot, "w"), Patch: gc.Patch{RemoveFinalizer: "orphan"}},
			{Action: gc.ActionDelete, Object: found(t, snapshot, "v")},
		} {
			err := d.Ask(t.Context(), step, snapshot)
			if asked := err == nil; asked != (test.why == "") || !asked && (!errors.As(err, new(NotAskedError)) || err.Error() != test.why) {
				t.Errorf("%s: %s: %v", name, step.Action, err)
			}
		}
		if sent := s.writes(); (len(sent) > 0) != (test.why == "") {
			t.Errorf("%s: sent %q", name, sent)
		}
		if n := len(s.asked("GET", registered)); n != 1 {
			t.Errorf("%s: the APIService was read %d times", name, n)
		}
		if err := d.Ask(t.Context(), gc.Step{Action: gc.ActionDelete, Object: found(t, snapshot, "p")}, snapshot); err != nil {
			t.Errorf("%s: a built-in type: %v", name, err)
		}
	}
}

// Whatever a DryRunner is made to do, its transport lets only dry runs through.
func TestDryRunnerCannotWrite(t *testing.T) {
	s := newAPIServer(t)
	s.add("pods shop/p < v1:Node:n@n")
	d := s.dryRunner()
	d.sender.dryRun = nil
	o := found(t, s.snapshot(s.reader(Options{}), Scope{}), "p")
	p := o.Identity()
	remove, create := remedy.DeleteOf(p, metav1.DeleteOptions{}), remedy.Op{Verb: remedy.Create, Object: p}
	patch := remedy.PatchOf(p, remedy.Remove("/metadata/ownerReferences/0"))
	for what, err := range map[string]error{
		"a DELETE": d.ask(t.Context(), remove),
		"a PATCH":  d.ask(t.Context(), patch),
		"a POST":   d.ask(t.Context(), create),
		"a DELETE that is one by its parameters alone": d.sender.rest.Delete().AbsPath("/api/v1/namespaces/shop/pods/p").
			Param("dryRun", metav1.DryRunAll).Body([]byte("{}")).Do(t.Context()).Error(),
	} {
		if err == nil || !strings.Contains(err.Error(), "a dry run tried to send ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if sent := s.writes(); sent != nil {
		t.Errorf("sent %q", sent)
	}
}

func TestBadDryRunnerConfig(t *testing.T) {
	config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: "/nonexistent"}}
	if _, err := NewDryRunner(&Stats{}, config, ""); err == nil || !strings.HasPrefix(err.Error(), "configuring the client: ") {
		t.Errorf("got error %v", err)
	}
}

// TestProbesChangeNothing lists what the transport of a Prober and of a DryRunner
// lets through.
func TestProbesChangeNothing(t *testing.T) {
	const object = "https://h/api/v1/namespaces/n/configmaps/c"
	for _, test := range []struct {
		method, url, body string
		want              bool
	}{
		{"PATCH", object + "?dryRun=All", "{}", true},
		{"PATCH", object, "{}", false},
		{"PATCH", object + "?dryRun=", "{}", false},
		{"PATCH", object + "?dryRun=None", "{}", false},
		{"PATCH", object + "?dryRun=All&dryRun=None", "{}", false},
		{"PATCH", object + "?dryrun=All", "{}", false},
		{"DELETE", object + "?dryRun=All", "", true},
		{"DELETE", object, "", false},
		{"DELETE", object + "?dryRun=All", "{}", false}, // the body wins over the parameters
		{"DELETE", object + "?dryRun=All", `{"dryRun":["All"]}`, true},
		{"DELETE", object, `{"dryRun":["All"]}`, false}, // for whoever does not read it
		{"DELETE", object + "?dryRun=None", `{"dryRun":["All"]}`, false},
		{"DELETE", object + "?dryRun=All", `{"dryRun":[]}`, false},
		{"DELETE", object + "?dryRun=All", `{"dryRun":["All","None"]}`, false},
		{"DELETE", object + "?dryRun=All", `{"DRYRUN":["All"]}`, false}, // no field of DeleteOptions
		{"DELETE", object + "?dryRun=All", "k8s\x00", false},
		{"POST", object + "?dryRun=All", "{}", true},
		{"POST", object, "{}", false},
		{"PUT", object + "?dryRun=All", "{}", true},
		{"PUT", object, "{}", false},
		{"HEAD", object, "", false},
		{"GET", object, "", true},
	} {
		var request *http.Request
		var err error
		if test.body == "" {
			request, err = http.NewRequest(test.method, test.url, http.NoBody)
		} else {
			request, err = http.NewRequest(test.method, test.url, strings.NewReader(test.body))
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := changesNothing(request); got != test.want {
			t.Errorf("changesNothing(%s %s %q) = %t, want %t", test.method, test.url, test.body, got, test.want)
		}
	}
}
