// SPDX-License-Identifier: Apache-2.0

package gctest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
)

// Scenario is what exists, what is done, and what is left. It may be written
// down or generated.
type Scenario struct {
	Name string
	// Needs says who must be there besides the API server, and why.
	Needs   map[string]string
	Objects []Object
	Actions []Action
	// Expect says what is left, and Either what may be left: each alternative
	// replaces some of Expect.
	Expect map[Path]State
	Either []map[Path]State
	// Steps are the Collector's writes in order; nil when they are not checked.
	Steps []string
	// Outcomes are lines of the Collector's report.
	Outcomes []Outcome
}

// Path names an object in a scenario. Namespace is empty for the scenario's own
// namespace and for objects that have none.
type Path struct {
	Namespace, Kind, Name string
}

// String returns the path as scenarios write it.
func (p Path) String() string {
	if p.Namespace != "" {
		return p.Namespace + ":" + p.Kind + "/" + p.Name
	}
	return p.Kind + "/" + p.Name
}

// Object is an object to be created.
type Object struct {
	Path
	Owners     []Owner
	Finalizers []string
	// Deleting is the policy of a DELETE before the first action, "default" for
	// none, or empty when there is no such DELETE.
	Deleting string
	// Later: it is created by an action.
	Later bool

	// Node, Phase and Grace are a pod's.
	Node, Phase string
	Grace       *int64
	// Ready: the kubelet of a node reports.
	Ready bool
	// ClusterScoped: a crd defines a kind that has no namespaces.
	ClusterScoped bool
}

// Block is blockOwnerDeletion.
type Block int

// The values of blockOwnerDeletion.
const (
	Unset Block = iota
	Blocks
	DoesNotBlock
)

// Owner is an owner reference: Of is the object whose coordinates and UID it
// has, but for what is stated otherwise. It is comparable.
type Owner struct {
	Of                     Path
	APIVersion, Kind, Name string
	UID                    string
	Block                  Block
	Controller             bool
}

// String returns the reference as scenarios write it.
func (o Owner) String() string {
	text := o.Of.String()
	var stated []string
	for _, part := range [][2]string{{"apiVersion", o.APIVersion}, {"kind", o.Kind}, {"name", o.Name}, {"uid", o.UID}} {
		if part[1] != "" {
			stated = append(stated, part[0]+"="+part[1])
		}
	}
	if len(stated) > 0 {
		text += "{" + strings.Join(stated, ",") + "}"
	}
	text += [...]string{"", "!", "~"}[o.Block]
	if o.Controller {
		text += "*"
	}
	return text
}

// Fate is what is left of an object.
type Fate int

// What is left of an object.
const (
	Intact Fate = iota
	Terminating
	Gone
)

// String returns the fate as scenarios write it.
func (f Fate) String() string { return [...]string{"intact", "terminating", "gone"}[f] }

// State is what is left of an object, in the words of the scenario.
type State struct {
	Fate       Fate
	Finalizers []string // sorted
	// Owners are owner references as Owner.String writes them.
	Owners []string
}

// String returns the state with everything said.
func (s State) String() string {
	if s.Fate == Gone {
		return s.Fate.String()
	}
	finalizers := cmp.Or(strings.Join(s.Finalizers, ","), "-")
	return strings.TrimRight(fmt.Sprintf("%s %s < %s", s.Fate, finalizers, strings.Join(s.Owners, " ")), " ")
}

// Declared returns the state of the object when nothing happens to it.
func (o *Object) Declared() State {
	s := State{Finalizers: slices.Sorted(slices.Values(o.Finalizers))}
	for _, owner := range o.Owners {
		s.Owners = append(s.Owners, owner.String())
	}
	return s
}

// textOf returns the state as scenarios write it: what is as declared is not
// said.
func (o *Object) textOf(s State) string {
	declared := o.Declared()
	text, finalizers, owners := s.Fate.String(), "", ""
	if s.Fate == Terminating || s.Fate == Intact && !slices.Equal(s.Finalizers, declared.Finalizers) {
		finalizers = " " + cmp.Or(strings.Join(s.Finalizers, ","), "-")
	}
	if s.Fate != Gone && !slices.Equal(s.Owners, declared.Owners) {
		owners = strings.TrimRight(" < "+strings.Join(s.Owners, " "), " ")
	}
	return text + finalizers + owners
}

// Verb is what an Action does.
type Verb string

// The verbs of actions.
const (
	Delete     Verb = "delete"
	Collect    Verb = "collect"
	UserDelete Verb = "user delete"
	UserPatch  Verb = "user patch"
	UserCreate Verb = "user create"
	UserDrop   Verb = "user drop"
)

// Here is what an Action calls the scenario's own namespace.
const Here = "."

// Action is one thing that is done.
type Action struct {
	Verb  Verb
	Paths []Path
	// Then are the places in Paths at which the next wave of a delete begins.
	Then []int
	// Early are the places in Paths of those that the user did not name (gc.Target).
	Early []int
	// Policy is that of a delete; empty for none.
	Policy metav1.DeletionPropagation
	Grace  *int64
	// In limits a collection to a namespace, as a Path has it or Here; empty for
	// none. Only: nothing else is read.
	In   string
	Only bool
	// OtherUID, OtherVersion, OrphanDependents and DryRun are options of a user's
	// delete.
	OtherUID, OtherVersion, DryRun bool
	OrphanDependents               *bool
	// Owners and Finalizers are what a patch sets; nil leaves them alone.
	Owners     *[]Owner
	Finalizers *[]string
	// Status is what a user's request is answered; 0 for success.
	Status int
}

// String returns the action as scenarios write it.
func (a Action) String() string {
	words := []string{string(a.Verb)}
	for i, p := range a.Paths {
		if slices.Contains(a.Then, i) {
			words = append(words, "then")
		}
		if slices.Contains(a.Early, i) {
			words = append(words, "early")
		}
		words = append(words, p.String())
	}
	if a.In != "" {
		words = append(words, "in", a.In)
	}
	if a.Only {
		words = append(words, "only")
	}
	if a.Policy != "" {
		words = append(words, string(a.Policy))
	}
	if a.Grace != nil {
		words = append(words, fmt.Sprint("grace=", *a.Grace))
	}
	if a.OtherUID {
		words = append(words, "uid=nobody")
	}
	if a.OtherVersion {
		words = append(words, "version=stale")
	}
	if a.OrphanDependents != nil {
		words = append(words, fmt.Sprint("orphanDependents=", *a.OrphanDependents))
	}
	if a.DryRun {
		words = append(words, "dryRun")
	}
	if a.Owners != nil {
		words = append(words, "<")
		for _, owner := range *a.Owners {
			words = append(words, owner.String())
		}
	}
	if a.Finalizers != nil {
		words = append(words, "finalizers="+strings.Join(*a.Finalizers, ","))
	}
	if a.Status != 0 {
		words = append(words, "->", strconv.Itoa(a.Status))
	}
	return strings.Join(words, " ")
}

// Outcome is a line of the Collector's report: the result, and the reason, which may be left
// out, or with "..." its end.
type Outcome struct {
	Path   Path
	Result gc.Result
	Reason string
}

// Object returns the object with the path, or nil.
func (s *Scenario) Object(p Path) *Object {
	i := slices.IndexFunc(s.Objects, func(o Object) bool { return o.Path == p })
	if i < 0 {
		return nil
	}
	return &s.Objects[i]
}

// Alternatives returns every end that the scenario allows.
func (s *Scenario) Alternatives() []map[Path]State {
	if len(s.Either) == 0 {
		return []map[Path]State{s.Expect}
	}
	var all []map[Path]State
	for _, either := range s.Either {
		end := map[Path]State{}
		for p, state := range s.Expect {
			end[p] = state
		}
		for p, state := range either {
			end[p] = state
		}
		all = append(all, end)
	}
	return all
}

// String returns the scenario as a text that Parse reads.
func (s *Scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "== %s\n", s.Name)
	for _, need := range slices.Sorted(maps.Keys(s.Needs)) {
		fmt.Fprintf(&b, "%s\n", strings.TrimSpace("needs "+need+" "+s.Needs[need]))
	}
	b.WriteString("objects\n")
	for i := range s.Objects {
		fmt.Fprintf(&b, "  %s\n", s.Objects[i].text())
	}
	for _, a := range s.Actions {
		fmt.Fprintf(&b, "%s\n", a)
	}
	s.writeStates(&b, "expect", s.Expect)
	for i, either := range s.Either {
		s.writeStates(&b, [...]string{"either", "or"}[min(i, 1)], either)
	}
	return b.String()
}

// GoString returns the text, which is how rapid shows a generated scenario.
func (s Scenario) GoString() string { return s.String() }

func (s *Scenario) writeStates(b *strings.Builder, title string, states map[Path]State) {
	if len(states) == 0 {
		return
	}
	b.WriteString(title + "\n")
	for _, o := range s.Objects {
		if state, ok := states[o.Path]; ok {
			fmt.Fprintf(b, "  %s %s\n", o.Path, o.textOf(state))
		}
	}
}

// text returns the object as scenarios write it.
func (o *Object) text() string {
	words := []string{o.Path.String()}
	if len(o.Owners) > 0 {
		words = append(words, "<")
		for _, owner := range o.Owners {
			words = append(words, owner.String())
		}
	}
	add := func(format string, set bool, value any) {
		if set {
			words = append(words, fmt.Sprintf(format, value))
		}
	}
	add("finalizers=%s", len(o.Finalizers) > 0, strings.Join(o.Finalizers, ","))
	add("deleting=%s", o.Deleting != "", o.Deleting)
	add("later%s", o.Later, "")
	add("node=%s", o.Node != "", o.Node)
	add("phase=%s", o.Phase != "", o.Phase)
	if o.Grace != nil {
		add("grace=%d", true, *o.Grace)
	}
	add("ready%s", o.Ready, "")
	add("cluster%s", o.ClusterScoped, "")
	return strings.Join(words, " ")
}
