// SPDX-License-Identifier: Apache-2.0

// Package mention has what objects name: one walk over all their texts, for who asks what an object names, and for who asks which objects
// name it. It says how sure each name is, and its callers choose how sure they must be: a false one may only keep an object, or it may
// accuse one.
package mention

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
)

// Sure says how sure it is that a text is the name of an object.
type Sure int

const (
	// No: it names something else, or nothing.
	No Sure = iota
	// Text: the name stands in a text, maybe with others, and maybe for something else.
	Text
	// Near: it is the text, and its field has the word for the kind in its own name.
	Near
	// Called: the field is called after the kind, as clusterName is, and cluster with a name in it.
	Called
	// Field: the field is a reference to the kind, as secretStoreRef, tokenSecretRef and githubConfigSecret are.
	Field
	// Stated: the kind, or the type, stands beside the name.
	Stated
)

// Name is a text of an object that may name another one.
type Name struct {
	Text string
	// Path is that of its field.
	Path string
	// Sure is by the field alone, and so is Kind unless it is Stated. The others are empty where they are not stated.
	Sure                   Sure
	Kind, Group, Namespace string
	// Optional: the object does without what it names.
	Optional bool
	// resources are of the types that are Stated without a kind, as in a rule of a role.
	resources []string
	// Foreign: it is in what the object has made elsewhere: in a manifest, or in values for templates.
	Foreign bool
	// isKey: it is the key of a map.
	isKey bool
	// from is the namespace of the object, object all of it, in the map that has the text, and key that of the field that says what it names.
	from       string
	object, in map[string]any
	key        string
	of         *keyOf
}

// place is one in a list.
var place = pattern.New(`\[\d+\]`)

// Field is the path of the field without the places in lists.
func (n *Name) Field() string { return place().ReplaceAllString(n.Path, "") }

// InSpec reports whether the text is in the spec.
func (n *Name) InSpec() bool { return strings.HasPrefix(n.Path, "spec.") }

var (
	// nameless keys are those of what names no objects, or not one of a type that others name. So are annotations that say where their own
	// object is from.
	nameless = pattern.New(`(?i)^(matchExpressions|managedFields|ownerReferences|finalizers)$|^(meta\.helm\.sh/.*|kubectl\.kubernetes\.io/last-applied-configuration)$`)
	// plain keys are nameless where their values are texts, and labels where they are texts or maps of texts.
	plain  = pattern.New(`(?i)^(apiVersion|kind|uid|(image|container)ID|resourceVersion|.*Timestamp|container|containerName|image)$|^(port|.*Port)$`)
	labels = pattern.New(`(?i)^(labels|matchLabels|nodeSelector|selector)$`)
	// own keys are those of lists of which the elements have names of their own, and of what has that of the object.
	own = pattern.New(`^(metadata|(initC|ephemeralC|c)ontainers|((initC|ephemeralC|c)ontainer)Statuses|env|ports|volumes|volumeMounts|volumeDevices)$`)
	// core keys are of fields that name an object of one well-known type.
	core = pattern.New(`(?i)^(secret|configmap|serviceaccount|service|claim|volume|node|(storage|priority|runtime|ingress|gateway)class)(name|ref|keyref)?$`)
	// spaces are those of fields that name namespaces, or say in which one something is.
	spaces = pattern.New(`(?i)namespaces?$`)
	// reference and holder are keys of fields that say of which kind a name is: of a map with it, and of what has data for the object,
	// but for those that are written for it.
	reference = pattern.New(`^(.+?)(?:Key)?(?:Ref|Reference)s?$`)
	holder    = pattern.New(`^.+(Secret|ConfigMap)$`)
	written   = pattern.New(`(?i)^(write|output|target|result|generated|published)`)
)

// words of a kind are in the keys under which others name its objects, where that is not the kind itself.
var words = map[string]string{"PersistentVolumeClaim": "claim", "PersistentVolume": "volume"}

// keyOf is what is known of a key.
type keyOf struct {
	nameless, plain, labels, own, core, spaces bool
	// ofMap and ofText are the kinds of which it says that a map, or a text, names one.
	ofMap, ofText kind
}

// kind is what a field says.
type kind struct {
	name string
	sure Sure
}

// Reader reads the names in objects. It owns what is known of the keys of fields: many objects have the same.
type Reader struct{ keys map[string]*keyOf }

func (r *Reader) of(key string) *keyOf {
	known, seen := r.keys[key]
	if !seen {
		known = &keyOf{
			nameless: nameless().MatchString(key), plain: plain().MatchString(key), labels: labels().MatchString(key),
			own: own().MatchString(key), core: core().MatchString(key), spaces: spaces().MatchString(key),
		}
		known.ofMap, known.ofText = kindsIn(key)
		if r.keys == nil {
			r.keys = map[string]*keyOf{}
		}
		r.keys[key] = known
	}
	return known
}

// kindsIn returns the kinds of which a key says that a map, or a text, names one.
func kindsIn(key string) (ofMap, ofText kind) {
	ofMap = kind{capital(key), Called}
	if before, ends := strings.CutSuffix(key, "Name"); ends {
		ofText = kind{capital(before), Called}
	}
	bare, sure := reference().ReplaceAllString(key, "$1"), Field
	held := holder().FindStringSubmatch(bare)
	if written().MatchString(key) {
		sure = Called
	}
	switch {
	case held != nil && bare == key:
		ofMap, ofText = kind{held[1], sure}, kind{held[1], sure}
	case held != nil:
		ofMap = kind{held[1], sure}
	case bare != key:
		ofMap = kind{capital(bare), Field}
	}
	return ofMap, ofText
}

func capital(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] }

// In goes over the names in an object, in a fixed order: all its texts but its own name, labels and selectors. It takes too much for a name
// rather than too little.
func (r *Reader) In(o *unstructured.Unstructured) iter.Seq[*Name] {
	return func(yield func(*Name) bool) {
		w := &walk{r, o.GetNamespace(), o.Object, false, yield}
		w.fields(o.Object, "", "")
	}
}

// walk goes over the names in an object. Its methods report whether to go on.
type walk struct {
	*Reader
	from    string
	object  map[string]any
	foreign bool
	yield   func(*Name) bool
}

// value looks into a value that a map has under a key.
func (w *walk) value(v any, in map[string]any, key, path string) bool {
	switch v := v.(type) {
	case string:
		of := w.of(key).ofText
		return w.text(&Name{Text: v, Path: path, Kind: of.name, Sure: of.sure, in: in, key: key})
	case []any:
		for i, each := range v {
			if !w.value(each, in, key, path+"["+strconv.Itoa(i)+"]") {
				return false
			}
		}
	case map[string]any:
		return w.fields(v, key, path+".")
	}
	return true
}

// fields looks into a map that has a key. Paths of its fields begin with before.
func (w *walk) fields(all map[string]any, key, before string) bool {
	if _, manifest := all["metadata"].(map[string]any); before != "" && !w.foreign && (manifest && all["kind"] != nil || key == "values" ||
		key == "valuesObject") {
		w.foreign = true
		defer func() { w.foreign = false }()
	}
	for _, k := range slices.Sorted(maps.Keys(all)) {
		goesOn := true
		switch of := w.of(k); {
		case of.nameless, of.plain && isText(all[k]), of.labels && isLabels(all[k]), k == "name" && w.ofItself(all, key, before),
			before+k == "metadata.namespace":
		case k == "name":
			goesOn = w.named(all, key, before+k)
		case k == "resourceNames":
			goesOn = w.rule(all, before+k)
		default:
			goesOn = w.value(all[k], all, k, before+k)
		}
		if !goesOn || !w.text(&Name{Text: k, Path: before + k, key: k, isKey: true}) {
			return false
		}
	}
	return true
}

// ofItself reports whether the name in a map with a key is one of its own: neither that of an embedded manifest, nor one beside which it is
// said of what type it is.
func (w *walk) ofItself(all map[string]any, key, before string) bool {
	if key == "metadata" {
		return before == "metadata."
	}
	return w.of(key).own && !isText(all["kind"]) && !isText(all["type"])
}

func isText(v any) bool {
	_, is := v.(string)
	return is
}

// isLabels reports whether a value is a text, or a map of texts.
func isLabels(v any) bool {
	all, is := v.(map[string]any)
	for _, inner := range all {
		is = is && isText(inner)
	}
	return is || isText(v)
}

// named looks at the name in a map with a key, which may be a reference.
func (w *walk) named(all map[string]any, key, path string) bool {
	name, is := all["name"].(string)
	if !is {
		return w.value(all["name"], all, key, path)
	}
	n := &Name{Text: name, Path: path, Kind: evidence.Text(all["kind"]), Group: evidence.Text(all["group"]) + evidence.Text(all["apiGroup"]),
		Namespace: evidence.Text(all["namespace"]), in: all, key: key}
	if n.Group == "" {
		gv, _ := schema.ParseGroupVersion(evidence.Text(all["apiVersion"]))
		n.Group = gv.Group
	}
	switch resource := evidence.Text(all["resource"]); {
	case n.Kind != "":
		n.Sure = Stated
	case resource != "":
		n.Sure, n.resources = Stated, []string{resource}
	default:
		of := w.of(key).ofMap
		n.Kind, n.Sure = of.name, of.sure
	}
	return w.text(n)
}

// rule looks at the names to which a rule of a role applies.
func (w *walk) rule(rule map[string]any, path string) bool {
	resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
	names, _, _ := unstructured.NestedStringSlice(rule, "resourceNames")
	for _, name := range names {
		if !w.text(&Name{Text: name, Path: path, Sure: Stated, resources: resources}) {
			return false
		}
	}
	return true
}

// text yields a text with what its field says of it.
func (w *walk) text(n *Name) bool {
	n.from, n.object, n.of, n.Foreign = w.from, w.object, w.of(n.key), w.foreign
	n.Optional, _ = n.in["optional"].(bool)
	n.Sure = max(n.Sure, Text)
	return w.yield(n)
}
