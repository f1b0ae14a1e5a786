// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// told is what the report says of a cause: its summary, its evidence, and its
// remedies with what their commands do.
func told(t *testing.T, report *explain.Report, id string) string {
	t.Helper()
	for _, c := range report.Causes {
		if c.ID != id {
			continue
		}
		var text strings.Builder
		text.WriteString(c.Object.String() + ": " + c.Summary.String() + "\n")
		for _, e := range c.Evidence {
			text.WriteString(strings.Join(strings.Fields(e.Key()), " ") + "\n")
		}
		for _, r := range c.Remedies {
			text.WriteString("[" + string(r.Risk) + "] " + strings.TrimSpace(verb(r.Command)+" "+r.Effect.String()) + "\n")
			if leaks := r.Leaks(); leaks != "" {
				text.WriteString("  loses: " + leaks + "\n")
			}
		}
		return text.String()
	}
	t.Fatalf("no %s among the causes", id)
	return ""
}

// verb says in a word or two what a command does to what.
func verb(command string) string {
	switch {
	case command == "":
		return ""
	case strings.Contains(command, "delete --raw "):
		_, path, _ := strings.Cut(command, "delete --raw ")
		return "DELETE " + path[strings.LastIndex(path, "/")+1:strings.Index(path, " ")] + ":"
	case strings.Contains(command, `"op":"remove"`):
		return "REMOVE:"
	case strings.Contains(command, `"op":"replace"`), strings.Contains(command, `"op":"add"`):
		return "PATCH:"
	}
	return strings.TrimPrefix(command, "kubectl ") + ":"
}

const (
	deniedUpdate = "answer PATCH ConfigMap/s/b 422 : ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no\n"
	deniedDelete = "answer DELETE ConfigMap/s/b 422 : ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no\n"
	owner        = "ConfigMap/s/a deleted=60 finalizers=foregroundDeletion\n"
)

var remedyCases = []struct{ name, cluster, id, want string }{
	{"a dependent that another owner keeps, and that may not be changed", alive + policy + owner + deniedUpdate + `
ConfigMap/s/live
ConfigMap/s/b owners=ConfigMap/a!,ConfigMap/live`, "gc-fg-denied",
		`ConfigMap/s/b: the garbage collector cannot remove its reference to ConfigMap/s/a (ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no), and retries with back-off (up to 17m)
ConfigMap/s/b metadata.ownerReferences[1]: ConfigMap/live, which exists, so the garbage collector keeps the dependent
a dry-run PATCH of ConfigMap/s/b : : ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no
[safe] REMOVE: switch the owner to background deletion: it is deleted at once; ConfigMap/s/b is kept, because ConfigMap/live owns it as well, and its reference to the owner dangles until it can be changed
[safe] REMOVE: once a change of ConfigMap/s/b is no longer refused: remove its reference to the owner, as the garbage collector tries to do; ConfigMap/s/b is kept, because ConfigMap/live owns it as well
`},
	{"a dependent that may not be deleted", alive + policy + owner + deniedDelete + `
ConfigMap/s/b owners=ConfigMap/a!`, "gc-fg-denied",
		`ConfigMap/s/b: the garbage collector cannot delete it (ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no), and retries with back-off (up to 17m)
ConfigMap/s/b metadata.deletionTimestamp: not set
a dry-run DELETE of ConfigMap/s/b : : ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no
[safe] REMOVE: switch the owner to background deletion: it is deleted at once; ConfigMap/s/b is kept, with a dangling reference, until its deletion is no longer refused
[disruptive] PATCH: set blockOwnerDeletion: false on ConfigMap/s/b; ConfigMap/s/b is kept, with a dangling reference, until its deletion is no longer refused
[disruptive] REMOVE: remove the reference to the owner, which then does not wait for ConfigMap/s/b
  loses: ConfigMap/s/b, which has no owner then, so the garbage collector does not delete it
[dangerous] DELETE b: once that is no longer refused: delete ConfigMap/s/b without waiting for the garbage collector's next attempt
  loses: ConfigMap/s/b, which is not being deleted
`},
	{"a dependent that may neither be deleted nor changed, of an owner that may not be deleted again", alive + policy + owner + deniedDelete + deniedUpdate +
		strings.Replace(deniedDelete, "/b ", "/a ", 1) + `
ConfigMap/s/b owners=ConfigMap/a!`, "gc-fg-denied",
		`ConfigMap/s/b: the garbage collector cannot delete it (ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no), and retries with back-off (up to 17m)
ConfigMap/s/b metadata.deletionTimestamp: not set
a dry-run DELETE of ConfigMap/s/b : : ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no
[safe] REMOVE: switch the owner to background deletion: it is deleted at once; ConfigMap/s/b is kept, with a dangling reference, until its deletion is no longer refused
[disruptive] PATCH: once a change of ConfigMap/s/b is no longer refused: set blockOwnerDeletion: false on ConfigMap/s/b; ConfigMap/s/b is kept, with a dangling reference, until its deletion is no longer refused
[disruptive] REMOVE: once a change of ConfigMap/s/b is no longer refused: remove the reference to the owner, which then does not wait for ConfigMap/s/b
  loses: ConfigMap/s/b, which has no owner then, so the garbage collector does not delete it
[dangerous] DELETE b: once that is no longer refused: delete ConfigMap/s/b without waiting for the garbage collector's next attempt
  loses: ConfigMap/s/b, which is not being deleted
`},
	{"two dependents that may not be deleted, of a pod in its grace period", alive + node + policy + deniedDelete + strings.Replace(deniedDelete, "/b ", "/c ", 1) + `
Pod/s/a deleted=60 grace=600 finalizers=foregroundDeletion {"spec":{"nodeName":"n"}}
ConfigMap/s/b owners=Pod/a!
ConfigMap/s/c owners=Pod/a!`, "gc-fg-denied",
		`ConfigMap/s/b: the garbage collector cannot delete it (ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no), and retries with back-off (up to 17m)
ConfigMap/s/b metadata.deletionTimestamp: not set
a dry-run DELETE of ConfigMap/s/b : : ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no
ConfigMap/s/c metadata.deletionTimestamp: not set
[safe] REMOVE: switch the owner to background deletion: it is deleted once its kubelet has stopped it; ConfigMap/s/b is kept, with a dangling reference, until its deletion is no longer refused
[disruptive] PATCH: set blockOwnerDeletion: false on ConfigMap/s/b; ConfigMap/s/b is kept, with a dangling reference, until its deletion is no longer refused
[disruptive] REMOVE: remove the reference to the owner, which then does not wait for ConfigMap/s/b
  loses: ConfigMap/s/b, which has no owner then, so the garbage collector does not delete it
[dangerous] DELETE b: once that is no longer refused: delete ConfigMap/s/b without waiting for the garbage collector's next attempt
  loses: ConfigMap/s/b, which is not being deleted
`},
	{"a dependent that is being deleted", alive + owner + `
ConfigMap/s/b deleted=60 finalizers=example.com/x owners=ConfigMap/a!`, "fin-absent",
		`ConfigMap/s/b: no controller in the cluster removes the finalizer example.com/x
searched: SEARCHED
ConfigMap/s/b metadata.finalizers[0]: example.com/x
ConfigMap/s/b metadata.managedFields: no entry: unclear who set its finalizers and who has written to it
[safe] reinstall the controller of example.com/x: it cleans up and removes the finalizer
[disruptive] REMOVE: ConfigMap/s/a alone: switch the owner to background deletion: it is deleted at once; ConfigMap/s/b is terminating until its own blocker is cleared
[dangerous] REMOVE: remove this finalizer alone, once you have done its cleanup yourself
  loses: whatever its controller would have cleaned up, e.g. cloud resources
`},
	{"a dependent that is being deleted, and that may not be changed", alive + policy + owner + deniedUpdate + `
ConfigMap/s/b deleted=60 finalizers=example.com/x owners=ConfigMap/a!`, "adm-vap-deny",
		`ValidatingAdmissionPolicy/p: the policy rejects updates of ConfigMap/s/b ("no")
a dry-run PATCH of ConfigMap/s/b : : ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no
ValidatingAdmissionPolicyBinding/x spec.policyName: p
[safe] get validatingadmissionpolicy/p -o yaml: check what the policy requires, then change the object so that it complies
[disruptive] REMOVE: ConfigMap/s/a alone: switch the owner to background deletion: it is deleted at once; ConfigMap/s/b is terminating until its own blocker is cleared
`},
	{"an owner with a finalizer of its own, and a reference that cannot be resolved", alive + `
ConfigMap/s/a deleted=60 finalizers=example.com/y,foregroundDeletion
ConfigMap/s/live
ConfigMap/s/b owners=ConfigMap/a!,Other/o,ConfigMap/live`, "gc-fg-owner-unresolvable",
		`ConfigMap/s/b: it also references other.example.com/v1 Other, which the server does not serve; the garbage collector cannot resolve that owner, and ignores the dependent
ConfigMap/s/b metadata.ownerReferences[1]: other.example.com/v1 Other/o (Unresolvable)
ConfigMap/s/a metadata.finalizers: foregroundDeletion
[safe] REMOVE: switch the owner to background deletion: it is deleted once its other finalizers are removed; the dependent is kept
[disruptive] REMOVE: remove the reference that cannot be resolved; at its next attempt, up to 17 minutes later, the garbage collector also removes the one to the owner, and keeps the dependent because ConfigMap/live owns it
[dangerous] DELETE b: delete the dependent, which the owner waits for
  loses: the dependent, which the garbage collector ignores and which ConfigMap/live also owns
`},
	{"one dependent that may not be released", alive + policy + deniedUpdate + `
ConfigMap/s/a deleted=60 finalizers=orphan
ConfigMap/s/b owners=ConfigMap/a`, "gc-orphan-pending",
		`ConfigMap/s/a: 1 dependent still references it, and the references cannot be removed; a delete in another way would now delete the dependents that have no other owner (ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no)
ConfigMap/s/a metadata.finalizers: orphan
a dry-run PATCH of ConfigMap/s/b : : ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no
[safe] REMOVE: remove the reference now, once nothing rejects that any more; the garbage collector retries within 17 minutes
`},

	{"a webhook whose namespace is being deleted", alive + held + validating("") + "answer PATCH ConfigMap/s/a " + calling + `
Namespace/x deleted=5 {"spec":{"finalizers":["kubernetes"]}}`, "adm-webhook-dead",
		`ValidatingWebhookConfiguration/w: its webhook w.example.com is unreachable: Service/x/hook does not exist, so every write that it covers is rejected (failurePolicy: Fail); it cannot be repaired in place: its namespace x is being deleted, and nothing can be created there
a dry-run PATCH of ConfigMap/s/a : Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: no route
ValidatingWebhookConfiguration/w webhooks[0].clientConfig: service x/hook
ValidatingWebhookConfiguration/w webhooks[0].failurePolicy: Fail
Service/x/hook : does not exist
Namespace/x : is being deleted, so nothing can be created in it
[disruptive] DELETE w: delete the left-over configuration (a backup is saved)
  loses: writes bypass the webhooks from now on, in any namespace: pending deletions resume
[dangerous] PATCH: exempt the namespace s from the webhook
  loses: writes bypass the webhook in that namespace: pending deletions resume there
`},
	{"a webhook whose namespace does not exist", alive + held + validating("") + "answer PATCH ConfigMap/s/a " + calling, "adm-webhook-dead",
		`ValidatingWebhookConfiguration/w: its webhook w.example.com is unreachable: Service/x/hook does not exist, so every write that it covers is rejected (failurePolicy: Fail)
a dry-run PATCH of ConfigMap/s/a : Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: no route
ValidatingWebhookConfiguration/w webhooks[0].clientConfig: service x/hook
ValidatingWebhookConfiguration/w webhooks[0].failurePolicy: Fail
Service/x/hook : does not exist
Namespace/x : does not exist
[disruptive] DELETE w: delete the left-over configuration (a backup is saved)
  loses: writes bypass the webhooks from now on, in any namespace: pending deletions resume
[dangerous] PATCH: exempt the namespace s from the webhook
  loses: writes bypass the webhook in that namespace: pending deletions resume there
`},
	{"an API whose namespace is being deleted, and waits for it", alive + `
APIService/v1.m.example.com {"spec":{"service":{"name":"svc","namespace":"s"}},"status":{"conditions":[{"type":"Available","status":"False","reason":"MissingEndpoints","message":"none"}]}}
Service/s/svc {"spec":{"selector":{"app":"svc"}}}
Deployment/s/svc {"spec":{"replicas":0,"selector":{"matchLabels":{"app":"svc"}},"template":{"metadata":{"labels":{"app":"svc"}},"spec":{"containers":[{"name":"c"}]}}}}
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionDiscoveryFailure","status":"True","reason":"DiscoveryFailed","message":"m"}]}}`, "ns-discovery",
		`APIService/v1.m.example.com: the API of this APIService does not respond, so no namespace deletion can finish (MissingEndpoints: none); it cannot be repaired in place: its namespace s is being deleted, and nothing can be created there
APIService/v1.m.example.com status.conditions[Available]: False (MissingEndpoints): none
Service/s/svc : exists, with 0 ready endpoints
Namespace/s : is being deleted, so nothing can be created in it
Pods in namespace s : none matches the selector app=svc
Deployment/s/svc spec.replicas: 0
Namespace/s status.conditions[NamespaceDeletionDiscoveryFailure]: True (DiscoveryFailed): m
[dangerous] DELETE v1.m.example.com: unregister the API, if its product was uninstalled
  loses: everything that the API stored in the namespaces
`},

	{"a claim of two pods, of which one is on a node that does not report", alive + node + `
Node/dead {"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown"}]}}
PersistentVolumeClaim/s/c deleted=60 finalizers=kubernetes.io/pvc-protection
Pod/s/p deleted=60 grace=10 {"spec":{"nodeName":"dead","volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"c"}}]}}
Pod/s/q {"spec":{"nodeName":"dead","volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"c"}}]}}`, "pvc-in-use",
		`Pod/s/q: the pod uses the claim c and is not being deleted
Pod/s/q spec.volumes: persistentVolumeClaim c
Pod/s/q status.phase:
Pod/s/q metadata.deletionTimestamp: not set
Node/dead status.conditions[Ready]: Unknown (NodeStatusUnknown)
[dangerous] DELETE q: delete the pod, after which 1 other pod still blocks the claim; the pod is kept until node dead, which is NotReady, recovers, is deleted, or is marked out-of-service
  loses: the data of the claim, unless its volume is retained; Pod/s/q, which is not being deleted
`},
	{"a claim with a finalizer of another's, of a pod whose node does not exist", alive + `
PersistentVolumeClaim/s/c deleted=60 finalizers=example.com/x,kubernetes.io/pvc-protection
Pod/s/q {"spec":{"nodeName":"gone","volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"c"}}]}}`, "pvc-in-use",
		`Pod/s/q: the pod uses the claim c and is not being deleted
Pod/s/q spec.volumes: persistentVolumeClaim c
Pod/s/q status.phase:
Pod/s/q metadata.deletionTimestamp: not set
Node/gone : does not exist
[dangerous] DELETE q: delete the pod, after which no pod blocks the claim; its node gone does not exist, so the pod garbage collector removes the pod within a few minutes
  loses: the data of the claim, unless its volume is retained; Pod/s/q, which is not being deleted
`},
	{"a node without conditions", alive + `
Node/dead
Pod/s/p deleted=60 grace=10 {"spec":{"nodeName":"dead"}}`, "pod-node-notready",
		`Node/dead: the node is NotReady; unclear whether its kubelet reports
Node/dead status.conditions[Ready]: not set
Lease/kube-node-lease/dead : does not exist
[safe] describe node dead: repair the machine or its kubelet; its pods then end
[dangerous] taint nodes dead node.kubernetes.io/out-of-service=nodeshutdown:NoExecute: only if the machine is proven to be off: mark the node out-of-service, so that its pods, live ones included, are deleted and their volumes detached; remove the taint afterwards
  loses: two pods might write the same data if the machine still runs
`},

	{"what nobody deletes and a policy guards", alive + policy + `
ConfigMap/s/a
answer ASK ConfigMap/s/a
answer DELETE ConfigMap/s/a 422 : ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no`, "not-terminating",
		`ConfigMap/s/a: a DELETE of it would be refused, by ValidatingAdmissionPolicy/p [adm-vap-deny] ("no")
a dry-run DELETE of ConfigMap/s/a : : ValidatingAdmissionPolicy 'p' with binding 'x' denied request: no
ValidatingAdmissionPolicyBinding/x spec.policyName: p
[safe] get validatingadmissionpolicy/p -o yaml: check what the policy requires, then change the object so that it complies; then send the DELETE again
`},
	{"dependents outside the namespace that could be read", alive + `
unlisted configmaps s
unlisted widgets s
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion`, "gc-fg-blocking",
		`ConfigMap/s/a: no blocking dependent was found, but configmaps and 1 more could not be listed outside namespace s
ConfigMap/s/a metadata.finalizers: foregroundDeletion
`},
	{"dependents of which some could be read in one namespace", alive + `
unlisted configmaps s
unlisted widgets
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion`, "gc-fg-blocking",
		`ConfigMap/s/a: no blocking dependent was found, but configmaps (outside namespace s) and 1 more could not be listed
ConfigMap/s/a metadata.finalizers: foregroundDeletion
`},
}

// TestRemedies holds the words with which causes and their remedies are told:
// each must be true of the object as it was read.
func TestRemedies(t *testing.T) {
	for _, c := range remedyCases {
		t.Run(c.name, func(t *testing.T) {
			got := told(t, parse(t, c.cluster).report(t), c.id)
			if before, searched, found := strings.Cut(got, "\nsearched : "); found {
				_, rest, _ := strings.Cut(searched, "\n")
				got = before + "\nsearched: SEARCHED\n" + rest
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestOperations: what a remedy says that a program would do is done to no other object than the one that was
// looked at, and as it was looked at.
func TestOperations(t *testing.T) {
	verbs := map[remedy.Verb]int{}
	guarded := func(o *remedy.Op) bool {
		switch o.Verb {
		case remedy.Delete:
			unsafe := o.Options.IgnoreStoreReadErrorWithClusterBreakingPotential != nil // of what cannot be read
			return unsafe || o.Object.UID != "" && o.Options.Preconditions != nil && *o.Options.Preconditions.UID == o.Object.UID
		case remedy.Patch:
			return len(o.Patch) > 1 && o.Patch[0] == remedy.Test("/metadata/uid", o.Object.UID)
		case remedy.Finalize, remedy.Taint, remedy.Annotate:
			return o.Value != "" && o.Object.UID != ""
		case remedy.Scale:
			return o.Replicas != nil && o.Object.UID != ""
		case remedy.Restart, remedy.Resume:
			return o.Object.UID != ""
		case remedy.Create:
			return o.Object.Resource.Kind != ""
		}
		return o.Verb == remedy.Collect
	}
	for _, cluster := range clusters(t) {
		for _, cause := range parse(t, cluster).report(t).Causes {
			for _, r := range cause.Remedies {
				if r.Operation == nil {
					continue
				}
				verbs[r.Operation.Verb]++
				if !guarded(r.Operation) || r.Operation.Back != nil && r.Operation.Back.Verb == remedy.Patch && !guarded(r.Operation.Back) {
					t.Errorf("nothing guards %+v\n%s", r.Operation, r.Command)
				}
			}
		}
	}
	t.Logf("changes in the scenarios: %v", verbs)
	for _, verb := range []remedy.Verb{
		remedy.Delete, remedy.Patch, remedy.Scale, remedy.Restart, remedy.Finalize, remedy.Taint, remedy.Annotate, remedy.Create, remedy.Collect,
	} {
		if verbs[verb] == 0 {
			t.Errorf("no scenario has a remedy with %s", verb)
		}
	}
}

// What has to be done to each of many objects is there for a few of them, or for each.
func TestEach(t *testing.T) {
	var pods, widgets strings.Builder
	for i := range 8 {
		fmt.Fprintf(&pods, "Pod/s/p%d deleted=60 grace=30 {\"spec\":{\"nodeName\":\"gone\"}}\n", i)
		fmt.Fprintf(&widgets, "Widget/s/w%d deleted=60 finalizers=%s\n", i, fin)
	}
	for _, c := range []struct {
		id, cluster string
		few         int
	}{
		{"pod-node-gone", alive + pods.String(), 5},
		{"fin-absent", alive + widgetCRD + widgets.String(), 3},
	} {
		for _, each := range []bool{false, true} {
			s := parse(t, c.cluster)
			s.each = each
			of := map[graph.Identity]bool{}
			for _, cause := range s.report(t).Causes {
				for _, r := range cause.Remedies {
					if cause.ID == c.id && r.Operation != nil {
						of[r.Operation.Object] = true
					}
				}
			}
			want := c.few
			if each {
				want = 8
			}
			if len(of) != want {
				t.Errorf("%s, each=%t: operations on %d objects, not %d", c.id, each, len(of), want)
			}
		}
	}
}

// TestPromises: what is safe loses nothing and interrupts nothing, what is disruptive loses nothing, and what is only for a while can be taken
// back. An object that nobody has deleted is deleted by what is dangerous alone, and named, or is saved before.
func TestPromises(t *testing.T) {
	for _, cluster := range clusters(t) {
		s := parse(t, cluster)
		g := s.Graph()
		for _, cause := range s.report(t).Causes {
			for i := range cause.Remedies {
				r := &cause.Remedies[i]
				fail := func(what string) { t.Errorf("%s: %s: %s\n%s", what, r.Risk, r.Effect, r.Command) }
				for _, l := range r.Loss {
					final := l.Kind == remedy.LosesData || l.Kind == remedy.CorruptsData || l.Kind == remedy.LosesObject
					if r.Risk == explain.Safe || final && r.Risk != explain.Dangerous {
						fail("loses " + l.What.String())
					}
				}
				op := r.Operation
				if op == nil {
					continue
				}
				n, known := g.Node(op.Object.UID)
				bypasses := slices.ContainsFunc(r.Loss, func(l remedy.Loss) bool { return l.Kind == remedy.Unguards }) && op.Verb == remedy.Patch
				switch stays := !known || !n.BeingDeleted(); {
				case op.Verb == remedy.Delete && stays && (r.Risk != explain.Dangerous && !op.Save || len(r.Loss) == 0):
					fail("deletes what nobody has deleted")
				case bypasses && !r.Temporary, r.Temporary && op.Back == nil:
					fail("is not taken back")
				case op.Verb == remedy.Restart && op.Object.Resource.IsPod():
					fail("restarts a pod")
				}
			}
		}
	}
}
