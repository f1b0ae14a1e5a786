// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// maxShown is the number of objects that a cause names; more are counted.
const maxShown = 5

// finalizer returns what the object's finalizer waits for.
func (w *walker) finalizer(n graph.Node, index int, finalizer string) []hold {
	resource := n.Object().Resource.GroupResource().String()
	switch {
	case finalizer == metav1.FinalizerDeleteDependents:
		return w.foreground(n)
	case finalizer == metav1.FinalizerOrphanDependents:
		return w.orphan(n)
	case finalizer == "customresourcecleanup.apiextensions.k8s.io" && resource == "customresourcedefinitions.apiextensions.k8s.io":
		return w.instances(n)
	case finalizer == "kubernetes.io/pvc-protection" && resource == "persistentvolumeclaims":
		return w.claim(n)
	case finalizer == "kubernetes.io/pv-protection" && resource == "persistentvolumes":
		return w.volume(n)
	}
	h := hold{because: "finalizer " + finalizer, cause: w.foreign(n, index, finalizer)}
	if resource == "pods" {
		h.symptom = "pod-finalizer"
	}
	return []hold{h}
}

// foreign is a finalizer of a controller outside this program. Objects of a
// type that wait for the same finalizer share the cause.
func (w *walker) foreign(n graph.Node, index int, finalizer string) *Cause {
	resource := n.Object().Resource.GroupResource()
	id := "fin-unknown"
	if resource.String() == "namespaces" {
		id = "ns-meta-finalizers"
	}
	c := w.shared(id+" "+finalizer+" "+resource.String(), id, n.Identity(), func(c *Cause) {
		c.Summary = fmt.Sprintf("the finalizer %s is there, and whether its controller works is not looked at yet", finalizer)
		c.Controller = w.Owner(finalizer, n.Object().Resource.GroupVersionKind().GroupKind())
		if c.Controller != nil {
			c.Summary = fmt.Sprintf("%s has not removed the finalizer %s; whether it works is not looked at yet", c.Controller.Name, finalizer)
		}
		c.Remedies = []Remedy{{
			Risk: Safe, Command: fmt.Sprintf("%s get %s -o yaml", w.kubectl(n), target(n)),
			Effect: "shows the status and conditions that the controller of the finalizer has written: make it work, or install it again, and it cleans up and takes the finalizer off",
		}}
	})
	w.members[c] = append(w.members[c], n)
	if len(w.members[c]) <= maxShown {
		c.Evidence = append(c.Evidence, field(n, fmt.Sprintf("metadata.finalizers[%d]", index), finalizer))
		c.Evidence = append(c.Evidence, w.author(n, finalizer)...)
	}
	return c
}

// finish completes a cause when all its objects are known.
func (w *walker) finish(c *Cause) {
	if more := len(w.members[c]) - maxShown; more > 0 {
		c.Evidence = append(c.Evidence, Evidence{Source: c.Object.Resource.Resource, Value: fmt.Sprintf("and %d more with the same", more)})
	}
}

// author says who set the finalizer, by the object's managed fields.
func (w *walker) author(n graph.Node, finalizer string) []Evidence {
	full, err := w.fullOf(n)
	if err != nil {
		return nil
	}
	var evidence []Evidence
	for _, entry := range full.GetManagedFields() {
		if entry.FieldsV1 == nil || !setsFinalizer(entry.FieldsV1.GetRawBytes(), finalizer) {
			continue
		}
		when := ""
		if entry.Time != nil {
			when = " at " + entry.Time.UTC().Format(time.RFC3339)
		}
		evidence = append(evidence, field(n, "metadata.managedFields", fmt.Sprintf("the finalizer was set by %q (%s)%s", entry.Manager, entry.Operation, when)))
	}
	return evidence
}

// setsFinalizer reports whether managed fields include the finalizer.
func setsFinalizer(fields []byte, finalizer string) bool {
	var owned struct {
		Metadata struct {
			Finalizers map[string]json.RawMessage `json:"f:finalizers"`
		} `json:"f:metadata"`
	}
	if json.Unmarshal(fields, &owned) != nil {
		return false
	}
	for key := range owned.Metadata.Finalizers {
		value, isValue := strings.CutPrefix(key, "v:")
		var name string
		if isValue && json.Unmarshal([]byte(value), &name) == nil && name == finalizer {
			return true
		}
	}
	return false
}

// crdDelay is how long the API server may take to notice that a
// CustomResourceDefinition has no instances any more.
const crdDelay = 75 * time.Second

// instances is the finalizer of a CustomResourceDefinition: its instances go
// first. The API server deletes them.
func (w *walker) instances(n graph.Node) []hold {
	const symptom = "crd-instances"
	name := n.Object().Name
	all, untouched := w.instanceOf[name], 0
	var holds []hold
	for _, m := range all {
		if m.BeingDeleted() {
			holds = append(holds, hold{symptom: symptom, because: "waits for its " + count(len(all), "instance"), next: &m})
		} else {
			untouched++
		}
	}
	plural, group, _ := strings.Cut(name, ".")
	gr := schema.GroupResource{Group: group, Resource: plural}
	unseen := !w.Graph.Snapshot().Covers(gr, "", "")
	if unseen || untouched > 0 || len(all) == 0 {
		holds = append(holds, hold{symptom: symptom, because: "the API server deletes its instances", cause: w.instancesLeft(n, untouched, unseen)})
	}
	return holds
}

// instancesLeft is a CustomResourceDefinition at which it is the API server's
// turn, or whose instances could not be listed.
func (w *walker) instancesLeft(n graph.Node, untouched int, unseen bool) *Cause {
	return w.cause("crd-instances", n.Identity(), "", func(c *Cause) {
		c.Evidence = []Evidence{field(n, "metadata.finalizers", "customresourcecleanup.apiextensions.k8s.io")}
		if full, err := w.fullOf(n); err == nil {
			if condition, ok := conditionOf(full, "Terminating"); ok {
				c.Evidence = append(c.Evidence, condition.evidence(n.Identity().String()))
			}
		}
		c.Verdict, c.Until = Progressing, requested(n.Object()).Add(crdDelay)
		c.Summary = fmt.Sprintf("the API server has still to delete %d of its instances", untouched)
		if untouched == 0 {
			c.Summary = "its instances are gone; the API server notices it within a minute or so"
		}
		if unseen {
			c.Verdict, c.Summary, c.Until = Unknown, "its instances could not be listed", time.Time{}
		} else if w.Now.After(c.Until) {
			c.Verdict, c.Until = Unknown, time.Time{}
			c.Summary += ", and has not for longer than usual"
		}
		c.Remedies = []Remedy{{
			Risk: Safe, Command: fmt.Sprintf("%s annotate %s kubectl-gc/nudge=$(date +%%s) --overwrite", w.kubectl(n), target(n)),
			Effect: "makes the API server look again at once",
		}}
	})
}
