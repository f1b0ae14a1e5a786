// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Warnings writes what a snapshot could not read: a line for all that was
// refused for want of rights, one for all that a file does not hold, and a line with
// the server's words for every other failure; and a note about what lies outside a namespace. It writes
// nothing for a complete snapshot of the cluster.
func Warnings(w io.Writer, s *graph.Snapshot) error {
	out := bufio.NewWriter(w)
	forbidden := map[string][]string{} // by where that is, empty for everywhere
	absent := map[string][]string{}    // from a file, by why and where
	for _, u := range s.Unlisted() {
		where := ""
		if u.Namespace != "" {
			where = " in namespace " + printable(u.Namespace)
		} else if beyond := s.Beyond(u); beyond != "" {
			where = " " + printable(beyond)
		}
		if u.Reason == graph.Forbidden {
			forbidden[where] = append(forbidden[where], unlistedName(u))
			continue
		}
		if u.Reason == graph.NotInSnapshot && u.Name == "" {
			why := printable(u.Message) + where
			absent[why] = append(absent[why], unlistedName(u))
			continue
		}
		fmt.Fprintf(out, "warning: could not read %s%s: %s: %s\n", unlistedName(u), where, u.Reason, printable(u.Message))
	}
	writeForbidden(out, forbidden)
	for _, why := range slices.Sorted(maps.Keys(absent)) {
		fmt.Fprintf(out, "warning: %s: %s\n", why, strings.Join(atMost(absent[why], maxOutside), ", "))
	}
	if !s.Complete() {
		fmt.Fprintln(out, "warning: the answer is incomplete; what depends on the above is shown as Unknown, and objects may be missing")
	}
	if outside := s.Outside(); len(outside) > 0 {
		var names []string
		for _, r := range outside {
			names = append(names, printable(r.String()))
		}
		fmt.Fprintf(out, "note: not allowed to look outside the namespace (%s): what refers to its objects from there was not looked at, and owners without a namespace are not finished\n",
			strings.Join(atMost(names, maxOutside), ", "))
	}
	return out.Flush()
}

// maxOutside is the number of types that a note names.
const maxOutside = 5

// atMost returns the first names, and how many there are besides.
func atMost(names []string, most int) []string {
	if more := len(names) - most; more > 0 {
		names = append(names[:most:most], fmt.Sprintf("and %d more types", more))
	}
	return names
}

// maxForbidden is the number of types that a warning names; documents have all.
const maxForbidden = 20

// writeForbidden names what the user may not read, everywhere, in a namespace,
// or outside those in which it could be read. What is forbidden everywhere is
// not named again where it was tried in single namespaces.
func writeForbidden(w io.Writer, forbidden map[string][]string) {
	everywhere := map[string]bool{}
	for _, name := range forbidden[""] {
		everywhere[name] = true
	}
	for _, where := range slices.Sorted(maps.Keys(forbidden)) {
		names := forbidden[where]
		if where != "" {
			names = slices.DeleteFunc(names, func(name string) bool { return everywhere[name] })
		}
		if len(names) > 0 {
			fmt.Fprintf(w, "warning: not allowed to read%s: %s\n", where, strings.Join(atMost(names, maxForbidden), ", "))
		}
	}
}

// unlistedName names what could not be read, without the namespace.
func unlistedName(u graph.Unlisted) string {
	if u.Resource == "" {
		return "the types of " + printable(strings.TrimSuffix(u.GroupVersion().String(), "/"))
	}
	name := schema.GroupResource{Group: u.Group, Resource: u.Resource}.String()
	if u.Name != "" {
		name += "/" + u.Name
	}
	return printable(name)
}
