// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/argv"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	jobs        = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	cronJobs    = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
	daemonSets  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
)

// Workload is a Deployment, StatefulSet or DaemonSet, or a pod that belongs to
// none.
type Workload struct {
	resource        *graph.Resource
	namespace, name string
	uid             types.UID
	// whole is that of a pod, a CronJob, or an instance.
	whole *unstructured.Unstructured
	// speaks is what kubectl logs takes in its place; empty for itself.
	speaks string
	// deleted is when it is to be gone, nil when nobody deleted it, and made when it was made, in
	// seconds since 1970.
	deleted *metav1.Time
	made    int64
	origin  *origin
	// failure is its condition ReplicaFailure, nil when it has none.
	failure *evidence.Condition
	// account is the name of its ServiceAccount, which is in its namespace.
	account string
	// selector chooses its pods, and podLabels are what its template gives them, both as kubectl
	// takes them: there are many workloads, and few are asked for their pods. The empty selector
	// chooses none. A pod and a CronJob have neither, nor an origin.
	selector, podLabels string
	// programs are the names that its containers, images and commands have: one
	// of them is usually the manager in managed fields.
	programs []string
	// Replicas is the number that is wanted, -1 when it is not stated.
	Replicas int32
	Paused   bool
	// nowhere: it is a DaemonSet that fits no node.
	nowhere bool
	// line is that of its containers. With a kubeconfig what its account may do says
	// nothing of what it may.
	line argv.Line
}

// ID identifies the workload.
func (l *Workload) ID() graph.Identity {
	return graph.Identity{Resource: *l.resource, Namespace: l.namespace, Name: l.name, UID: l.uid}
}

// Account is that of its ServiceAccount.
func (l *Workload) Account() Account { return Account{l.namespace, l.account} }

// roster is who there is: workloads, their pods, and what their accounts may. It owns what was listed of these.
type roster struct {
	evidence  *evidence.Reader
	workloads *Workloads

	allowed  *rights
	running  *inventory
	repeated []*Workload
	idle     []*Workload // the Jobs that are suspended, once they were asked for
}

// otherwise reports whether the workload may have other rights than those of its
// account: it is given others, or may act as somebody else, with whatever rights he has.
func (f *roster) otherwise(l *Workload) bool { return f.otherRights(l) != "" }

// otherRights says why the workload may have other rights than those of its account, empty if it
// has none.
func (f *roster) otherRights(l *Workload) string {
	switch {
	case l.line.Kubeconfig:
		return ownKubeconfig
	case l.account == "":
		return accountUnknown
	case f.rights().mayImpersonate(l.Account()):
		return impersonates
	}
	return ""
}

// cronJobs returns those that are called after a program. They are looked for only when
// something names one: most do not serve a finalizer, whatever they may.
func (f *roster) cronJobs(s *Search, program string) []*Workload {
	return slices.DeleteFunc(slices.Clone(f.periodic(s)), func(l *Workload) bool { return !l.calledBy(program) })
}

// periodic returns all CronJobs.
func (f *roster) periodic(s *Search) []*Workload {
	if f.evidence.NoneOf(cronJobs.GroupResource()) {
		return nil
	}
	items := f.listFor(cronJobs, &s.workloadsUnread)
	if f.repeated != nil {
		return f.repeated
	}
	f.repeated = make([]*Workload, 0, len(items))
	for i := range items {
		f.repeated = append(f.repeated, ofTemplate(&cronJobType, &items[i], "spec", "jobTemplate", "spec", "template"))
	}
	return f.repeated
}

// suspended returns the Jobs that are suspended: of others there are pods.
func (f *roster) suspended(s *Search) []*Workload {
	if f.evidence.NoneOf(jobs.GroupResource()) {
		return nil
	}
	items := f.listFor(jobs, &s.workloadsUnread)
	if f.idle != nil {
		return f.idle
	}
	f.idle = []*Workload{}
	for i := range items {
		if suspended, _, _ := unstructured.NestedBool(items[i].Object, "spec", "suspend"); suspended {
			f.idle = append(f.idle, ofTemplate(&jobType, &items[i], "spec", "template"))
		}
	}
	return f.idle
}

// ofTemplate is a workload that is kept whole and has the template of its pods at a path.
func ofTemplate(resource *graph.Resource, o *unstructured.Unstructured, path ...string) *Workload {
	content, _, _ := unstructured.NestedMap(o.Object, path...)
	var template corev1.PodTemplateSpec
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(content, &template) // one that cannot be read has no programs
	return ofWhole(resource, o, &template)
}

// Ref names the workload for kubectl.
func (l *Workload) Ref() string {
	if l.isInstance() {
		return l.resource.GroupResource().String() + "/" + l.name
	}
	return strings.ToLower(l.resource.Kind) + "/" + l.name
}

// Speaker names what kubectl logs takes, of a CronJob the Job that was made last (kubernetes/pkg/controller/cronjob, getJobName); empty for
// none.
func (l *Workload) Speaker() string {
	if l.resource.Kind != "CronJob" {
		return cmp.Or(l.speaks, l.Ref())
	}
	last, err := time.Parse(time.RFC3339, evidence.Nested(l.whole, "status", "lastScheduleTime"))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("job/%s-%d", l.name, last.Unix()/60)
}

// Leaves reports whether it is being deleted.
func (l *Workload) Leaves() bool { return l.deleted != nil }

// IsPod reports whether it is a pod that belongs to no other workload.
func (l *Workload) IsPod() bool { return l.resource.IsPod() }

// personal reports whether it is a pod that nothing would make again, as a person's is, which may run as any account.
func (l *Workload) personal() bool {
	return l.IsPod() && metav1.GetControllerOf(l.whole) == nil && len(l.programs) > 0
}

// chooses returns what selects the workload's pods in its namespace.
func (l *Workload) chooses() labels.Selector {
	selector, err := labels.Parse(l.selector)
	if err != nil || selector.Empty() {
		return labels.Nothing()
	}
	return selector
}

// labels are those that the workload gives its pods.
func (l *Workload) labels() labels.Set {
	set, _ := labels.ConvertSelectorToLabelsMap(l.podLabels) // the server checked them
	return set
}

// newWorkload takes what is needed from a workload, and nothing of any other object.
func newWorkload(resource *graph.Resource, object runtime.Object, words *interner) *Workload {
	switch o := object.(type) {
	case *appsv1.Deployment:
		l := templated(resource, &o.ObjectMeta, o.Spec.Replicas, o.Spec.Selector, &o.Spec.Template, words)
		l.Paused = o.Spec.Paused
		for _, c := range o.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && l.failure == nil {
				l.failure = &evidence.Condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message}
			}
		}
		return l
	case *appsv1.StatefulSet:
		return templated(resource, &o.ObjectMeta, o.Spec.Replicas, o.Spec.Selector, &o.Spec.Template, words)
	case *appsv1.DaemonSet:
		l := templated(resource, &o.ObjectMeta, nil, o.Spec.Selector, &o.Spec.Template, words)
		l.Replicas = -1
		l.nowhere = o.Status.DesiredNumberScheduled == 0 && o.Status.ObservedGeneration == o.Generation
		return l
	}
	return nil
}

// templated takes what all workloads have.
func templated(resource *graph.Resource, m *metav1.ObjectMeta, replicas *int32, selector *metav1.LabelSelector,
	template *corev1.PodTemplateSpec, words *interner) *Workload {
	l := &Workload{
		resource: resource, namespace: words.one(m.Namespace), name: m.Name, uid: m.UID,
		Replicas: 1, selector: words.one(selectorText(selector)), made: m.CreationTimestamp.Unix(), deleted: m.DeletionTimestamp,
		origin:    words.origin(originOf(m.Annotations[helmRelease], m.Annotations[helmReleaseNamespace], m.Labels)),
		podLabels: words.one(labels.Set(template.Labels).String()), account: words.one(accountOf(&template.Spec)),
		programs: programs(&template.Spec), line: lineOf(template),
	}
	if replicas != nil {
		l.Replicas = *replicas
	}
	for i, name := range l.programs {
		l.programs[i] = words.one(name)
	}
	return l
}

// selectorText returns a selector as kubectl takes it, empty for one that chooses nothing.
// Nearly all have nothing but labels, and to make a selector of those is dear.
func selectorText(selector *metav1.LabelSelector) string {
	if selector != nil && len(selector.MatchExpressions) == 0 {
		return labels.Set(selector.MatchLabels).String()
	}
	chooses, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return ""
	}
	return chooses.String()
}

// The annotations by which Helm names a release.
const (
	helmRelease          = "meta.helm.sh/release-name"
	helmReleaseNamespace = "meta.helm.sh/release-namespace"
)

// newPodWorkload is a pod that no Deployment, StatefulSet or DaemonSet has.
func newPodWorkload(o *unstructured.Unstructured) *Workload {
	var template corev1.PodTemplateSpec // a pod has the same fields
	if !evidence.Decode(o, &template) {
		return nil
	}
	return ofWhole(&podType, o, &template)
}

// The resources of the workloads that are kept whole.
var (
	podType     = graph.Resource{GroupVersionResource: evidence.Pods, Kind: "Pod", Namespaced: true}
	jobType     = graph.Resource{GroupVersionResource: jobs, Kind: "Job", Namespaced: true}
	cronJobType = graph.Resource{GroupVersionResource: cronJobs, Kind: "CronJob", Namespaced: true}
)

// ofWhole is a workload that is kept whole.
func ofWhole(resource *graph.Resource, o *unstructured.Unstructured, template *corev1.PodTemplateSpec) *Workload {
	return &Workload{
		resource: resource, namespace: o.GetNamespace(), name: o.GetName(), uid: o.GetUID(), whole: o,
		deleted: o.GetDeletionTimestamp(), Replicas: -1, account: accountOf(&template.Spec),
		programs: programs(&template.Spec), line: lineOf(template),
	}
}

// accountOf returns the name of the ServiceAccount of pods.
func accountOf(spec *corev1.PodSpec) string { return cmp.Or(spec.ServiceAccountName, "default") }

// programs returns the names by which the containers may call themselves.
func programs(spec *corev1.PodSpec) []string {
	var names []string
	for i := range spec.Containers {
		c := &spec.Containers[i]
		names = append(names, c.Name, ProgramOf(c.Image))
		if len(c.Command) > 0 {
			names = append(names, path.Base(c.Command[0]))
		}
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" || IsCommon(name) })
	return slices.Clone(names) // of many workloads, and there is no need of the room for more
}

// ProgramOf returns the name of an image, as which its program may call itself.
func ProgramOf(image string) string {
	name, _, _ := strings.Cut(path.Base(image), "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// lineOf is what matters of the command lines of all containers.
func lineOf(template *corev1.PodTemplateSpec) argv.Line {
	words, variables := []string{}, []string{argv.Annotation(argv.TargetNamespaces, template.Annotations[argv.TargetNamespaces])}
	for i := range template.Spec.Containers {
		c := &template.Spec.Containers[i]
		words = slices.Concat(words, c.Command, c.Args)
		for _, e := range c.Env {
			field := ""
			if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
				field = e.ValueFrom.FieldRef.FieldPath
			}
			variables = append(variables, argv.Variable(e.Name, e.Value, field, e.ValueFrom != nil))
		}
	}
	return argv.Read(words, variables)
}

// overlooks says why the workload does not reconcile an object, by what it is told; empty if it may.
func (l *Workload) overlooks(n graph.Node) string {
	chosen, err := labels.Parse(l.line.Watches)
	told, why := l.line.Namespaces, otherNamespaces
	if one := l.line.Namespace; told == "" && one != l.namespace && one != argv.Own {
		told, why = one, anotherNamespace
	}
	names := strings.Split(told, ",")
	for i := range names {
		if names[i] = strings.TrimSpace(names[i]); names[i] == argv.Own {
			names[i] = l.namespace
		}
	}
	switch {
	case err == nil && !chosen.Matches(labels.Set(n.Object().Labels)):
		return fmt.Sprintf(otherLabels, l.line.Watches)
	case told != "" && n.Namespace() != "" && !strings.Contains(told, "$") && !slices.Contains(names, n.Namespace()):
		return fmt.Sprintf(why, strings.Join(names, ", "))
	}
	return ""
}

// runsAs reports whether both run a program of one name.
func (l *Workload) runsAs(o *Workload) bool {
	return slices.ContainsFunc(l.programs, func(program string) bool { return slices.Contains(o.programs, program) })
}

// shared reports whether another workload of the same program is told to reconcile an object, and may work.
func (f *liveness) shared(l *Workload, n graph.Node) bool {
	return slices.ContainsFunc(f.inventory().workloads, func(o *Workload) bool {
		return o.line.Watches != "" && o.overlooks(n) == "" && o.runsAs(l) && f.StateOf(o).Liveness != Dead
	})
}

// IsCommon reports whether so many programs have the name that it tells
// nothing.
func IsCommon(name string) bool {
	return slices.Contains([]string{
		"manager", "controller", "operator", "controller-manager", "main", "app", "server", "sh", "bash", "unknown",
		"Go-http-client", "before-first-apply",
		"OpenAPI-Generator", "python-requests", "kopf", "lightkube", "fabric8-kubernetes-client", "okhttp", "Java",
		"node-fetch", "axios", "kube-rs",
	}, name)
}

// podsOf returns the pods of the workload that have not ended: an evicted one
// stays beside the next. Pods of a namespace are listed once.
func (f *roster) podsOf(l *Workload) ([]*unstructured.Unstructured, error) {
	if l.IsPod() {
		return []*unstructured.Unstructured{l.whole}, nil
	}
	items, err := f.evidence.List(evidence.Pods, l.namespace)
	if err != nil {
		return nil, err
	}
	chooses := l.chooses()
	var own []*unstructured.Unstructured
	for i := range items {
		its := chooses.Matches(labels.Set(items[i].GetLabels())) && !f.isOfOther(l, &items[i]) || l.isInstance() && l.controls(&items[i])
		if its && !evidence.PodEnded(&items[i]) {
			own = append(own, &items[i])
		}
	}
	slices.SortFunc(own, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return own, nil
}

// isOfOther reports whether a pod belongs to another workload, which chooses its pods by the same labels.
func (f *roster) isOfOther(l *Workload, pod *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && slices.ContainsFunc(f.inventory().workloads, func(o *Workload) bool {
		hash, begins := strings.CutPrefix(owner.Name, o.name+"-")
		return o.namespace == l.namespace && o.uid != l.uid &&
			(o.uid == owner.UID || begins && owner.Kind == "ReplicaSet" && !strings.Contains(hash, "-"))
	})
}

// loosePods returns pods that no Deployment, StatefulSet or DaemonSet has and
// that are called after a program: static pods, and those of other kinds of
// workloads. An empty namespace stands for all, in which those that a Deployment or a Job
// has marked are left out, whether that is there or not.
func (f *roster) loosePods(namespace, program string) []*Workload {
	var found []*Workload
	called := func(name string) bool {
		rest, begins := strings.CutPrefix(name, program)
		return begins && (rest == "" || rest[0] == '-')
	}
	all := f.evidence.UnmarkedPods(called)
	if namespace != "" {
		all = slices.Values(f.evidence.Within(evidence.Pods.GroupResource(), namespace))
	}
	for n := range all {
		if !called(n.Name()) || len(found) == evidence.MaxShown {
			continue
		}
		o := n.Object()
		owner := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: o.OwnerReferences})
		if owner != nil && slices.Contains([]string{"ReplicaSet", "StatefulSet", "DaemonSet", "Job"}, owner.Kind) &&
			f.ownerKnown(o.Namespace, owner) {
			continue
		}
		if full, err := f.evidence.Whole(n); err == nil && !evidence.PodEnded(full) && !f.selected(full) {
			found = append(found, newPodWorkload(full))
		}
	}
	return slices.DeleteFunc(found, func(l *Workload) bool { return l == nil })
}

// selected reports whether a workload of the inventory chooses the pod: it
// adopts the pod, and counts in its place.
func (f *roster) selected(pod *unstructured.Unstructured) bool {
	return slices.ContainsFunc(f.inventory().workloads, func(l *Workload) bool {
		return l.namespace == pod.GetNamespace() && l.chooses().Matches(labels.Set(pod.GetLabels()))
	})
}

// ownerKnown reports whether the owner of a pod is, or belongs to, a workload of
// the inventory. Pods of Jobs are no controllers.
func (f *roster) ownerKnown(namespace string, owner *metav1.OwnerReference) bool {
	return owner.Kind == "Job" || slices.ContainsFunc(f.inventory().workloads, func(l *Workload) bool {
		return l.namespace == namespace && (l.uid == owner.UID || strings.HasPrefix(owner.Name, l.name+"-"))
	})
}

// Behind returns the workloads that a service sends its requests to.
func (f *roster) Behind(namespace, name string) []*Workload {
	service, err := f.evidence.Get(evidence.Services, namespace, name)
	if err != nil {
		return nil
	}
	selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
	var found []*Workload
	for _, l := range f.inventory().workloads {
		if len(selector) > 0 && l.namespace == namespace && labels.SelectorFromSet(selector).Matches(l.labels()) {
			found = append(found, l)
		}
	}
	return found
}
