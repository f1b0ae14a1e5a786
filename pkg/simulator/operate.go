// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// ErrNotModelled says that a change is none of metadata, so that what follows from it depends on controllers that are
// not simulated. Nothing was changed.
var ErrNotModelled = errors.New("what follows from it depends on controllers that are not simulated")

// Do makes one change, as cluster.Sender does on an API server, with what its controller makes of it where that is a
// controller of Kubernetes. The error is remedy.ErrChanged when the guards do not hold, ErrNotModelled, or what the
// API server would answer. Collect changes nothing here: gc.Collector does that work.
func (s *Server) Do(ctx context.Context, op *remedy.Op) error {
	if op.Verb == remedy.Delete {
		err := s.Delete(ctx, op.Object, *op.Options)
		if apierrors.IsConflict(err) {
			return fmt.Errorf("%s: %w: %w", op.Object, remedy.ErrChanged, err)
		}
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start()
	switch op.Verb {
	case remedy.Collect:
		return nil
	case remedy.Create:
		return s.create(op.Object)
	}
	o, err := s.view.find(location{op.Object.Resource.GroupResource(), op.Object.Namespace, op.Object.Name})
	if err != nil {
		return err
	}
	if o.UID != op.Object.UID {
		return fmt.Errorf("%s: %w", op.Object, remedy.ErrChanged)
	}
	switch op.Verb {
	case remedy.Patch:
		return s.patchMetadata(o, op.Patch)
	case remedy.Finalize:
		return s.dropSpecFinalizer(o, op.Value)
	case remedy.Taint:
		return s.taint(o, op.Value)
	case remedy.Scale:
		return s.scale(o, op.Replicas)
	}
	return fmt.Errorf("%s %s: %w", op.Verb, op.Object, ErrNotModelled)
}

// create makes a Namespace, without which its content could not be changed.
func (s *Server) create(id graph.Identity) error {
	if id.Resource.GroupResource() != namespaceResource {
		return fmt.Errorf("creating %s: %w", id, ErrNotModelled)
	}
	s.view.made.Insert(id.Name)
	return nil
}

// patchable are the paths of a JSON patch that this server holds.
var patchable = []string{"/metadata/uid", "/metadata/finalizers", "/metadata/ownerReferences"}

// patchMetadata applies a JSON patch (apiserver/pkg/endpoints/handlers/patch.go, jsonPatcher).
func (s *Server) patchMetadata(before graph.Object, steps []remedy.Step) error {
	for _, step := range steps {
		if !slices.ContainsFunc(patchable, func(path string) bool { return step.Path == path || strings.HasPrefix(step.Path, path+"/") }) {
			return fmt.Errorf("patching %s of %s: %w", step.Path, before.Identity(), ErrNotModelled)
		}
	}
	if s.view.unchangeable(&before) {
		return apierrors.NewNotFound(namespaceResource, before.Namespace)
	}
	after, err := applied(before, steps)
	if err != nil {
		return err
	}
	s.update(before, after)
	return nil
}

// applied returns the object with a patch of its metadata.
func applied(o graph.Object, steps []remedy.Step) (graph.Object, error) {
	document := metav1.PartialObjectMetadata{ObjectMeta: o.Metadata()}
	text, err := json.Marshal(document)
	if err != nil {
		return o, err
	}
	words, err := json.Marshal(steps)
	if err != nil {
		return o, err
	}
	patch, err := jsonpatch.DecodePatch(words)
	if err != nil {
		return o, err
	}
	text, err = patch.Apply(text)
	if err != nil {
		return o, fmt.Errorf("%s: %w: %w", o.Identity(), remedy.ErrChanged, err)
	}
	document = metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(text, &document); err != nil {
		return o, err
	}
	o.Finalizers, o.OwnerReferences = document.Finalizers, document.OwnerReferences
	return o, nil
}

// dropSpecFinalizer takes one entry out of a namespace's spec.
func (s *Server) dropSpecFinalizer(o graph.Object, finalizer string) error {
	spec, read := s.view.specFinalizers(o.UID)
	if read && !slices.Contains(spec, finalizer) {
		return fmt.Errorf("%s: %w", o.Identity(), remedy.ErrChanged)
	}
	s.finalizeNamespace(o, without(spec, finalizer))
	return nil
}

// outOfService is the taint with which pods that are being deleted are taken off a node that does not report
// (pkg/controller/podgc/gc_controller.go, gcTerminating).
const outOfService = "node.kubernetes.io/out-of-service"

func (s *Server) taint(node graph.Object, taint string) error {
	if key, _, _ := strings.Cut(taint, "="); key != outOfService || !is(&node, nodeResource) {
		return fmt.Errorf("tainting %s: %w", node.Identity(), ErrNotModelled)
	}
	s.pods.tainted.Insert(node.Name)
	s.pods.planPodsOf(node.Name)
	return nil
}

// scale deletes the pods of a workload that is scaled to nothing, as its controllers do. What a workload does once it has
// pods again is not simulated.
func (s *Server) scale(workload graph.Object, r *remedy.Replicas) error {
	if r.Wanted > 0 || !s.actors.NamespaceController {
		return fmt.Errorf("scaling %s: %w", workload.Identity(), ErrNotModelled)
	}
	for _, uid := range s.view.members(group{resource: podResource, namespace: workload.Namespace}) {
		if pod, gone, _ := s.view.look(uid); !gone && s.view.controlledBy(&pod, workload.UID) {
			s.deleteAs(pod, metav1.DeleteOptions{})
		}
	}
	return nil
}
