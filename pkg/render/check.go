// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/pkg/check"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// CheckReport is the document that check prints.
type CheckReport struct {
	metav1.TypeMeta `json:",inline"`
	Complete        bool       `json:"complete"`
	Unlisted        []Unlisted `json:"unlisted"`
	// CheckedObjects is the number of objects that were checked.
	CheckedObjects int `json:"checkedObjects"`
	// UncheckedReferences is the number of their owner references whose owners
	// could not be looked for.
	UncheckedReferences int            `json:"uncheckedReferences"`
	Findings            []CheckFinding `json:"findings"`
}

// CheckFinding is a wrong owner reference.
type CheckFinding struct {
	Rule           string              `json:"rule"`
	Severity       string              `json:"severity"`
	Object         ObjectReference     `json:"object"`
	OwnerReference CheckOwnerReference `json:"ownerReference"`
	Message        string              `json:"message"`
	// Members are the objects of a circle.
	Members []ObjectReference `json:"members,omitempty"`
	Remedy  *CheckRemedy      `json:"remedy,omitempty"`
}

// CheckOwnerReference is an owner reference as the object states it, with its
// position.
type CheckOwnerReference struct {
	Index                 int `json:"index"`
	metav1.OwnerReference `json:",inline"`
}

// CheckRemedy is a way to put a finding right.
type CheckRemedy struct {
	Effect  string `json:"effect"`
	Command string `json:"command"`
}

// NewCheckReport returns the document of a check.
func NewCheckReport(s *graph.Snapshot, report *check.Report) *CheckReport {
	document := &CheckReport{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "CheckReport"},
		Complete: s.Complete(), Unlisted: NewUnlisted(s),
		CheckedObjects: report.Objects, UncheckedReferences: report.Unchecked,
		Findings: make([]CheckFinding, 0, len(report.Findings)),
	}
	for i := range report.Findings {
		document.Findings = append(document.Findings, newCheckFinding(&report.Findings[i]))
	}
	return document
}

func newCheckFinding(f *check.Finding) CheckFinding {
	finding := CheckFinding{
		Rule: f.Rule, Severity: f.Severity.String(), Object: NewObjectReference(f.Object),
		OwnerReference: CheckOwnerReference{f.Index, f.Reference}, Message: f.Message(),
	}
	for _, id := range f.Members {
		finding.Members = append(finding.Members, NewObjectReference(id))
	}
	if f.Remedy != nil {
		finding.Remedy = &CheckRemedy{Effect: f.Remedy.Effect, Command: f.Remedy.Command}
	}
	return finding
}

// ParseCheckReport reads the findings of a CheckReport, in JSON or YAML, as far as
// a check.Baseline needs them. It returns an error for anything else.
func ParseCheckReport(data []byte) ([]check.Finding, error) {
	var document CheckReport
	// What the parsers say of other files helps nobody.
	if err := yaml.Unmarshal(data, &document); err != nil || document.APIVersion != APIVersion || document.Kind != "CheckReport" {
		return nil, fmt.Errorf("it is no %s CheckReport, which check -o json writes", APIVersion)
	}
	findings := make([]check.Finding, len(document.Findings))
	for i := range document.Findings {
		f := &document.Findings[i]
		severity, known := check.ParseSeverity(f.Severity)
		if !known {
			return nil, fmt.Errorf("findings[%d] has the unknown severity %q", i, f.Severity)
		}
		findings[i] = check.Finding{
			Rule: f.Rule, Severity: severity, Object: f.Object.identity(),
			Index: f.OwnerReference.Index, Reference: f.OwnerReference.OwnerReference,
		}
		for _, m := range f.Members {
			findings[i].Members = append(findings[i].Members, m.identity())
		}
	}
	return findings, nil
}

// identity is what the reference was made of, but whether the type is namespaced.
func (r ObjectReference) identity() graph.Identity {
	gvk := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
	return graph.Identity{
		Resource:  graph.Resource{GroupVersionResource: gvk.GroupVersion().WithResource(r.Resource), Kind: gvk.Kind},
		Namespace: r.Namespace, Name: r.Name, UID: r.UID,
	}
}

// DeepCopyObject implements runtime.Object, which the printers of cli-runtime
// ask for. Documents are never changed, so the copy is shallow.
func (r *CheckReport) DeepCopyObject() runtime.Object {
	document := *r
	return &document
}

// CheckNames prints each object with a finding once, as kubectl's -o name does.
func CheckNames(w io.Writer, report *check.Report) error {
	out := bufio.NewWriter(w)
	seen := map[graph.Identity]bool{}
	for i := range report.Findings {
		id := report.Findings[i].Object
		if seen[id] {
			continue
		}
		seen[id] = true
		fmt.Fprintln(out, printable(kubectlName(id)))
	}
	return out.Flush()
}

// severities are the severities in the order in which text has them.
var severities = []struct {
	severity check.Severity
	color    color
}{{check.Error, red}, {check.Warning, yellow}, {check.Info, noColor}}

// CheckText writes the findings for a person: the gravest first, and those that
// are the same for objects of one kind as one.
func CheckText(w io.Writer, style Style, report *check.Report) error {
	out := bufio.NewWriter(w)
	groups := groupFindings(report.Findings)
	for _, s := range severities {
		for _, g := range groups {
			if g[0].Severity == s.severity {
				writeGroup(out, style.paint(s.severity.String(), s.color), g)
			}
		}
	}
	fmt.Fprintln(out, checkSummary(report))
	return out.Flush()
}

// groupFindings puts findings together that differ in the names of their
// objects alone. Groups, and what is in them, are in the order of the findings.
func groupFindings(findings []check.Finding) [][]*check.Finding {
	type key struct {
		rule             string
		severity         check.Severity
		group            schema.GroupKind
		namespace, owner string
		message          string
	}
	var groups [][]*check.Finding
	index := map[key]int{}
	for i := range findings {
		f := &findings[i]
		k := key{f.Rule, f.Severity, f.Object.Resource.GroupVersionKind().GroupKind(), f.Object.Namespace, string(f.Reference.UID), f.Message()}
		at, known := index[k]
		if !known {
			at = len(groups)
			index[k], groups = at, append(groups, nil)
		}
		groups[at] = append(groups[at], f)
	}
	return groups
}

// maxGrouped is the number of objects that a group names.
const maxGrouped = 5

// writeGroup writes findings that are the same.
func writeGroup(w io.Writer, severity string, group []*check.Finding) {
	first := group[0]
	fmt.Fprintf(w, "%s: %s [%s]\n", severity, printable(groupTitle(group)), first.Rule)
	for _, sentence := range first.Sentences {
		fmt.Fprintln(w, "  "+printable(sentence))
	}
	ref := first.Reference
	where := fmt.Sprintf("metadata.ownerReferences[%d]", first.Index)
	if len(group) > 1 {
		where = "owner"
	}
	fmt.Fprintln(w, "  "+printable(fmt.Sprintf("%s: %s %s/%s, UID %s", where, ref.APIVersion, ref.Kind, ref.Name, ref.UID)))
	if r := first.Remedy; r != nil {
		what := "what to do"
		if len(group) > 1 {
			what = "what to do, for the first (-o json has a command for each)"
		}
		fmt.Fprintf(w, "  %s: %s\n", what, printable(r.Effect))
		fmt.Fprintln(w, "      "+printable(r.Command))
	}
	fmt.Fprintln(w)
}

// groupTitle names the objects of a group.
func groupTitle(group []*check.Finding) string {
	id := group[0].Object
	if len(group) == 1 {
		return id.String()
	}
	title := fmt.Sprintf("%d %s", len(group), id.Resource.Kind)
	if id.Namespace != "" {
		title += " in namespace " + id.Namespace
	}
	var names []string
	for _, f := range group[:min(len(group), maxGrouped)] {
		names = append(names, f.Object.Name)
	}
	if more := len(group) - maxGrouped; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return title + ": " + strings.Join(names, ", ")
}

// checkSummary counts.
func checkSummary(report *check.Report) string {
	var counts []string
	for _, s := range severities {
		if n := report.Count(s.severity); n > 0 || s.severity != check.Info {
			counts = append(counts, plural(n, s.severity.String()))
		}
	}
	if len(report.Findings) == 0 {
		counts = []string{"No wrong owner references"}
	}
	text := strings.Join(counts, ", ") + " in " + plural(report.Objects, "object") + "."
	if report.Unchecked > 0 {
		text += " " + plural(report.Unchecked, "owner reference") + " could not be checked, because the owner could not be read."
	}
	return text
}

// plural is a number with its noun, which may be a kind.
func plural(n int, noun string) string {
	before, y := strings.CutSuffix(noun, "y")
	switch {
	case n == 1 || noun == check.Info.String() || noun == "Endpoints":
	case strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "x") || strings.HasSuffix(noun, "ch"):
		noun += "es"
	case y && !strings.ContainsAny(before[max(len(before)-1, 0):], "aeiou"):
		noun = before + "ies"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// ruleIndex returns the position of a rule in the catalogue.
func ruleIndex(id string) int {
	return slices.IndexFunc(check.Rules(), func(r check.Rule) bool { return r.ID == id })
}
