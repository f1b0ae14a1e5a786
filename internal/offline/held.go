// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/argv"
	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/rawjson"
)

// What a file has of an object is copied out of its text: to decode it costs ten times as much, and most of it is not held.

// part appends to a text what is held of a value, or returns nil when nothing is.
type part func(text, value []byte) []byte

// all holds all of a value, none nothing.
func all(text, value []byte) []byte { return append(text, value...) }
func none(_, _ []byte) []byte       { return nil }

// emptied holds of an object that there is one, and of everything else all.
func emptied(text, value []byte) []byte {
	if rawjson.IsObject(value) {
		return append(text, "{}"...)
	}
	return append(text, value...)
}

// parts are what is held of an object, by the names of its fields. Of a list they are meant of each entry.
type parts map[string]part

// rest is what is held of the fields that are not named: nothing when it is not said.
const rest = ""

// named holds some fields as a whole.
func named(names ...string) part {
	f := parts{}
	for _, name := range names {
		f[name] = all
	}
	return f.held
}

func (f parts) held(text, value []byte) []byte {
	switch {
	case len(value) > 0 && value[0] == '[':
		return eachOf(text, value, f.held)
	case !rawjson.IsObject(value):
		return append(text, value...)
	}
	text = append(text, '{')
	rawjson.Fields(value, func(name, value []byte) {
		part, is := f[string(name)]
		if !is {
			part = f[rest]
		}
		text = appendField(text, name, value, part)
	})
	return append(text, '}')
}

// heldIfAny is held, and nothing of an object of which no field is.
func (f parts) heldIfAny(text, value []byte) []byte {
	if held := f.held(text, value); len(held) > len(text)+len("{}") {
		return held
	}
	return nil
}

// appendField appends a field to an object that is being written, if anything of it is held.
func appendField(text, name, value []byte, part part) []byte {
	if part == nil {
		return text
	}
	before := len(text)
	if text[before-1] != '{' {
		text = append(text, ',')
	}
	text = append(append(append(text, '"'), name...), '"', ':')
	if held := part(text, value); held != nil {
		return held
	}
	return text[:before]
}

// eachOf appends what is held of the elements of a list.
func eachOf(text, list []byte, part part) []byte {
	text = append(text, '[')
	rawjson.Elements(list, func(value []byte) {
		before := len(text)
		if text[before-1] != '[' {
			text = append(text, ',')
		}
		if held := part(text, value); held != nil {
			text = held
		} else {
			text = text[:before]
		}
	})
	return append(text, ']')
}

var (
	// podHeld is of a pod who it is, where it runs and what it holds, and of its containers their names, images and programs.
	podHeld   = podFields.held
	podFields = parts{
		"nodeName": all, "serviceAccountName": all, "restartPolicy": all, "schedulerName": all, "schedulingGates": all, "schedulingGroup": all,
		"hostname": all, "hostNetwork": all, "terminationGracePeriodSeconds": all, "priorityClassName": all, "nodeSelector": all,
		"resourceClaims": all, "readinessGates": all,
		"volumes": volumesHeld, "containers": containersHeld, "initContainers": containersHeld, "ephemeralContainers": containersHeld,
	}
	templateHeld = parts{"metadata": parts{"labels": all, "annotations": named(argv.TargetNamespaces)}.held, "spec": podHeld, rest: all}.held
	workloadHeld = parts{"spec": parts{"template": templateHeld, "volumeClaimTemplates": claimTemplateHeld, rest: all}.held, rest: all}
	// claimTemplateHeld is what the claims are called, and their class.
	claimTemplateHeld = parts{"metadata": named("name"), "spec": named("storageClassName", "volumeName")}.held
	jobHeld           = parts{"spec": parts{"template": templateHeld, rest: all}.held, rest: all}.held
	containerHeld     = parts{"env": none, "volumeMounts": none, "resources": none, "allocatedResources": none, "user": none, rest: all}.held
	// classHeld is without parameters: they may be secret.
	classHeld = parts{"parameters": none, rest: all}
)

// partsHeld are what is held of types that hold Parts, beside their metadata; of those that are not here, all but certificates.
var partsHeld = map[string]parts{
	"customresourcedefinitions.apiextensions.k8s.io": {"spec": parts{"versions": named("name", "served", "storage", "deprecated"),
		rest: uncertified}.held, rest: all},
	"pods": {
		"spec": podHeld,
		"status": parts{"containerStatuses": containerHeld, "initContainerStatuses": containerHeld, "ephemeralContainerStatuses": containerHeld,
			rest: all}.held,
		rest: all,
	},
	"deployments.apps": workloadHeld, "statefulsets.apps": workloadHeld, "daemonsets.apps": workloadHeld, "jobs.batch": workloadHeld,
	"replicationcontrollers": workloadHeld,
	"replicasets.apps":       {"spec": parts{"template": none, rest: all}.held, rest: all},
	"cronjobs.batch":         {"spec": parts{"jobTemplate": jobHeld, rest: all}.held, rest: all},
	"nodes":                  {"status": named("conditions", "phase", "volumesInUse", "volumesAttached"), rest: all},
	"serviceaccounts":        {},
	// What it is, and not how it is reached.
	"persistentvolumes": {
		"spec": parts{"csi": named("driver", "volumeHandle"), "claimRef": all, "capacity": all, "nodeAffinity": all, rest: emptied}.held,
		rest:   all,
	},
	"storageclasses.storage.k8s.io": classHeld, "volumeattributesclasses.storage.k8s.io": classHeld,
}

// droppedFields are those at the top of objects that hold data, or say again what the list says.
var droppedFields = []string{"apiVersion", "kind", "data", "binaryData", "stringData"}

// NewEntry is the entry of a whole object: what is held of it, with its metadata first.
func NewEntry(resource schema.GroupResource, object any) (*Entry, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return &Entry{Object: heldText(resource, text), Whole: true}, nil
}

// EntryOf is NewEntry for an object in JSON.
func EntryOf(resource schema.GroupResource, object []byte) (*Entry, error) {
	text := heldText(resource, object)
	if !json.Valid(text) {
		return nil, fmt.Errorf("reading an object of %s: it is not valid JSON", resource)
	}
	return &Entry{Object: text, Whole: true}, nil
}

// heldText is what is held of an object in JSON.
func heldText(resource schema.GroupResource, object []byte) []byte {
	of, metadata := heldOf(resource), []byte("null")
	others := make([]byte, 0, 1024)
	others = append(others, '{', '0')
	rawjson.Fields(object, func(name, value []byte) {
		if string(name) == "metadata" {
			metadata = value
			return
		}
		part, is := of[string(name)]
		if !is {
			part = of[rest]
		}
		if !slices.Contains(droppedFields, string(name)) {
			others = appendField(others, name, value, part)
		}
	})
	text := appendField(append(make([]byte, 0, len(metadata)+len(others)), '{'), []byte("metadata"), metadata, metadataHeld(resource))
	return append(append(text, others[2:]...), '}')
}

// heldOf is what is held of the objects of a type beside their metadata.
func heldOf(resource schema.GroupResource) parts {
	name := resource.String()
	holds, held := HoldsOf(resource), partsHeld[name]
	switch naming := namingFields[name]; {
	case holds == Metadata:
		return nil
	case naming != nil:
		return parts{"spec": named(naming...), "status": statusHeld(inventoryFields[name])}
	case holds == Summary:
		return parts{"status": statusHeld(nil)}
	case held != nil:
		return held
	}
	return parts{rest: uncertified}
}

// statusHeld is of a status the texts in which controllers say how things are, and some fields as a whole.
func statusHeld(fields []string) part {
	return func(text, value []byte) []byte {
		var status map[string]any
		if json.Unmarshal(value, &status) != nil || status == nil {
			return nil // what is no object tells nothing
		}
		told := tellingPart(status, maxDepth)
		for _, field := range fields {
			if status[field] != nil {
				told[field] = status[field]
			}
		}
		held, _ := json.Marshal(told) // it was JSON before
		return append(text, held...)
	}
}

// uncertified is all of a value but the certificates in it.
func uncertified(text, value []byte) []byte {
	const certificates = "caBundle"
	if !bytes.Contains(value, []byte(certificates)) {
		return append(text, value...)
	}
	return parts{certificates: none, rest: uncertified}.held(text, value)
}

// volumesHeld are the volumes of a pod that are claims.
func volumesHeld(text, list []byte) []byte {
	return eachOf(text, list, func(text, volume []byte) []byte {
		if rawjson.IsNull(rawjson.Field(volume, "persistentVolumeClaim")) && rawjson.IsNull(rawjson.Field(volume, "ephemeral")) {
			return nil
		}
		return parts{"name": all, "persistentVolumeClaim": all, "ephemeral": emptied}.held(text, volume)
	})
}

// containersHeld are names, images and programs. Of the words after the program, and of the environment, what matters is held.
func containersHeld(text, list []byte) []byte {
	return eachOf(text, list, func(text, container []byte) []byte {
		var words, variables []string
		for _, field := range []string{"command", "args"} {
			rawjson.Elements(rawjson.Field(container, field), func(word []byte) { words = append(words, rawjson.String(word)) })
		}
		rawjson.Elements(rawjson.Field(container, "env"), func(env []byte) { variables = append(variables, variable(env)) })
		text = parts{"name": all, "image": all, "command": programHeld}.held(text, container)
		args, _ := json.Marshal(argv.Read(words, variables).Words()) // of strings
		if rawjson.IsNull(args) {
			return text
		}
		return append(appendField(text[:len(text)-1], []byte("args"), args, all), '}')
	})
}

// variable is one of the environment, as NAME=value.
func variable(env []byte) string {
	from := rawjson.Field(env, "valueFrom")
	field := rawjson.String(rawjson.Field(rawjson.Field(from, "fieldRef"), "fieldPath"))
	return argv.Variable(rawjson.String(rawjson.Field(env, "name")), rawjson.String(rawjson.Field(env, "value")), field, !rawjson.IsNull(from))
}

// programHeld is the first word of a command.
func programHeld(text, command []byte) []byte {
	first := true
	return eachOf(text, command, func(text, word []byte) []byte {
		if !first {
			return nil
		}
		first = false
		return append(text, word...)
	})
}

var (
	// keptMetadata are the fields of metadata that are held, and managedMetadata those of an object of which it
	// matters who wrote, when, and who set finalizers and marks.
	keptMetadata = parts{
		"name": all, "namespace": all, "uid": all, "resourceVersion": all, "generation": all, "creationTimestamp": all, "deletionTimestamp": all,
		"deletionGracePeriodSeconds": all, "finalizers": all, "ownerReferences": all, "labels": all, "annotations": annotationsHeld,
	}
	managedMetadata = with(keptMetadata, "managedFields",
		parts{"fieldsV1": parts{"f:metadata": parts{"f:finalizers": all, "f:labels": marksHeld, "f:annotations": marksHeld}.heldIfAny}.held,
			rest: all}.held)
)

// annotationsHeld are those that say something of deletion, and marksHeld, of the labels or annotations that somebody has set, those by
// which tools know what they have deployed.
var annotationsHeld, marksHeld = anyThat(keepsAnnotation), anyThat(isMark)

// anyThat holds the fields whose names are kept, and nothing of an object without any.
func anyThat(keeps func(name []byte) bool) part {
	return func(text, value []byte) []byte {
		held := append(text, '{')
		rawjson.Fields(value, func(name, value []byte) {
			if keeps(name) {
				held = appendField(held, name, value, all)
			}
		})
		if len(held) == len(text)+1 {
			return nil
		}
		return append(held, '}')
	}
}

// markKeys are in the names of the fields of marks.
var markKeys = slices.Concat(delivery.Keys(), delivery.Others, []string{delivery.Instance})

func isMark(name []byte) bool {
	return slices.ContainsFunc(markKeys, func(key string) bool { return bytes.Contains(name, []byte(key)) })
}

func with(f parts, name string, part part) parts {
	more := parts{name: part}
	for field, part := range f {
		more[field] = part
	}
	return more
}

// HoldsManagers reports whether a file has the managed fields of an object, which tell who made it and who set its finalizers, for one that
// is being deleted or has finalizers, or has no controller.
func HoldsManagers(resource schema.GroupResource, heldBack, controlled bool) bool {
	return heldBack || !controlled && resource.Resource != "events"
}

// metadataHeld is what is held of the metadata of an object.
func metadataHeld(resource schema.GroupResource) part {
	return func(text, value []byte) []byte {
		heldBack, controlled := false, false
		rawjson.Fields(value, func(name, value []byte) {
			switch string(name) {
			case "deletionTimestamp", "finalizers":
				heldBack = heldBack || !rawjson.IsNull(value)
			case "ownerReferences":
				rawjson.Elements(value, func(ref []byte) { controlled = controlled || string(rawjson.Field(ref, "controller")) == "true" })
			}
		})
		if HoldsManagers(resource, heldBack, controlled) {
			return managedMetadata.held(text, value)
		}
		return keptMetadata.held(text, value)
	}
}

// annotations are which of the names that were seen are held: an expression takes longer to say it.
var annotations struct {
	sync.Mutex
	held map[string]bool
}

func keepsAnnotation(name []byte) bool {
	const most = 10_000
	annotations.Lock()
	defer annotations.Unlock()
	held, known := annotations.held[string(name)]
	if !known {
		if held = KeepsAnnotation(string(name)); annotations.held == nil || len(annotations.held) == most {
			annotations.held = map[string]bool{}
		}
		annotations.held[string(name)] = held
	}
	return held
}
