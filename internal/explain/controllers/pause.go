// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Pause is a word to a controller to leave an object alone.
type Pause struct {
	// Object has it.
	Object graph.Identity
	// Annotation is its key; without one the Field, a path with dots, is true.
	Annotation, Field string
	value             string
	// certain: the controller is known to leave deletions alone as well.
	certain bool
}

// pauses are the annotations that are known to keep a controller from deletions, too,
// with the API groups whose controllers look at them. The first counts with any value
// (cluster-api, util/annotations, HasPaused), the second when it is true
// (crossplane-runtime, pkg/meta, IsPaused).
var pauses = map[string][]string{
	clusterAPIPause:        {clusterAPI},
	"crossplane.io/paused": {"crossplane.io", "upbound.io"},
}

const (
	clusterAPI      = "cluster.x-k8s.io"
	clusterAPIPause = clusterAPI + "/paused"
)

// pauseKey is an annotation that by its name pauses some controller.
var pauseKey = pattern.New(`(?i)(^|[/.-])(paused?|pause-reconcil\w+|reconcil\w*-paused|skip-reconcil\w+|suspend(ed)?)$`)

// PauseOf returns the word to leave an object alone that it carries itself, or its cluster
// does, nil when there is none. certain says that it is known to hold for deletions, too.
func (f *Finder) PauseOf(n graph.Node, full *unstructured.Unstructured) (p *Pause, certain bool) {
	if p := f.pauseOf(n, full); p != nil {
		return p, p.certain
	}
	if spared(n.Resource().GroupResource()) {
		return nil, false
	}
	for _, field := range []string{"suspend", "suspended", "paused", "pause"} {
		if is, _, _ := unstructured.NestedBool(full.Object, "spec", field); is {
			return &Pause{Object: n.Identity(), Field: "spec." + field, value: "true"}, false
		}
	}
	return nil, false
}

// spared reports whether a type is of Flux: kustomize-controller and helm-controller remove the finalizer of what is suspended, and leave
// alone what it has deployed (kustomization_controller.go, Reconcile; helmrelease_controller.go, reconcileDelete).
func spared(r schema.GroupResource) bool {
	return r == schema.GroupResource{Group: "kustomize.toolkit.fluxcd.io", Resource: "kustomizations"} ||
		r == schema.GroupResource{Group: "helm.toolkit.fluxcd.io", Resource: "helmreleases"}
}

// pauseOf returns the word to leave an object alone, nil when there is none.
func (f *Finder) pauseOf(n graph.Node, full *unstructured.Unstructured) *Pause {
	var keys []string
	for key := range full.GetAnnotations() {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		value := full.GetAnnotations()[key]
		if key == clusterAPIPause || value == "true" && pauseKey().MatchString(key) {
			of := n.Resource().Group
			certain := slices.ContainsFunc(pauses[key], func(group string) bool { return of == group || strings.HasSuffix(of, "."+group) })
			return &Pause{Object: n.Identity(), Annotation: key, value: value, certain: certain}
		}
	}
	return f.pausedCluster(n, full)
}

// pausedCluster returns the pause of the cluster of Cluster API to which an object
// belongs.
func (f *Finder) pausedCluster(n graph.Node, full *unstructured.Unstructured) *Pause {
	if r := n.Resource(); r.Group == clusterAPI && r.Resource == "clusters" {
		if paused, _, _ := unstructured.NestedBool(full.Object, "spec", "paused"); paused {
			return &Pause{Object: n.Identity(), Field: "spec.paused", value: "true", certain: true}
		}
		return nil
	}
	name := full.GetLabels()[clusterAPI+"/cluster-name"]
	resource, served := f.evidence.Served(schema.GroupResource{Group: clusterAPI, Resource: "clusters"})
	if name == "" || !served || !strings.HasSuffix(n.Resource().Group, clusterAPI) {
		return nil
	}
	cluster, err := f.evidence.Get(resource, n.Namespace(), name)
	if err != nil {
		return nil
	}
	if paused, _, _ := unstructured.NestedBool(cluster.Object, "spec", "paused"); !paused {
		return nil
	}
	return &Pause{Object: evidence.IdentityOf(resource, "Cluster", cluster), Field: "spec.paused", value: "true", certain: true}
}

// Fact is the pause as it was read.
func (p *Pause) Fact() evidence.Fact {
	if p.Annotation != "" {
		return evidence.At(p.Object, "metadata.annotations["+p.Annotation+"]", p.value)
	}
	return evidence.At(p.Object, p.Field, p.value)
}

// Text says which pause it is.
func (p *Pause) Text() say.Text {
	if p.Annotation != "" {
		return say.Of(hasAnnotation, p.Object, p.Annotation)
	}
	return say.Of(hasField, p.Object, p.Field, p.value)
}

// failure is the pause as what keeps a controller from its work.
func (p *Pause) failure(asked time.Time) *Failure {
	return &Failure{Kind: Paused, Evidence: p.Fact(), Message: p.Text().String(), Since: asked, Lasting: true}
}
