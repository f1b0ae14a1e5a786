// SPDX-License-Identifier: Apache-2.0

// Package network has the rules of load balancers and of service addresses.
package network

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Load balancers and service addresses: k8s.io/cloud-provider/controllers/service and
// pkg/controller/servicecidrs.

// cidrDelay is how long the controller of ServiceCIDRs may take: it waits ten
// seconds for allocations that are under way.
const cidrDelay = 30 * time.Second

// balancerFailures are the reasons of events that tell of a load balancer.
var balancerFailures = []string{"SyncLoadBalancerFailed", "DeleteLoadBalancerFailed", "FailedToDeleteLoadBalancer"}

// LoadBalancer is a Service whose load balancer has to be deleted first. The
// finalizer is kept when the type of the Service is changed
// (k8s.io/cloud-provider/controllers/service).
func LoadBalancer(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	full, unread := f.WholeOr(n.Node, say.Of(BalancerLeft), "the service")
	if full == nil {
		return unread, true
	}
	by := &finding.Controller{Name: say.Of(CloudController), Liveness: string(finding.Unknown)}
	c := &finding.Cause{Kind: finding.SvcLb, At: n.Identity(), Controller: by}
	state := evidence.LeaseUnread
	if class := evidence.Nested(full, "spec", "loadBalancerClass"); class != "" {
		by.Name = say.Of(controllers.ControllerOf, say.Of(ClassOf, class))
		c.Evidence = append(c.Evidence, finding.Field(n.Node, "spec.loadBalancerClass", class))
	} else {
		state = cloudManager(f, by)
	}
	failures, says := rules.Warnings(f.Reader, n.Node, balancerFailures...), BalancerUndone
	if len(failures) > 0 {
		says = BalancerFails
	}
	c.Summary = say.Of(says, by.Name)
	c.Evidence = slices.Concat(c.Evidence, []finding.Fact{n.Evidence()}, ingress(n.Node, full), failures)
	rules.Judge(f.Reader, c, n.Node, rules.Lasting(f.Reader, n.Node, balancerFailures...), state)
	c.Ways = []finding.Way{finding.See(remedy.Describe(n.Identity()), RepairCloud),
		rules.RemoveFinalizer(n, finding.Lost(remedy.Leaks, graph.Identity{}, LostBalancer))}
	return []finding.Blocker{{Because: say.Of(BalancerLeft), Cause: c}}, true
}

// cloudManager says what the lease of the cloud-controller-manager tells.
func cloudManager(f *rules.Facts, c *finding.Controller) evidence.LeaseState {
	lease, err := f.Get(evidence.Leases, "kube-system", "cloud-controller-manager")
	if err == nil {
		return f.Leader(c, lease)
	}
	state, fact := f.Lease("kube-system", "cloud-controller-manager")
	c.Evidence = append(c.Evidence, fact)
	return state
}

// ingress are the addresses of a load balancer.
func ingress(n graph.Node, full *unstructured.Unstructured) []finding.Fact {
	entries, _, _ := unstructured.NestedSlice(full.Object, "status", "loadBalancer", "ingress")
	var facts []finding.Fact
	for i, entry := range entries {
		address, _ := entry.(map[string]any)
		for _, key := range []string{"ip", "hostname"} {
			if value := evidence.Text(address[key]); value != "" {
				facts = append(facts, finding.Field(n, fmt.Sprintf("status.loadBalancer.ingress[%d].%s", i, key), value))
			}
		}
	}
	return facts
}

const networkGroup = "networking.k8s.io"

var (
	serviceCIDRs = schema.GroupVersionResource{Group: networkGroup, Version: "v1", Resource: "servicecidrs"}
	ipAddresses  = schema.GroupVersionResource{Group: networkGroup, Version: "v1", Resource: "ipaddresses"}
)

// ServiceCIDR is a range of Service addresses: addresses that are in no other
// range have to be released first (pkg/controller/servicecidrs).
func ServiceCIDR(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	all, err := f.List(serviceCIDRs, "")
	if err != nil {
		return rules.Unread(n.Node, say.Of(AddressesUsed), serviceCIDRs.GroupResource().String(), err), true
	}
	addresses, err := f.List(ipAddresses, "")
	if err != nil {
		return rules.Unread(n.Node, say.Of(AddressesUsed), ipAddresses.GroupResource().String(), err), true
	}
	var own, others []netip.Prefix
	for i := range all {
		prefixes := prefixesOf(&all[i])
		switch {
		case all[i].GetUID() == n.UID():
			own = prefixes
		case all[i].GetDeletionTimestamp() == nil:
			others = append(others, prefixes...)
		}
	}
	var blockers []finding.Blocker
	for i := range addresses {
		address, err := netip.ParseAddr(addresses[i].GetName())
		if err != nil || addresses[i].GetLabels()["ipaddress.kubernetes.io/managed-by"] != "ipallocator.k8s.io" ||
			!within(own, address) || within(others, address) {
			continue
		}
		if c := addressUser(f, n.Node, own, &addresses[i]); len(blockers) < 2*evidence.MaxShown {
			blockers = append(blockers, finding.Blocker{Because: say.Of(AddressesUsed), Cause: c})
		}
	}
	if len(blockers) == 0 {
		return []finding.Blocker{f.Turn(n.Node, finding.ServicecidrInUse, say.Of(RangeUnused), f.Age(n.Node) > cidrDelay)}, true
	}
	return blockers, true
}

func prefixesOf(cidr *unstructured.Unstructured) []netip.Prefix {
	texts, _, _ := unstructured.NestedStringSlice(cidr.Object, "spec", "cidrs")
	var prefixes []netip.Prefix
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes
}

func within(prefixes []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}

// addressUser is the Service that has an address of a range.
func addressUser(f *rules.Facts, n graph.Node, own []netip.Prefix, address *unstructured.Unstructured) *finding.Cause {
	namespace, name := evidence.Nested(address, "spec", "parentRef", "namespace"), evidence.Nested(address, "spec", "parentRef", "name")
	at := evidence.Identity(evidence.Services, namespace, name)
	service, err := f.Get(evidence.Services, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		at = evidence.IdentityOf(ipAddresses, "IPAddress", address)
	case err == nil:
		at.UID = service.GetUID()
	}
	c := &finding.Cause{
		Kind: finding.ServicecidrInUse, At: at, Key: n.Identity().String(), Verdict: finding.Stuck,
		Summary: say.Of(OnlyIn, address.GetName(), n.Name()),
		Evidence: []finding.Fact{
			finding.At(evidence.Named("IPAddress", "", address.GetName()), "spec.parentRef", "Service "+namespace+"/"+name),
			finding.Field(n, "spec.cidrs", fmt.Sprint(own)),
		},
		Ways: []finding.Way{finding.See(remedy.Get("servicecidrs"), AddRange)},
	}
	if f.Age(n) <= cidrDelay {
		c.Verdict, c.Until = finding.Progressing, evidence.Requested(n.Object()).Add(cidrDelay)
	}
	if err == nil {
		end := finding.Does(remedy.DeleteOf(at, metav1.DeleteOptions{}), ReplaceService)
		end.Loss = finding.Lost(remedy.LosesObject, graph.Identity{}, LostAddress)
		c.Ways = append(c.Ways, end)
	}
	return c
}
