// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"regexp"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Look is what a person looks at, waits for, or decides: it changes nothing, or leaves what it changes to them.
type Look struct {
	// Words begin it, as they are: the verb with its types and flags.
	Words string
	// Of is the object that it is about, or with no name its namespace alone.
	Of graph.Identity
	// Plain: the object is named by its Args, and not by its type.
	Args []string
	// Flags end it, as they are.
	Flags string
	// Plugin: the plugin shows it, and not kubectl.
	Plugin bool
	// Save: the object is kept in a file before, which is named by the Version that was looked at.
	Save    bool
	Version string
}

// UntilSucceeded are the words that wait for the end of a pod.
const UntilSucceeded = "wait --for=jsonpath='{.status.phase}'=Succeeded --timeout=1h"

// Describe shows an object with its events.
func Describe(id graph.Identity) Look { return Look{Words: "describe", Of: id} }

// Get lists types of the whole cluster.
func Get(types string) Look { return Look{Words: "get " + types} }

// Command returns the command for a POSIX shell.
func (l *Look) Command(p Programs) string {
	program := p.Kubectl
	if l.Plugin {
		program = p.Plugin
	}
	command := shell.In(program, l.Of.Namespace) + " " + l.Words
	switch {
	case len(l.Args) > 0:
		command += " " + shell.Command(l.Args)
	case l.Of.Name != "":
		command += " " + Ref(l.Of)
	}
	command += l.Flags
	if l.Save {
		return savedFirst(p.Kubectl, l.Of, l.Version, command)
	}
	return command
}

// YAML shows an object as it is.
func YAML(id graph.Identity) Look { return Look{Words: "get", Of: id, Flags: " -o yaml"} }

// ManagedFields shows an object with who wrote what of it.
func ManagedFields(id graph.Identity) Look {
	look := YAML(id)
	look.Flags += " --show-managed-fields"
	return look
}

// CanI asks the API server whether a user has a right in a namespace, which is empty for none.
func CanI(verb, resource, user, namespace string) Look {
	look := Look{Words: "auth can-i", Args: []string{verb, resource}, Flags: " --as=" + shell.Quote(user)}
	if namespace != "" {
		look.Flags += " -n " + shell.Quote(namespace)
	}
	return look
}

// Preview shows what a deletion of an object would delete with it.
func Preview(id graph.Identity) Look {
	return Look{Plugin: true, Words: "delete", Of: id, Flags: " --dry-run"}
}

// Logs shows what a workload, which is named as kubectl takes it, has logged in the last hour, of an object's name only what
// concerns it.
func Logs(workload graph.Identity, ref, name string) Look {
	look := Look{Words: "logs", Of: workload, Args: []string{ref}, Flags: " --all-containers --since=1h"}
	if name != "" {
		look.Flags += " | grep -iwE " + shell.Quote(regexp.QuoteMeta(name)+"|finaliz[a-z]*")
	}
	return look
}
