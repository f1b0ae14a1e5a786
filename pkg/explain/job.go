// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Pods that a Job counts: pkg/controller/job, trackJobStatusAndRemoveFinalizers.

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// builtinJobController is the value of spec.managedBy that means the job
// controller of kube-controller-manager, as no value does.
const builtinJobController = "kubernetes.io/job-controller"

// jobTracking is a pod that its Job has still to count (pkg/controller/job).
func (w *walker) jobTracking(n graph.Node, index int) []hold {
	ref := controllerOf(n)
	if ref != nil && (ref.Kind != "Job" || !strings.HasPrefix(ref.APIVersion, "batch/")) {
		return []hold{{because: notOfAJob, cause: w.trackedByOther(n, index, ref)}}
	}
	if ref == nil {
		return []hold{w.protection(n, finding.PodJobTracking, jobless)}
	}
	job, err := w.evidence.Get(jobs, n.Namespace(), ref.Name)
	switch {
	case apierrors.IsNotFound(err), err == nil && job.GetUID() != ref.UID:
		return []hold{w.protection(n, finding.PodJobTracking, jobGone)}
	case err != nil:
		return w.unread(n, jobCounts, "job "+ref.Name, err)
	}
	if manager := evidence.Nested(job, "spec", "managedBy"); manager != "" && manager != builtinJobController {
		return []hold{{because: jobCounts, cause: w.managedJob(n, job, manager)}}
	}
	return []hold{w.protection(n, finding.PodJobTracking, fmt.Sprintf(jobControllerCounts, n.Namespace(), ref.Name))}
}

// trackedByOther is a pod of a controller that is not a Job: the job controller
// leaves its finalizer alone.
func (w *walker) trackedByOther(n graph.Node, index int, ref *metav1.OwnerReference) *Cause {
	return w.cause(finding.PodJobTracking, n.Identity(), "controller", func(c *Cause) {
		c.Verdict, c.Summary = Stuck, neverCounted
		c.Evidence = []Evidence{evidence.Field(n, fmt.Sprintf("metadata.finalizers[%d]", index), "batch.kubernetes.io/job-tracking"),
			evidence.Field(n, "metadata.ownerReferences", fmt.Sprintf("controller %s %s/%s", ref.APIVersion, ref.Kind, ref.Name))}
		way := w.removeFinalizer(n, index, "batch.kubernetes.io/job-tracking", nil)
		way.Risk, way.Effect = Disruptive, uncountable
		c.Remedies = []Remedy{way}
	})
}

// managedJob is a Job that names another controller as its manager.
func (w *walker) managedJob(n graph.Node, job *unstructured.Unstructured, manager string) *Cause {
	at := evidence.IdentityOf(jobs, "Job", job)
	c := w.shared(string(at.UID), finding.PodJobTracking, at, func(c *Cause) {
		c.Summary = fmt.Sprintf(jobManagedBy, manager)
		c.Controller = &Controller{Name: manager, Liveness: string(Unknown)}
		c.Evidence = []Evidence{{Source: at.String(), Path: "spec.managedBy", Value: manager}}
		c.Remedies = []Remedy{
			see(repairJobManager, "%s get %s -o yaml", shell.In(w.Kubectl, at.Namespace), shell.Target(at)),
			{Risk: Disruptive, Action: w.delete(at, background), Effect: deleteJob, Loss: losesObject(at, lostJobResult)},
		}
	})
	w.join(c, evidence.Field(n, "metadata.finalizers", "batch.kubernetes.io/job-tracking"))
	return c
}
