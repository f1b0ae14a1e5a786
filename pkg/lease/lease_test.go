// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func held(holder string, age time.Duration, lasts int64) *Lease {
	l := &Lease{}
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = holder, lasts
	l.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-age)}
	return l
}

func TestJudge(t *testing.T) {
	never := held("me", 0, 15)
	never.Spec.RenewTime = nil
	for name, test := range map[string]struct {
		lease *Lease
		want  State
	}{
		"renewed just now":                   {held("me", 0, 15), Held},
		"renewed by a clock that is ahead":   {held("me", -time.Minute, 15), Held},
		"renewed within the margin":          {held("me", Margin, 15), Held},
		"not renewed within the margin":      {held("me", Margin+time.Second, 15), Expired},
		"a long lease":                       {held("me", time.Hour, 2*3600), Held},
		"not renewed within its long lease":  {held("me", 2*time.Hour+time.Second, 2*3600), Expired},
		"not renewed for longer than clocks": {held("me", MaxLag+time.Second, 15), Abandoned},
		"given up":                           {held("", 0, 1), Released},
		"given up long ago":                  {held("", MaxLag+time.Second, 1), Abandoned},
		"never renewed":                      {never, Abandoned},
	} {
		if got := Judge(test.lease, now); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

func TestRenewed(t *testing.T) {
	for name, test := range map[string]struct {
		first, second *Lease
		want          bool
	}{
		"the same":               {held("me", time.Hour, 15), held("me", time.Hour, 15), false},
		"by a clock that lags":   {held("me", time.Hour, 15), held("me", time.Hour-time.Second, 15), true},
		"taken by another":       {held("", 0, 1), held("you", 0, 15), true},
		"given up meanwhile":     {held("me", time.Hour, 15), held("", 0, 1), false},
		"given up, and still so": {held("", 0, 1), held("", 0, 1), false},
		"for the first time":     {&Lease{}, held("me", 0, 15), true},
	} {
		if got := Renewed(test.first, test.second); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	if a, b := held("me", 0, 15).Again(), held("me", 0, 3600).Again(); a != 11*time.Second || b != 15*time.Minute+time.Second {
		t.Errorf("a second look comes after %s and %s", a, b)
	}
}
