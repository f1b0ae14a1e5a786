// SPDX-License-Identifier: Apache-2.0

// Package lease judges whether somebody works by the lease that he renews. It is
// the one place for that: previews, deletions and explanations of what is stuck
// ask the same question about kube-controller-manager. It reads nothing, and waits
// for nothing.
package lease

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Margin is how long after its renewal a lease holds at least, whatever duration
// it states: leaders renew every two seconds, nodes every ten, and their clocks
// differ.
const Margin = 40 * time.Second

// MaxLag is how far a clock may lag; a lease that is older is not renewed.
const MaxLag = 24 * time.Hour

// Lease is what a lease says, as far as it matters.
type Lease struct {
	// Holder is empty when nobody holds it.
	Holder string
	// Renewed is zero when it never was.
	Renewed time.Time
	// Duration is what the lease states.
	Duration time.Duration
	// Taken is when the holder took it, zero when that is not stated.
	Taken time.Time
}

// Of returns what a coordination.k8s.io Lease says; object is its content.
func Of(object map[string]any) Lease {
	holder, _, _ := unstructured.NestedString(object, "spec", "holderIdentity")
	seconds, _, _ := unstructured.NestedInt64(object, "spec", "leaseDurationSeconds")
	return Lease{
		Holder: holder, Renewed: timeIn(object, "renewTime"), Taken: timeIn(object, "acquireTime"),
		Duration: time.Duration(seconds) * time.Second,
	}
}

// timeIn returns a time of a lease's spec, zero when nothing is known of it.
func timeIn(object map[string]any, field string) time.Time {
	text, _, _ := unstructured.NestedString(object, "spec", field)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// State is what a lease tells of its holder.
type State int

// The states.
const (
	// Held: it was renewed in time.
	Held State = iota
	// Expired: it was not, by the reader's clock; its holder's may lag, or was ahead.
	Expired
	// Released: nobody holds it. Leaders empty it when they end in order
	// (client-go/tools/leaderelection, release), and then the next takes it, within
	// seconds when there is one.
	Released
	// Abandoned: it was not renewed for so long that no clock explains it, or never.
	Abandoned
)

// Judge says what the lease tells at that time. Only Held and Abandoned are
// certain: of the others a second look decides, see RenewedIn.
func (l Lease) Judge(now time.Time) State {
	switch {
	case l.Renewed.IsZero(), l.Age(now) > MaxLag:
		return Abandoned
	case l.Holder == "":
		return Released
	case l.Age(now) > max(l.Duration, Margin), l.Age(now) < -Margin:
		return Expired
	}
	return Held
}

// Age is how long ago the lease was renewed, negative by a holder's clock that is
// ahead.
func (l Lease) Age(now time.Time) time.Duration { return now.Sub(l.Renewed) }

// Again is how long after a first look a second one shows whether the lease is
// renewed: leaders with long leases renew within a quarter of them, nodes every ten
// seconds.
func (l Lease) Again() time.Duration { return max(11*time.Second, l.Duration/4+time.Second) }

// RenewedIn reports whether somebody has renewed or taken the lease by a second
// look, whatever the clocks say.
func (l Lease) RenewedIn(second Lease) bool {
	return second.Holder != "" && !second.Renewed.IsZero() && (second.Holder != l.Holder || !second.Renewed.Equal(l.Renewed))
}
