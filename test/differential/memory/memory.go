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

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc/gctest"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// start is when every play begins.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// World is a gctest.World in memory.
type World struct {
	// Workers are those of Collectors; 0 stands for one.
	Workers int
	// Delays, when it is set, delays every request, answer and event at random, as
	// long as each object's events keep their order. It is for bubbles of
	// testing/synctest, where that takes no time.
	Delays *rand.Rand
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
		p.stage.UIDs[o.Path] = types.UID(o.Path.String())
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

// snapshot holds everything that the filter lets through.
func (p *play) snapshot(filter func(kind string) bool) *graph.Snapshot {
	mapper := meta.NewDefaultRESTMapper(nil)
	s := &graph.Snapshot{Mapper: mapper, Facts: p.facts}
	for _, o := range p.objects {
		if filter(o.Resource.Kind) {
			s.Add(o)
		}
	}
	for _, k := range p.stage.Kinds() {
		if p.serves(k) && filter(k.Resource.Kind) {
			k.AddTo(mapper)
			s.MarkListed(k.GroupResource(), "", strconv.Itoa(100+p.version))
		}
	}
	return s
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
	p.server = simulator.New(p.snapshot(everything), simulator.Options{Now: p.now, Actors: simulator.Actors{
		NamespaceController: has("namespace-controller"), Kubelets: has("kubelets"), PodGC: has("podgc"),
		Finalizer: func(string) simulator.Actor { return simulator.Nobody },
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
		o, fate := server.Object(was.UID)
		if fate.State != simulator.Gone {
			p.add(o) // every simulator numbers its versions from 1
		}
	}
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
func (p *play) Collector(context.Context) (*graph.Graph, gc.Server, error) {
	var server gc.Server = p.simulate()
	if p.world.Delays != nil {
		server = newDelayed(server, p.world.Delays)
	}
	return graph.New(p.snapshot(collected)), server, nil
}

// States implements gctest.Play.
func (p *play) States(context.Context) (map[gctest.Path]gctest.State, error) {
	p.finish()
	states := map[gctest.Path]gctest.State{}
	for i := range p.stage.Scenario.Objects {
		o := &p.stage.Scenario.Objects[i]
		states[o.Path] = gctest.State{Fate: gctest.Gone}
		for _, actual := range p.objects {
			if actual.UID == p.stage.UIDs[o.Path] {
				states[o.Path] = p.stage.StateOf(o, &actual)
			}
		}
	}
	return states, nil
}
