// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// metric is one family of samples in Prometheus' text format.
type metric struct {
	name, help string
	samples    []sample
}

type sample struct {
	labels []label
	value  float64
}

type label struct{ name, value string }

func (m *metric) add(value float64, labels ...label) {
	m.samples = append(m.samples, sample{labels, value})
}

var (
	helpEscaper  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// writeMetrics writes gauges in the text exposition format, version 0.0.4, without
// times, which a textfile collector does not take.
func writeMetrics(w io.Writer, metrics ...*metric) error {
	out := bufio.NewWriter(w)
	for _, m := range metrics {
		fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", m.name, helpEscaper.Replace(m.help), m.name)
		for _, s := range m.samples {
			fmt.Fprint(out, m.name)
			for i, l := range s.labels {
				lead := ","
				if i == 0 {
					lead = "{"
				}
				fmt.Fprintf(out, `%s%s="%s"`, lead, l.name, labelEscaper.Replace(strings.ToValidUTF8(l.value, "\uFFFD")))
			}
			if len(s.labels) > 0 {
				fmt.Fprint(out, "}")
			}
			fmt.Fprintln(out, " "+strconv.FormatFloat(s.value, 'f', -1, 64))
		}
	}
	return out.Flush()
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// about are the metrics that say what an answer is worth: whether all could be
// read, and when it was given.
func about(command string, complete bool, now time.Time) []*metric {
	whole := &metric{name: "kubectl_gc_" + command + "_complete", help: "Whether everything that the answer needs could be read."}
	whole.add(boolean(complete))
	when := &metric{name: "kubectl_gc_" + command + "_timestamp_seconds", help: "When the answer was given, by the API server's clock."}
	when.add(float64(now.Unix()))
	return []*metric{whole, when}
}

// CheckMetrics writes a check for Prometheus. A rule without findings is there with
// 0, so that an alert can tell that from a check that did not run.
func CheckMetrics(w io.Writer, s *graph.Snapshot, report *check.Report, now time.Time) error {
	findings := &metric{name: "kubectl_gc_check_findings", help: "Wrong owner references, by rule, severity and the namespace of the object."}
	type key struct {
		rule      string
		severity  check.Severity
		namespace string
	}
	counts := map[key]int{}
	found := map[string]bool{}
	for i := range report.Findings {
		f := &report.Findings[i]
		counts[key{f.Rule, f.Severity, f.Object.Namespace}]++
		found[f.Rule] = true
	}
	for _, rule := range check.Rules() {
		if !found[rule.ID] {
			counts[key{rule: rule.ID, severity: rule.Severity}] = 0
		}
	}
	for k, n := range counts {
		findings.add(float64(n), label{"namespace", k.namespace}, label{"rule", k.rule}, label{"severity", k.severity.String()})
	}
	sortSamples(findings)
	objects := &metric{name: "kubectl_gc_check_objects", help: "Objects that were checked."}
	objects.add(float64(report.Objects))
	unchecked := &metric{name: "kubectl_gc_check_unchecked_references", help: "Owner references whose owners could not be looked for."}
	unchecked.add(float64(report.Unchecked))
	return writeMetrics(w, append([]*metric{findings, objects, unchecked}, about("check", s.Complete(), now)...)...)
}

func sortSamples(metrics ...*metric) {
	for _, m := range metrics {
		slices.SortFunc(m.samples, func(a, b sample) int {
			return slices.CompareFunc(a.labels, b.labels, func(x, y label) int { return strings.Compare(x.value, y.value) })
		})
	}
}

// StuckMetrics writes for Prometheus what an explanation of everything that is
// being deleted says, and whether the garbage collector keeps up: what it should
// have deleted by now, and what waits for it.
func StuckMetrics(w io.Writer, g *graph.Graph, report *explain.Report, managerHeld bool) error {
	terminating := &metric{name: "kubectl_gc_terminating_objects",
		help: "Objects that are being deleted, by verdict, the gravest cause and namespace."}
	oldest := &metric{name: "kubectl_gc_terminating_oldest_seconds", help: "For how long the oldest of them has been."}
	type key struct{ verdict, cause, namespace string }
	counts, ages := map[key]int{}, map[key]time.Duration{}
	for i := range report.Objects {
		o := &report.Objects[i]
		if !o.BeingDeleted() {
			continue
		}
		k := key{verdict: string(o.Verdict), namespace: o.Object.Namespace}
		if o.Object.Resource.IsNamespace() {
			k.namespace = o.Object.Name // as explain-stuck -n selects
		}
		if len(o.Findings) > 0 {
			k.cause = o.Findings[0].Cause.ID
		}
		counts[k]++
		if !o.Since.IsZero() {
			ages[k] = max(ages[k], report.Now.Sub(o.Since))
		}
	}
	for k, n := range counts {
		labels := []label{{"cause", k.cause}, {"namespace", k.namespace}, {"verdict", k.verdict}}
		terminating.add(float64(n), labels...)
		oldest.add(max(ages[k], 0).Seconds(), labels...)
	}
	sortSamples(terminating, oldest)
	held := &metric{name: "kubectl_gc_controller_manager_lease_held",
		help: "Whether a kube-controller-manager, of which the garbage collector is a part, holds its lease."}
	held.add(boolean(managerHeld))
	metrics := append([]*metric{terminating, oldest}, garbageMetrics(g)...)
	metrics = append(metrics, held)
	return writeMetrics(w, append(metrics, about("explain", g.Snapshot().Complete() && len(report.Unread) == 0, report.Now)...)...)
}

// garbageMetrics count dangling references of objects that nobody is deleting, and
// the objects that have no others: the garbage collector deletes these.
func garbageMetrics(g *graph.Graph) []*metric {
	dangling := &metric{name: "kubectl_gc_dangling_references",
		help: "Owner references to owners that do not exist, of objects that are not being deleted."}
	garbage := &metric{name: "kubectl_gc_garbage_objects",
		help: "Objects that the garbage collector should delete: none of their owners exists. More than 0 for long means that it does not keep up."}
	references, objects := 0, 0
	for n := range g.Doubtful() {
		if n.BeingDeleted() {
			continue
		}
		refs := n.Owners()
		bad := 0
		for _, ref := range refs {
			if ref.State == graph.Dangling {
				bad++
			}
		}
		references += bad
		if bad > 0 && bad == len(refs) {
			objects++
		}
	}
	dangling.add(float64(references))
	garbage.add(float64(objects))
	return []*metric{dangling, garbage}
}
