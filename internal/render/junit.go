// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

type (
	junitSuite struct {
		XMLName    xml.Name        `xml:"testsuite"`
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string     `xml:"classname,attr"`
		Name    string     `xml:"name,attr"`
		Failure *junitText `xml:"failure"`
		Skipped *junitText `xml:"skipped"`
		Output  string     `xml:"system-out,omitempty"`
	}
	junitText struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes a check by some rules, all where none is named, as the report of a test suite: a case for each rule that found nothing, and
// one for each finding, which fails unless it is an info. What could not be read is skipped.
func JUnit(w io.Writer, where *answer.Where, rules []string, s *graph.Snapshot, report *check.Report) error {
	suite := junitSuite{Name: "kubectl gc check", Properties: []junitProperty{{"cluster", where.String()}}}
	for _, rule := range check.Rules() {
		if (len(rules) == 0 || slices.Contains(rules, rule.ID)) &&
			!slices.ContainsFunc(report.Findings, func(f check.Finding) bool { return f.Rule == rule.ID }) {
			suite.Cases = append(suite.Cases, junitCase{Class: rule.ID, Name: rule.Summary})
		}
	}
	for i := range report.Findings {
		f := &report.Findings[i]
		c := junitCase{Class: f.Rule, Name: printable(objectName(f.Object))}
		text := f.Message()
		if r := f.Remedy; r != nil {
			text += fmt.Sprintf("\n%s: %s", r.Effect, r.Command)
		}
		if f.Severity == check.Info {
			c.Output = text
		} else {
			c.Failure = &junitText{f.Problem, f.Severity.String(), text}
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, c)
	}
	for _, u := range s.Unlisted() {
		suite.Cases = append(suite.Cases,
			junitCase{Class: "read", Name: unlistedName(u), Skipped: &junitText{Message: string(u.Reason), Text: u.Message}})
		suite.Skipped++
	}
	suite.Tests = len(suite.Cases)
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	if err := encoder.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
