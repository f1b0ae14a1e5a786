// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// byDefinition finds the workloads that were installed together with the
// CustomResourceDefinitions, that convert their objects, or that serve the API
// group. One definition of each group is read.
func (f *searcher) byDefinition(s *Search, add adder) {
	for _, resource := range s.groups {
		definition, err := f.definition(resource)
		switch {
		case definition == nil && err == nil:
		case err != nil:
			if !apierrors.IsNotFound(err) {
				s.unread = append(s.unread, evidence.CRDs.GroupResource().String())
			}
		default:
			source := evidence.Identity(evidence.CRDs, "", definition.GetName())
			annotations := definition.GetAnnotations()
			from := originOf(annotations[helmRelease], annotations[helmReleaseNamespace], definition.GetLabels())
			for _, l := range f.inventory().workloads {
				if what, path := from.installedWith(*l.origin); what != "" {
					add(l, weakSign, false, evidence.At(source, path, say.Of(sameOrigin, l.ID(), what)))
				}
			}
			config, _, _ := unstructured.NestedMap(definition.Object, "spec", "conversion", "webhook", "clientConfig")
			f.byService(s, config, evidence.At(source, byConversion, ""), add)
		}
		f.byAPI(s, resource, add)
	}
}

// definition reads the CustomResourceDefinition of a type, or the first of a
// group.
func (f *searcher) definition(resource schema.GroupResource) (*unstructured.Unstructured, error) {
	name := resource.String()
	if resource.Resource == "" {
		name = ""
		for n := range f.evidence.Instances(evidence.CRDs.GroupResource()) {
			if _, group, _ := strings.Cut(n.Name(), "."); group == resource.Group {
				name = n.Name()
				break
			}
		}
	}
	if name == "" {
		return nil, nil
	}
	return f.evidence.Get(evidence.CRDs, "", name)
}

// origin is what an object shows of what it was installed with.
type origin struct {
	release, releaseNamespace string
	// labels are the values of originLabels, operators the keys of OLM's labels, with commas.
	labels    [3]string
	operators string
}

var originLabels = [3]string{"app.kubernetes.io/part-of", "app.kubernetes.io/instance", "olm.owner"}

// originOf takes the release of Helm from annotations, and all else from labels.
func originOf(release, releaseNamespace string, labels map[string]string) origin {
	o := origin{release: release, releaseNamespace: releaseNamespace}
	for i, key := range originLabels {
		o.labels[i] = labels[key]
	}
	var operators []string
	for key := range labels {
		if strings.HasPrefix(key, "operators.coreos.com/") {
			operators = append(operators, key)
		}
	}
	slices.Sort(operators)
	o.operators = strings.Join(operators, ",")
	return o
}

// installedWith says what two objects have in common that were installed
// together, and where it is; empty for nothing.
func (o origin) installedWith(other origin) (what, path string) {
	if o.release != "" && o.release == other.release && o.releaseNamespace == other.releaseNamespace {
		return "Helm release " + o.releaseNamespace + "/" + o.release, "metadata.annotations"
	}
	for i, key := range originLabels {
		if value := o.labels[i]; value != "" && value == other.labels[i] {
			return "label " + key + "=" + value, nameLabels
		}
	}
	theirs := strings.Split(other.operators, ",")
	for key := range strings.SplitSeq(o.operators, ",") {
		if key != "" && slices.Contains(theirs, key) {
			return "label " + key, nameLabels
		}
	}
	return "", ""
}

// byService finds the workloads behind a service that a webhook or an API is
// served by. One in a namespace that is going or gone is a sign of its own.
func (f *searcher) byService(s *Search, config map[string]any, e evidence.Fact, add adder) {
	namespace, name := evidence.ServiceOf(config)
	if name == "" {
		return
	}
	service := evidence.Identity(evidence.Services, namespace, name)
	e.Value = say.Plain(service)
	found := f.Behind(namespace, name)
	for _, l := range found {
		add(l, weakSign, false, e)
	}
	if len(found) == 0 && f.evidence.Ending(namespace) && s.maySet(namespace+" "+name) {
		e.Value = say.Of(serviceLeaving, service)
		s.lostServices = append(s.lostServices, e)
	}
}

// byAPI finds the workloads that serve the group as an aggregated API.
func (f *searcher) byAPI(s *Search, resource schema.GroupResource, add adder) {
	registered, err := f.evidence.List(evidence.APIServices, "")
	if err != nil {
		s.unread = append(s.unread, evidence.APIServices.GroupResource().String())
	}
	for i := range registered {
		f.evidence.Known(evidence.APIServices, &registered[i])
		if evidence.Nested(&registered[i], "spec", "group") == resource.Group {
			config, _, _ := unstructured.NestedMap(registered[i].Object, "spec")
			f.byService(s, config, evidence.At(evidence.Identity(evidence.APIServices, "", registered[i].GetName()), byServing, ""), add)
		}
	}
}

// byWebhooks finds the workloads that have admission webhooks for the group.
func (f *searcher) byWebhooks(s *Search, add adder) {
	for _, resource := range []schema.GroupVersionResource{evidence.ValidatingWebhooks, evidence.MutatingWebhooks} {
		configurations := f.listFor(resource, &s.unread)
		for i := range configurations {
			webhooks, _, _ := unstructured.NestedSlice(configurations[i].Object, "webhooks")
			for k := range webhooks {
				webhook, _ := webhooks[k].(map[string]any)
				config, _, _ := unstructured.NestedMap(webhook, "clientConfig")
				if namesGroup(webhook, s.groups) {
					f.byService(s, config, evidence.At(resource.GroupResource().Resource+"/"+configurations[i].GetName(),
						fmt.Sprintf("webhooks[%d].clientConfig.service", k), ""), add)
				}
			}
		}
	}
}

// podSuffix matches what the names of the pods of a Deployment, a DaemonSet and a
// StatefulSet have after its own.
var podSuffix = pattern.New("^-([a-z0-9]{6,10}-[a-z0-9]{5}|[a-z0-9]{5}|[0-9]+)$")

// generatedName matches the names of the pods of Deployments.
var generatedName = pattern.New("-[a-z0-9]{6,10}-[a-z0-9]{5}$")

// isPodOf reports whether a pod may be one of a workload, by their names.
func isPodOf(workload, pod string) bool {
	suffix, begins := strings.CutPrefix(pod, workload)
	return begins && podSuffix().MatchString(suffix)
}

// namesGroup reports whether a rule of the webhook states one of the groups.
func namesGroup(webhook map[string]any, groups []schema.GroupResource) bool {
	rules, _, _ := unstructured.NestedSlice(webhook, "rules")
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		stated, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
		if slices.ContainsFunc(groups, func(g schema.GroupResource) bool { return slices.Contains(stated, g.Group) }) {
			return true
		}
	}
	return false
}

// byLease finds the workload whose pod holds a lease that is named after the
// finalizer's domain or who set it, or that the catalogue names. One with a word before that domain or one above
// it, as kubebuilder names those of all operators of a company, tells of a workload that
// has a rule for the type, and of no other.
func (f *searcher) byLease(s *Search, namespace string, add adder) {
	domain := finalizers.Domain(s.Finalizer)
	for n := range f.evidence.Instances(evidence.Leases.GroupResource()) {
		in, name := n.Namespace(), n.Name()
		_, rest, _ := strings.Cut(name, ".")
		its := domain != "" && name == domain ||
			slices.ContainsFunc(ownNames(s.Setters), func(setter string) bool { return calledAfter(name, setter) })
		for _, m := range s.Known {
			its = its || slices.ContainsFunc(m.Leases, func(l finalizers.Lease) bool { return l.Is(in, name, namespace) })
		}
		ours := its || domain != "" && rest == domain || s.own && rest == s.resource.Group
		isAbove := func(domain string) bool { return len(rest) < len(domain) && related(domain, rest) }
		above := !ours && (domain != "" && isAbove(domain) || s.own && isAbove(s.resource.Group))
		if !ours && !above {
			continue
		}
		lease, err := f.evidence.Whole(n)
		if err != nil {
			continue
		}
		holder := PodOfHolder(evidence.Nested(lease, "spec", "holderIdentity"))
		l, abroad := f.WorkloadOfPod(in, holder), f.workloadElsewhere(in, holder)
		switch {
		case l == nil && abroad != nil && ours && !f.ofTenants(s, in):
			s.abroad = append(s.abroad, lease)
			add(abroad, weakSign, true, evidence.At(n.Identity(), byHolder, holder))
		case l != nil && (its || f.rights().states(l.Account(), s.resource.GroupResource())):
			add(l, weakSign, true, evidence.At(n.Identity(), byHolder, holder))
		case l != nil, f.podGone(in, holder): // whoever holds it is nobody any more
		case ours:
			s.leases = append(s.leases, lease)
		default:
			if state, _ := f.evidence.Lease(in, name); state == evidence.LeaseFresh && !f.ofTenants(s, in) {
				s.strangersLease = cmp.Or(s.strangersLease, n.Identity())
			}
		}
	}
}

// renewed tells apart who renews leases for the finalizer and is no workload here: he may be anybody who calls a lease so, unless it is
// where the catalogue has it or where a candidate is, or somebody with a rule for the type is there or is called so.
func (f *searcher) renewed(s *Search, namespace string) {
	for _, lease := range s.leases {
		in, name := lease.GetNamespace(), lease.GetName()
		state, e := f.evidence.Lease(in, name)
		holder := evidence.Nested(lease, "spec", "holderIdentity")
		itsPlace := slices.ContainsFunc(s.Known, func(m finalizers.Match) bool {
			return slices.ContainsFunc(m.Leases, func(l finalizers.Lease) bool { return l.Namespace != "" && l.Is(in, name, namespace) })
		})
		switch {
		case state != evidence.LeaseFresh:
		case itsPlace, slices.ContainsFunc(s.candidates, func(c *Candidate) bool { return c.namespace == in }),
			slices.ContainsFunc(slices.Concat(s.outside, s.lost), func(g *grant) bool {
				return g.subject.Namespace == in || shareWord(g.subject.Name, holder)
			}):
			s.OrphanLease = &e
		case !f.ofTenants(s, in):
			s.strangersLease = cmp.Or(s.strangersLease, evidence.Identity(evidence.Leases, in, name))
		}
	}
}

// ofTenants reports whether who is given the leases of a namespace alone may not change such objects: anybody renews one there.
func (f *searcher) ofTenants(s *Search, in string) bool {
	r, tenants := f.rights(), false
	for _, g := range r.grants {
		if g.namespace != in || !g.covers(evidence.Leases.GroupResource()) || !g.allows(changing...) {
			continue
		}
		if tenants = true; slices.ContainsFunc(r.of[g.key()],
			func(g *grant) bool { return g.covers(s.resource.GroupResource()) && g.allows(changing...) }) {
			return false
		}
	}
	return tenants && len(r.unread) == 0
}

// workloadElsewhere returns the workload of which a pod that holds a lease in another namespace is, by its name; nil for none.
func (f *searcher) workloadElsewhere(in, pod string) *Workload {
	for _, l := range f.inventory().workloads {
		if l.namespace != in && generatedName().MatchString(pod) && isPodOf(l.name, pod) &&
			len(f.evidence.Named(evidence.Pods.GroupResource(), l.namespace, pod)) > 0 {
			return l
		}
	}
	return nil
}

// podGone reports whether a name is one as pods of Deployments have, and the pod provably does not
// exist.
func (f *searcher) podGone(namespace, name string) bool {
	pods := evidence.Pods.GroupResource()
	return generatedName().MatchString(name) && len(f.evidence.Named(pods, namespace, name)) == 0 && f.evidence.Covers(pods, namespace, name)
}

// WorkloadOfPod returns the workload that a pod belongs to, or belonged to by
// its name, nil for none.
func (f *roster) WorkloadOfPod(namespace, name string) *Workload {
	for _, l := range f.inventory().workloads {
		if l.namespace == namespace && isPodOf(l.name, name) {
			return l
		}
	}
	if len(f.evidence.Named(evidence.Pods.GroupResource(), namespace, name)) == 0 {
		return nil
	}
	for _, l := range f.inventory().workloads {
		if l.namespace != namespace {
			continue
		}
		own, err := f.podsOf(l)
		if err == nil && slices.ContainsFunc(own, func(p *unstructured.Unstructured) bool { return p.GetName() == name }) {
			return l
		}
	}
	pod, err := f.evidence.Get(evidence.Pods, namespace, name)
	if err != nil || evidence.PodEnded(pod) {
		return nil
	}
	return newPodWorkload(pod)
}
