// SPDX-License-Identifier: Apache-2.0

// Package unstick carries out ways out that explanations offer: Choose takes the least risky one of each cause
// that a program can carry out, Run asks for consent, makes the changes, each proved again right before, looks
// again, and continues until nothing is stuck that it may free. It reaches the cluster and people through the functions and interfaces
// of Edges, keeps what it changes in a Journal before, and prints nothing.
package unstick

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/ensuing"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Look is an explanation, with the graph that it is of.
type Look struct {
	Report *explain.Report
	Graph  *graph.Graph
	// Pending are the writes that a garbage collector that sees what was read would make.
	Pending []gc.Step
	// Stakes are the volumes of which the data would be destroyed when what is being deleted goes.
	Stakes []DataAtRisk
	// Unlisted are those of the Parts that could not be listed.
	Unlisted []graph.Part
	// Kubectl is kubectl on the cluster, for commands; empty for kubectl alone.
	Kubectl string
	// falls are what goes with all that is being deleted, and may.
	falls graph.Set
	// with are all that is ended, and what goes with that.
	with graph.Set
	// leave are those of leaving.
	leave []graph.Node
	// above finds what is above claims and snapshots.
	above evidence.Above
	// live are the claims and snapshots of which the data would be destroyed, and of which none is known to go.
	live []graph.Node
	// ended are what goes with the pods that a change of an object ends, by that, the pods that a taint evicts, and what others delete once it
	// is freed.
	ended map[types.UID][]graph.Node
	// unwanted are what the controller of a type deletes as soon as it acts.
	unwanted map[schema.GroupResource][]graph.Node
	// guards are those that deny nothing without something that may go, with what waits for them.
	guards map[*ensuing.Guard][]graph.Node
}

// DataAtRisk is a volume with a reclaim policy that destroys its data: of a claim that is being deleted, is in a namespace that is, or is
// deleted after its owners; or one that waits for its driver. Without a name the volumes could not be read.
type DataAtRisk struct {
	Volume graph.Identity
	Size   string
	policy string
	// Namespace is that of the claim, empty for a volume whose claim is not at stake.
	Namespace string
	claim     graph.Node
	// driver deletes the storage; waits: it has to. leaves: the volume is being deleted itself.
	driver        string
	waits, leaves bool
	// copy: it is the content of a VolumeSnapshot, and the claim is that.
	copy bool
	// ends: it goes with whatever is freed in its namespace. open: whether it goes is not known, as an owner or its namespace could not
	// be read.
	ends, open bool
}

// Options say what may be done.
type Options struct {
	// Allow is the highest risk of what is chosen.
	Allow explain.Risk
	// NoBackup: nothing is chosen that would have to be taken back.
	NoBackup bool
	// Patient: what may still go is waited for as long as the context lasts, however long nothing changes.
	Patient bool
	// Picked are the causes that are dealt with, and ways out of them; empty for all causes.
	Picked []Picked
}

// Reason says why nothing is done about a cause.
type Reason string

// The reasons.
const (
	// NotStuck: the cause is not known to be one, or passes by itself.
	NotStuck Reason = "NotStuck"
	// NotChosen: the user did not choose the cause.
	NotChosen Reason = "NotChosen"
	// Follows: the cause ends with Choice.After, which is dealt with.
	Follows Reason = "Follows"
	// Person: only a person can end it.
	Person Reason = "Person"
	// NotAllowed: what a program can do is riskier than what is allowed; Choice.Needs says how risky.
	NotAllowed Reason = "NotAllowed"
	// NotEnough: all that is allowed was done, and the cause is still there.
	NotEnough Reason = "NotEnough"
	// Denied: the server refused what is allowed.
	Denied Reason = "Refused"
	// NoBackup: what is allowed would have to be taken back, which needs a journal.
	NoBackup Reason = "NoBackup"
	// HasContent: a namespace is not finalized while it has content, or while that is not known.
	HasContent Reason = "HasContent"
)

// Plan is what is to be done about the causes of a look.
type Plan struct {
	// Choices are those of the causes, in their order.
	Choices []Choice
	// Digest is the same as long as the same changes would be made to the same versions of the same objects.
	Digest string
}

// Choice is what is to be done about a cause: the Writes, or nothing, for a Reason.
type Choice struct {
	Cause *explain.Cause
	// Rank is the number of the cause in the report, Way that of the way out, both counted from 1.
	Rank, Way int
	// Risk is what is left of that of the way out when its data is kept first.
	Risk   explain.Risk
	Writes []Write
	Reason Reason
	// Unsure: it is not known whether data would be lost, or what else freed, because that could not be read.
	Unsure bool
	// Needs is the least risk that would have to be allowed, of NotAllowed.
	Needs explain.Risk
	// After is the rank of a cause that refuses the changes as long as it is there, and is dealt with first; 0 for none.
	After int
	// Advice is the first way out that a person could take, nil for none.
	Advice *explain.Remedy
}

// Write is one change.
type Write struct {
	Op     remedy.Op
	Remedy *explain.Remedy
	// Cause is what it is for.
	Cause *explain.Cause
	// Risk is that of the way out.
	Risk explain.Risk
	// Then are the changes that follow at that risk when this one is made, and not without it; empty for a way out of one step.
	Then []*explain.Remedy
	// Frees are the objects that the cause blocks, of those that were asked for.
	Frees []types.UID
	// Lets are those that nobody asked for and that may be freed with them, in any namespace.
	Lets []graph.Identity
	// Leaves: its object is being deleted itself.
	Leaves bool
	// Collected: it is the garbage collector's work.
	Collected bool
}

// change is the write as it is made and kept.
func (w *Write) change() *change.Change {
	lets := w.Lets
	for _, id := range w.protected() {
		if !slices.Contains(lets, id) {
			lets = append(slices.Clip(lets), id)
		}
	}
	return &change.Change{Op: w.Op, Cause: w.Cause.ID, Why: w.Remedy.Effect.String(), Risk: w.Risk, Temporary: w.Temporary(), Lets: lets}
}

// protected are the objects that a change loses, and not by changing them.
func (w *Write) protected() []graph.Identity {
	var all []graph.Identity
	for _, l := range w.Remedy.Loss {
		if l.Kind == remedy.LosesObject && l.Object.UID != "" && l.Object.UID != w.Op.Object.UID {
			all = append(all, l.Object)
		}
	}
	return all
}

// consents are what agreeing to a change agrees to: it, and what follows it, each at its risk, and each object that it frees.
func (w *Write) consents() []string {
	keys := []string{w.Op.Key() + string(w.Risk)}
	for _, r := range w.Then {
		if Possible(r) {
			keys = append(keys, r.Operation.Key()+string(w.Risk))
		}
	}
	for _, id := range w.Lets {
		keys = append(keys, "frees "+string(id.UID))
	}
	for _, uid := range w.Frees {
		keys = append(keys, "frees "+string(uid))
	}
	return keys
}

// Follow are the changes that Then has, as they are made.
func (w *Write) Follow() []Write {
	var all []Write
	for _, r := range w.Then {
		if Possible(r) {
			all = append(all, Write{Op: *r.Operation, Remedy: r, Cause: w.Cause, Risk: w.Risk, Lets: w.Lets})
		}
	}
	return all
}

// Temporary reports whether the change is to be taken back when what it frees is gone.
func (w *Write) Temporary() bool { return w.Remedy.Temporary }

// Writes returns all changes of a plan in the order in which they are made, each once.
func (p *Plan) Writes() []Write {
	var all []Write
	for i := range p.Choices {
		all = append(all, p.Choices[i].Writes...)
	}
	return unique(all)
}

// unique joins the same changes for several causes: what follows any of them follows.
func unique(writes []Write) []Write {
	at := map[string]int{}
	var all []Write
	for _, w := range writes {
		key := w.consents()[0]
		if i, again := at[key]; again {
			all[i].Then = slices.Concat(all[i].Then, w.Then)
			all[i].Frees = slices.Concat(all[i].Frees, w.Frees)
			all[i].Lets = slices.Concat(all[i].Lets, w.Lets)
			slices.SortFunc(all[i].Lets, graph.Identity.Compare)
			all[i].Lets = slices.Compact(all[i].Lets)
			continue
		}
		at[key], all = len(all), append(all, w)
	}
	return all
}

// tried is what a run has tried. Its zero value is nothing.
type tried struct {
	// done are the changes that are not made again, and refused those of them that the server has refused, by their keys.
	done, refused sets.Set[string]
	// settling are the objects that refuse something and were changed a moment ago: it takes a while until the API server goes by what
	// was changed, and what a look finds before is no reason to change them in another way.
	settling sets.Set[types.UID]
}

// chooser finds out what is to be done about what a look has found.
type chooser struct {
	*Look
	*Options
	tried
}

// Choose finds out what is to be done about what a look has found. It is pure.
func Choose(l *Look, o *Options) *Plan { return choose(l, o, tried{}) }

func choose(l *Look, o *Options, t tried) *Plan {
	p, chooser := &Plan{}, chooser{l, o, t}
	content := map[string]bool{} // the namespaces with content that is dealt with
	for i, c := range l.Report.Causes {
		choice := chooser.choice(c, i+1)
		for _, w := range choice.Writes {
			content[w.Op.Object.Namespace] = true
		}
		p.Choices = append(p.Choices, choice)
	}
	for i := range p.Choices { // content goes before its namespace
		p.Choices[i].Writes = slices.DeleteFunc(p.Choices[i].Writes, func(w Write) bool {
			return w.Op.Object.Resource.IsNamespace() && w.Op.Verb != remedy.Create && content[w.Op.Object.Name]
		})
	}
	p.order(l)
	p.follow()
	p.Digest = digest(l.Graph, p.Writes())
	return p
}

// due are the changes that nothing has to come before.
func (p *Plan) due() []Write {
	var all []Write
	for i := range p.Choices {
		if p.Choices[i].After == 0 {
			all = append(all, p.Choices[i].Writes...)
		}
	}
	return unique(all)
}

// choice finds out what is to be done about one cause.
func (o *chooser) choice(c *explain.Cause, rank int) Choice {
	choice := Choice{Cause: c, Rank: rank}
	changes, chosen := o.picked(c)
	switch {
	case !chosen:
		choice.Reason = NotChosen
		return choice
	case c.Verdict != explain.Stuck:
		choice.Reason = NotStuck
		if ways := c.Ways(); c.Verdict == explain.Unknown && len(ways) > 0 {
			choice.Advice = ways[0][0]
		}
		return choice
	}
	choice.Reason = Person
	ways := c.Ways()
	for number, way := range ways {
		if way[0].Operation == nil || way[0].Partial || way[0].Keeps {
			if choice.Advice == nil {
				choice.Advice = way[0]
			}
		}
		named := way[0].Operation != nil && changes.Has(way[0].Operation.Key())
		if changes == nil || named {
			o.consider(&choice, way, number+1, named)
		}
	}
	return choice
}

// consider takes a way out into a choice if it is less risky than what that has.
func (o *chooser) consider(choice *Choice, way []*explain.Remedy, number int, picked bool) {
	first := way[0]
	var later []*explain.Remedy
	if collects(first) {
		if way, later = o.pending(choice.Cause); len(way) == 0 {
			return
		}
	}
	switch {
	case !Possible(first) || !picked && (first.Partial || first.Keeps):
		return
	case first.Operation.Verb == remedy.Finalize && !emptied(o.Graph, first.Operation.Object.Name):
		if choice.Reason == Person {
			choice.Reason = HasContent
		}
		return
	}
	if o.Options.NoBackup && first.Temporary {
		choice.Reason = NoBackup
		return
	}
	risk, before := riskOf(choice.Cause, first)
	unsure := !first.Keeps && o.unsure(choice.Cause, way)
	if !first.Keeps {
		before = o.keeps(before, choice.Cause, way)
	}
	if unsure {
		risk = explain.Dangerous // data may be lost with it, or more be freed
	}
	if !picked && risk.Exceeds(o.Allow) {
		if choice.Needs == "" || choice.Needs.Exceeds(risk) {
			choice.Needs, choice.Unsure = risk, unsure
		}
		if len(choice.Writes) == 0 && choice.Reason == Person {
			choice.Reason = NotAllowed
		}
		return
	}
	writes := o.writes(choice.Cause, risk, before, way)
	for i := range writes {
		writes[i].Collected = collects(first) && len(before) == 0
	}
	if len(writes) > 0 {
		writes[0].Then = append(writes[0].Then, later...)
	}
	switch {
	case len(writes) == 0:
		if len(choice.Writes) == 0 {
			choice.Reason = NotEnough
			if slices.ContainsFunc(slices.Concat(before, way),
				func(r *explain.Remedy) bool { return Possible(r) && o.refused.Has(r.Operation.Key()) }) {
				choice.Reason = Denied
			}
		}
	case len(choice.Writes) == 0 || choice.Risk.Exceeds(risk):
		choice.Writes, choice.Way, choice.Risk, choice.Reason, choice.Unsure = writes, number, risk, "", unsure
	}
}

// Possible reports whether this program can carry out a way out.
func Possible(r *explain.Remedy) bool {
	return r.Operation != nil && r.Operation.Verb != remedy.Restore
}

// riskOf is that of a way out of a cause, and what keeps the data before that it would lose.
func riskOf(c *explain.Cause, r *explain.Remedy) (explain.Risk, []*explain.Remedy) {
	if r.Kept == "" {
		return r.Risk, nil
	}
	for i := range c.Remedies {
		if c.Remedies[i].Keeps && c.Remedies[i].Operation != nil {
			return r.Kept, []*explain.Remedy{&c.Remedies[i]}
		}
	}
	return r.Risk, nil
}

// writes are the changes of a way out that were not made yet. Where data is kept before, these are the only ones: the next
// look finds that it is kept.
func (o *chooser) writes(c *explain.Cause, risk explain.Risk, before, way []*explain.Remedy) []Write {
	frees := blocked(o.Look, c)
	var lets []graph.Identity
	for _, n := range o.lets(c, way) {
		lets = append(lets, n.Identity())
	}
	var then []*explain.Remedy
	if len(before) > 0 {
		then, way = way, before
	}
	var writes []Write
	for _, r := range way {
		if !Possible(r) || c.Class == finding.Refusal && o.settling.Has(r.Operation.Object.UID) {
			continue
		}
		if !o.done.Has(r.Operation.Key()) {
			writes = append(writes, Write{
				Op: *r.Operation, Remedy: r, Cause: c, Risk: risk, Then: then, Frees: frees, Lets: lets, Leaves: o.leaves(r.Operation.Object.UID),
			})
		}
	}
	return unique(writes)
}

// emptied reports whether a namespace is known to have no content: every type was listed, and has nothing in it.
func emptied(g *graph.Graph, namespace string) bool {
	if g.Snapshot().BlindSpot(namespace) != "" {
		return false
	}
	for n := range g.Nodes() {
		if !n.Virtual() && n.Namespace() == namespace {
			return false
		}
	}
	return true
}

// digest is that of changes, each with what it starts from: what is deleted is of a version, as far as that was read, and any other
// change says what it replaces, in itself or in its inverse. What else changes of its object, such as the status, is nothing to it.
func digest(g *graph.Graph, writes []Write) string {
	hash := sha256.New()
	for i := range writes {
		op, from := &writes[i].Op, ""
		switch n, known := g.Node(op.Object.UID); {
		case op.Verb == remedy.Delete && known && !n.Virtual():
			from = cmp.Or(n.Object().ResourceVersion, op.Version)
		case op.Verb == remedy.Delete:
			from = op.Version
		case op.Back != nil:
			from = op.Back.Key()
		}
		fmt.Fprintf(hash, "%s %s %s\n", op.Key(), from, writes[i].consents())
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil))
}
