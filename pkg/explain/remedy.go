// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"net/url"
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

// kubectl begins a command about an object.
func (w *walker) kubectl(n graph.Node) string {
	if namespace := n.Object().Namespace; namespace != "" {
		return w.Kubectl + " -n " + Quote(namespace)
	}
	return w.Kubectl
}

// target names an object for kubectl without room for misunderstanding.
func target(n graph.Node) string {
	id := n.Identity()
	resource := id.Resource.Resource
	if id.Resource.Group != "" {
		resource += "." + id.Resource.Version + "." + id.Resource.Group
	}
	return Quote(resource + "/" + id.Name)
}

// deleteAgain sends a DELETE that only the object that was looked at takes.
// With background propagation it takes the garbage collector's finalizers off.
func (w *walker) deleteAgain(n graph.Node, risk Risk, effect string) Remedy {
	return Remedy{Risk: risk, Effect: effect, Command: w.deleteRaw(n.Identity(), `"propagationPolicy":"Background",`)}
}

// deleteRaw is a DELETE with a UID precondition and further options.
func (w *walker) deleteRaw(id graph.Identity, options string) string {
	return fmt.Sprintf(`echo '{"apiVersion":"v1","kind":"DeleteOptions",%s"preconditions":{"uid":"%s"}}' | %s delete --raw %s -f -`,
		options, id.UID, w.Kubectl, Quote(rawPath(id)))
}

// rawPath is the path of the object's URL.
func rawPath(id graph.Identity) string {
	path := "/apis/" + id.Resource.Group + "/" + id.Resource.Version
	if id.Resource.Group == "" {
		path = "/api/" + id.Resource.Version
	}
	if id.Namespace != "" {
		path += "/namespaces/" + url.PathEscape(id.Namespace)
	}
	return path + "/" + id.Resource.Resource + "/" + url.PathEscape(id.Name)
}

// operation is a step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patch changes an object by JSON patch, guarded by its UID.
func (w *walker) patch(n graph.Node, operations ...operation) string {
	all := append([]operation{{"test", "/metadata/uid", n.Object().UID}}, operations...)
	data, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings can always be marshalled
	}
	return fmt.Sprintf("%s patch %s --type=json -p %s", w.kubectl(n), target(n), Quote(string(data)))
}
