// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// standing is how a candidate stands, or the best of several.
type standing int

const (
	nobody standing = iota
	works
	mayNot // whatever else, it may not change the object
	down
	unclear
	apart // it may not change the object, and is there for those of other namespaces
)

// Contender is a candidate for the finalizer of one object.
type Contender struct {
	*Candidate
	how   standing
	State State
	// may: its account may change the object, so far as is known. knows: it may do
	// anything at all with objects of the type, and be it to read them.
	may, knows bool
	// bound: it has set the finalizer, is where the catalogue has the controller, or is named and has a rule for the finalizers of the
	// type. Others that may not change the object have lost nothing: they only read it, or write its status.
	bound bool
	// because says why it may have other rights than those of its account, empty if it has none.
	because string
	// near: it is in the object's namespace. alike: it is called after the finalizer
	// or the type. That only decides between equal candidates.
	near, alike bool
	// misplaced: the catalogue has the controller where nobody is.
	misplaced bool
	// unnamed: the object names another implementation.
	unnamed bool
	// overlooks says why it does not reconcile the object, by what it is told; empty if it may.
	overlooks string
	// node is the one that the object names, if no pod of the candidate, which has one on each, works there; empty otherwise.
	node string
	// besides: a person set the finalizer, on an object on which the candidate has set
	// its own finalizer itself.
	besides bool
	// against says who else is known to have to do with the finalizer, when nothing but its rights
	// points at the candidate; empty otherwise.
	against say.Text
}

// Overlooks reports whether the candidate is told not to reconcile the object.
func (k *Contender) Overlooks() bool { return k.overlooks != "" }

// AgentOf returns the one that is likely to be the controller, but has no pod that works on the node that the object names, with that; nil
// for another.
func (ch *Choice) AgentOf() (agent *Candidate, node string) {
	if k := ch.best; k != nil && len(ch.Among) == 1 && k.node != "" && k.mayDo() && (k.score >= certain || k.identified) {
		return k.Candidate, k.node
	}
	return nil, ""
}

// Apart reports whether the candidate serves the objects of other namespaces, and may not change
// this one.
func (k *Contender) Apart() bool { return k.how == apart }

// Choice is the controller of one object's finalizer, so far as the candidates
// tell.
type Choice struct {
	how  standing
	best *Contender // nil for nobody
	// Among are the candidates, the best first.
	Among []Contender
	// tied are those that work and between which nothing decides.
	tied []Contender
}

// controller returns the best candidate, nil for none.
func (ch *Choice) controller() *Candidate {
	if ch.best == nil {
		return nil
	}
	return ch.best.Candidate
}

// A prospect is a candidate that counts for the objects in a namespace.
type prospect struct {
	*Candidate
	// apart: it is there for those in other namespaces. That does not matter for one that may
	// change the object.
	apart bool
}

// prospects returns the candidates that count in a namespace, the best first: of many, those
// that run there, and those that may change such objects there, are not the ones left out.
func (f *Finder) prospects(s *Search, namespace string) []prospect {
	const most = 2 * evidence.MaxShown // of either
	ones, known := s.prospects[namespace]
	if known {
		return ones
	}
	here, others := 0, 0
	for _, c := range s.candidates {
		of := &others
		if c.namespace == namespace || f.rights().maySome(c.Account(), s.resource.GroupResource(), namespace) {
			of = &here
		}
		if c.score >= likely && *of < most {
			ones = append(ones, prospect{c, f.apart(s, c, namespace)})
			*of++
		}
	}
	s.prospects[namespace] = ones
	return ones
}

// choose finds the controller among the candidates, for one object.
func (f *Finder) choose(n graph.Node, s *Search) Choice {
	ch := pick(f.contenders(n, s), len(f.inventory().unread)+len(s.workloadsUnread) == 0)
	if ch.how == works {
		if ch.best.against = f.against(n, s, ch.best.Candidate, false); !ch.best.against.IsZero() {
			ch.how = unclear // that it works is no more proof than its rights are
		}
	}
	return ch
}

// contenders returns the likely candidates as they stand for one object, the
// best first.
func (f *Finder) contenders(n graph.Node, s *Search) []Contender {
	id := n.Identity()
	named := f.implementation(n)
	var among []Contender
	for _, p := range f.prospects(s, id.Namespace) {
		c := p.Candidate
		if f.isAnother(n, s, c) {
			continue
		}
		k := Contender{
			Candidate: c, how: unclear, State: f.stateFor(s, c),
			because: f.otherRights(c.Workload),
			near:    id.Namespace != "" && c.namespace == id.Namespace, alike: c.similar(s) || c.sharesWord(s),
		}
		k.knows = f.rights().mayAnything(c.Account(), id.Resource.GroupResource(), id.Namespace)
		k.may = f.rights().mayChange(c.Account(), id.Resource.GroupResource(), id.Namespace, id.Name) || len(f.rights().unread) > 0
		k.bound = f.bound(s, &k, id.Namespace)
		k.overlooks, k.node = f.overlooked(n, s, c)
		switch {
		case k.Overlooks():
		case !k.may && !k.otherwise() && p.apart:
			k.how = apart
		case !k.may && !k.otherwise() && !k.bound:
			k.how = mayNot // and not for certain: see pick
		case k.State.Liveness == Alive && k.may:
			k.how = works
		case k.State.Liveness == Alive:
			k.how = mayNot
		case k.State.Liveness == Dead:
			k.how = down
		case !k.may && k.strong && !k.otherwise():
			k.how = mayNot // and maybe does not work besides
		}
		if k.how == works && (!c.strong || !slices.Contains(s.Setters, c.name)) && c.isFound() && s.Vacant() {
			k.how, k.misplaced = unclear, true
		} else if other, _ := s.beside(c.Workload); k.how == works && other != nil && f.StateOf(other.Workload).Liveness == Dead {
			k.how = unclear
		} else if k.how == works && f.setBesides(n, s, c) {
			k.how, k.besides = unclear, true
		} else if k.how == works && !c.strong && named != "" && !c.mayBe(named) {
			k.how, k.unnamed = unclear, true
		} else if k.how == down {
			k.against = f.against(n, s, c, true)
		}
		among = append(among, k)
	}
	if named != "" && slices.ContainsFunc(among, func(k Contender) bool { return k.mayBe(named) }) {
		among = slices.DeleteFunc(among, func(k Contender) bool { return !k.mayBe(named) })
	}
	if slices.ContainsFunc(among, func(k Contender) bool { return (k.Named || k.how == works || k.how == down) && !k.Overlooks() }) {
		among = slices.DeleteFunc(among, func(k Contender) bool { return k.Overlooks() })
	}
	slices.SortStableFunc(among, func(a, b Contender) int {
		return cmp.Or(cmp.Compare(weight(b.strong), weight(a.strong)), b.score-a.score, weight(b.knows)-weight(a.knows), b.kin()-a.kin())
	})
	return among
}

func weight(b bool) int {
	if b {
		return 1
	}
	return 0
}

// kin counts what brings the candidate close to the object.
func (k *Contender) kin() int { return weight(k.near) + weight(k.alike) }

// beats reports whether the evidence decides for a against b. One that is
// closer to the object does not lose to a mere holder of rights.
func (a *Contender) beats(b *Contender) bool {
	switch {
	case a.strong != b.strong:
		return a.strong
	case a.kin() < b.kin() && !a.Named:
		return false
	case a.score != b.score:
		return a.score > b.score
	case a.kin() != b.kin():
		return a.kin() > b.kin()
	}
	return a.Named && b.Named && a.knows && !b.knows // two of one name
}

// rivals reports whether the candidate, which does not work, may be the
// controller instead of one that works.
func (a *Contender) rivals() bool {
	switch a.how {
	case down, unclear:
		return a.may || a.Named || a.otherwise()
	case mayNot:
		return a.bound && !a.otherwise()
	}
	return false
}

// pick weighs the candidates, of which the best comes first. One that works is
// the controller when the evidence decides for it against each other. A
// controller is called dead only when every workload is known, none that works may
// be it, and it is not others alone who are known to have to do with the finalizer; and
// denied only when something other than rights and its name says that it is the one.
func pick(among []Contender, all bool) Choice {
	var first [apart + 1]*Contender
	for i := range among {
		k := &among[i]
		skipped := k.how == unclear && !k.may && !k.otherwise() && !k.Named
		if best := first[k.how]; !skipped && (best == nil || !best.against.IsZero() && k.against.IsZero()) {
			first[k.how] = k
		}
	}
	alive, denied, dead, unknown := first[works], first[mayNot], first[down], first[unclear]
	is := func(how standing, k *Contender) Choice { return Choice{how: how, best: k, Among: among} }
	switch {
	case alive != nil:
		return pickAlive(alive, among)
	case denied != nil && denied.bound && !denied.otherwise() && denied.stands(among):
		return is(mayNot, denied)
	case unknown != nil:
		return is(unclear, unknown)
	case dead != nil && all && dead.against.IsZero() && (dead.score >= certain || dead.identified):
		return is(down, dead)
	case dead != nil:
		return is(unclear, dead)
	case denied != nil:
		return is(unclear, denied)
	case first[apart] != nil:
		return is(unclear, first[apart])
	}
	return Choice{Among: among}
}

// stands reports whether a candidate that may not change the object is the controller
// for certain: whatever state another is in, it must not be the better one. Who may do
// nothing at all with the type is somebody else's if there is one that may.
func (a *Contender) stands(among []Contender) bool {
	return !slices.ContainsFunc(among, func(k Contender) bool {
		other := k.Candidate != a.Candidate
		return other && (k.how == down && k.beats(a) || k.how == unclear && (k.may || k.Named) && !a.beats(&k))
	})
}

// pickAlive says whether the best of those that work is the controller.
func pickAlive(alive *Contender, among []Contender) Choice {
	ch := Choice{how: works, best: alive, Among: among, tied: []Contender{*alive}}
	for i := range among {
		switch k := &among[i]; {
		case k.Candidate == alive.Candidate, k.how == down && k.Account() == alive.Account() && k.runsAs(alive.Workload):
		case k.how == works && k.strong == alive.strong && k.score == alive.score && k.kin() == alive.kin():
			ch.tied = append(ch.tied, *k)
		case k.rivals() && !alive.beats(k):
			return Choice{how: unclear, best: alive, Among: among}
		}
	}
	if len(ch.tied) > 1 || alive.score < certain {
		ch.how = unclear
	}
	return ch
}

// undecided says between whom the evidence does not decide, and who else could remove the finalizer.
func (ch *Choice) undecided(might ...say.Text) say.Text {
	names := ch.names(func(*Contender) bool { return true })
	overlooking := slices.IndexFunc(ch.Among, func(k Contender) bool { return k.Overlooks() })
	switch best := ch.best; {
	case overlooking >= 0:
		k := &ch.Among[overlooking]
		return say.Of(overlookingCandidate, k.said(), k.overlooks)
	case best != nil && best.misplaced:
		return say.Of(misplacedCandidate, best.said())
	case best != nil && best.unnamed:
		return say.Of(unnamedCandidate, best.said())
	case best != nil && best.besides:
		return say.Of(besidesCandidate, best.said())
	case best != nil && !best.against.IsZero():
		named := ch.names(func(k *Contender) bool { return k.mayDo() || k.Candidate == best.Candidate })
		return say.Of(rightsAlone, say.Join(", ", append(named, might...)...), best.against)
	case len(names) == 1 && ch.Among[0].State.Liveness == Unsure && ch.Among[0].mayDo():
		return say.Of(doubtfulCandidate, ch.Among[0].ID(), ch.Among[0].State.Because)
	case len(names) == 1 && !ch.Among[0].mayDo():
		return say.Of(deniedCandidate, names[0])
	case len(names) == 1:
		return say.Of(oneCandidate, names[0])
	case len(names) > 1 && ch.Among[0].beats(&ch.Among[1]) && ch.Among[0].how != works && ch.Among[0].mayDo():
		return say.Of(probableCandidate, names[0], say.Join(", ", names[1:]...))
	}
	return say.Of(undecidedAmong, say.Join(", ", names...))
}

// names says how the first of some candidates stand.
func (ch *Choice) names(are func(*Contender) bool) []say.Text {
	var names []say.Text
	for i := range ch.Among {
		if k := &ch.Among[i]; are(k) && len(names) < evidence.MaxShown {
			names = append(names, k.said())
		}
	}
	return names
}

func (k *Contender) said() say.Text { return described(k.Workload, k.State.Liveness) }

// described names a workload with how it stands.
func described(l *Workload, liveness string) say.Text {
	return say.Of(standsSo, l.ID(), map[string]string{Alive: isRunning, Dead: isNotRunning, Unsure: mightNotRun}[liveness])
}

// otherwise reports whether the candidate may have other rights than those of its account.
func (k *Contender) otherwise() bool { return k.because != "" }

// Lacks reports whether the candidate has set the finalizer, by its name, and may not change the object.
func (k *Contender) Lacks() bool { return k.strong && !k.mayDo() }

// mayDo reports whether the candidate may change the object, so far as is known.
func (k *Contender) mayDo() bool { return k.may || k.otherwise() }

// Describe says of a candidate how it stands, and what points at it.
func (k *Contender) Describe() evidence.Fact {
	said := []say.Text{say.Of(livesBecause, k.State.Liveness, k.State.Because)}
	if !k.mayDo() {
		said = append(said, say.Of(notAllowedToChange))
	} else if !k.may {
		said = append(said, say.Plain(k.because))
	}
	said = append(said, k.Signs[0].Value)
	if k.near {
		said = append(said, say.Of(inObjectsNamespace))
	}
	if k.alike {
		said = append(said, say.Of(sharesWordWith))
	}
	return evidence.At(k.ID(), "candidate", say.Join("; ", said...))
}

// similar reports whether the workload calls itself the controller of the
// type, or of the finalizer's domain.
func (c *Candidate) similar(s *Search) bool { return s.similar(c.name) }

func (s *Search) similar(name string) bool {
	says := func(word string) bool { return len(word) > 3 && strings.Contains(name, word) }
	if !slices.ContainsFunc(controllerWords, says) {
		return false
	}
	words := strings.Split(finalizers.Domain(s.Finalizer), ".")
	words = words[:len(words)-1]
	if s.own {
		group, _, _ := strings.Cut(s.resource.Group, ".")
		words = append(words, strings.ToLower(s.resource.Kind), group)
	}
	return slices.ContainsFunc(words, says)
}

var (
	controllerWords = []string{"operator", "controller", "manager"}
	clusterWords    = []string{"cluster", "kubernetes", "k8s"}
	finalizerWords  = []string{"cleanup", "finalizer", "finalizers", "finalize", "delete", "deletion", "protection", "k8s"}
	notWords        = pattern.New("[^a-z0-9]+")
)

// sharesWord reports whether a word of the workload's name is one of the
// finalizer, which may be short: "zb-operator" and "corp.example/zb-cleanup".
func (c *Candidate) sharesWord(s *Search) bool { return s.sharesWord(c.name) }

func (s *Search) sharesWord(name string) bool {
	domain, rest, found := strings.Cut(s.Finalizer, "/")
	if !found {
		domain, rest = "", s.Finalizer
	}
	if last := strings.LastIndexByte(domain, '.'); last >= 0 {
		domain = domain[:last]
	} else {
		domain = ""
	}
	return shareWord(name, domain+" "+rest)
}
