// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"cmp"
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
// the server's words for every other failure; namespaces with the same share one. A note
// says what lies outside a namespace. It writes nothing for a complete snapshot of the
// cluster.
func Warnings(w io.Writer, s *graph.Snapshot) error { return warnings(w, s, nil) }

// fewForbidden is the number of types up to which Limited names them.
const fewForbidden = 5

// Limited is Warnings that counts the types that were refused, of those that there are, where Warnings would name more than
// a few. The note about what lies outside a namespace is the same.
func Limited(w io.Writer, s *graph.Snapshot, types []*graph.Resource) error {
	return warnings(w, s, types)
}

// limited says how many types can be read where others were refused, and returns what was refused besides. It is empty for a
// few types.
func limited(forbidden map[place][]string, types []*graph.Resource) (text string, others map[place][]string) {
	known := map[string]bool{}
	for _, r := range types {
		known[r.GroupResource().String()] = true
	}
	others = map[place][]string{}
	var places []place
	refused := map[string]bool{}
	for at, names := range forbidden {
		counts := false
		for _, name := range names {
			if known[name] {
				refused[name], counts = true, true
			} else {
				others[at] = append(others[at], name)
			}
		}
		if counts {
			places = append(places, at)
		}
	}
	if len(refused) <= fewForbidden {
		return "", forbidden
	}
	beyond := slices.ContainsFunc(places, func(at place) bool { return at.namespace == "" })
	in := ""
	if len(places) == 1 {
		in = where(places)
	}
	for at, names := range others { // an object of a type that is counted goes without saying
		others[at] = slices.DeleteFunc(names, func(name string) bool {
			kind, _, _ := strings.Cut(name, "/")
			return refused[kind]
		})
	}
	all := 0
	for _, r := range types {
		if r.Namespaced || beyond {
			all++
		}
	}
	return fmt.Sprintf("limited view: %d of %s readable%s; -v=1 lists the others", all-len(refused), plural(all, "type"), in), others
}

func warnings(w io.Writer, s *graph.Snapshot, types []*graph.Resource) error {
	out := bufio.NewWriter(w)
	forbidden := map[place][]string{}
	absent := map[string][]string{} // from a file, by why and where
	var failures []failure
	for _, u := range s.Unlisted() {
		at := place{namespace: u.Namespace}
		if u.Namespace == "" {
			at.beyond = s.Beyond(u)
		}
		switch {
		case u.Reason == graph.Forbidden:
			forbidden[at] = append(forbidden[at], unlistedName(u))
		case u.Reason == graph.NotInSnapshot && u.Name == "":
			why := printable(u.Message) + where([]place{at})
			absent[why] = append(absent[why], unlistedName(u))
		default:
			failures = addFailure(failures, unlistedName(u), fmt.Sprintf("%s: %s", u.Reason, printable(u.Message)), at)
		}
	}
	for _, f := range failures {
		fmt.Fprintf(out, "warning: could not read %s%s: %s\n", f.name, where(f.places), f.why)
	}
	text, forbidden := limited(forbidden, types)
	writeForbidden(out, forbidden)
	for _, why := range slices.Sorted(maps.Keys(absent)) {
		fmt.Fprintf(out, "warning: %s: %s\n", why, strings.Join(atMost(absent[why], maxOutside, "types"), ", "))
	}
	switch {
	case text != "":
		fmt.Fprintf(out, "warning: the answer is incomplete, a %s\n", text)
	case !s.Complete():
		fmt.Fprintln(out, "warning: the answer is incomplete; what depends on the above is shown as Unknown, and objects may be missing")
	}
	if outside := s.Outside(); len(outside) > 0 {
		var names []string
		for _, r := range outside {
			names = append(names, printable(r.String()))
		}
		fmt.Fprintf(out,
			"note: not allowed to look outside the namespace (%s): what refers to its objects from there was not looked at, and owners without a namespace are not finished\n",
			strings.Join(atMost(names, maxOutside, "types"), ", "))
	}
	return out.Flush()
}

// maxOutside is the number of types that a note names.
const maxOutside = 5

// atMost returns the first names, and how many of what they are there are besides.
func atMost(names []string, most int, what string) []string {
	if more := len(names) - most; more > 0 {
		names = append(names[:most:most], strings.TrimSpace(fmt.Sprintf("and %d more %s", more, what)))
	}
	return names
}

// maxForbidden is the number of types that a warning names; documents have all.
const maxForbidden = 20

// place is where something could not be read: in a namespace, or beyond those in
// which it could be, or anywhere.
type place struct{ namespace, beyond string }

// maxNamespaces is the number of namespaces that a warning names.
const maxNamespaces = 5

// where names places as they stand after what could not be read there: one of any
// kind, or several namespaces.
func where(places []place) string {
	switch {
	case len(places) == 1 && places[0].namespace != "":
		return " in namespace " + printable(places[0].namespace)
	case len(places) == 1 && places[0].beyond != "":
		return " " + printable(places[0].beyond)
	case len(places) == 1:
		return ""
	}
	var names []string
	for _, p := range places {
		names = append(names, printable(p.namespace))
	}
	return fmt.Sprintf(" in %d namespaces (%s)", len(names), strings.Join(atMost(names, maxNamespaces, ""), ", "))
}

// failure is what could not be read, and why, in some places.
type failure struct {
	name, why string
	places    []place
}

// addFailure adds a failure, or the place of one that is known: those of
// namespaces go together.
func addFailure(failures []failure, name, why string, at place) []failure {
	same := func(f failure) bool { return f.name == name && f.why == why && f.places[0].namespace != "" }
	if i := slices.IndexFunc(failures, same); i >= 0 && at.namespace != "" {
		failures[i].places = append(failures[i].places, at)
		return failures
	}
	return append(failures, failure{name, why, []place{at}})
}

// writeForbidden names what the user may not read, everywhere, in a namespace,
// or outside those in which it could be read. What is said of everywhere, or of all but
// some namespaces, is not said again of each.
func writeForbidden(w io.Writer, forbidden map[place][]string) {
	said := map[string]bool{} // without a namespace
	for at, names := range forbidden {
		for _, name := range names {
			said[name] = said[name] || at.namespace == ""
		}
	}
	var lines []failure
	for _, at := range slices.SortedFunc(maps.Keys(forbidden), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.beyond, b.beyond))
	}) {
		names := forbidden[at]
		if at.namespace != "" {
			names = slices.DeleteFunc(names, func(name string) bool { return said[name] })
		}
		if len(names) > 0 {
			lines = addFailure(lines, strings.Join(atMost(names, maxForbidden, "types"), ", "), "", at)
		}
	}
	for _, line := range lines {
		fmt.Fprintf(w, "warning: not allowed to read%s: %s\n", where(line.places), line.name)
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
