// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Pods that a Job counts: pkg/controller/job, trackJobStatusAndRemoveFinalizers.

// Jobs are the type.
var Jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// builtinJobController is the value of spec.managedBy that means the job
// controller of kube-controller-manager, as no value does.
const builtinJobController = "kubernetes.io/job-controller"

// JobTracking is a pod that its Job has still to count (pkg/controller/job).
func JobTracking(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	ref := rules.ControllerOf(n.Node)
	if ref != nil && (ref.Kind != "Job" || !strings.HasPrefix(ref.APIVersion, "batch/")) {
		return []finding.Blocker{{Because: say.Of(NotOfAJob), Cause: trackedByOther(n, ref)}}, true
	}
	if ref == nil {
		return f.Protected(n.Node, finding.PodJobTracking, say.Of(Jobless)), true
	}
	job, err := f.Get(Jobs, n.Namespace(), ref.Name)
	switch {
	case apierrors.IsNotFound(err), err == nil && job.GetUID() != ref.UID:
		return f.Protected(n.Node, finding.PodJobTracking, say.Of(JobGone)), true
	case err != nil:
		return rules.Unread(n.Node, say.Of(JobCounts), "job "+ref.Name, err), true
	}
	if manager := evidence.Nested(job, "spec", "managedBy"); manager != "" && manager != builtinJobController {
		return []finding.Blocker{{Because: say.Of(JobCounts), Cause: managedJob(n.Node, job, manager)}}, true
	}
	return f.Protected(n.Node, finding.PodJobTracking, say.Of(JobControllerCounts, evidence.Named("Job", n.Namespace(), ref.Name))), true
}

// trackedByOther is a pod of a controller that is not a Job: the job controller
// leaves its finalizer alone.
func trackedByOther(n rules.Mark, ref *metav1.OwnerReference) *finding.Cause {
	way := rules.RemoveFinalizer(n, nil)
	way.Effect, way.Risk = say.Of(Uncountable), finding.Disruptive
	return &finding.Cause{
		Kind: finding.PodJobTracking, At: n.Identity(), Key: "controller", Verdict: finding.Stuck, Summary: say.Of(NeverCounted),
		Evidence: []finding.Fact{n.Evidence(), finding.Field(n.Node, "metadata.ownerReferences",
			fmt.Sprintf("controller %s %s/%s", ref.APIVersion, ref.Kind, ref.Name))},
		Ways: []finding.Way{way},
	}
}

// managedJob is a Job that names another controller as its manager.
func managedJob(n graph.Node, job *unstructured.Unstructured, manager string) *finding.Cause {
	at := evidence.IdentityOf(Jobs, "Job", job)
	end := finding.Does(remedy.DeleteOf(at, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}), DeleteJob)
	end.Loss = finding.Lost(remedy.LosesObject, at, LostJobResult)
	return &finding.Cause{
		Kind: finding.PodJobTracking, At: at, Key: string(at.UID), Shared: true, Verdict: finding.Unknown, Summary: say.Of(JobManagedBy, manager),
		Controller: &finding.Controller{Name: say.Plain(manager), Liveness: string(finding.Unknown)},
		Evidence:   []finding.Fact{finding.At(at, "spec.managedBy", manager)},
		Ways:       []finding.Way{finding.See(remedy.YAML(at), RepairJobManager), end},
		Own:        []finding.Fact{finding.Field(n, "metadata.finalizers", "batch.kubernetes.io/job-tracking")},
	}
}
