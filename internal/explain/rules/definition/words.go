// SPDX-License-Identifier: Apache-2.0

package definition

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// What a definition waits for.
const (
	WaitsForInstances say.Word = "waits for its %s"
	DeleteInstances   say.Word = "the API server has to delete its instances"
	InstancesUnknown  say.Word = "its instances could not be listed"
	InstancesRemain   say.Word = "the API server still has to delete %d of its instances"
	InstancesDeleted  say.Word = "its instances are deleted; the API server notices that within about a minute"
	TooLong           say.Word = ", but this takes longer than usual"
	InstancesUnlisted say.Word = "the API server cannot list its instances"
	DefinitionKept    say.Word = "the API server cannot list its instances, so it deletes neither them nor the definition"
	InstanceKept      say.Word = "the API server cannot delete its instance %s"
	RetryNow          say.Word = "make the API server retry at once"
	OnceListable      say.Word = ", when its instances can be listed"
)

// What keeps objects of a type from being read.
const (
	ConversionFails say.Word = "its conversion webhook fails, so its objects cannot be read: neither they, nor the definition, nor any namespace can be deleted"
	TypeUnread      say.Word = "objects of its type cannot be listed"
	ReadAgain       say.Word = "the objects can be read again"
	ConvertNothing  say.Word = "switch conversion off (strategy None), if all objects of the type are to be deleted anyway"
	LostFields      say.Word = "fields that the versions do not share, in objects that are written"
	NotListable     say.Word = "cannot be listed"
	Listable        say.Word = "%s can be listed"
	NotDecodable    say.Word = "the API server cannot decrypt or decode the stored %s, so deletions of their owners and namespaces might not finish"
	RestoreKey      say.Word = "restore the encryption key of the objects, or etcd from before they were damaged"
	FindDamaged     say.Word = "list the objects one by one, with the continue token of each answer: the one after the last that can be read is damaged; it can be deleted %s, otherwise only in etcd, after a snapshot of it"
	DeleteUnread    say.Word = "delete %s, which cannot be read, regardless of its finalizers, owners and UID, once it is certain that the key cannot be restored; this needs the verb unsafe-delete-ignore-read-errors on %s, and works %s"
	LostGuarded     say.Word = "the object, and what its finalizers guard"
	UnlessUnsafe    say.Word = "unless the feature gate AllowUnsafeMalformedObjectDeletion is off, which is on by default on this server"
	WithUnsafe      say.Word = "with the feature gate AllowUnsafeMalformedObjectDeletion, which exists since 1.32 and is off by default before 1.37"
)
