// SPDX-License-Identifier: Apache-2.0

// Package memory plays conformance scenarios in the simulator.
package memory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
	"github.com/kubectl-gc/kubectl-gc/test/differential/delay"
)

// start is when every play begins.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// longest is the longest delay.
const longest = time.Second

// World is a gctest.World in memory.
type World struct {
	// Workers are those of Collectors; 0 stands for one.
	Workers int
	// Delays, when it is set, delays every request, answer and event at random, as
	// long as each object's events keep their order. It is for bubbles of
	// testing/synctest, where that takes no time.
	Delays *rand.Rand
	// Late is the longest delay of Stale.
	Late time.Duration
	// Aliases, when it is set, has every widget served in AliasGroup, too, with the
	// same UID and version.
	Aliases Aliases
}

// Aliases says which of the two that are one object is listed first.
type Aliases int

// The values of Aliases.
const (
	NoAliases Aliases = iota
	AliasesFirst
	AliasesLast
)

// AliasGroup serves the widgets a second time.
const AliasGroup = "alias.example.com"

// aliased is the kind of the widgets in the group.
func aliased(group string) gctest.Kind {
	k := gctest.KindsOf("widget")[0]
	k.Group = group
	return k
}

// Lacks implements gctest.World: everybody can be simulated.
func (w *World) Lacks(*gctest.Scenario) string { return "" }

// Play implements gctest.World.
func (w *World) Play(_ context.Context, s *gctest.Scenario) (gctest.Play, error) {
	p := &play{world: w, stage: gctest.NewStage(s, "shop"), now: start, facts: graph.Facts{
		Pods: map[types.UID]graph.PodFacts{}, Namespaces: map[types.UID]graph.NamespaceFacts{},
		CRDs: map[types.UID]graph.CRDFacts{}, Nodes: map[string]bool{}, NodesRead: true,
	}}
	declared := map[string]bool{}
	for _, o := range s.Objects {
		declared[p.stage.NameOf(o.Path)] = declared[p.stage.NameOf(o.Path)] || o.Kind == "namespace"
	}
	for _, name := range p.stage.Namespaces() {
		if !declared[name] {
			p.add(graph.Object{Resource: p.resource("namespace"), Name: name, UID: types.UID("namespace/" + name)})
		}
	}
	return p, nil
}

// play is a gctest.Play. Between actions everything is in objects; an action
// works on a simulator that starts from them.
type play struct {
	world   *World
	stage   *gctest.Stage
	objects []graph.Object
	facts   graph.Facts
	now     time.Time
	version int
	// server is that of the last action, whose result was not taken over yet.
	server *simulator.Server
}

// Stage implements gctest.Play.
func (p *play) Stage() *gctest.Stage { return p.stage }

// Options implements gctest.Play.
func (p *play) Options() gc.Options { return gc.Options{Workers: p.world.Workers} }

func (p *play) resource(kind string) *graph.Resource {
	r := p.stage.Kind(kind).Resource
	return &r
}

// add adds an object, or replaces the one with its UID.
func (p *play) add(o graph.Object) {
	p.version++
	o.ResourceVersion = strconv.Itoa(100 + p.version)
	if o.Resource.Kind == "Namespace" {
		p.facts.Namespaces[o.UID] = graph.NamespaceFacts{Finalizers: []string{"kubernetes"}}
	}
	i := slices.IndexFunc(p.objects, func(other graph.Object) bool { return other.UID == o.UID })
	if i < 0 {
		p.objects = append(p.objects, o)
	} else {
		p.objects[i] = o
	}
}

// Create implements gctest.Play.
func (p *play) Create(_ context.Context, objects []*gctest.Object) error {
	p.finish()
	for _, o := range objects {
		uid := types.UID(o.Path.String())
		if _, again := p.stage.UIDs[o.Path]; again {
			uid += " again"
		}
		p.stage.UIDs[o.Path] = uid
	}
	for _, o := range objects {
		uid := p.stage.UIDs[o.Path]
		p.add(graph.Object{
			Resource: p.resource(o.Kind), Namespace: p.stage.NamespaceOf(o.Path), Name: p.stage.NameOf(o.Path), UID: uid,
			Finalizers: o.Finalizers, OwnerReferences: p.stage.OwnerReferences(o.Owners),
		})
		switch o.Kind {
		case "pod":
			p.facts.Pods[uid] = p.podFacts(o)
		case "crd":
			p.facts.CRDs[uid] = graph.CRDFacts{Group: p.stage.Group(), Plural: o.Name, Established: true}
		case "node":
			p.facts.Nodes[p.stage.NameOf(o.Path)] = o.Ready
		}
	}
	return nil
}

func (p *play) podFacts(o *gctest.Object) graph.PodFacts {
	facts := graph.PodFacts{Phase: o.Phase, TerminationGracePeriodSeconds: 30}
	if o.Node != "" {
		facts.NodeName = p.stage.Prefix + "-" + o.Node
	}
	if o.Grace != nil {
		facts.TerminationGracePeriodSeconds = *o.Grace
	}
	return facts
}

// snapshot holds everything that the filter lets through: in all namespaces, or
// what a reader of one of them would have.
func (p *play) snapshot(filter func(kind string) bool, namespace string) *graph.Snapshot {
	mapper := meta.NewDefaultRESTMapper(nil)
	s := &graph.Snapshot{Mapper: mapper, Facts: p.facts}
	for _, o := range p.objects {
		if filter(o.Resource.Kind) && p.isServed(o) && (namespace == "" || namespace == o.Namespace) {
			p.list(s, o)
		}
	}
	kinds := p.stage.Kinds()
	if p.world.Aliases != NoAliases {
		kinds = append(kinds, aliased(AliasGroup))
	}
	for _, k := range kinds {
		if !p.serves(k) || !filter(k.Resource.Kind) {
			continue
		}
		k.AddTo(mapper)
		r := k.Resource
		s.Types = append(s.Types, &r)
		if namespace == "" || k.Namespaced {
			s.MarkListed(k.GroupResource(), namespace, strconv.Itoa(100+p.version))
		}
	}
	for settled := false; !settled; {
		settled = true
		for _, u := range s.Undecided() {
			settled = false
			p.readOwner(s, u)
		}
	}
	return s
}

// list adds an object to the snapshot, as often as it is served.
func (p *play) list(s *graph.Snapshot, o graph.Object) {
	groups := []string{gctest.CustomGroup, AliasGroup}
	switch {
	case o.Resource.Kind != "Widget" || p.world.Aliases == NoAliases:
		s.Add(o)
		return
	case p.world.Aliases == AliasesFirst:
		slices.Reverse(groups)
	}
	for _, group := range groups {
		r := aliased(group).Resource
		o.Resource = &r
		s.Add(o)
	}
}

// readOwner adds an owner to the snapshot, or that it is not there.
func (p *play) readOwner(s *graph.Snapshot, u graph.Undecided) {
	for _, o := range p.objects {
		if o.Resource.GroupResource() == u.Resource.GroupResource() && o.Namespace == u.Namespace && o.Name == u.Name && p.isServed(o) {
			s.Add(o)
			return
		}
	}
	s.MarkAbsent(u.Resource.GroupResource(), u.Namespace, u.Name)
}

// isServed reports whether the object can be seen.
func (p *play) isServed(o graph.Object) bool {
	return !slices.ContainsFunc(p.stage.OwnKinds(), func(k gctest.Kind) bool { return k.Resource == *o.Resource && !p.serves(k) })
}

func everything(string) bool { return true }

// collected is what the garbage collector sees.
func collected(kind string) bool { return kind != "Event" }

// serves reports whether the kind needs no definition, or has one.
func (p *play) serves(k gctest.Kind) bool {
	return k.Group != p.stage.Group() || slices.ContainsFunc(p.objects, func(o graph.Object) bool {
		return o.Resource.Kind == "CustomResourceDefinition" && o.Name == k.GroupResource().String()
	})
}

// simulate starts a simulator.
func (p *play) simulate() *simulator.Server {
	p.finish()
	needs := p.stage.Scenario.Needs
	has := func(need string) bool { _, ok := needs[need]; return ok }
	p.server = simulator.New(p.snapshot(everything, ""), simulator.Options{Now: p.now, Actors: simulator.Actors{
		NamespaceController: has("namespace-controller"), Kubelets: has("kubelets"), PodGC: has("podgc"),
		Finalizer: func(*graph.Object, string) (simulator.Actor, say.Text) { return simulator.Nobody, say.Text{} },
	}})
	return p.server
}

// finish lets the last simulator come to rest, and takes over what became of
// the objects.
func (p *play) finish() {
	if p.server == nil {
		return
	}
	for {
		if _, err := p.server.Events(context.Background(), true); err != nil {
			break // at rest: the context does not end
		}
	}
	server, before := p.server, p.objects
	p.objects, p.now, p.server = nil, server.Now(), nil
	for _, was := range before {
		switch o, fate := server.Object(was.UID); fate.State {
		case simulator.Gone:
		case simulator.Unread: // stays in storage
			p.add(was)
		default:
			p.add(o) // every simulator numbers its versions from 1
		}
	}
}

// Drop implements gctest.Play.
func (p *play) Drop(_ context.Context, path gctest.Path) error {
	p.finish()
	p.objects = slices.DeleteFunc(p.objects, func(o graph.Object) bool { return o.UID == p.stage.UIDs[path] })
	return nil
}

// Delete implements gctest.Play.
func (p *play) Delete(ctx context.Context, path gctest.Path, options metav1.DeleteOptions) error {
	return p.simulate().Delete(ctx, p.stage.Identity(path), options)
}

// Patch implements gctest.Play. Finalizers are taken off by the simulator, which
// knows what that ends; everything else is stored as it is.
func (p *play) Patch(ctx context.Context, path gctest.Path, owners *[]gctest.Owner, finalizers *[]string) error {
	p.finish()
	i := slices.IndexFunc(p.objects, func(o graph.Object) bool { return o.UID == p.stage.UIDs[path] })
	if i < 0 {
		return fmt.Errorf("%s is gone", path)
	}
	o := p.objects[i]
	if owners != nil {
		o.OwnerReferences = p.stage.OwnerReferences(*owners)
	}
	var removed []string
	if finalizers != nil {
		removed = slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return slices.Contains(*finalizers, f) })
		kept := slices.DeleteFunc(slices.Clone(*finalizers), func(f string) bool { return slices.Contains(o.Finalizers, f) })
		o.Finalizers = append(slices.Clone(o.Finalizers), kept...)
	}
	p.add(o)
	server := p.simulate()
	for _, f := range removed {
		now, fate := server.Object(o.UID)
		if fate.State == simulator.Gone {
			return errors.New("it is gone before the patch is done")
		}
		if _, err := server.Patch(ctx, now, gc.Patch{RemoveFinalizer: f}); err != nil {
			return err
		}
	}
	return nil
}

// Collector implements gctest.Play.
func (p *play) Collector(ctx context.Context) (*graph.Graph, gc.Server, error) {
	return p.CollectorIn(ctx, "")
}

// CollectorIn implements gctest.Play.
func (p *play) CollectorIn(_ context.Context, namespace string) (*graph.Graph, gc.Server, error) {
	var server gc.Server = p.simulate()
	if p.world.Delays != nil {
		server = delay.New(server, p.world.Delays, longest)
	}
	return graph.New(p.snapshot(collected, namespace)), server, nil
}

// States implements gctest.Play.
func (p *play) States(context.Context) (map[gctest.Path]gctest.State, error) {
	p.finish()
	states := map[gctest.Path]gctest.State{}
	for i := range p.stage.Scenario.Objects {
		o := &p.stage.Scenario.Objects[i]
		states[o.Path] = gctest.State{Fate: gctest.Gone}
		for _, actual := range p.objects {
			if actual.UID == p.stage.UIDs[o.Path] && p.isServed(actual) {
				states[o.Path] = p.stage.StateOf(o, &actual)
			}
		}
	}
	return states, nil
}
