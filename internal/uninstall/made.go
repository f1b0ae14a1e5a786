// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"iter"
	"path"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// mostRead is the number of objects that are read to find out who made them.
const mostRead = 200

// workloads are the types whose pods are operators.
var workloads = []schema.GroupResource{{Group: "apps", Resource: "deployments"}, {Group: "apps", Resource: "statefulsets"},
	{Group: "apps", Resource: "daemonsets"}}

// madeTypes are those of what programs make for themselves.
var madeTypes = slices.Concat(workloads, []schema.GroupResource{
	evidence.Secrets.GroupResource(), evidence.ConfigMaps.GroupResource(), evidence.Leases.GroupResource(),
	evidence.Services.GroupResource(), evidence.ServiceAccounts.GroupResource(), {Group: rbacv1.GroupName, Resource: "roles"},
	{Group: rbacv1.GroupName, Resource: "rolebindings"},
})

// made are objects that programs of workloads have made which go: in the namespaces, and definitions of the API groups that roles name
// which go.
func (l *leftovers) made() {
	programs := l.programs()
	if len(programs) == 0 {
		return
	}
	for n, o := range wholes(l.Evidence, l.mayBeMade()) {
		if workload := programs.wrote(o); workload != "" {
			l.add(n.Identity(), ByManager, workload)
		}
	}
}

// mayBeMade are the objects of which it is to be found out who made them.
func (l *leftovers) mayBeMade() []graph.Node {
	var nodes []graph.Node
	take := func(n graph.Node) {
		if !l.going[n.UID()] && !n.HasOwners() && l.found[n.UID()] == nil && !everywhere(n) {
			nodes = append(nodes, n)
		}
	}
	for _, resource := range madeTypes {
		for _, namespace := range sets.List(l.namespaces) {
			for _, n := range l.Evidence.Within(resource, namespace) {
				take(n)
			}
		}
	}
	groups := l.ruledGroups()
	for n := range l.Evidence.Instances(evidence.CRDs.GroupResource()) {
		if groups.Has(schema.ParseGroupResource(n.Name()).Group) {
			take(n)
		}
	}
	return nodes
}

// ruledGroups are the API groups that the rules of roles name which go, but for those of Kubernetes.
func (l *leftovers) ruledGroups() sets.Set[string] {
	groups := sets.New[string]()
	items, err := l.Evidence.List(rbacv1.SchemeGroupVersion.WithResource("clusterroles"), "")
	if err != nil {
		return groups // it is noted as unread
	}
	for i := range items {
		var role rbacv1.ClusterRole
		if !l.going[items[i].GetUID()] || !evidence.Decode(&items[i], &role) {
			continue
		}
		for _, rule := range role.Rules {
			groups.Insert(rule.APIGroups...)
		}
	}
	for group := range groups {
		if graph.BuiltinGroup(group) {
			groups.Delete(group)
		}
	}
	return groups
}

// programs are the names by which the programs of workloads call themselves: of each name and namespace the workload, empty when one has it
// that stays.
type programs map[[2]string]string

var jobs, cronJobs = schema.GroupResource{Group: "batch", Resource: "jobs"}, schema.GroupResource{Group: "batch", Resource: "cronjobs"}

// running are the types of what runs programs, whoever made it, with the template of its pods.
var running = map[schema.GroupResource][]string{
	workloads[0]: {"spec", "template", "spec"}, workloads[1]: {"spec", "template", "spec"}, workloads[2]: {"spec", "template", "spec"},
	jobs: {"spec", "template", "spec"}, cronJobs: {"spec", "jobTemplate", "spec", "template", "spec"},
	evidence.Pods.GroupResource(): {"spec"},
}

// programs are those of the workloads in the namespaces: the names of the workloads, of the images of their containers and of their
// commands.
func (l *leftovers) programs() programs {
	nodes := l.runners(l.namespaces.Has)
	if !slices.ContainsFunc(nodes, func(n graph.Node) bool { return l.going[n.UID()] }) {
		return nil
	}
	all := programs{}
	for _, n := range nodes {
		for _, name := range l.programsOf(n) {
			at := [2]string{n.Namespace(), name}
			switch _, known := all[at]; {
			case !l.going[n.UID()]:
				all[at] = ""
			case !known && (controllers.IsProgram(name) || controllers.IsCommon(name)):
				all[at] = n.Identity().String()
			}
		}
	}
	return all
}

// runners are the workloads that Kubernetes has not made of others, in some namespaces, in the order of their identities. They are read
// whole.
func (w *World) runners(within func(namespace string) bool) (nodes []graph.Node) {
	for resource := range running {
		for n := range w.Evidence.Instances(resource) {
			maker, made := makerOf(n)
			if copied := made && graph.BuiltinGroup(maker.Resource().Group); within(n.Namespace()) && !copied {
				nodes = append(nodes, n)
			}
		}
	}
	slices.SortFunc(nodes, graph.Node.Compare)
	w.Evidence.Together(nodes)
	return nodes
}

// programsOf are the name of a workload, and those of its images and commands.
func (w *World) programsOf(n graph.Node) []string {
	names := []string{n.Name()}
	o, err := w.Evidence.Whole(n)
	if err != nil {
		return names
	}
	spec := running[n.Resource().GroupResource()]
	containers, _, _ := unstructured.NestedSlice(o.Object, append(slices.Clone(spec), "containers")...)
	initial, _, _ := unstructured.NestedSlice(o.Object, append(slices.Clone(spec), "initContainers")...)
	for _, each := range slices.Concat(containers, initial) {
		container, _ := each.(map[string]any)
		names = append(names, controllers.ProgramOf(evidence.Text(container["image"])))
		if command, _, _ := unstructured.NestedStringSlice(container, "command"); len(command) > 0 {
			names = append(names, path.Base(command[0]))
		}
	}
	return names
}

// wrote returns the workload that goes whose program has made an object, empty for none: who wrote it when it was created, or, where that
// does not show any more, all that have written it.
func (p programs) wrote(o *unstructured.Unstructured) string {
	makers := slices.DeleteFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "" })
	created := func(e metav1.ManagedFieldsEntry) bool {
		return e.Time != nil && e.Time.Equal(new(o.GetCreationTimestamp()))
	}
	if slices.ContainsFunc(makers, created) {
		makers = slices.DeleteFunc(makers, func(e metav1.ManagedFieldsEntry) bool { return !created(e) })
	}
	by := ""
	for _, maker := range makers {
		if by = p.of(o.GetNamespace(), maker.Manager); by == "" {
			return ""
		}
	}
	return by
}

// of returns the workload as whose program something in a namespace, or with an empty one in none, was written. A name that many programs
// have counts in their own namespace alone. Controllers of one program may each have a name that begins with that of the program, as those
// of cert-manager.
func (p programs) of(namespace, manager string) string {
	if namespace != "" {
		for name := manager; name != ""; {
			if workload, known := p[[2]string{namespace, name}]; known {
				return workload
			}
			at := strings.LastIndex(name, "-")
			if name = name[:max(at, 0)]; !strings.Contains(name, "-") {
				break
			}
		}
		return ""
	}
	found := ""
	for at, workload := range p {
		if at[1] != manager || controllers.IsCommon(manager) {
			continue
		}
		if workload == "" {
			return ""
		}
		if found == "" || workload < found {
			found = workload
		}
	}
	return found
}

// wholes reads the first of some objects together, up to mostRead. What cannot be read is noted as unread, or gone.
func wholes(reader *evidence.Reader, nodes []graph.Node) iter.Seq2[graph.Node, *unstructured.Unstructured] {
	if len(nodes) > mostRead {
		reader.NoteOpen(say.Of(madeUnread, len(nodes), mostRead))
		nodes = nodes[:mostRead]
	}
	reader.Together(nodes)
	return func(yield func(graph.Node, *unstructured.Unstructured) bool) {
		for _, n := range nodes {
			if o, err := reader.Whole(n); err == nil && !yield(n, o) {
				return
			}
		}
	}
}
