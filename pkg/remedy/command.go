// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Programs begin the commands: those of kubectl, and of this plugin.
type Programs struct{ Kubectl, Plugin string }

// Command returns the command for a POSIX shell that makes the change.
func (o *Op) Command(p Programs) string {
	kubectl := shell.In(p.Kubectl, o.Object.Namespace)
	command := ""
	switch o.Verb {
	case Delete:
		command = o.deleteCommand(p, kubectl)
	case Patch:
		command = fmt.Sprintf("%s patch %s --type=json -p %s", kubectl, shell.Target(o.Object), shell.Quote(marshal(o.Patch)))
	case Scale:
		command = fmt.Sprintf("%s scale %s --current-replicas=%d --replicas=%d", kubectl, Ref(o.Object), o.Replicas.Current, o.Replicas.Wanted)
	case Restart, Resume:
		command = fmt.Sprintf("%s rollout %s %s", kubectl, o.Verb, Ref(o.Object))
	case Create:
		command = o.createCommand(kubectl)
	case Restore:
		command = fmt.Sprintf("sed -e '/^  resourceVersion: /d' -e '/^  uid: /d' %s | %s create -f -", o.file(), p.Kubectl)
	case Finalize:
		command = o.finalizeCommand(p)
	case Taint:
		command = fmt.Sprintf("%s taint nodes %s %s", p.Kubectl, shell.Quote(o.Object.Name), shell.Quote(o.Value))
	case Untaint:
		command = fmt.Sprintf("%s taint nodes %s %s", p.Kubectl, shell.Quote(o.Object.Name), shell.Quote(o.Value+"-"))
	case Annotate:
		command = fmt.Sprintf("%s annotate %s %s=$(date +%%s) --overwrite", kubectl, shell.Target(o.Object), shell.Quote(o.Value))
	case Collect:
		command = p.Plugin + " collect -A"
		if o.Object.Namespace != "" {
			command = p.Plugin + " collect -n " + shell.Quote(o.Object.Namespace)
		}
	}
	if o.Save {
		return savedFirst(p.Kubectl, o.Object, o.Version, command)
	}
	return command
}

// Raw reports whether JSON is in the command: kubectl has no other for the change.
func (o *Op) Raw() bool { return o.Verb == Patch || o.Verb == Delete && o.inJSON() }

// Undo returns the command that takes the change back, empty for none.
func (o *Op) Undo(p Programs) string {
	if o.Back == nil {
		return ""
	}
	return o.Back.Command(p)
}

// Ref names an object as users of kubectl do where its kind is one of Kubernetes.
func Ref(id graph.Identity) string {
	if graph.BuiltinGroup(id.Resource.Group) {
		return shell.Quote(strings.ToLower(id.Resource.Kind) + "/" + id.Name)
	}
	return shell.Target(id)
}

// inJSON reports whether a deletion has preconditions, or options, that only the API itself knows.
func (o *Op) inJSON() bool { return o.Object.UID != "" || unsafely(o) }

// deleteCommand states the UID where it has one: only the API itself knows preconditions.
func (o *Op) deleteCommand(p Programs, kubectl string) string {
	if !o.inJSON() {
		return fmt.Sprintf("%s delete %s", kubectl, shell.Target(o.Object))
	}
	var words strings.Builder
	if policy := o.Options.PropagationPolicy; policy != nil {
		fmt.Fprintf(&words, `,"propagationPolicy":%q`, *policy)
	}
	if seconds := o.Options.GracePeriodSeconds; seconds != nil {
		fmt.Fprintf(&words, `,"gracePeriodSeconds":%d`, *seconds)
	}
	if unsafely(o) {
		words.WriteString(`,"ignoreStoreReadErrorWithClusterBreakingPotential":true`)
	}
	if o.Object.UID != "" {
		fmt.Fprintf(&words, `,"preconditions":{"uid":"%s"}`, o.Object.UID)
	}
	return fmt.Sprintf(`echo '{"apiVersion":"v1","kind":"DeleteOptions"%s}' | %s delete --raw %s -f -`, &words, p.Kubectl,
		shell.Quote(o.Object.URLPath()))
}

// unsafely reports whether a deletion is of what cannot be read.
func unsafely(o *Op) bool {
	unsafe := o.Options.IgnoreStoreReadErrorWithClusterBreakingPotential
	return unsafe != nil && *unsafe
}

func (o *Op) createCommand(kubectl string) string {
	command := fmt.Sprintf("%s create %s %s", kubectl, strings.ToLower(o.Object.Resource.Kind), shell.Quote(o.Object.Name))
	if o.Grant != nil {
		command += fmt.Sprintf(" --clusterrole=%s --serviceaccount=%s", shell.Quote(o.Grant.ClusterRole),
			shell.Quote(o.Grant.Namespace+":"+o.Grant.ServiceAccount))
	}
	return command
}

// finalizeCommand guards by the name of the entry, by the UID, and by the resourceVersion that the object carries.
func (o *Op) finalizeCommand(p Programs) string {
	return fmt.Sprintf(`%s get namespace %s -o json | jq --arg uid %s --arg f %s 'if .metadata.uid == $uid then .spec.finalizers -= [$f] else error("another namespace") end' | %s replace --raw %s -f -`,
		p.Kubectl, shell.Quote(o.Object.Name), shell.Quote(string(o.Object.UID)), shell.Quote(o.Value), p.Kubectl,
		shell.Quote(o.Object.URLPath()+"/finalize"))
}

// savedFirst puts a command that writes an object to a file before one that changes
// it. The file is named by the version that was looked at, and what is in it is
// kept: a second remedy must not put what the first has changed in its place.
func savedFirst(kubectl string, id graph.Identity, version, command string) string {
	file := (&Op{Object: id, Version: version}).file()
	return fmt.Sprintf("{ test -s %s || %s get %s -o yaml > %s; } && %s", file, shell.In(kubectl, id.Namespace),
		shell.Target(id), file, command)
}

func (o *Op) file() string {
	return shell.Quote(fmt.Sprintf("%s-%s-%s.yaml", o.Object.Resource.Resource, o.Object.Name, o.Version))
}

// marshal writes JSON for a shell, in which nothing needs to be safe for HTML.
func marshal(value any) string {
	var data strings.Builder
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // the values are made by this program
	}
	return strings.TrimSpace(data.String())
}
