// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Gap is what could not be read, or found out.
type Gap struct {
	// What names what could not be read and why, or with Open is a clause of what is not known.
	What say.Text
	Open bool
	// Forbidden: for lack of a right. Types are those of which something was not read for that.
	Forbidden bool
	Types     sets.Set[schema.GroupResource]
}

// GapOf is a type, or a group version, that was not listed.
func GapOf(u graph.Unlisted) Gap {
	what := u.GroupResource().String()
	if u.Resource == "" {
		what = u.GroupVersion().String()
	}
	if u.Reason == graph.Forbidden {
		return Gap{What: say.Of(unreadForbidden, what), Forbidden: true}
	}
	return Gap{What: say.Of(unreadFor, what, u.Message)}
}

// String is What.
func (g Gap) String() string { return g.What.String() }

// JoinGaps sorts gaps by what they say, and has each once.
func JoinGaps(all ...[]Gap) []Gap {
	joined := slices.Concat(all...)
	slices.SortFunc(joined, func(a, b Gap) int { return cmp.Compare(a.String(), b.String()) })
	return slices.CompactFunc(joined, func(a, b Gap) bool { return a.String() == b.String() })
}

// Gaps are what they say.
func Gaps(all []Gap) []string {
	var texts []string
	for _, g := range all {
		texts = append(texts, g.String())
	}
	return texts
}

// unread is what could not be read, or found out.
type unread struct {
	gaps      []Gap
	forbidden map[string]schema.GroupResource
}

// note keeps what could not be read.
func (u *unread) note(p place, err error) {
	resource := p.resource.GroupResource()
	switch {
	case err == nil, apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err):
		u.forbidden[p.String()] = resource
	default:
		u.NoteUnread(Gap{What: say.Of(unreadFor, p, err), Types: sets.New(resource)})
	}
}

// NoteUnread keeps what could not be read, or found out.
func (u *unread) NoteUnread(g Gap) { u.gaps = append(u.gaps, g) }

// NoteOpen keeps a clause of what could not be found out.
func (u *unread) NoteOpen(what say.Text) { u.NoteUnread(Gap{What: what, Open: true}) }

// Unread returns what could not be read so far, sorted, each once: what the user has no right to read is one of them.
func (u *unread) Unread() []Gap {
	var forbidden []Gap
	if len(u.forbidden) > 0 {
		places := strings.Join(slices.Sorted(maps.Keys(u.forbidden)), ", ")
		types := sets.New(slices.Collect(maps.Values(u.forbidden))...)
		forbidden = append(forbidden, Gap{What: say.Of(unreadForbidden, places), Forbidden: true, Types: types})
	}
	return JoinGaps(u.gaps, forbidden)
}
