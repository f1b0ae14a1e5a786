// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

const (
	sarifSchema  = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	sarifProject = "https://github.com/kubectl-gc/kubectl-gc"
)

// The parts of SARIF 2.1.0 that are written.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string             `json:"id"`
		ShortDescription     sarifText          `json:"shortDescription"`
		FullDescription      sarifText          `json:"fullDescription"`
		HelpURI              string             `json:"helpUri"`
		DefaultConfiguration sarifConfiguration `json:"defaultConfiguration"`
	}
	sarifConfiguration struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		ExecutionSuccessful bool                `json:"executionSuccessful"`
		Notifications       []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
	sarifResult struct {
		RuleID              string            `json:"ruleId"`
		RuleIndex           int               `json:"ruleIndex"`
		Level               string            `json:"level"`
		Message             sarifText         `json:"message"`
		Locations           []sarifLocation   `json:"locations"`
		PartialFingerprints map[string]string `json:"partialFingerprints"`
		Properties          sarifProperties   `json:"properties"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPhysicalLocation  `json:"physicalLocation"`
		LogicalLocations []sarifLogicalLocation `json:"logicalLocations"`
	}
	sarifPhysicalLocation struct {
		ArtifactLocation sarifArtifactLocation `json:"artifactLocation"`
	}
	sarifArtifactLocation struct {
		URI string `json:"uri"`
	}
	sarifLogicalLocation struct {
		Name               string `json:"name"`
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
	sarifProperties struct {
		Object         ObjectReference     `json:"object"`
		OwnerReference CheckOwnerReference `json:"ownerReference"`
		Members        []ObjectReference   `json:"members,omitempty"`
		Remedy         *CheckRemedy        `json:"remedy,omitempty"`
	}
)

var sarifLevels = map[check.Severity]string{check.Error: "error", check.Warning: "warning", check.Info: "note"}

// SARIF writes a check in the Static Analysis Results Interchange Format 2.1.0.
// An object's location is the path of its URL on the API server. What could not
// be read is a notification of the run.
func SARIF(w io.Writer, version string, s *graph.Snapshot, report *check.Report) error {
	run := sarifRun{
		Tool: sarifTool{sarifDriver{
			Name: "kubectl-gc", Version: version, InformationURI: sarifProject, Rules: sarifRules(),
		}},
		Invocations: []sarifInvocation{{ExecutionSuccessful: true, Notifications: sarifNotifications(s)}},
		Results:     make([]sarifResult, 0, len(report.Findings)),
	}
	for i := range report.Findings {
		run.Results = append(run.Results, newSarifResult(&report.Findings[i]))
	}
	encoder := json.NewEncoder(JSON(w))
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
}

func sarifRules() []sarifRule {
	var rules []sarifRule
	for _, r := range check.Rules() {
		rules = append(rules, sarifRule{
			ID: r.ID, ShortDescription: sarifText{r.Summary}, FullDescription: sarifText{r.Summary + " " + r.Consequence},
			HelpURI:              sarifProject + "/blob/main/docs/check.md#rules",
			DefaultConfiguration: sarifConfiguration{sarifLevels[r.Severity]},
		})
	}
	return rules
}

func sarifNotifications(s *graph.Snapshot) []sarifNotification {
	var notifications []sarifNotification
	for _, u := range s.Unlisted() {
		text := "could not read " + unlistedName(u)
		if u.Namespace != "" {
			text += " in namespace " + printable(u.Namespace)
		}
		notifications = append(notifications, sarifNotification{"warning", sarifText{text + ": " + string(u.Reason) + ": " + u.Message}})
	}
	return notifications
}

func newSarifResult(f *check.Finding) sarifResult {
	finding := newCheckFinding(f)
	return sarifResult{
		RuleID: f.Rule, RuleIndex: ruleIndex(f.Rule), Level: sarifLevels[f.Severity],
		Message: sarifText{f.Object.String() + ": " + f.Message()},
		Locations: []sarifLocation{{
			PhysicalLocation: sarifPhysicalLocation{sarifArtifactLocation{strings.TrimPrefix(f.Object.URLPath(), "/")}},
			LogicalLocations: []sarifLogicalLocation{{Name: f.Object.Name, FullyQualifiedName: f.Object.String(), Kind: "resource"}},
		}},
		PartialFingerprints: map[string]string{"ownerReference/v1": strings.Join([]string{string(f.Object.UID), string(f.Reference.UID),
			f.Reference.Kind, f.Reference.Name}, "/")},
		Properties: sarifProperties{finding.Object, finding.OwnerReference, finding.Members, finding.Remedy},
	}
}
