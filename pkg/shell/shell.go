// SPDX-License-Identifier: Apache-2.0

// Package shell writes commands of kubectl about objects, which a person can
// paste into a POSIX shell. It runs nothing.
package shell

import (
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

// Command makes a command of words.
func Command(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Quote(word)
	}
	return strings.Join(quoted, " ")
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
