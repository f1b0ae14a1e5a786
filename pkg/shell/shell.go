// SPDX-License-Identifier: Apache-2.0

// Package shell writes commands of kubectl about objects, which a person can
// paste into a POSIX shell. It runs nothing.
package shell

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Quote makes a word for a POSIX shell.
func Quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:="
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Target names an object for kubectl without room for misunderstanding. The
// namespace is not part of it.
func Target(id graph.Identity) string {
	resource := id.Resource.Resource
	if id.Resource.Group != "" {
		resource += "." + id.Resource.Version + "." + id.Resource.Group
	}
	return Quote(resource + "/" + id.Name)
}

// In adds the namespace, if there is one, to the words that begin a command.
func In(program, namespace string) string {
	if namespace == "" {
		return program
	}
	return program + " -n " + Quote(namespace)
}

// Operation is a step of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Test is the Operation that fails unless the value is there.
func Test(path string, value any) Operation { return Operation{"test", path, value} }

// Replace is the Operation that puts the value in the place of another.
func Replace(path string, value any) Operation { return Operation{"replace", path, value} }

// Add is the Operation that adds the value, before what a list has at the path.
func Add(path string, value any) Operation { return Operation{"add", path, value} }

// Remove is the Operation that takes away what is there.
func Remove(path string) Operation { return Operation{Op: "remove", Path: path} }

// Guarded returns the operations of a JSON patch that does nothing to an object with
// another UID.
func Guarded(id graph.Identity, operations ...Operation) []Operation {
	return append([]Operation{Test("/metadata/uid", id.UID)}, operations...)
}

// Patch changes an object by a JSON patch that does nothing to one with another
// UID. The values must be such that they can be marshalled.
func Patch(kubectl string, id graph.Identity, operations ...Operation) string {
	all := Guarded(id, operations...)
	var data strings.Builder
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(all); err != nil {
		panic(err) // see above
	}
	return fmt.Sprintf("%s patch %s --type=json -p %s", In(kubectl, id.Namespace), Target(id), Quote(strings.TrimSpace(data.String())))
}
