// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// mostMoments is the number of moments that a ticket has, the latest.
const mostMoments = 60

// Moment is something that happened to an object.
type Moment struct {
	Time   time.Time
	Object graph.Identity
	What   string
}

// Ticket is an answer in Markdown, as GitHub and Jira render it. What comes from the cluster stands in code alone, where nothing has a
// meaning: neither markup nor a mention.
type Ticket struct {
	// Asked is the command, When it was answered, and Where, nil for a file.
	Asked string
	When  time.Time
	Where *answer.Where
	// Timeline is what happened to the objects, in any order.
	Timeline []Moment
	// Answer is the text with everything. Undo is the command that takes back what was done, empty for none.
	Answer, Undo string
}

// Write writes the ticket.
func (t *Ticket) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	first, _, _ := strings.Cut(t.Answer, "\n")
	if t.Where != nil { // which is said below
		first = strings.TrimSuffix(first, ", context "+t.Where.Context)
	}
	fmt.Fprintf(out, "### %s\n\n- **Asked:** %s\n- **When:** %s\n- **Where:** %s\n", inCode(strings.Join(strings.Fields(first), " ")),
		inCode(t.Asked), t.When.UTC().Format(time.RFC3339), inCode(t.Where.String()))
	if t.Undo != "" {
		fmt.Fprintf(out, "- **Undo:** %s\n", inCode(t.Undo))
	}
	fence := strings.Repeat("`", max(ticks(t.Answer)+1, len("```")))
	fmt.Fprintf(out, "\n%stext\n%s\n%s\n", fence, strings.TrimRight(t.Answer, "\n"), fence)
	slices.SortStableFunc(t.Timeline, func(a, b Moment) int { return cmp.Or(a.Time.Compare(b.Time), a.Object.Compare(b.Object)) })
	moments := slices.Compact(t.Timeline)
	if len(moments) > 0 {
		fmt.Fprint(out, "\n**Timeline**\n\n| when | object | what |\n|---|---|---|\n")
	}
	for _, m := range moments[max(len(moments)-mostMoments, 0):] {
		fmt.Fprintf(out, "| %s | %s | %s |\n", m.Time.UTC().Format(time.RFC3339), inCell(objectName(m.Object)), inCell(m.What))
	}
	return out.Flush()
}

// inCode returns a text as a span of code.
func inCode(text string) string {
	text = printable(text)
	if text == "" {
		return ""
	}
	fence := strings.Repeat("`", ticks(text)+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + text + fence
}

// inCell is inCode in a table, where a bar ends the cell also in code.
func inCell(text string) string { return strings.ReplaceAll(inCode(text), "|", `\|`) }

// ticks is the length of the longest row of backticks.
func ticks(text string) int {
	longest := 0
	for _, run := range strings.FieldsFunc(text, func(r rune) bool { return r != '`' }) {
		longest = max(longest, len(run))
	}
	return longest
}
