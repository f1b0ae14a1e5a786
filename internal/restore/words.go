// SPDX-License-Identifier: Apache-2.0

package restore

// Reason says why an object is not made again.
type Reason string

// The reasons.
const (
	NotAsked   Reason = "it was not asked for (--only)"
	NotKept    Reason = "no manifest of it was kept (--backup)"
	Unkept     Reason = "the data of the Secret was not kept (--backup-secrets)"
	Unread     Reason = "it could not be read"
	Going      Reason = "an object of this name is being deleted"
	Replaced   Reason = "another object has its name, and differs from it"
	Ownerless  Reason = "its owner does not exist, so the garbage collector would delete it"
	NoAccount  Reason = "its ServiceAccount does not exist: the token would be deleted"
	WasGoing   Reason = "it was being deleted before this run"
	NotDeleted Reason = "this run did not delete it"
	Requested  Reason = "its user requests another"
	Homeless   Reason = "its namespace or definition does not exist, or is being deleted"
	Remade     Reason = "its controller recreates it"
	Finished   Reason = "it has ended: recreated, it would run again"
	DataGone   Reason = "its volume is gone, or being deleted: recreated, it would be empty"
	Unproved   Reason = "unclear whether the volume of that name is the one that it had"
	Taken      Reason = "its volume belongs to another claim by now"
	// StartsEmpty: its controller would make the claim.
	StartsEmpty Reason = "it would start with an empty volume; --only recreates it nevertheless"
	Reclaimed   Reason = "its policy is not Retain: its storage might be destroyed"
	Deleted     Reason = "it was deleted again since it was recreated; --only recreates it nevertheless"
	Adopted     Reason = "another controller has it by now"
	Freed       Reason = "others have removed its owner references"
	NoContent   Reason = "its content is gone, or being deleted"
	Unbindable  Reason = "its content is bound to the deleted one, by UID"
	OfNow       Reason = "recreated, it would be a snapshot of the present data"
)
