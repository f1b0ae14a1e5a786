// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"

	"github.com/kubectl-gc/kubectl-gc/pkg/foresight"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Broken is something outside a plan that stops working with it.
type Broken struct {
	Object  ObjectReference `json:"object"`
	Message string          `json:"message"`
	Certain bool            `json:"certain"`
}

// Lost is something that goes with an object, or stays of it.
type Lost struct {
	Object  ObjectReference `json:"object"`
	Message string          `json:"message"`
	Stays   bool            `json:"stays"`
	Certain bool            `json:"certain"`
	// Volume is the PersistentVolume of which the data is destroyed, and Size what it has.
	Volume string `json:"volume,omitempty"`
	Size   string `json:"size,omitempty"`
}

// Returning is an object that comes back.
type Returning struct {
	Object  ObjectReference `json:"object"`
	Message string          `json:"message"`
	Certain bool            `json:"certain"`
}

// Wave is what is deleted when all before it has gone.
type Wave struct {
	Wave    int               `json:"wave"`
	Objects []ObjectReference `json:"objects"`
	Reason  string            `json:"reason"`
}

// Foresee adds what is foreseen of a plan, which may be nil, to its document. Waves are
// those in which it would be carried out.
func (p *DeletionPlan) Foresee(s *foresight.Sight, safe bool) {
	if s == nil {
		return
	}
	for _, b := range s.Breaks {
		p.WouldBreak = append(p.WouldBreak, Broken{NewObjectReference(b.Object), b.Says(), b.Certain})
	}
	for _, l := range s.Lost {
		p.Lost = append(p.Lost, Lost{NewObjectReference(l.Object), l.Says(), l.Stays, l.Certain, l.Volume, l.Size})
	}
	for _, r := range s.Returns {
		p.Returns = append(p.Returns, Returning{NewObjectReference(r.Object), r.Says(), r.Certain})
	}
	for i, wave := range s.Waves {
		if safe {
			p.Waves = append(p.Waves, Wave{i + 1, references(wave.Objects), wave.Why})
		}
	}
	p.Unread = append(p.Unread, s.Unread...)
}

// Foresight writes what else a deletion means, and in which order it would be done.
func Foresight(w io.Writer, style Style, s *foresight.Sight, safe bool) error {
	if s == nil {
		return nil
	}
	out := &sections{w: w, style: style}
	for _, b := range s.Breaks {
		out.add("would break", red, b.Object, b.Says(), b.Certain)
	}
	for _, kind := range lossKinds {
		for i := range s.Lost {
			if l := &s.Lost[i]; kind.is(l) {
				out.add(kind.title, kind.color, l.Object, l.Says(), l.Certain)
			}
		}
	}
	for _, r := range s.Returns {
		if !r.Told {
			out.add("would be recreated", yellow, r.Object, r.Says(), r.Certain)
		}
	}
	if safe {
		for i, wave := range s.Waves {
			out.title("order", noColor)
			out.line(fmt.Sprintf("%d. %s: %s", i+1, names(wave.Objects), wave.Why))
		}
	}
	if len(s.Unread) > 0 {
		out.title("not known, which leaves some of this open", yellow)
		for _, unread := range s.Unread {
			out.line(unread)
		}
	}
	out.flush()
	return out.err
}

// lossKinds are the titles of what is lost with what is deleted, and of what is kept, the gravest first.
var lossKinds = []struct {
	title string
	color color
	is    func(*foresight.Loss) bool
}{
	{"DATA LOST", red, func(l *foresight.Loss) bool { return l.Volume != "" }},
	{"lost", yellow, func(l *foresight.Loss) bool { return l.Volume == "" && !l.Stays }},
	{"kept", noColor, func(l *foresight.Loss) bool { return l.Stays }},
}

// sections writes lines under titles; objects of which the same is said share a line.
type sections struct {
	w     io.Writer
	style Style
	err   error
	// current is the title that was written last. said, of and certain are what is still
	// to be written.
	current string
	said    string
	of      []graph.Identity
	certain bool
}

func (s *sections) title(title string, c color) {
	if s.current == title {
		return
	}
	s.flush()
	s.current = title
	s.print(s.style.paint(title, c) + ":\n")
}

func (s *sections) add(title string, c color, id graph.Identity, said string, certain bool) {
	s.title(title, c)
	if len(s.of) > 0 && (s.said != said || s.certain != certain) {
		s.flush()
	}
	s.said, s.certain, s.of = said, certain, append(s.of, id)
}

func (s *sections) flush() {
	if len(s.of) == 0 {
		return
	}
	said := names(s.of) + ": " + s.said
	if !s.certain {
		said += " (not certain)"
	}
	s.of = nil
	s.line(said)
}

func (s *sections) line(said string) { s.print("  " + printable(said) + "\n") }

func (s *sections) print(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.w, text)
	}
}
