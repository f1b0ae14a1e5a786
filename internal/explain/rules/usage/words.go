// SPDX-License-Identifier: Apache-2.0

package usage

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// What an object waits for that others use.
const (
	WaitsForUser say.Word = "waits until %s, which uses it, is deleted"
	UsedBy       say.Word = "it uses %s, whose controller waits for it, but it is not being deleted"
	DeleteUser   say.Word = "check what is deleted with it, then delete it if nothing needs it any more, or make it use another object; the finalizer is then removed"
	UserFirst    say.Word = "the object that uses the other one must be deleted first"
)

// What a Node waits for that Karpenter drains.
const (
	MightWaitForPods say.Word = "might wait for its pods"
	PodsEvicted      say.Word = "its pods must be evicted"
	BlockedBy        say.Word = "%s: %s %s"
	NotEvictable     say.Word = "%s on node %s cannot be evicted, so Karpenter keeps the machine"
	NoDisruption     say.Word = "0, and it protects %s"
	SeeBudgets       say.Word = "make the workloads of these pods healthy, or relax their budgets; the pods are then evicted"
	MachineLeft      say.Word = "the machine, which the provider keeps billing, and the pods on it"
)
