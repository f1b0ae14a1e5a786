// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"math/rand/v2"
	"net/http"
	"regexp"
	"time"
)

// classes are the requests that a drawn rule may be for.
var classes = []*regexp.Regexp{
	nil,
	nil,
	regexp.MustCompile(`^GET /apis?(\?|$)`), // discovery
	regexp.MustCompile(`^GET /version`),     // and the version
	regexp.MustCompile(`^GET [^?]*\?.*limit=`),                                                                   // lists
	regexp.MustCompile(`^GET [^?]*/(configmaps|secrets|widgets)\?`),                                              // the lists of what most objects are
	regexp.MustCompile(`^GET [^?]*\?.*watch=`),                                                                   // watches
	regexp.MustCompile(`^GET [^?]*(configmaps|secrets|widgets|namespaces|leases|pods|deployments)/[^/?]+(\?|$)`), // single objects
	regexp.MustCompile(`^DELETE `),
	regexp.MustCompile(`^PATCH `),
	regexp.MustCompile(`^(DELETE|PATCH) `),
}

// Draw makes up to three rules from a seed. What hangs and what drips is limited to a
// few requests, for each costs its time; everything else may be for ever.
func Draw(seed uint64) []Rule {
	r := rand.New(rand.NewPCG(seed, 19))
	rules := make([]Rule, 1+r.IntN(3))
	for i := range rules {
		fault, slow := drawFault(r)
		rule := Rule{URI: classes[r.IntN(len(classes))], Fault: fault}
		if r.IntN(2) == 0 {
			rule.After = r.IntN(12)
		}
		switch {
		case slow:
			rule.Times = 1 + r.IntN(2)
		case r.IntN(3) > 0:
			rule.Times = 1 + r.IntN(6)
		}
		rules[i] = rule
	}
	return rules
}

// drawFault draws a fault, and whether it costs time. All kinds come equally often.
func drawFault(r *rand.Rand) (_ Fault, slow bool) {
	size := []int64{0, 1, 4, 5, 30, 100, 300, 1000, 4000}[r.IntN(9)]
	draws := []func() Fault{
		func() Fault { return Latency(time.Duration(r.IntN(400)) * time.Millisecond) },
		Hang, Cut, Lose,
		func() Fault { return LoseTo([]int{500, 502, 503, 504}[r.IntN(4)]) },
		func() Fault { return Reset(size) },
		func() Fault { return Truncate(size) },
		func() Fault { return Garble(size) },
		func() Fault { return Drip(100 * time.Millisecond) },
		func() Fault { return Status(http.StatusTooManyRequests, "", 1) },
		func() Fault { return Status([]int{500, 503, 504}[r.IntN(3)], "", 0) },
		func() Fault { return Status(http.StatusConflict, "", 0) },
		func() Fault { return Status([]int{401, 403, 404, 410}[r.IntN(4)], "", 0) },
		func() Fault { return Plain([]int{404, 502, 500, 200}[r.IntN(4)], "<html>the proxy says no</html>") },
		func() Fault { return Body("a body of nothing", "") },
		func() Fault { return Body("a body of {}", "{}") },
		func() Fault { return Body("a body of null", "null") },
		func() Fault {
			return Body("a Status of success", `{"kind":"Status","apiVersion":"v1","status":"Success","code":200}`)
		},
		func() Fault {
			return ContentType([]string{"text/html", "application/json", "application/octet-stream"}[r.IntN(3)])
		},
		Stale, Duplicate, Reorder,
		func() Fault { return Clock(time.Duration(r.IntN(49)-24) * time.Hour) },
		func() Fault { return CloseWatch(r.IntN(4)) },
		func() Fault { return LateEvents(time.Duration(r.IntN(300)) * time.Millisecond) },
	}
	i := r.IntN(len(draws))
	return draws[i](), i == 1 || i == 8
}
