// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/json"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func held(holder string, age time.Duration, lasts int64) Lease {
	return Lease{Holder: holder, Renewed: now.Add(-age), Duration: time.Duration(lasts) * time.Second}
}

func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		lease Lease
		want  State
	}{
		"renewed just now":                   {held("me", 0, 15), Held},
		"renewed by a clock that is ahead":   {held("me", -Margin, 15), Held},
		"renewed by a clock too far ahead":   {held("me", -time.Hour, 15), Expired},
		"renewed within the margin":          {held("me", Margin, 15), Held},
		"not renewed within the margin":      {held("me", Margin+time.Second, 15), Expired},
		"a long lease":                       {held("me", time.Hour, 2*3600), Held},
		"not renewed within its long lease":  {held("me", 2*time.Hour+time.Second, 2*3600), Expired},
		"not renewed for longer than clocks": {held("me", MaxLag+time.Second, 15), Abandoned},
		"given up":                           {held("", 0, 1), Released},
		"given up long ago":                  {held("", MaxLag+time.Second, 1), Abandoned},
		"never renewed":                      {Lease{Holder: "me"}, Abandoned},
	} {
		if got := test.lease.Judge(now); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

func TestRenewed(t *testing.T) {
	for name, test := range map[string]struct {
		first, second Lease
		want          bool
	}{
		"the same":               {held("me", time.Hour, 15), held("me", time.Hour, 15), false},
		"by a clock that lags":   {held("me", time.Hour, 15), held("me", time.Hour-time.Second, 15), true},
		"taken by another":       {held("", 0, 1), held("you", 0, 15), true},
		"given up meanwhile":     {held("me", time.Hour, 15), held("", 0, 1), false},
		"given up, and still so": {held("", 0, 1), held("", 0, 1), false},
		"for the first time":     {Lease{}, held("me", 0, 15), true},
	} {
		if got := test.first.RenewedIn(test.second); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	if a, b := held("me", 0, 15).Again(), held("me", 0, 3600).Again(); a != 11*time.Second || b != 15*time.Minute+time.Second {
		t.Errorf("a second look comes after %s and %s", a, b)
	}
}

func TestOf(t *testing.T) {
	for text, want := range map[string]Lease{
		`{"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000000Z"}}`: held("me", 0, 15),
		`{"spec": {"renewTime": "2026-01-02T03:04:05Z"}}`:                                                            held("", 0, 0),
		`{"spec": {"holderIdentity": "me", "renewTime": "yesterday"}}`:                                               {Holder: "me"},
		`{"spec": {"acquireTime": "2026-01-02T03:04:05.000000Z"}}`:                                                   {Taken: now},
		`{}`: {},
	} {
		var object map[string]any
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		if got := Of(object); got.Holder != want.Holder || got.Duration != want.Duration || !got.Renewed.Equal(want.Renewed) || !got.Taken.Equal(want.Taken) {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}
