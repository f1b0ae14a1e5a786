// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// mention is where an object has the name of another: any text of it may be a name.
type mention struct {
	// at is the field, by its path, empty when there is none.
	at string
	// certain: the field says of which type the name is. Otherwise it may be that of something else.
	certain bool
}

// mentioning looks for the mention of an object in another.
type mentioning struct {
	keys
	of *graph.Identity
	// full are the ways to write the name with its namespace, and subject is the name as that of a user, or of a group.
	full    []string
	subject string
	// word is in the keys of fields that name objects of the type.
	word string
	// far: who is looked at is of another namespace, so that a name counts only together with that of the namespace.
	far   bool
	found mention
}

// called words of a type are in the keys under which others name its objects, where that is not the kind itself.
var called = map[string]string{"PersistentVolumeClaim": "claim", "PersistentVolume": "volume"}

var (
	// nameless keys are those of texts that name no objects, or not one of a type that a leftover has, and of what has labels.
	nameless = regexp.MustCompile(`(?i)^(apiVersion|kind|uid|(image|container)ID|labels|matchLabels|matchExpressions|nodeSelector|managedFields|ownerReferences|finalizers|container|containerName|.*namespaces?)$|^(port|.*Port)$`)
	// plain keys are nameless where their values are texts, or maps of texts, as labels are.
	plain = regexp.MustCompile(`(?i)^(image|selector)$`)
	// own keys are those of lists of which the elements have names of their own.
	own = regexp.MustCompile(`^((initC|ephemeralC|c)ontainers|((initC|ephemeralC|c)ontainer)Statuses|env|ports|volumes|volumeMounts|volumeDevices)$`)
	// others are keys of fields that name an object of one well-known type.
	others = regexp.MustCompile(`(?i)^(secret|configmap|serviceaccount|service|claim|volume|node|(storage|priority|runtime|ingress|gateway)class)(name|ref|keyref)?$`)
	// records are annotations that say where their own object is from.
	records = regexp.MustCompile(`^(meta\.helm\.sh/|kubectl\.kubernetes\.io/last-applied-configuration$)`)
)

// keyOf is what is known of a key.
type keyOf struct{ nameless, plain, own, other bool }

// keys are those that were looked at: there are many objects, and they have the same.
type keys map[string]keyOf

func (k keys) of(key string) keyOf {
	known, seen := k[key]
	if !seen {
		known = keyOf{nameless.MatchString(key), plain.MatchString(key), own.MatchString(key), others.MatchString(key)}
		k[key] = known
	}
	return known
}

// mentionOf looks in an object for the name of another, in all its texts but its own name, labels and selectors. It takes too much for a name rather than
// too little.
func (k keys) mentionOf(o *unstructured.Unstructured, of *graph.Identity) mention {
	word := called[of.Resource.Kind]
	if word == "" {
		word = strings.ToLower(of.Resource.Kind)
	}
	s := &mentioning{keys: k, of: of, full: fullNames(of), subject: subjectOf(of), word: word, far: o.GetNamespace() != "" && of.Namespace != "" && o.GetNamespace() != of.Namespace}
	s.fields(o.Object, "", nil)
	return s.found
}

// step is a key on the way to a field.
type step struct {
	before *step
	key    string
}

func (s *step) String() string {
	if s.before == nil {
		return s.key
	}
	return s.before.String() + "." + s.key
}

// note keeps a mention that says more than the one before, of equals the first by its path.
func (s *mentioning) note(at *step, certain bool) {
	if s.found.certain && !certain {
		return
	}
	if path := at.String(); s.found.at == "" || certain && !s.found.certain || path < s.found.at {
		s.found = mention{path, certain}
	}
}

// value looks into a value that a map has under a key. At is its path.
func (s *mentioning) value(v any, in map[string]any, key string, at *step) {
	switch v := v.(type) {
	case string:
		s.text(v, in, key, at)
	case []any:
		for _, each := range v {
			s.value(each, in, key, at)
		}
	case map[string]any:
		s.fields(v, key, at)
	}
}

// fields looks into a map that has a key.
func (s *mentioning) fields(all map[string]any, key string, at *step) {
	for k, v := range all {
		path := &step{at, k}
		switch {
		case k == "metadata":
			annotations, _, _ := unstructured.NestedStringMap(all, k, "annotations")
			for name, text := range annotations {
				if !records.MatchString(name) {
					s.text(text, nil, name, &step{path, "annotations." + name})
				}
			}
		case s.keys.of(k).nameless, s.keys.of(k).plain && isPlain(v), k == "name" && s.keys.of(key).own:
		case k == "name":
			s.named(all, key, path)
		case k == "resourceNames":
			s.rule(all, path)
		default:
			s.value(v, all, k, path)
		}
		if k == s.of.Name && !s.far && !s.of.Resource.IsNamespace() { // as the key of a map
			s.note(path, false)
		}
	}
}

// isPlain reports whether a value is a text, or a map of texts.
func isPlain(v any) bool {
	all, is := v.(map[string]any)
	for _, inner := range all {
		if _, text := inner.(string); !text {
			return false
		}
	}
	_, text := v.(string)
	return is || text
}

// named looks at the name of a reference, which may state the kind.
func (s *mentioning) named(reference map[string]any, key string, at *step) {
	namespace, stated := reference["namespace"].(string)
	kind := evidence.Text(reference["kind"])
	switch {
	case s.subject != "" && reference["name"] == s.subject:
		s.note(at, true)
	case kind != "" && kind != s.of.Resource.Kind, stated && namespace != "" && namespace != s.of.Namespace:
	case !s.of.Resource.IsNamespace() && reference["name"] == s.of.Name && (kind != "" || reference["resource"] == s.of.Resource.Resource) && (!s.far || stated):
		s.note(at, true)
	case kind == "":
		s.value(reference["name"], reference, key, at)
	}
}

// rule looks at the names to which a rule of a role applies.
func (s *mentioning) rule(rule map[string]any, at *step) {
	resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
	names, _, _ := unstructured.NestedStringSlice(rule, "resourceNames")
	about := func(resource string) bool {
		resource, _, _ = strings.Cut(resource, "/")
		return resource == s.of.Resource.Resource || resource == "*"
	}
	if slices.Contains(names, s.of.Name) && slices.ContainsFunc(resources, about) && !s.far {
		s.note(at, true)
	}
}

// text looks at a text.
func (s *mentioning) text(text string, in map[string]any, key string, at *step) {
	switch {
	case !strings.Contains(text, s.of.Name):
		return
	case s.subject != "" && hasName(text, s.subject):
		s.note(at, text == s.subject)
		return
	case s.of.Resource.IsNamespace(): // of which the name alone says nothing
		return
	}
	full := slices.ContainsFunc(s.full, func(name string) bool { return hasName(text, name) })
	whole := text == s.of.Name || slices.Contains(s.full, text)
	if !full && !hasName(text, s.of.Name) || s.far && !full && !(whole && s.beside(in)) {
		return
	}
	other := s.keys.of(key).other
	key = strings.ToLower(key)
	switch about := strings.Contains(key, s.word) && (s.word != "service" || !strings.Contains(key, "serviceaccount")); {
	case about:
		s.note(at, whole)
	case !other:
		s.note(at, false)
	}
}

// fullNames are the ways to write a name with its namespace, which may come before or after it: as a path, as a user, and as a host.
func fullNames(of *graph.Identity) []string {
	var names []string
	for _, between := range []string{"/", ":", "."} {
		if of.Namespace != "" {
			names = append(names, of.Namespace+between+of.Name, of.Name+between+of.Namespace)
		}
	}
	return names
}

// subjectOf is the name of the user that an account is, or of the group of the accounts of a namespace, empty for all else.
func subjectOf(of *graph.Identity) string {
	switch {
	case of.Resource.GroupResource() == evidence.ServiceAccounts.GroupResource():
		return "system:serviceaccount:" + of.Namespace + ":" + of.Name
	case of.Resource.IsNamespace():
		return "system:serviceaccounts:" + of.Name
	}
	return ""
}

// beside reports whether a map has the namespace, as StorageClasses do that name the Secret of their driver.
func (s *mentioning) beside(in map[string]any) bool {
	for key, value := range in {
		if strings.HasSuffix(strings.ToLower(key), "namespace") && value == s.of.Namespace {
			return true
		}
	}
	return false
}

// hasName reports whether a text has a name that is not a part of a longer one.
func hasName(text, name string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], name)
		if at < 0 || name == "" {
			return false
		}
		start, end := from+at, from+at+len(name)
		before := start > 0 && (nameRune(text[start-1]) || text[start-1] == '.')
		after := end < len(text) && (nameRune(text[end]) || text[end] == '.' && end+1 < len(text) && nameRune(text[end+1]) && !strings.HasPrefix(text[end:], ".svc"))
		if !before && !after {
			return true
		}
		from = start + 1
	}
}

func nameRune(c byte) bool {
	return c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
