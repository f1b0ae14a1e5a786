// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// statusOf is the status of an object as what its controller says, which is not all of it:
// a kubelet says how the containers of a pod ended, whoever has a finalizer on the pod.
type statusOf struct {
	full *unstructured.Unstructured
	// foreign has the conditions, by type, and the fields of the status, that others
	// have written.
	foreign map[string]bool
}

// foreign returns the conditions, as "conditions/type", and the fields of the status that were
// written under names of others than the workload: of parts of Kubernetes, of other
// workloads, and, where the name under which it writes itself is known, of any other program. What several have written is
// left out.
func (f *Finder) foreign(full *unstructured.Unstructured, by *Workload) map[string]bool {
	own, others := map[string]bool{}, map[string]bool{}
	known := by != nil &&
		slices.ContainsFunc(full.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return by.calledBy(e.Manager) })
	for _, entry := range full.GetManagedFields() {
		if entry.FieldsV1 == nil {
			continue
		}
		set := own
		calledSo := by != nil && by.calledBy(entry.Manager)
		another := known && IsProgram(entry.Manager) && !shareWord(entry.Manager, strings.Join(append(slices.Clone(by.programs), by.name), " "))
		if !calledSo && (another || slices.Contains(components, entry.Manager) || by != nil && f.calledSo(entry.Manager)) {
			set = others
		}
		for _, field := range statusFields(entry.FieldsV1.Raw) {
			set[field] = true
		}
	}
	for field := range own {
		delete(others, field)
	}
	return others
}

// statusFields returns the fields of the status that are managed, and the conditions as
// "conditions/type".
func statusFields(managed []byte) []string {
	var fields struct {
		Status map[string]json.RawMessage `json:"f:status"`
	}
	if json.Unmarshal(managed, &fields) != nil {
		return nil
	}
	var names []string
	for key, inner := range fields.Status {
		name := strings.TrimPrefix(key, "f:")
		if name != "conditions" {
			names = append(names, name)
			continue
		}
		var conditions map[string]json.RawMessage
		if json.Unmarshal(inner, &conditions) != nil || len(conditions) == 0 {
			names = append(names, name) // a list that is written as a whole
			continue
		}
		for key := range conditions {
			var of struct {
				Type string `json:"type"`
			}
			if json.Unmarshal([]byte(strings.TrimPrefix(key, "k:")), &of) == nil && of.Type != "" {
				names = append(names, "conditions/"+of.Type)
			}
		}
	}
	return names
}

func (s *statusOf) conditions() []evidence.Condition { return evidence.Conditions(s.full) }

// isForeign reports whether another has written the condition.
func (s *statusOf) isForeign(i int) bool {
	return s.foreign["conditions"] || s.foreign["conditions/"+s.conditions()[i].Type]
}

// failures finds failures in the status: conditions that are about the deletion, and texts.
func (s *statusOf) failures(n graph.Node, asked time.Time) []*Failure {
	var found []*Failure
	for i, c := range s.conditions() {
		failing, strong := fails(c)
		old := !c.Since.IsZero() && c.Since.Before(asked) && !s.observed(c) && !ofEnding(c.Message)
		if s.isForeign(i) || old || !failing {
			continue
		}
		f := newFailure(c.Said(), c.Fact(n.Identity()), evidence.Latest(asked, c.Since))
		f.Dated, f.weak = !c.Since.IsZero(), !strong
		found = append(found, f)
	}
	if slices.ContainsFunc(found, func(f *Failure) bool { return !f.weak }) {
		return found
	}
	for path, text := range tellingTexts("status", s.fields(), maxDepth, asked) {
		plain := says(text)
		if !plain && (!inErrors().MatchString(path) || over().MatchString(text)) {
			continue
		}
		f := newFailure(text, evidence.Field(n, path, text), asked)
		f.weak = !plain || !erring().MatchString(path)
		found = append(found, f)
	}
	return found
}

// fields returns the status without what others have written.
func (s *statusOf) fields() map[string]any {
	status, _ := s.full.Object["status"].(map[string]any)
	own := map[string]any{}
	for key, value := range status {
		if !s.foreign[key] {
			own[key] = value
		}
	}
	return own
}

// words returns what the status says besides failures, the latest first, a few: what conditions
// say that are not so or not known, or are about the deletion, and texts, with their age where
// that is known. only is the text of the single one.
func (s *statusOf) words(n graph.Node, now time.Time) (facts []evidence.Fact, only string) {
	var said []evidence.Condition
	for i, c := range s.conditions() {
		if !s.isForeign(i) && c.Message != "" && (c.Status != "True" || deletingType().MatchString(c.Type) || failingType().MatchString(c.Type)) {
			said = append(said, c)
		}
	}
	slices.SortStableFunc(said, func(a, b evidence.Condition) int { return b.Since.Compare(a.Since) })
	for _, c := range said[:min(len(said), evidence.MaxShown)] {
		fact := c.Fact(n.Identity())
		if !c.Since.IsZero() {
			fact.Value = fact.Value.And(forSoLong, duration.HumanDuration(now.Sub(c.Since)))
			c.Message += ", for " + duration.HumanDuration(now.Sub(c.Since))
		}
		facts, only = append(facts, fact), c.Message
	}
	for path, text := range tellingTexts("status", s.fields(), 0, time.Time{}) {
		facts, only = append(facts, evidence.Field(n, path, text)), text
	}
	if len(facts) != 1 {
		return facts, ""
	}
	return facts, only
}

// observed reports whether a condition is about the object as it is now: the
// deletion of a custom resource gives it a new generation.
func (s *statusOf) observed(c evidence.Condition) bool {
	return s.full.GetGeneration() > 1 && c.Observed == fmt.Sprint(s.full.GetGeneration())
}
