// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	_ "embed" // for words.txt
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// redactor replaces words, each everywhere by the same other one, so that texts which
// name the same, or begin with the same name, do so still. Which stands for which only the
// run knows: the key is never written.
//
// What explanations are found by stays. In names those are the words that the server's types
// and the catalogue of finalizers have. In texts, as messages are, also those in which a
// failure is told (words.txt): its class is that of the whole text.
type redactor struct {
	key [32]byte
	// served are the words of the types that the server has.
	served sets.Set[string]
	// originals has the words by what stands for them; nil when nobody asks for them.
	originals Key
}

// Key are the words that a Writer has replaced, by what stands for them.
type Key map[string]string

// ReadKey reads a key as it is written: a pair of words a line.
func ReadKey(text string) (Key, error) {
	key := Key{}
	for line := range strings.Lines(text) {
		pair := strings.Fields(line)
		if len(pair) != 2 {
			return nil, fmt.Errorf("no key of a redacted snapshot: line %d is not a pair of words", len(key)+1)
		}
		key[pair[0]] = pair[1]
	}
	return key, nil
}

// plain puts words back into JSON, of which escapes are no words.
func (k Key) plain(text []byte) []byte {
	if k == nil {
		return text
	}
	return escapeOrWord().ReplaceAllFunc(text, func(found []byte) []byte {
		if original, is := k[string(found)]; is {
			return []byte(original)
		}
		return found
	})
}

func newRedactor() *redactor {
	r := &redactor{served: sets.New[string]()}
	_, _ = rand.Read(r.key[:]) // never fails
	return r
}

//go:embed words.txt
var wordLists string

// words are those of names, and those of texts, that stay.
var words = sync.OnceValue(func() (w struct{ names, texts sets.Set[string] }) {
	names, texts, _ := strings.Cut(wordLists, "\n== texts\n")
	listed := func(list string) sets.Set[string] {
		set := sets.New[string]()
		for line := range strings.Lines(list) {
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "==") {
				set.Insert(strings.Fields(line)...)
			}
		}
		return set
	}
	w.names, w.texts = listed(names), listed(texts)
	for e := range finalizers.Builtin().Entries() {
		addWords(w.names, e.Finalizer, e.Place)
		for _, at := range slices.Concat(e.Workloads, e.Helpers) {
			addWords(w.names, at.Namespace, at.Name)
		}
		for _, at := range e.Leases {
			addWords(w.names, at.Namespace, at.Name)
		}
	}
	return w
})

var (
	// word is what is replaced as one.
	word = pattern.New(`[\pL\pN]+`)
	// escapeOrWord is a word, or what stands for a character in JSON.
	escapeOrWord = pattern.New(`\\u[0-9a-f]{4}|\\.|[\pL\pN]+`)
	// humps are the words in one like deletionTimestamp.
	humps = pattern.New(`[A-Z]?[a-z0-9]+|[A-Z]+`)
	// quotedOrWord is a text in quotes, but for an apostrophe, a namespace that is named without them
	// (plugin/pkg/admission/namespace/lifecycle), or a word.
	quotedOrWord = pattern.New(`"[^"]*"|'[^' ]+'\B|in namespace [^ ]+ because|[\pL\pN]+`)
	// measured is a number, a quantity, a part of a time, or a version.
	measured = pattern.New(`^([0-9]+(T[0-9]+)?[A-Za-z]{0,2}|v[0-9]+((alpha|beta)[0-9]+)?)$`)
	// generated is an ending that Kubernetes makes for a name (apimachinery/pkg/util/rand).
	generated = pattern.New(`^[` + generatedLetters + generatedDigits + `]{5,10}$`)
	// telling are the fields, beside those that have spaces, that are texts.
	telling = pattern.New(`(?i)(message|error|description|note|expression|reason|state|phase|status|ready)$`)
)

const (
	letters, digits                   = "abcdefghijklmnopqrstuvwxyz", "0123456789"
	generatedLetters, generatedDigits = "bcdfghjklmnpqrstvwxz", "2456789"
)

// addWords adds the words in the texts, and those that they consist of.
func addWords(to sets.Set[string], texts ...string) {
	for _, text := range texts {
		for _, w := range word().FindAllString(text, -1) {
			to.Insert(strings.ToLower(w))
			for _, hump := range humps().FindAllString(w, -1) {
				if len(hump) > 1 {
					to.Insert(strings.ToLower(hump))
				}
			}
		}
	}
}

// learn takes the words of what the server said of its types, which is in the file as it is.
func (r *redactor) learn(a *Answer) {
	if a.Path == "/version" {
		return
	}
	var walk func(field string, value any)
	walk = func(field string, value any) {
		switch v := value.(type) {
		case string:
			if typeFields.Has(field) {
				addWords(r.served, v)
			}
		case []any:
			for i := range v {
				walk(field, v[i])
			}
		case map[string]any:
			for name := range v {
				walk(name, v[name])
			}
		}
	}
	var body any
	if json.Unmarshal(a.Body, &body) == nil {
		walk("", body)
	}
}

// typeFields are the fields of discovery that name types.
var typeFields = sets.New("name", "group", "kind", "responseKind", "resource", "singularResource", "singularName",
	"groupVersion", "shortNames")

// plainKeys are the fields whose texts are the API's own words, numbers or times, and so
// stay: everything else is replaced.
var plainKeys = sets.New(
	"apiVersion", "kind", "apiGroup", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "verbs", "resources", "apiGroups",
	"apiVersions", "operations", "scope", "type", "status", "reason", "phase", "fieldsType", "operation", "subresource",
	"time", "lastTransitionTime",
	"lastProbeTime", "lastHeartbeatTime", "lastUpdateTime", "lastScheduleTime", "lastSuccessfulTime", "startTime", "completionTime",
	"startedAt", "finishedAt", "renewTime",
	"acquireTime", "eventTime", "firstTimestamp", "lastTimestamp", "firstObservedTime", "lastObservedTime", "detectedTime",
	"restartPolicy", "deletionPolicy", "reclaimPolicy", "persistentVolumeReclaimPolicy", "failurePolicy", "matchPolicy",
	"sideEffects", "reinvocationPolicy", "concurrencyPolicy", "schedule", "strategy", "effect", "policy", "volumeMode",
	"volumeBindingMode", "accessModes",
	"operator", "protocol", "qosClass", "fieldPath", "whenDeleted", "whenScaled", "deletionPropagation",
	"applicationsSync", "ready", "addressType",
	"key", "topologyKey", "parameterNotFoundAction", "validationActions", "containerID", "imageID",
)

// optionKeys are the labels and annotations of which the values are options of a tool, and optionWords the words of these, which stay
// there: what is deleted depends on them.
var (
	optionKeys = sets.New(
		"argocd.argoproj.io/sync-options", "syncOptions", "helm.sh/resource-policy",
		"kustomize.toolkit.fluxcd.io/prune", "kustomize.toolkit.fluxcd.io/reconcile", "kustomize.toolkit.fluxcd.io/ssa",
	)
	optionWords = sets.New("delete", "prune", "confirm", "true", "false", "keep", "disabled", "enabled", "ignore")
)

// typeNames are types whose objects are named after types.
var typeNames = []string{"customresourcedefinitions", "apiservices"}

// name replaces the words of a name, of several in one text, as in namespace/name, or of a
// value.
func (r *redactor) name(s string) string {
	if strings.HasPrefix(s, "system:") && !strings.HasPrefix(s, "system:serviceaccount") && !strings.HasPrefix(s, "system:node:") {
		return s
	}
	return word().ReplaceAllStringFunc(s, func(w string) string { return r.word(w, false) })
}

// text replaces the words of a text. What is in quotes is a name there.
func (r *redactor) text(s string) string {
	return quotedOrWord().ReplaceAllStringFunc(s, func(found string) string {
		switch quote := found[:1]; {
		case strings.HasPrefix(found, "in namespace "):
			return "in namespace " + r.name(strings.TrimSuffix(strings.TrimPrefix(found, "in namespace "), " because")) + " because"
		case quote != `"` && quote != `'`:
			return r.word(found, true)
		case strings.Contains(found, " "): // a text in a text
			return quote + r.text(found[1:len(found)-1]) + quote
		default:
			return r.name(found)
		}
	})
}

// word replaces one word, of a text or of a name.
func (r *redactor) word(s string, ofText bool) string {
	stays := func(w string) bool {
		w = strings.ToLower(w)
		return words().names.Has(w) || r.served.Has(w) || ofText && words().texts.Has(w)
	}
	if measured().MatchString(s) || stays(s) || !slices.ContainsFunc(humps().FindAllString(s, -1), func(w string) bool { return !stays(w) }) &&
		humps().FindString(s) != "" {
		return s
	}
	h := hmac.New(sha256.New, r.key[:])
	h.Write([]byte(s)) // never fails
	sum := h.Sum(nil)
	other := disguise(s, sum)
	if r.originals != nil {
		r.originals[other] = s
	}
	return other
}

// disguise makes another word of a sum. It has digits if the first has, since what differs in
// words with digits alone is the same message; and it looks generated if that does, since
// pods are known by it.
func disguise(s string, sum []byte) string {
	pick := func(from string, i int) byte { return from[int(sum[i])%len(from)] }
	if generated().MatchString(s) {
		other := []byte(s)
		for i, c := range other {
			other[i] = pick(generatedLetters, i)
			if c <= '9' {
				other[i] = pick(generatedDigits, i)
			}
		}
		return string(other)
	}
	other := []byte("x.........")
	for i := 1; i < len(other); i++ {
		other[i] = pick(letters, i)
	}
	if strings.ContainsAny(s, digits) {
		other[len(other)-1] = pick(digits, 0)
	}
	return string(other)
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

// metadataFirst is the JSON of an object that begins with its metadata. These are taken out of it.
func metadataFirst(object map[string]any) ([]byte, error) {
	metadata, err := json.Marshal(object["metadata"])
	delete(object, "metadata")
	if err != nil || len(object) == 0 {
		return slices.Concat([]byte(`{"metadata":`), metadata, []byte("}")), err
	}
	others, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(`{"metadata":`), metadata, []byte(","), others[1:]), nil
}

// status returns an error of a server with other names.
func (r *redactor) status(s *metav1.Status) *metav1.Status {
	other := metav1.Status{Status: s.Status, Reason: s.Reason, Code: s.Code, Message: r.text(s.Message)}
	if s.Details != nil {
		other.Details = &metav1.StatusDetails{Name: r.name(s.Details.Name), Group: s.Details.Group, Kind: s.Details.Kind}
	}
	return &other
}

// value replaces the texts in a value of the field.
func (r *redactor) value(field string, value any) any {
	switch v := value.(type) {
	case string:
		return r.field(field, v)
	case []any:
		for i := range v {
			v[i] = r.value(field, v[i])
		}
	case map[string]any:
		if field == "fieldsV1" {
			return r.managed(v)
		}
		if plainKeys.Has(field) && field != "status" && field != "reason" && field != "resources" {
			return v
		}
		for name, inner := range v {
			v[name] = r.value(name, inner)
		}
	}
	return value
}

// field replaces the text of a field.
func (r *redactor) field(field, s string) string {
	_, notTime := time.Parse(time.RFC3339, s)
	switch {
	case plainKeys.Has(field), notTime == nil:
		return s
	case optionKeys.Has(field):
		return word().ReplaceAllStringFunc(s, func(w string) string {
			if optionWords.Has(strings.ToLower(w)) {
				return w
			}
			return r.word(w, false)
		})
	case field == "finalizers", telling().MatchString(field), strings.Contains(s, " "):
		return r.text(s)
	}
	return r.name(s)
}

// managed replaces the finalizers in the fields that a manager has set: there they are keys.
func (r *redactor) managed(fields map[string]any) map[string]any {
	metadata, _ := fields["f:metadata"].(map[string]any)
	set, _ := metadata["f:finalizers"].(map[string]any)
	for field := range maps.Clone(set) {
		var finalizer string
		quoted, is := strings.CutPrefix(field, "v:")
		if !is || json.Unmarshal([]byte(quoted), &finalizer) != nil {
			continue
		}
		var other bytes.Buffer
		encoder := json.NewEncoder(&other)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(r.text(finalizer)) // a string
		value := set[field]
		delete(set, field)
		set["v:"+strings.TrimSpace(other.String())] = value
	}
	return fields
}
