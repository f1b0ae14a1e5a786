// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
)

// nextOf returns the first way out that is not dangerous, nil for none.
func nextOf(c *explain.Cause) *explain.Remedy {
	for i := range c.Remedies {
		if c.Remedies[i].Risk != explain.Dangerous {
			return &c.Remedies[i]
		}
	}
	return nil
}

// number returns what the numbers of a cause's ways out begin with, as unstick takes them: nothing for the only cause.
func (a *StuckAnswer) number(c *explain.Cause, report *explain.Report) string {
	if len(report.Causes) == 1 {
		return ""
	}
	return fmt.Sprintf("%d.", a.rank(c, report))
}

// ways writes the ways out: the next step with its command, the others in a line each. What a program can do has its number, with which
// unstick does it.
func (a *StuckAnswer) ways(c *explain.Cause, report *explain.Report) {
	ways, prefix := c.Ways(), a.number(c, report)
	offered, offer := offeredOf(c), a.offer(c, report)
	next := slices.IndexFunc(ways, func(way []*explain.Remedy) bool { return slices.Contains(way, nextOf(c)) })
	show := func(word string, i int) {
		number, command := "", ""
		if unstick.Possible(ways[i][0]) {
			number = fmt.Sprintf("%s%d. ", prefix, i+1)
		}
		if i == offered {
			command = offer
		}
		switch {
		case a.Wide:
			a.way(word, ways[i], number, a.unstick(c, report, i))
		case i == next || command != "":
			a.step(word, ways[i][0], number, command)
		default:
			a.part(word, bold, number+a.costed(ways[i][0]))
		}
	}
	word := "Ways out"
	switch {
	case c.Verdict != explain.Stuck && report.Again() > 0:
		next = -1
		if !a.Wide { // which ends on it
			a.later(false, report)
			word = "Or"
		}
	case next >= 0:
		show("Next", next)
		word = "Or"
	}
	named, left := 0, 0
	for i := range ways {
		switch {
		case i == next:
		case named >= mostWays && i != offered && !a.Wide:
			left++
		default:
			show(word, i)
			named, word = named+1, ""
		}
	}
	if left > 0 {
		a.part("", noColor, fmt.Sprintf("%d more", left))
	}
}

// way writes a way out, with all its commands and what takes them back, in the place of raw patches with that of this program.
func (a *StuckAnswer) way(word string, way []*explain.Remedy, number, unstick string) {
	a.part(word, bold, number+a.costed(way[0]))
	if unstick != "" && slices.ContainsFunc(way, raw) {
		a.command(unstick, margin+2)
		return
	}
	for _, r := range way {
		a.command(r.Command, margin+2)
		if r.Undo != "" {
			a.command("undo: "+r.Undo, margin+2)
		}
	}
}

// offer returns the command that carries out the way out of a cause that is offered, empty for none.
func (a *StuckAnswer) offer(c *explain.Cause, report *explain.Report) string {
	return a.unstick(c, report, offeredOf(c))
}

// unstick returns the command that carries out a way out, empty for one that a program cannot, and for none.
func (a *StuckAnswer) unstick(c *explain.Cause, report *explain.Report, i int) string {
	ways := c.Ways()
	if i < 0 || c.Verdict != explain.Stuck || a.Plugin == "" || !unstick.Possible(ways[i][0]) {
		return ""
	}
	name, allow := unstick.Names(report)[slices.Index(report.Causes, c)], ""
	if name.Way = unstick.WayName(ways[i]); ways[i][0].Risk == explain.Dangerous {
		allow = " --allow=dangerous"
	}
	return fmt.Sprintf("%s unstick%s%s --cause=%s", a.Plugin, a.Of, allow, name)
}

// offeredOf returns the index of the way out that is offered: the first that a program can, and that is not dangerous, or else the one that
// keeps data before the others, -1 for none.
func offeredOf(c *explain.Cause) int {
	ways := c.Ways()
	if i := slices.IndexFunc(ways, doable); i >= 0 {
		return i
	}
	return slices.IndexFunc(ways, func(way []*explain.Remedy) bool { return way[0].Keeps && way[0] == nextOf(c) })
}

// raw reports whether the command of a way out is more than a person wants to read.
func raw(r *explain.Remedy) bool {
	return r.Operation != nil && r.Operation.Raw()
}

// doable reports whether a program can carry out a way out, and nothing dangerous comes of it.
func doable(way []*explain.Remedy) bool {
	r := way[0]
	return unstick.Possible(r) && !r.Partial && !r.Keeps && r.Risk != explain.Dangerous
}
