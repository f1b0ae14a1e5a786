// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/testapi"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

func marshal(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func scratch(o *unstructured.Unstructured) *testapi.Server {
	s := testapi.New()
	if o != nil {
		s.Put(idOf(o), o.Object)
	}
	return s
}

// send is a change that a client has sent.
type send struct {
	client *client
	op     *remedy.Op
	// looked and heard are how much of the history had been seen when it was decided. late: it arrives late.
	looked, heard int
	late          bool
}

// ledger is what all our changes have made of a value of an object, and whether others have touched its field.
type ledger struct {
	ours    map[string]int
	touched map[string]bool
}

func (p *play) ledgerOf(uid types.UID) *ledger {
	if p.ledgers[uid] == nil {
		p.ledgers[uid] = &ledger{map[string]int{}, map[string]bool{}}
	}
	return p.ledgers[uid]
}

func field(leaf string) string {
	path, _, _ := strings.Cut(leaf, "=")
	return path
}

func (p *play) fail(format string, args ...any) {
	p.violations = append(p.violations, fmt.Sprintf(format, args...))
	p.trace("VIOLATION: "+format, args...)
}

// see checks what has become of objects since it was called last.
func (p *play) see() {
	for _, v := range p.server.History(p.seen) {
		p.seen++
		if v.After != nil && v.After.GetDeletionTimestamp() != nil && (v.Before == nil || v.Before.GetDeletionTimestamp() == nil) {
			p.deleted[v.After.GetUID()] = p.seen
		}
		switch s := p.sent[v.Op]; {
		case v.Destroyed:
			p.destroyed(&v)
		case s != nil:
			p.by = s
			p.checkWrite(s, &v)
			p.made = append(p.made, v)
		default:
			p.by = p.blame
			p.others(&v)
			p.letGo(&v)
		}
		if v.Removed() {
			p.removed[v.Before.GetUID()], p.gone[v.Before.GetUID()] = p.by, p.seen
		}
	}
}

// letGo checks that an object which a controller has freed because of one of our changes was named, or nobody could know.
func (p *play) letGo(v *testapi.Version) {
	if by, uid := p.blame, v.Object().GetUID(); by != nil && v.Removed() && len(v.Before.GetFinalizers()) > 0 && v.Object().GetNamespace() == "s" && by.client.shown == nil && !by.client.frees[uid] && max(p.meddled[uid], p.deleted[uid]) <= by.looked {
		p.fail("%s has let %s go by %s of %s, and did not say so", by.client.name, v.Object().GetName(), by.op.Verb, by.op.Object.Name)
	}
}

// others takes note of what others have changed.
func (p *play) others(v *testapi.Version) {
	added, removed := difference(v.Before, v.After)
	l := p.ledgerOf(v.Object().GetUID())
	for _, leaf := range slices.Concat(added, removed) {
		l.touched[field(leaf)] = true
	}
	if p.blame == nil {
		p.meddled[v.Object().GetUID()] = p.seen
	}
	p.trace("  others: %s +%v -%v%s", v.Object().GetName(), added, removed, map[bool]string{true: " gone"}[v.Removed()])
}

// fenced is what a fence adds and removes.
const fenced = `/metadata/annotations/kubectl-gc/fence="1"`

// checkWrite checks what one of our changes has made: only what it was for, and was agreed to; or what takes such a change back.
func (p *play) checkWrite(s *send, v *testapi.Version) {
	added, removed := difference(v.Before, v.After)
	if v.Removed() {
		added = nil
		removed = slices.DeleteFunc(removed, func(leaf string) bool { return !strings.HasPrefix(leaf, "/metadata/finalizers=") })
	}
	id := idOf(v.Object())
	p.trace("  %s: %s +%v -%v%s", s.client.name, id.Name, added, removed, map[bool]string{true: " gone"}[v.Removed()])
	l := p.ledgerOf(id.UID)
	in, planned := s.client.intents[keyOf(s.op)]
	for _, leaf := range added {
		switch {
		case leaf == fenced, planned && slices.Contains(in.added, leaf), s.client.collects(s.op), l.ours[leaf] < 0:
		case l.touched[field(leaf)] && !planned: // of what others have written as well
		default:
			p.fail("%s adds %s to %s: it was not for that", s.client.name, leaf, id.Name)
		}
		l.ours[leaf]++
		p.checkOwner(s, v, leaf)
	}
	for _, leaf := range removed {
		switch {
		case leaf == fenced, planned && slices.Contains(in.removed, leaf), s.client.collects(s.op), l.ours[leaf] > 0:
		case l.touched[field(leaf)] && !planned && p.identical(leaf):
		default:
			p.fail("%s removes %s from %s: it was not for that", s.client.name, leaf, id.Name)
		}
		l.ours[leaf]--
		if s.client.collects(s.op) && strings.HasPrefix(leaf, `/metadata/finalizers="x/`) {
			p.fail("%s removes %s from %s", s.client.name, leaf, id.Name)
		}
		if planned && strings.HasPrefix(leaf, `/metadata/finalizers="x/`) && text(v.Before, "status", "phase") == "draining" {
			p.fail("%s removes %s from %s, whose controller is at work", s.client.name, leaf, id.Name)
		}
	}
	switch {
	case s.client.collects(s.op):
		p.checkCollected(s, v)
	case planned && !s.client.agreed[keyOf(s.op)]:
		p.fail("%s changes %s: nobody has agreed to %s", s.client.name, id.Name, keyOf(s.op))
	case !planned && s.op.Verb == remedy.Delete:
		p.fail("%s deletes %s", s.client.name, id.Name)
	}
}

// identical reports whether a value is one that a change of ours makes as well: it cannot be told from that.
func (p *play) identical(leaf string) bool {
	for _, c := range p.clients {
		for _, in := range c.intents {
			if slices.Contains(in.added, leaf) {
				return true
			}
		}
	}
	return false
}

// checkOwner checks that a reference that is put back has an owner, as far as that was to be seen.
func (p *play) checkOwner(s *send, v *testapi.Version, leaf string) {
	uid, is := strings.CutPrefix(leaf, "/metadata/ownerReferences[")
	if !is || !strings.Contains(leaf, "/uid=") {
		return
	}
	for _, ref := range v.After.GetOwnerReferences() {
		if !strings.HasPrefix(uid, string(ref.UID)+ref.Name+"]") {
			continue
		}
		owner := p.server.Object(refTo("cm", ref.Name))
		if (owner == nil || owner.GetUID() != ref.UID) && p.meddled[ref.UID] <= s.looked {
			p.fail("%s gives %s an owner that is gone: %s", s.client.name, v.After.GetName(), ref.Name)
		}
	}
}

// actionOf is what the garbage collector's work does with a change.
func actionOfOp(op *remedy.Op) string {
	action := "delete"
	for _, step := range op.Patch {
		switch {
		case step.Op == "test":
		case strings.HasPrefix(step.Path, "/metadata/finalizers/"):
			action = "finalizer"
		case step.Op == "replace":
			action = "unblock"
		default:
			action = "disown"
		}
	}
	return action + " " + string(op.Object.UID)
}

// checkCollected checks that the garbage collector's work was agreed to, and is right.
func (p *play) checkCollected(s *send, v *testapi.Version) {
	uid := v.Object().GetUID()
	switch {
	case s.client.shown == nil && !s.client.agreedWork[actionOfOp(s.op)]:
		p.fail("%s does the collector's work on %s: nobody has agreed to %s", s.client.name, v.Object().GetName(), actionOfOp(s.op))
	case s.client.shown != nil && !s.client.shown[uid] && s.op.Verb != remedy.Delete && p.meddled[uid] <= s.client.looked && !p.ownerChanged(v.Before, s.client.looked):
		p.fail("%s writes to %s, of which its plan does not speak: %s", s.client.name, v.Object().GetName(), actionOfOp(s.op))
	case s.client.targets[uid] && s.op.Verb == remedy.Delete:
		return
	}
	if s.op.Verb != remedy.Delete || s.late { // no version of a dependent says that its owner is another, for the cluster's garbage collector neither
		return
	}
	going := false
	for _, ref := range v.Before.GetOwnerReferences() {
		owner := p.server.Object(refTo("cm", ref.Name))
		switch {
		case owner == nil || owner.GetUID() != ref.UID:
			going = true
		case owner.GetDeletionTimestamp() != nil && slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents):
			going = true
		case p.meddled[ref.UID] <= s.heard:
			p.fail("%s deletes %s, which %s keeps", s.client.name, v.Before.GetName(), ref.Name)
		default:
			return
		}
	}
	if !going && p.meddled[v.Before.GetUID()] <= s.heard {
		p.fail("%s deletes %s, which has no owner that goes", s.client.name, v.Before.GetName())
	}
}

// ownerChanged reports whether an owner of the object has gone since, or others have changed it: what that leads to is the collector's work
// as well.
func (p *play) ownerChanged(o *unstructured.Unstructured, since int) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return max(p.gone[ref.UID], p.meddled[ref.UID]) > since })
}

// destroyed checks that data which is destroyed because of one of our changes was named, or nobody could know.
func (p *play) destroyed(v *testapi.Version) {
	volume, by := v.Before, p.by
	p.trace("  destroyed: %s", volume.GetName())
	if by == nil || slices.ContainsFunc(p.clients, func(c *client) bool { return c.named[volume.GetUID()] }) { // who deleted it was told
		return
	}
	claim := types.UID(text(volume, "spec", "claimRef", "uid"))
	if p.meddled[volume.GetUID()] <= by.looked && p.meddled[claim] <= by.looked && !p.meddledOwners(claim, by.looked) {
		p.fail("%s has the data of %s destroyed by %s of %s, and did not say so", by.client.name, volume.GetName(), by.op.Verb, by.op.Object.Name)
	}
}

// meddledOwners reports whether others have changed one of the objects since, so that what goes with what may be another.
func (p *play) meddledOwners(_ types.UID, since int) bool {
	for uid, at := range p.meddled {
		if strings.HasPrefix(string(uid), "uid-") && len(uid) == len("uid-a") && at > since {
			return true
		}
	}
	return false
}

// told checks what a run says of a change: what is done is there when it was read last, and what was taken back is not.
func (c *client) told(status change.Status, op *remedy.Op) {
	if in, planned := c.intents[keyOf(op)]; planned {
		c.checkTold(status, op, in)
	}
}

func (c *client) checkTold(status change.Status, op *remedy.Op, in intent) {
	read, known := c.reads[op.Object]
	l := c.p.ledgerOf(op.Object.UID)
	there := leaves(read)
	gone := read == nil || read.GetUID() != op.Object.UID
	has := func(leaf string) bool { return there[leaf] > 0 }
	switch status {
	case change.Done:
		if !known || gone {
			return
		}
		if !c.p.changes(in, op, read) {
			c.p.fail("%s says Done: %s of %s, and it is as before", c.name, op.Verb, op.Object.Name)
		}
	case change.TakenBack:
		for _, leaf := range in.added {
			if !gone && has(leaf) && !l.touched[field(leaf)] {
				c.p.fail("%s says TakenBack: %s has %s", c.name, op.Object.Name, leaf)
			}
		}
		for _, leaf := range in.removed {
			if !gone && !has(leaf) && !l.touched[field(leaf)] {
				c.p.fail("%s says TakenBack: %s has no %s", c.name, op.Object.Name, leaf)
			}
		}
	}
}

// changes reports whether anything that a change is for is other than it was before the change was made last.
func (p *play) changes(in intent, op *remedy.Op, read *unstructured.Unstructured) bool {
	for _, v := range slices.Backward(p.made) {
		if keyOf(v.Op) != keyOf(op) || v.Before == nil {
			continue
		}
		added, removed := difference(v.Before, read)
		return slices.ContainsFunc(slices.Concat(added, removed), func(leaf string) bool {
			return slices.ContainsFunc(slices.Concat(in.added, in.removed), func(of string) bool { return field(of) == field(leaf) })
		})
	}
	return false
}

// collects reports whether a change is the garbage collector's work.
func (c *client) collects(op *remedy.Op) bool {
	_, is := c.work[op]
	return is
}

// freed checks that what a run says is gone is.
func (c *client) freed(report *unstick.Report) {
	for _, id := range report.Freed {
		if o := c.p.server.Object(id); o != nil && o.GetUID() == id.UID {
			c.p.fail("%s says Freed: %s exists", c.name, id.Name)
		}
	}
}

// checkEnd checks that every temporary change is as before, or others have changed the same.
func (p *play) checkEnd() {
	for _, c := range p.clients {
		for key, op := range c.temporary {
			now := p.server.Object(op.Object)
			if now == nil || now.GetUID() != op.Object.UID {
				continue
			}
			l, there := p.ledgerOf(op.Object.UID), leaves(now)
			in := c.intents[key]
			for _, leaf := range in.added {
				if l.ours[leaf] > 0 && there[leaf] > 0 && !l.touched[field(leaf)] {
					p.fail("in the end %s still has %s", op.Object.Name, leaf)
				}
			}
			for _, leaf := range in.removed {
				if l.ours[leaf] < 0 && there[leaf] == 0 && !l.touched[field(leaf)] {
					p.fail("in the end %s has no %s", op.Object.Name, leaf)
				}
			}
			if there[fenced] > 0 && !l.touched[field(fenced)] {
				p.fail("in the end %s has a fence", op.Object.Name)
			}
		}
	}
}

// journaled checks that a change is in the journal before it is sent.
func (c *client) journaled(op *remedy.Op) {
	if _, planned := c.intents[keyOf(op)]; !planned || c.journal == nil || c.undoes {
		return
	}
	dir := c.journal.Dir
	if _, is := c.p.full[dir]; is {
		dir += "-full"
	}
	r, err := change.ReadJournal(dir)
	if err != nil || !slices.ContainsFunc(r.Changes, func(e change.Entry) bool { return keyOf(e.Op) == keyOf(op) && e.Before != nil }) {
		c.p.fail("%s sends a change of %s that is not in its journal: %v", c.name, op.Object.Name, err)
	}
}

// keyOf tells changes apart, for whatever version.
func keyOf(op *remedy.Op) string {
	any := *op
	any.Patch = slices.DeleteFunc(slices.Clone(op.Patch), func(s remedy.Step) bool { return s.Path == "/metadata/resourceVersion" })
	return any.Key()
}
