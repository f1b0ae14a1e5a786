// SPDX-License-Identifier: Apache-2.0

package network

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// What load balancers and ranges of addresses wait for.
const (
	BalancerLeft    say.Word = "its load balancer has to be deleted"
	BalancerUndone  say.Word = "%s has not deleted its load balancer"
	BalancerFails   say.Word = "%s fails to delete its load balancer"
	CloudController say.Word = "the service controller of the cloud-controller-manager"
	ClassOf         say.Word = "the load balancer class %s"
	RepairCloud     say.Word = "check its events, then repair the controller, or give it the rights or quota that they name; it then deletes the load balancer"
	LostBalancer    say.Word = "the load balancer with its address and firewall rules, which the provider keeps billing unless it was deleted there"
	AddressesUsed   say.Word = "addresses in it are in use"
	OnlyIn          say.Word = "it has the address %s, which is in no range but %s"
	RangeUnused     say.Word = "no address is only in it; the ServiceCIDR controller has to remove the finalizer"
	AddRange        say.Word = "add another range that has the address; this one is then deleted within ten seconds"
	ReplaceService  say.Word = "delete the Service; a new one gets an address of another range"
	LostAddress     say.Word = "the address, for all its clients"
)
