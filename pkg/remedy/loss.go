// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// LossKind says what a change loses, or leaves behind.
type LossKind string

// The kinds of loss, the gravest first.
const (
	// LosesData: what is stored on a volume is destroyed.
	LosesData LossKind = "data"
	// CorruptsData: a volume may be written by two at once.
	CorruptsData LossKind = "corruption"
	// LosesObject: an object, or fields of objects, with what they stand for.
	LosesObject LossKind = "object"
	// Leaks: what a controller would have cleaned up, in the cluster or outside, or what runs on unseen.
	Leaks LossKind = "leak"
	// Unguards: what webhooks or policies check is not checked.
	Unguards LossKind = "guard"
	// GrantsMore: a controller is allowed more than it was meant to be.
	GrantsMore LossKind = "rights"
)

// Loss is something that a change loses or leaves behind.
type Loss struct {
	Kind LossKind
	// Object is what is lost or left behind, zero when that is no object in the cluster, or not known.
	Object graph.Identity
	// Size is that of a volume, as Kubernetes writes quantities, empty when it is not known.
	Size string
	// Unsure: whether it is lost could not be read.
	Unsure bool
	// What says it in words.
	What say.Text
}

// Equal reports whether two losses are the same.
func (l Loss) Equal(other Loss) bool {
	return l.Kind == other.Kind && l.Object == other.Object && l.Reads(other)
}

// Reads reports whether two losses are said in the same words.
func (l Loss) Reads(other Loss) bool { return l.What.Equal(other.What) }

// Destroys reports whether data is certainly destroyed.
func (l *Loss) Destroys() bool { return l.Kind == LosesData && !l.Unsure }
