// SPDX-License-Identifier: Apache-2.0

// Package lease judges whether somebody works by the lease that he renews. It is
// the one place for that: previews, deletions and explanations of what is stuck
// ask the same question about kube-controller-manager. It reads nothing, and waits
// for nothing.
package lease

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Margin is how long after its renewal a lease holds at least, whatever duration
// it states: leaders renew every two seconds, nodes every ten, and their clocks
// differ.
const Margin = 40 * time.Second

// MaxLag is how far a clock may lag; a lease that is older is not renewed.
const MaxLag = 24 * time.Hour

// Lease is what a lease says, as far as it matters. The JSON is that of a
// coordination.k8s.io/v1 Lease.
type Lease struct {
	Spec struct {
		HolderIdentity       string            `json:"holderIdentity"`
		LeaseDurationSeconds int64             `json:"leaseDurationSeconds"`
		RenewTime            *metav1.MicroTime `json:"renewTime"`
	} `json:"spec"`
}

// State is what a lease tells of its holder.
type State int

// The states.
const (
	// Held: it was renewed in time.
	Held State = iota
	// Expired: it was not, by the reader's clock; its holder's may lag.
	Expired
	// Released: nobody holds it. Leaders empty it when they end in order
	// (client-go/tools/leaderelection, release), and then the next takes it, within
	// seconds when there is one.
	Released
	// Abandoned: it was not renewed for so long that no clock explains it, or never.
	Abandoned
)

// Judge says what a lease tells at that time. Only Held and Abandoned are certain:
// of the others a second look decides, see Renewed.
func Judge(l *Lease, now time.Time) State {
	switch {
	case l.Spec.RenewTime == nil, l.Age(now) > MaxLag:
		return Abandoned
	case l.Spec.HolderIdentity == "":
		return Released
	case l.Age(now) > l.Lasts():
		return Expired
	}
	return Held
}

// Age is how long ago the lease was renewed, negative by a holder's clock that is
// ahead. It must have been renewed once.
func (l *Lease) Age(now time.Time) time.Duration { return now.Sub(l.Spec.RenewTime.Time) }

// Lasts is how long a lease holds after its renewal.
func (l *Lease) Lasts() time.Duration {
	return max(time.Duration(l.Spec.LeaseDurationSeconds)*time.Second, Margin)
}

// Again is how long after a first look a second one shows whether the lease is
// renewed: leaders with long leases renew within a quarter of them, nodes every ten
// seconds.
func (l *Lease) Again() time.Duration {
	return max(11*time.Second, time.Duration(l.Spec.LeaseDurationSeconds)*time.Second/4+time.Second)
}

// Renewed reports whether somebody has renewed or taken a lease between two looks,
// whatever the clocks say.
func Renewed(first, second *Lease) bool {
	return second.Spec.HolderIdentity != "" && second.Spec.RenewTime != nil &&
		(first.Spec.RenewTime == nil || first.Spec.HolderIdentity != second.Spec.HolderIdentity || !first.Spec.RenewTime.Equal(second.Spec.RenewTime))
}
