// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Name picks causes by what they are: by identifier and object, one of their ways out by what it changes. Without a Way it is the
// least risky one, without an Object every cause with the ID. A shell takes it as it is.
type Name struct{ ID, Object, Way string }

// ParseName reads ID, ID@OBJECT or ID@OBJECT:WAY.
func ParseName(text string) Name {
	id, object, _ := strings.Cut(text, "@")
	if at := strings.LastIndex(object, ":"); at >= 0 && digest8().MatchString(object[at+1:]) {
		return Name{id, object[:at], object[at+1:]}
	}
	return Name{ID: id, Object: object}
}

// String is what ParseName reads.
func (n Name) String() string {
	text := n.ID
	if n.Object != "" {
		text += "@" + n.Object
	}
	if n.Way != "" {
		text += ":" + n.Way
	}
	return text
}

var (
	digest8 = pattern.New(`^[0-9a-f]{8}$`)
	plain   = pattern.New(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)+$`)
)

func short(parts ...any) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, parts...)))[:8]
}

// forms are the objects with which a cause can be named, the first that tells it from all others is the one that is shown: the kind, the
// namespace and the name, a hash of its object, and one of what it says, too.
func forms(c *explain.Cause) []string {
	at, all := c.Object, []string(nil)
	text := kindOf(c) + "/"
	if at.Namespace != "" {
		text += at.Namespace + "/"
	}
	if text += at.Name; plain().MatchString(text) {
		all = append(all, text)
	}
	object := fmt.Sprintf("%s %s %q %s", at.Resource.GroupVersionResource, at.Namespace, at.Name, at.UID)
	return append(all, short(object), short(object, c.Summary.String()))
}

func kindOf(c *explain.Cause) string { return strings.ToLower(c.Object.Resource.Kind) }

// Names are those of the causes of a report, in their order.
func Names(report *explain.Report) []Name {
	known, count := make([][]string, len(report.Causes)), map[Name]int{}
	for i, c := range report.Causes {
		known[i] = forms(c)
		for _, form := range known[i] {
			count[Name{ID: c.ID, Object: form}]++
		}
	}
	names := make([]Name, len(report.Causes))
	for i, c := range report.Causes {
		for _, form := range known[i] {
			if names[i] = (Name{ID: c.ID, Object: form}); count[names[i]] == 1 {
				break
			}
		}
	}
	return names
}

// WayName is that of a way out, empty for one that only a person can take.
func WayName(way []*explain.Remedy) string {
	if !Possible(way[0]) {
		return ""
	}
	return short(way[0].Operation.Key())
}

// isOf reports whether a cause has the name, which may also be without its namespace, or as kubectl writes it.
func (n *Name) isOf(c *explain.Cause) bool {
	others := []string{"", c.Object.Name, kindOf(c) + "/" + c.Object.Name, remedy.Ref(c.Object)}
	return n.ID == c.ID && (slices.Contains(others, n.Object) || slices.Contains(forms(c), n.Object))
}

// has reports whether a way out is one of those with the names: what it changes for any of its objects counts.
func has(names []string, way []*explain.Remedy) bool {
	return slices.ContainsFunc(way, func(r *explain.Remedy) bool { return Possible(r) && slices.Contains(names, short(r.Operation.Key())) })
}

// Picked are causes, and the changes of ways out of them; without changes it is the least risky one.
type Picked struct {
	Name
	Changes sets.Set[string]
}

// MovedError says that what was picked is not there any more.
type MovedError struct {
	Name
	// Cause: the cause exists, and the way out does not, or is another by now.
	Cause bool
}

func (e *MovedError) Error() string { return moved(e) }

// Resolve finds the ways out that are named: a run changes what they do bit by bit. The error is a MovedError.
func Resolve(report *explain.Report, names []Name) ([]Picked, error) {
	var all []Picked
	for _, n := range names {
		picked, err := resolve(report, n)
		if err != nil {
			return nil, err
		}
		all = append(all, picked)
	}
	return all, nil
}

func resolve(report *explain.Report, n Name) (Picked, error) {
	if n.Way == "" {
		return Picked{Name: n}, nil
	}
	gone := &MovedError{Name: n}
	for i, c := range report.Causes {
		if !n.isOf(c) {
			continue
		}
		for _, way := range c.Ways() {
			if !has([]string{n.Way}, way) {
				continue
			}
			picked := Picked{Names(report)[i], sets.New[string]()}
			for _, r := range way {
				if Possible(r) {
					picked.Changes.Insert(r.Operation.Key())
				}
			}
			return picked, nil
		}
		gone.Cause = true
	}
	return Picked{}, gone
}

// Pick is a cause by its number and one of its ways out, both counted from 1. Without a Way it is the least risky one; without
// a Cause it is that of the only one.
type Pick struct{ Cause, Way int }

// NoPickError says that a screen has no such cause or way out, or that only a person can take it.
type NoPickError struct {
	Pick
	// Of is how many there are.
	Of int
	// Person: the way out exists.
	Person bool
}

func (e *NoPickError) Error() string { return noPick(e) }

// Screen is what numbers mean that somebody was shown: the causes, each with the names of its ways out.
type Screen []Shown

// Shown is a cause on a screen.
type Shown struct {
	Name string   `json:"name"`
	Ways []string `json:"ways"`
}

// NewScreen is that of a report.
func NewScreen(report *explain.Report) Screen {
	var s Screen
	for i, name := range Names(report) {
		shown := Shown{Name: name.String(), Ways: []string{}}
		for _, way := range report.Causes[i].Ways() {
			shown.Ways = append(shown.Ways, WayName(way))
		}
		s = append(s, shown)
	}
	return s
}

// Meant is the name of what a number was on the screen. The error is a NoPickError.
func (s Screen) Meant(p Pick) (Name, error) {
	if p.Cause == 0 && len(s) != 1 {
		p.Cause, p.Way = p.Way, 0
	}
	number := max(p.Cause, 1)
	if number > len(s) {
		return Name{}, &NoPickError{Pick: p, Of: len(s)}
	}
	name, ways := ParseName(s[number-1].Name), s[number-1].Ways
	switch {
	case p.Way == 0:
	case p.Way > len(ways):
		return Name{}, &NoPickError{Pick: p, Of: len(ways)}
	case ways[p.Way-1] == "":
		return Name{}, &NoPickError{Pick: p, Person: true}
	default:
		name.Way = ways[p.Way-1]
	}
	return name, nil
}

// Take finds in a report what was meant by a name of the screen. A cause counts as another when it has a way out that the screen does
// not show. The error is a MovedError.
func (s Screen) Take(report *explain.Report, n Name) (Picked, error) {
	if n.Way != "" {
		return resolve(report, n)
	}
	shown := s[slices.IndexFunc(s, func(shown Shown) bool { return shown.Name == n.String() })]
	gone := &MovedError{Name: n}
	for i, c := range report.Causes {
		if !n.isOf(c) {
			continue
		}
		if !slices.ContainsFunc(c.Ways(), func(way []*explain.Remedy) bool { return Possible(way[0]) && !has(shown.Ways, way) }) {
			return Picked{Name: Names(report)[i]}, nil
		}
		gone.Cause = true
	}
	return Picked{}, gone
}

// picked reports whether a cause is dealt with, and returns the changes of the ways out that were named for it, nil for any way out.
func (o *Options) picked(c *explain.Cause) (changes sets.Set[string], chosen bool) {
	for i := range o.Picked {
		if p := &o.Picked[i]; p.isOf(c) {
			chosen = true
			if changes == nil {
				changes = p.Changes
			} else {
				changes = changes.Union(p.Changes)
			}
		}
	}
	return changes, chosen || len(o.Picked) == 0
}
