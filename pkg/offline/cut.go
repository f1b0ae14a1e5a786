// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// Most of the JSON of an object is what Reduce takes out of it. To decode that costs more than
// anything else about a snapshot, so what is certain to go is cut out of the text before.

// cut says which fields of an object are cut out: those without a cut of their own as a whole. Of
// a list it is meant of each.
type cut map[string]cut

var (
	cutContainer = cut{
		"resources": nil, "volumeMounts": nil, "ports": nil, "livenessProbe": nil, "readinessProbe": nil, "startupProbe": nil, "lifecycle": nil,
		"securityContext": nil, "terminationMessagePath": nil, "terminationMessagePolicy": nil, "imagePullPolicy": nil,
	}
	cutPod = cut{
		"tolerations": nil, "affinity": nil, "securityContext": nil, "topologySpreadConstraints": nil, "dnsPolicy": nil, "imagePullSecrets": nil,
		"containers": cutContainer, "initContainers": cutContainer,
	}
	cutTemplate = cut{"spec": cut{"template": cut{"spec": cutPod}, "volumeClaimTemplates": nil}}
)

// cuts are those of types of which there are many.
var cuts = map[string]cut{
	"pods":              {"spec": cutPod},
	"deployments.apps":  cutTemplate,
	"statefulsets.apps": cutTemplate,
	"daemonsets.apps":   cutTemplate,
	"jobs.batch":        cutTemplate,
	"replicasets.apps":  {"spec": cut{"template": nil}},
}

// cutManagers are the fields of entries of managed fields that tell of nothing in the metadata.
var cutManagers = cut{"fieldsV1": cut{"f:spec": nil, "f:status": nil, "f:data": nil}}

// Decode decodes the JSON of an object of a type, which must be valid, but for much of what Reduce
// would take out of it.
func Decode(resource schema.GroupResource, text []byte) (map[string]any, error) {
	of := cut{"metadata": cut{"managedFields": nil, "annotations": cut{"kubectl.kubernetes.io/last-applied-configuration": nil}}}
	maps.Copy(of, cuts[resource.String()])
	var object map[string]any
	if err := json.Unmarshal(of.from(nil, text), &object); err != nil {
		return nil, err
	}
	metadata, _ := object["metadata"].(map[string]any)
	if !keepsManagers(resource, metadata) {
		return object, nil
	}
	managed := fieldOf(fieldOf(text, "metadata"), "managedFields")
	if managed == nil {
		return object, nil
	}
	var entries []any
	if err := json.Unmarshal(cutManagers.from(nil, managed), &entries); err != nil {
		return nil, err
	}
	metadata["managedFields"] = entries
	return object, nil
}

// fieldOf returns the value of a field of an object in valid JSON, nil when there is none.
func fieldOf(object []byte, field string) (found []byte) {
	eachField(object, func(name, value []byte) {
		if string(name) == field {
			found = value
		}
	})
	return found
}

// from appends a value to the text, without what is cut out of it.
func (c cut) from(text, value []byte) []byte {
	switch {
	case len(c) == 0 || len(value) == 0 || value[0] != '{' && value[0] != '[':
		return append(text, value...)
	case value[0] == '[':
		text = append(text, '[')
		eachOfList(value, func(i int, value []byte) {
			if i > 0 {
				text = append(text, ',')
			}
			text = c.from(text, value)
		})
		return append(text, ']')
	}
	text = append(text, '{')
	first := true
	eachField(value, func(name, value []byte) {
		inner, known := c[string(name)]
		if known && inner == nil {
			return
		}
		if !first {
			text = append(text, ',')
		}
		first = false
		text = append(append(append(text, '"'), name...), '"', ':')
		text = inner.from(text, value)
	})
	return append(text, '}')
}

// eachField calls each for the fields of an object in valid JSON, with their names as they are
// written. A value that is none has no fields.
func eachField(object []byte, each func(name, value []byte)) {
	if len(object) == 0 || object[0] != '{' {
		return
	}
	for at := blank(object, 1); at < len(object) && object[at] == '"'; {
		colon := ends(object, at)
		name := object[at+1 : colon-1]
		from := blank(object, blank(object, colon)+1)
		to := ends(object, from)
		each(name, object[from:to])
		at = blank(object, blank(object, to)+1)
	}
}

// eachOfList calls each for what is in a list in valid JSON.
func eachOfList(list []byte, each func(i int, value []byte)) {
	for i, at := 0, blank(list, 1); at < len(list) && list[at] != ']'; i++ {
		to := ends(list, at)
		each(i, list[at:to])
		if at = blank(list, to); at < len(list) && list[at] == ',' {
			at = blank(list, at+1)
		}
	}
}

// blank returns where something stands after blanks.
func blank(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// ends returns where a value ends that begins at a place of valid JSON.
func ends(text []byte, at int) int {
	for depth := 0; at < len(text); {
		switch text[at] {
		case '"':
			if at = stringEnds(text, at); depth == 0 {
				return at
			}
		case '{', '[':
			depth++
			at++
		case '}', ']':
			if depth == 0 { // what encloses a number or a word
				return at
			}
			if at++; depth == 1 {
				return at
			}
			depth--
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return at
			}
			at++
		default:
			at++
		}
	}
	return len(text)
}

// stringEnds returns where a string ends.
func stringEnds(text []byte, at int) int {
	for at++; at < len(text); at++ {
		quote := bytes.IndexByte(text[at:], '"')
		if quote < 0 {
			break
		}
		at += quote
		escapes := 0
		for text[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at + 1
		}
	}
	return len(text)
}
