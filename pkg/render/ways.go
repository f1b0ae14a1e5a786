// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/unstick"
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
	offered, offer := slices.IndexFunc(ways, doable), a.offer(c, report)
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
			a.way(word, ways[i], number)
		case i == next || command != "":
			a.step(word, ways[i][0], number, command)
		default:
			a.part(word, bold, number+worded(ways[i][0].Effect)+a.cost(ways[i][0]))
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

// way writes a way out, with all its commands and what takes them back.
func (a *StuckAnswer) way(word string, way []*explain.Remedy, number string) {
	a.part(word, bold, number+worded(way[0].Effect)+a.cost(way[0]))
	for _, r := range way {
		a.command(r.Command, margin+2)
		if r.Undo != "" {
			a.command("undo: "+r.Undo, margin+2)
		}
	}
}

// offer returns the command that carries out the first way out of a cause that a program can, and that is not dangerous, empty for none.
func (a *StuckAnswer) offer(c *explain.Cause, report *explain.Report) string {
	ways := c.Ways()
	i := slices.IndexFunc(ways, doable)
	if i < 0 || c.Verdict != explain.Stuck || a.Plugin == "" {
		return ""
	}
	name := unstick.Names(report)[slices.Index(report.Causes, c)]
	name.Way = unstick.WayName(ways[i])
	return fmt.Sprintf("%s unstick%s --cause=%s", a.Plugin, a.Of, name)
}

// doable reports whether a program can carry out a way out, and nothing dangerous comes of it.
func doable(way []*explain.Remedy) bool {
	r := way[0]
	return unstick.Possible(r) && !r.Partial && !r.Keeps && r.Risk != explain.Dangerous
}
