// SPDX-License-Identifier: Apache-2.0

// Package argv reads the command lines of programs in containers.
package argv

import (
	"slices"
	"strings"
)

// Line is what matters of a command line.
type Line struct {
	// Kubeconfig: the program is given one, which is a sign of who it acts as.
	Kubeconfig bool
	// Watches chooses the objects that it reconciles, by their labels; empty for all
	// (github.com/fluxcd/pkg/runtime/controller/watch.go, BindFlags).
	Watches string
	// Namespaces are those that it watches, with commas, Own for its own; empty for all. What refers to a variable is not known.
	Namespaces string
	// Namespace is the one that it watches (Cluster API, cert-manager, Argo Rollouts), or its own (Velero, Crossplane).
	Namespace string
}

const (
	// WatchFlag has that of Watches as its value, NamespacesFlag that of Namespaces.
	WatchFlag      = "--watch-label-selector"
	NamespacesFlag = "--watch-namespaces"

	namespaceFlag = "--namespace"

	// Own is the namespace of the program.
	Own = "."
	// TargetNamespaces is the annotation of pods by which OLM says what they are to watch.
	TargetNamespaces = "olm.targetNamespaces"

	kubeconfig = "kubeconfig"

	// filterFlag has the value of the label by which the controllers of Cluster API choose what they reconcile.
	filterFlag = "--watch-filter"
)

// watched are the flags and variables with the namespaces that a program watches: of the Operator SDK, ingress-nginx, ECK and
// prometheus-operator, Argo Workflows, Config Connector, Zalando's Postgres operator, RabbitMQ and Strimzi.
var watched = []string{
	NamespacesFlag, "--watch-namespace", "--namespaces", "--managed-namespace", "--scoped-namespace",
	"WATCH_NAMESPACE", "WATCH_NAMESPACES", "WATCHED_NAMESPACE", "OPERATOR_SCOPE_NAMESPACE", "STRIMZI_NAMESPACE",
}

// selecting is Strimzi's variable for Watches.
const selecting = "STRIMZI_RESOURCE_LABELS"

// Variable is a variable with a value, or with that of a field of its pod. What else it is set from is not known.
func Variable(name, value, field string, from bool) string {
	switch {
	case field == "metadata.namespace":
		value = Own
	case from:
		value = "$(" + field + ")"
	}
	return name + "=" + value
}

// Annotation is a variable with the value of an annotation, to which others may refer by Variable.
func Annotation(key, value string) string { return "metadata.annotations['" + key + "']=" + value }

// Read reads the words of a command line and variables, as NAME=value, both of which may refer to variables before. The value of a flag is
// behind =, or the next word; the last one counts.
func Read(words, variables []string) Line {
	var line Line
	known := make([]string, 0, 2*len(variables))
	resolved := func(value string) string {
		if !strings.Contains(value, "$(") { // few refer to any, and a Replacer is costly to make
			return value
		}
		return strings.NewReplacer(known...).Replace(value)
	}
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		value = resolved(value)
		known = append(known, "$("+name+")", value)
		line.Kubeconfig = line.Kubeconfig || name == strings.ToUpper(kubeconfig)
		line.take(name, value)
	}
	for i, word := range words {
		line.Kubeconfig = line.Kubeconfig || strings.Contains(word, kubeconfig)
		flag, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(words) {
			value = words[i+1]
		}
		line.take(flag, resolved(value))
	}
	return line
}

// take notes the value of a flag or variable. * stands for all.
func (l *Line) take(name, value string) {
	switch {
	case name == WatchFlag || name == selecting:
		l.Watches = value
	case name == filterFlag && value != "":
		l.Watches = "cluster.x-k8s.io/watch-filter=" + value
	case name == namespaceFlag:
		l.Namespace = value
	case slices.Contains(watched, name) && !strings.Contains(value, "*"):
		l.Namespaces = value
	}
}

// Words is a command line of which Read reads the same.
func (l Line) Words() []string {
	var words []string
	if l.Kubeconfig {
		words = append(words, "--"+kubeconfig)
	}
	if l.Watches != "" {
		words = append(words, WatchFlag+"="+l.Watches)
	}
	if l.Namespaces != "" {
		words = append(words, NamespacesFlag+"="+l.Namespaces)
	}
	if l.Namespace != "" {
		words = append(words, namespaceFlag+"="+l.Namespace)
	}
	return words
}
