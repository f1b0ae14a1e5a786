// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Load balancers and service addresses: k8s.io/cloud-provider/controllers/service and
// pkg/controller/servicecidrs.

// cidrDelay is how long the controller of ServiceCIDRs may take: it waits ten
// seconds for allocations that are under way.
const cidrDelay = 30 * time.Second

// loadBalancer is a Service whose load balancer has to be deleted first. The
// finalizer is kept when the type of the Service is changed
// (k8s.io/cloud-provider/controllers/service).
func (w *walker) loadBalancer(n graph.Node, index int) []hold {
	full, unread := w.whole(n, deleteLoadBalancer.because(), "the service")
	if full == nil {
		return unread
	}
	return []hold{{because: deleteLoadBalancer.because(), cause: w.cause(finding.SvcLb, n.Identity(), "", func(c *Cause) {
		c.Controller = &Controller{Name: cloudController, Liveness: string(Unknown)}
		state := evidence.LeaseUnread
		if class := evidence.Nested(full, "spec", "loadBalancerClass"); class != "" {
			c.Controller.Name = fmt.Sprintf(classController, class)
			c.Evidence = append(c.Evidence, evidence.Field(n, "spec.loadBalancerClass", class))
		} else {
			state = w.cloudManager(c)
		}
		failures := warnings(w.evidence, n, "SyncLoadBalancerFailed", "DeleteLoadBalancerFailed", "FailedToDeleteLoadBalancer")
		c.Summary = deleteLoadBalancer.undone(c.Controller.Name, len(failures) > 0)
		c.Evidence = append(c.Evidence, evidence.Field(n, fmt.Sprintf("metadata.finalizers[%d]", index), "service.kubernetes.io/load-balancer-cleanup"))
		c.Evidence = append(c.Evidence, ingress(n, full)...)
		c.Evidence = append(c.Evidence, failures...)
		driverVerdict(w.evidence, c, n, lasting(w.evidence, n, "SyncLoadBalancerFailed", "DeleteLoadBalancerFailed", "FailedToDeleteLoadBalancer"), state)
		c.Remedies = append(c.Remedies, []Remedy{
			see(repairCloud, "%s describe %s", w.kubectl(n), shell.Target(n.Identity())),
			w.removeFinalizer(n, index, "service.kubernetes.io/load-balancer-cleanup", loses(remedy.Leaks, lostBalancer)),
		}...)
	})}}
}

// cloudManager says what the lease of the cloud-controller-manager tells.
func (w *walker) cloudManager(c *Cause) evidence.LeaseState {
	lease, err := w.evidence.Get(leases, "kube-system", "cloud-controller-manager")
	if err == nil {
		return w.leader(c, lease)
	}
	state, facts := w.evidence.Lease("kube-system", "cloud-controller-manager")
	c.Controller.Evidence = append(c.Controller.Evidence, facts)
	return state
}

// ingress are the addresses of a load balancer.
func ingress(n graph.Node, full *unstructured.Unstructured) []Evidence {
	entries, _, _ := unstructured.NestedSlice(full.Object, "status", "loadBalancer", "ingress")
	var facts []Evidence
	for i, entry := range entries {
		address, _ := entry.(map[string]any)
		for _, key := range []string{"ip", "hostname"} {
			if value := evidence.Text(address[key]); value != "" {
				facts = append(facts, evidence.Field(n, fmt.Sprintf("status.loadBalancer.ingress[%d].%s", i, key), value))
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

// serviceCIDR is a range of Service addresses: addresses that are in no other
// range have to be released first (pkg/controller/servicecidrs).
func (w *walker) serviceCIDR(n graph.Node) []hold {
	all, err := w.evidence.List(serviceCIDRs, "")
	if err != nil {
		return w.unread(n, addressesUsed, serviceCIDRs.GroupResource().String(), err)
	}
	addresses, err := w.evidence.List(ipAddresses, "")
	if err != nil {
		return w.unread(n, addressesUsed, ipAddresses.GroupResource().String(), err)
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
	var holds []hold
	for i := range addresses {
		address, err := netip.ParseAddr(addresses[i].GetName())
		if err != nil || addresses[i].GetLabels()["ipaddress.kubernetes.io/managed-by"] != "ipallocator.k8s.io" ||
			!within(own, address) || within(others, address) {
			continue
		}
		if c := w.addressUser(n, own, &addresses[i]); len(holds) < 2*evidence.MaxShown {
			holds = append(holds, hold{because: addressesUsed, cause: c})
		}
	}
	if len(holds) == 0 {
		return []hold{w.manager(n, rangeUnused, w.age(n) > cidrDelay).as(finding.ServicecidrInUse)}
	}
	return holds
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
func (w *walker) addressUser(n graph.Node, own []netip.Prefix, address *unstructured.Unstructured) *Cause {
	namespace, name := evidence.Nested(address, "spec", "parentRef", "namespace"), evidence.Nested(address, "spec", "parentRef", "name")
	at := evidence.Identity(services, namespace, name)
	service, err := w.evidence.Get(services, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		at = evidence.IdentityOf(ipAddresses, "IPAddress", address)
	case err == nil:
		at.UID = service.GetUID()
	}
	return w.cause(finding.ServicecidrInUse, at, n.Identity().String(), func(c *Cause) {
		c.Summary = fmt.Sprintf(onlyIn, address.GetName(), n.Name())
		if c.Verdict = Stuck; w.age(n) <= cidrDelay {
			c.Verdict, c.Until = Progressing, evidence.Requested(n.Object()).Add(cidrDelay)
		}
		c.Evidence = []Evidence{
			{Source: "IPAddress/" + address.GetName(), Path: "spec.parentRef", Value: "Service " + namespace + "/" + name},
			evidence.Field(n, "spec.cidrs", fmt.Sprint(own)),
		}
		c.Remedies = []Remedy{see(addRange, "%s get servicecidrs", w.Kubectl)}
		if err == nil {
			c.Remedies = append(c.Remedies, Remedy{Risk: Disruptive, Action: w.delete(at, byPolicy), Effect: replaceService, Loss: loses(remedy.LosesObject, lostAddress)})
		}
	})
}
