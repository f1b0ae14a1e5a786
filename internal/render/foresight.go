// SPDX-License-Identifier: Apache-2.0

package render

import (
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
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
	// Volume is the PersistentVolume, or the content of a snapshot, of which the data is destroyed, and Size what it has.
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
func (p *DeletionPlan) Foresee(s *foresight.Forecast, safe bool) {
	if s == nil {
		return
	}
	for _, b := range s.Breaks {
		p.WouldBreak = append(p.WouldBreak, Broken{NewObjectReference(b.Object), b.Why.String(), b.Certain})
	}
	for _, l := range s.Lost {
		p.Lost = append(p.Lost, Lost{NewObjectReference(l.Object), l.Why.String(), l.Stays, l.Certain, l.Volume, l.Size})
	}
	for _, r := range s.Returns {
		p.Returns = append(p.Returns, Returning{NewObjectReference(r.Object), r.Why.String(), r.Certain})
	}
	for i, wave := range s.Waves {
		if safe {
			p.Waves = append(p.Waves, Wave{i + 1, references(wave.Objects), wave.Why})
		}
	}
	p.Unread = append(p.Unread, evidence.Gaps(s.Unread)...)
}
