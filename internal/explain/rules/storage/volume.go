// SPDX-License-Identifier: Apache-2.0

// Package storage has the rules of claims, volumes, attachments and snapshots.
package storage

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/pod"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Claims and volumes: pkg/controller/volume/pvcprotection and pvprotection.

// Claim is the finalizer kubernetes.io/pvc-protection: pods on nodes that use the claim have to end first
// (pkg/controller/volume/pvcprotection).
func Claim(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	o := n.Object()
	list, err := f.PodsWithClaims(o.Namespace)
	if err != nil {
		return rules.Unread(n.Node, say.Of(MightHaveUsers), "pods in namespace "+o.Namespace, err), true
	}
	var users []*unstructured.Unstructured
	for i := range list {
		if evidence.ProtectsClaim(&list[i], o) {
			users = append(users, &list[i])
		}
	}
	var blockers []finding.Blocker
	for _, p := range users {
		b := finding.Blocker{Symptom: finding.PvcInUse, Because: say.Of(UsedByPod)}
		if ending, known := f.Node(evidence.Pods.GroupResource(), o.Namespace, p.GetUID()); known && ending.BeingDeleted() {
			b.Because, b.Next = say.Of(UsedByEnding), &ending
		} else {
			b.Cause = user(f, n.Node, p, users)
		}
		blockers = append(blockers, b)
	}
	if len(blockers) > 0 {
		return blockers, true
	}
	return f.Protected(n.Node, finding.PvcInUse, say.Of(ClaimUnused)), true
}

// user is a pod that is not being deleted and that uses a claim, one of its users.
func user(f *rules.Facts, claim graph.Node, p *unstructured.Unstructured, users []*unstructured.Unstructured) *finding.Cause {
	at := evidence.IdentityOf(evidence.Pods, "Pod", p)
	c := &finding.Cause{Kind: finding.PvcInUse, At: at, Key: claim.Identity().String(), Verdict: finding.Stuck,
		Summary: say.Of(ClaimUsed, claim.Name())}
	if p.GetDeletionTimestamp() != nil { // since the lists were made
		c.Verdict, c.Summary = finding.Progressing, say.Of(ClaimReleased, claim.Name())
		return c
	}
	c.Evidence = []finding.Fact{
		finding.At(at, "spec.volumes", "persistentVolumeClaim "+claim.Name()),
		finding.At(at, "status.phase", evidence.Nested(p, "status", "phase")),
		finding.At(at, "metadata.deletionTimestamp", evidence.NotSet),
	}
	ref, data := metav1.GetControllerOf(p), dataOf(f.Reader, claim)
	maker, found := pod.Maker(f, p)
	after, afterAll := released(claim, len(users)-1), released(claim, 0)
	if found {
		afterAll = released(claim, len(users)-madeBy(f, maker, users))
	}
	if found && maker.Resource().Kind == "StatefulSet" && ofItsTemplate(p, claim.Name()) {
		again := pod.Lingers(f.Reader, p, finding.Does(remedy.DeleteOf(at, metav1.DeleteOptions{}), RenewPod, after, maker.Identity()))
		c.Ways = append(data.losing(append([]finding.Way{pod.ScaleDown(f.Reader, maker, afterAll)}, again.Ways...)...), data.mistake(claim)...)
		c.Evidence = append(c.Evidence, again.Evidence...)
		return c
	}
	end := pod.End(f, p, after, afterAll)
	c.Ways, c.Evidence = append(pod.Await(p, after), data.losing(end.Ways...)...), append(c.Evidence, end.Evidence...)
	if found {
		c.Ways = append(c.Ways, data.mistake(claim)...)
	}
	if ref != nil && ref.Kind == "Job" && evidence.PodEnded(p) {
		job := evidence.Identity(pod.Jobs, p.GetNamespace(), ref.Name)
		job.UID = ref.UID
		end := finding.Does(remedy.DeleteOf(job, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}),
			DeleteFinishedJob, job, released(claim, len(users)-endedOf(ref.UID, users)))
		end.Loss = finding.Lost(remedy.LosesObject, job, pod.LostJobResult)
		if data.lost != nil {
			end.Loss = append(end.Loss, *data.lost)
		}
		c.Ways = append(c.Ways, end)
	}
	return c
}

// madeBy counts the pods that a workload makes.
func madeBy(f *rules.Facts, maker graph.Node, pods []*unstructured.Unstructured) int {
	count := 0
	for _, p := range pods {
		if m, found := pod.Maker(f, p); found && m.UID() == maker.UID() {
			count++
		}
	}
	return count
}

// endedOf counts the pods of a controller that have ended.
func endedOf(controller types.UID, users []*unstructured.Unstructured) int {
	n := 0
	for _, p := range users {
		if ref := metav1.GetControllerOf(p); ref != nil && ref.UID == controller && evidence.PodEnded(p) {
			n++
		}
	}
	return n
}

// ofItsTemplate reports whether a claim is one that a StatefulSet has made for the pod
// (pkg/controller/statefulset/stateful_set_utils.go, getPersistentVolumeClaimName).
// The next is not created before it has been deleted (stateful_pod_control.go, createPersistentVolumeClaims).
func ofItsTemplate(p *unstructured.Unstructured, claim string) bool {
	volumes, _, _ := unstructured.NestedSlice(p.Object, "spec", "volumes")
	return slices.ContainsFunc(volumes, func(v any) bool {
		volume, _ := v.(map[string]any)
		name, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName")
		return name == claim && claim == evidence.Text(volume["name"])+"-"+p.GetName()
	})
}

// released says what becomes of a claim that so many pods still use.
func released(claim graph.Node, users int) say.Text {
	switch {
	case users == 1:
		return say.Of(ClaimUsedByOne)
	case users > 1:
		return say.Of(ClaimUsedByMore, users)
	case len(claim.Object().Finalizers) > 1:
		return say.Of(ClaimUnprotected)
	}
	return say.Of(ClaimDeletable)
}

// Volume is the finalizer kubernetes.io/pv-protection: a volume that is bound is kept
// (pkg/controller/volume/pvprotection).
func Volume(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	full, unread := f.WholeOr(n.Node, say.Of(MightBeBound), "the volume")
	if full == nil {
		return unread, true
	}
	if evidence.Nested(full, "status", "phase") != "Bound" {
		return f.Protected(n.Node, finding.PvBound, say.Of(Unbound)), true
	}
	namespace, name := evidence.Nested(full, "spec", "claimRef", "namespace"), evidence.Nested(full, "spec", "claimRef", "name")
	claim, err := f.Get(evidence.Claims, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return f.Protected(n.Node, finding.PvBound, say.Of(ClaimGone)), true
	case err != nil:
		return rules.Unread(n.Node, say.Of(IsBound), "claim "+namespace+"/"+name, err), true
	}
	b := finding.Blocker{Because: say.Of(BoundTo, namespace, name)}
	if m, known := f.Node(evidence.Claims.GroupResource(), namespace, claim.GetUID()); known && m.BeingDeleted() {
		b.Symptom, b.Next = finding.PvBound, &m
	} else {
		b.Cause = bound(f, n.Node, claim)
	}
	return []finding.Blocker{b}, true
}

// bound is a claim that is not being deleted and that has a volume.
func bound(f *rules.Facts, volume graph.Node, claim *unstructured.Unstructured) *finding.Cause {
	at, data := evidence.IdentityOf(evidence.Claims, "PersistentVolumeClaim", claim), unknown()
	if full, err := f.Whole(volume); err == nil {
		data = dataOn(full)
	}
	return &finding.Cause{
		Kind: finding.PvBound, At: at, Verdict: finding.Stuck, Summary: say.Of(ClaimBinds, volume.Name()),
		Evidence: []finding.Fact{finding.Field(volume, "status.phase", "Bound"), finding.At(at, "metadata.deletionTimestamp", evidence.NotSet)},
		Ways:     data.losing(finding.Does(remedy.DeleteOf(at, metav1.DeleteOptions{}), DeleteClaim)),
	}
}
