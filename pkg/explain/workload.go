// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

var (
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	daemonSets   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
)

// workloadKinds are the types of which a controller usually is one.
var workloadKinds = []struct {
	resource schema.GroupVersionResource
	kind     string
}{{deployments, "Deployment"}, {statefulSets, "StatefulSet"}, {daemonSets, "DaemonSet"}}

// podSpec is what is needed of the specification of a pod.
type podSpec struct {
	NodeName        string      `json:"nodeName"`
	ServiceAccount  string      `json:"serviceAccountName"`
	Containers      []container `json:"containers"`
	SchedulingGates []any       `json:"schedulingGates"`
}

type container struct {
	Name    string   `json:"name"`
	Image   string   `json:"image"`
	Command []string `json:"command"`
	Args    []string `json:"args"`
	Env     []struct {
		Name string `json:"name"`
	} `json:"env"`
}

// workload is a Deployment, StatefulSet or DaemonSet, or a pod that belongs to
// none.
type workload struct {
	id    graph.Identity
	whole *unstructured.Unstructured
	// replicas is the number that is wanted, -1 when it is not stated.
	replicas int64
	paused   bool
	account  account
	// elsewhere: it is given a kubeconfig, so what its account may do says nothing
	// of what it may.
	elsewhere bool
	// selector chooses its pods; nil for a pod.
	selector labels.Selector
	// podLabels are those of its pods.
	podLabels labels.Set
	// programs are the names that its containers, images and commands have: one
	// of them is usually the manager in managed fields.
	programs []string
}

// ref names the workload for kubectl.
func (l *workload) ref() string {
	return strings.ToLower(l.id.Resource.Kind) + "/" + l.id.Name
}

// inventory is every workload of the cluster.
type inventory struct {
	workloads []*workload
	// unread says what could not be listed.
	unread []string
}

// inventory lists the workloads, once: three lists.
func (w *walker) inventory() *inventory {
	if w.running != nil {
		return w.running
	}
	w.running = &inventory{}
	for _, kind := range workloadKinds {
		items := w.listFor(kind.resource, &w.running.unread)
		for i := range items {
			if l := newWorkload(kind.resource, kind.kind, &items[i]); l != nil {
				w.running.workloads = append(w.running.workloads, l)
			}
		}
	}
	slices.SortFunc(w.running.workloads, func(a, b *workload) int { return a.id.Compare(b.id) })
	return w.running
}

func newWorkload(resource schema.GroupVersionResource, kind string, o *unstructured.Unstructured) *workload {
	var view struct {
		Spec struct {
			Replicas *int64                `json:"replicas"`
			Paused   bool                  `json:"paused"`
			Selector *metav1.LabelSelector `json:"selector"`
			Template struct {
				Metadata struct {
					Labels map[string]string `json:"labels"`
				} `json:"metadata"`
				Spec podSpec `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if !evidence.Decode(o, &view) {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(view.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	l := &workload{
		id: evidence.IdentityOf(resource, kind, o), whole: o, replicas: -1, paused: view.Spec.Paused, selector: selector,
		podLabels: view.Spec.Template.Metadata.Labels, account: accountOf(o, view.Spec.Template.Spec), programs: programs(view.Spec.Template.Spec),
		elsewhere: hasKubeconfig(view.Spec.Template.Spec),
	}
	if kind != "DaemonSet" {
		l.replicas = 1
		if view.Spec.Replicas != nil {
			l.replicas = *view.Spec.Replicas
		}
	}
	return l
}

// newPodWorkload is a pod that no Deployment, StatefulSet or DaemonSet has.
func newPodWorkload(o *unstructured.Unstructured) *workload {
	var view struct {
		Spec podSpec `json:"spec"`
	}
	if !evidence.Decode(o, &view) {
		return nil
	}
	return &workload{
		id: evidence.IdentityOf(pods, "Pod", o), whole: o, replicas: -1, podLabels: o.GetLabels(),
		account: accountOf(o, view.Spec), programs: programs(view.Spec),
		elsewhere: hasKubeconfig(view.Spec),
	}
}

func accountOf(o *unstructured.Unstructured, spec podSpec) account {
	return account{o.GetNamespace(), cmp.Or(spec.ServiceAccount, "default")}
}

// programs returns the names by which the containers may call themselves.
func programs(spec podSpec) []string {
	var names []string
	for _, c := range spec.Containers {
		image, _, _ := strings.Cut(path.Base(c.Image), "@")
		image, _, _ = strings.Cut(image, ":")
		names = append(names, c.Name, image)
		if len(c.Command) > 0 {
			names = append(names, path.Base(c.Command[0]))
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" || isCommon(name) })
}

// hasKubeconfig reports whether a container is told to use another identity, or
// another API server, than that of its account.
func hasKubeconfig(spec podSpec) bool {
	for _, c := range spec.Containers {
		for _, word := range slices.Concat(c.Command, c.Args) {
			if strings.Contains(word, "kubeconfig") {
				return true
			}
		}
		for _, e := range c.Env {
			if e.Name == "KUBECONFIG" {
				return true
			}
		}
	}
	return false
}

// isCommon reports whether so many programs have the name that it tells
// nothing.
func isCommon(name string) bool {
	return slices.Contains([]string{
		"manager", "controller", "operator", "controller-manager", "main", "app", "server", "sh", "bash", "unknown", "Go-http-client", "before-first-apply",
	}, name)
}

// podsOf returns the pods of the workload that have not ended: an evicted one
// stays beside the next. Pods of a namespace are listed once.
func (w *walker) podsOf(l *workload) ([]*unstructured.Unstructured, error) {
	if l.selector == nil {
		return []*unstructured.Unstructured{l.whole}, nil
	}
	items, err := w.evidence.List(pods, l.id.Namespace)
	if err != nil {
		return nil, err
	}
	var own []*unstructured.Unstructured
	for i := range items {
		if !l.selector.Empty() && l.selector.Matches(labels.Set(items[i].GetLabels())) && !evidence.PodEnded(&items[i]) {
			own = append(own, &items[i])
		}
	}
	slices.SortFunc(own, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return own, nil
}

// loosePods returns pods that no Deployment, StatefulSet or DaemonSet has and
// that are called after a program: static pods, and those of other kinds of
// workloads. An empty namespace stands for all.
func (w *walker) loosePods(namespace, program string) []*workload {
	var found []*workload
	for _, n := range w.evidence.Instances(pods.GroupResource()) {
		o := n.Object()
		inIt := namespace == "" || o.Namespace == namespace
		if !inIt || o.Name != program && !strings.HasPrefix(o.Name, program+"-") || len(found) == evidence.MaxShown {
			continue
		}
		owner := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: o.OwnerReferences})
		if owner != nil && slices.Contains([]string{"ReplicaSet", "StatefulSet", "DaemonSet", "Job"}, owner.Kind) && w.ownerKnown(o.Namespace, owner) {
			continue
		}
		if full, err := w.evidence.Whole(n); err == nil && !evidence.PodEnded(full) && !w.selected(full) {
			found = append(found, newPodWorkload(full))
		}
	}
	return slices.DeleteFunc(found, func(l *workload) bool { return l == nil })
}

// selected reports whether a workload of the inventory chooses the pod: it
// adopts the pod, and counts in its place.
func (w *walker) selected(pod *unstructured.Unstructured) bool {
	return slices.ContainsFunc(w.inventory().workloads, func(l *workload) bool {
		return l.id.Namespace == pod.GetNamespace() && !l.selector.Empty() && l.selector.Matches(labels.Set(pod.GetLabels()))
	})
}

// ownerKnown reports whether the owner of a pod is, or belongs to, a workload of
// the inventory. Pods of Jobs are no controllers.
func (w *walker) ownerKnown(namespace string, owner *metav1.OwnerReference) bool {
	return owner.Kind == "Job" || slices.ContainsFunc(w.inventory().workloads, func(l *workload) bool {
		return l.id.Namespace == namespace && (l.id.UID == owner.UID || strings.HasPrefix(owner.Name, l.id.Name+"-"))
	})
}

// behind returns the workloads that a service sends its requests to.
func (w *walker) behind(namespace, name string) []*workload {
	service, err := w.evidence.Get(services, namespace, name)
	if err != nil {
		return nil
	}
	selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
	var found []*workload
	for _, l := range w.inventory().workloads {
		if len(selector) > 0 && l.id.Namespace == namespace && labels.SelectorFromSet(selector).Matches(l.podLabels) {
			found = append(found, l)
		}
	}
	return found
}
