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

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// CheckReport is the document that check prints.
type CheckReport struct {
	head     `json:",inline"`
	Complete bool       `json:"complete"`
	Unlisted []Unlisted `json:"unlisted"`
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
		head:     headOf("CheckReport"),
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
