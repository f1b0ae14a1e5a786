// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
)

// redactor replaces names, each everywhere by the same other one. With which, only the
// run knows: the key is never written.
type redactor struct{ key [32]byte }

func newRedactor() *redactor {
	r := &redactor{}
	_, _ = rand.Read(r.key[:]) // never fails
	return r
}

// plainKeys are the fields whose texts are the API's own words, numbers or times, and so
// stay: everything else is replaced.
var plainKeys = sets.New(
	"apiVersion", "kind", "apiGroup", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "finalizers", "verbs", "resources", "apiGroups",
	"apiVersions", "operations", "scope", "type", "status", "reason", "phase", "fieldsType", "operation", "subresource", "time", "lastTransitionTime",
	"lastProbeTime", "lastHeartbeatTime", "lastUpdateTime", "lastScheduleTime", "lastSuccessfulTime", "startTime", "completionTime", "startedAt", "finishedAt", "renewTime",
	"acquireTime", "eventTime", "firstTimestamp", "lastTimestamp", "firstObservedTime", "lastObservedTime", "detectedTime",
	"restartPolicy", "deletionPolicy", "reclaimPolicy", "persistentVolumeReclaimPolicy", "failurePolicy", "matchPolicy",
	"sideEffects", "reinvocationPolicy", "concurrencyPolicy", "schedule", "strategy", "effect", "policy", "volumeMode", "volumeBindingMode", "accessModes",
	"operator", "protocol", "qosClass", "fieldPath", "f:finalizers", "whenDeleted", "whenScaled", "ready", "addressType",
)

// plainNames are names that every cluster has.
var plainNames = pattern.New(`^(kube-(system|public|node-lease|controller-manager|scheduler|apiserver|proxy|root-ca\.crt|dns)|default|kubernetes|` +
	`cloud-controller-manager|cluster-admin|admin|edit|view|ServiceAccount|User|Group|v[0-9]+((alpha|beta)[0-9]+)?|[0-9.%]*|)$`)

// typeNames are types whose objects are named after types.
var typeNames = []string{"customresourcedefinitions", "apiservices"}

// separators are between names in one text, as in namespace/name.
var separators = pattern.New(`[/:,@_ ]+`)

// text replaces a text: its parts one by one, so that what names the same does so still.
func (r *redactor) text(s string) string {
	if strings.HasPrefix(s, "system:") && !strings.HasPrefix(s, "system:serviceaccount") {
		return s
	}
	var out strings.Builder
	rest := s
	for rest != "" {
		at := separators().FindStringIndex(rest)
		if at == nil {
			at = []int{len(rest), len(rest)}
		}
		out.WriteString(r.word(rest[:at[0]]))
		out.WriteString(rest[at[0]:at[1]])
		rest = rest[at[1]:]
	}
	return out.String()
}

// word replaces one name.
func (r *redactor) word(s string) string {
	if plainNames().MatchString(s) || s == "system" || s == "serviceaccount" || s == "serviceaccounts" {
		return s
	}
	h := hmac.New(sha256.New, r.key[:])
	h.Write([]byte(s)) // never fails
	return "x" + strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil))[:9])
}

// entry returns the entry of an object with other names.
func (r *redactor) entry(l *List, e *Entry) (*Entry, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(e.Object, &object); err != nil {
		return nil, err
	}
	types := slices.Contains(typeNames, l.Resource)
	metadata, _ := object["metadata"].(map[string]any)
	name := metadata["name"]
	for field, value := range object {
		if !types || field == "metadata" || field == "status" {
			object[field] = r.value(field, value)
		}
	}
	if types {
		metadata["name"] = name
		if spec, ok := object["spec"].(map[string]any); ok {
			for _, field := range []string{"conversion", "service"} {
				if spec[field] != nil {
					spec[field] = r.value(field, spec[field])
				}
			}
		}
	}
	text, err := metadataFirst(object)
	if err != nil {
		return nil, err
	}
	return &Entry{Object: text, Ready: e.Ready, Status: e.Status, Whole: e.Whole}, nil
}

// status returns an error of a server without its words, which may name who asked.
func (r *redactor) status(s *metav1.Status) *metav1.Status {
	other := metav1.Status{Status: s.Status, Reason: s.Reason, Code: s.Code, Message: "the server refused it (" + string(s.Reason) + ")"}
	if s.Details != nil {
		other.Details = &metav1.StatusDetails{Name: r.text(s.Details.Name), Group: s.Details.Group, Kind: s.Details.Kind}
	}
	return &other
}

// value replaces the texts in a value of the field.
func (r *redactor) value(field string, value any) any {
	switch v := value.(type) {
	case string:
		switch {
		case plainKeys.Has(field):
			return v
		case field == "message" || field == "note" || field == "expression":
			return ""
		}
		return r.text(v)
	case []any:
		for i := range v {
			v[i] = r.value(field, v[i])
		}
	case map[string]any:
		if field == "fieldsV1" || plainKeys.Has(field) && field != "status" && field != "reason" {
			return v
		}
		for name, inner := range v {
			v[name] = r.value(name, inner)
		}
	}
	return value
}
