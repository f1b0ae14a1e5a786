// SPDX-License-Identifier: Apache-2.0

// Package live plays conformance scenarios on a kube-apiserver. Many may be
// played at once: each has namespaces of its own, and a prefix before the names
// of objects that have none.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

const (
	// poll is the pause between two looks at something that takes a moment.
	poll = 20 * time.Millisecond
	// patience is after how long that is a failure.
	patience = 30 * time.Second
	// instancePoll is how often the API server looks whether the instances of a
	// terminating definition are gone (apiextensions-apiserver/pkg/controller/
	// finalizer, deleteInstances).
	instancePoll = 5 * time.Second
)

// World is a gctest.World on a kube-apiserver.
type World struct {
	// Workers are those of Collectors.
	Workers int
	// Settle is when the cluster counts as at rest.
	Settle time.Duration

	// Config is that of a user who may do everything.
	Config *rest.Config
	// Client is for a user's requests.
	Client dynamic.Interface
	// Reader knows the types that every scenario may use.
	Reader *cluster.Reader

	plays atomic.Int64
}

// Connect returns a world on the cluster of the kubeconfig, in which the custom
// resources of scenarios are served. Its requests go through the wrappers.
func Connect(ctx context.Context, kubeconfig string, wrappers ...transport.WrapperFunc) (*World, error) {
	w := &World{Workers: 4, Settle: 300 * time.Millisecond}
	var err error
	if w.Config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return nil, err
	}
	w.Config.QPS = -1
	w.Config.WarningHandlerWithContext = rest.NoWarnings{}
	for _, wrapper := range wrappers {
		w.Config.Wrap(wrapper)
	}
	if w.Client, err = dynamic.NewForConfig(w.Config); err != nil {
		return nil, err
	}
	for _, kind := range gctest.Definitions() {
		if err := w.define(ctx, kind); err != nil {
			return nil, fmt.Errorf("defining %s: %w", kind.Word, err)
		}
	}
	w.Reader, err = w.newReader(ctx, gctest.Definitions())
	return w, err
}

// define creates the definition of a kind, unless there is one, and returns
// when the kind is served.
func (w *World) define(ctx context.Context, kind gctest.Kind) error {
	definitions := w.Client.Resource(gctest.CRDs)
	_, err := definitions.Create(ctx, &unstructured.Unstructured{Object: kind.Definition()}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return eventually(ctx, func() (bool, error) {
		_, err := w.Client.Resource(kind.GroupVersionResource).List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) {
			return false, nil
		}
		return err == nil, err
	})
}

func eventually(ctx context.Context, condition func() (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, poll, patience, true, func(context.Context) (bool, error) { return condition() })
}

// newReader returns a reader whose discovery knows the kinds.
func (w *World) newReader(ctx context.Context, kinds []gctest.Kind) (*cluster.Reader, error) {
	var reader *cluster.Reader
	config, stats := cluster.ReadOnly(w.Config)
	err := eventually(ctx, func() (bool, error) {
		var err error
		if reader, err = cluster.NewReader(ctx, config, stats, cluster.Options{PageSize: cluster.DefaultPageSize}); err != nil {
			return false, err
		}
		return len(resources(reader, kinds)) == len(kinds), nil
	})
	return reader, err
}

// resources returns what the reader knows of the kinds.
func resources(reader *cluster.Reader, kinds []gctest.Kind) []*graph.Resource {
	var found []*graph.Resource
	for _, resource := range reader.Resources() {
		for _, kind := range kinds {
			if kind.Resource == *resource {
				found = append(found, resource)
			}
		}
	}
	return found
}

// Lacks implements gctest.World: nobody works beside the API server, of which some have
// what others have not.
func (w *World) Lacks(s *gctest.Scenario) string {
	for need, why := range s.Needs {
		if need == "endpoints-storage" && w.Reader.Server(context.Background()).TakesEndpoints() {
			continue
		}
		return strings.TrimSpace("not here: " + need + " " + why)
	}
	return ""
}

// Play implements gctest.World.
func (w *World) Play(ctx context.Context, s *gctest.Scenario) (gctest.Play, error) {
	p := &Play{World: w, stage: gctest.NewStage(s, fmt.Sprintf("play-%d", w.plays.Add(1))), reader: w.Reader}
	for _, name := range p.stage.Namespaces() {
		if p.declares(name) {
			continue
		}
		if err := w.CreateNamespace(ctx, name); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// CreateNamespace creates a namespace.
func (w *World) CreateNamespace(ctx context.Context, name string) error {
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	_, err := w.Client.Resource(gctest.Namespaces).Create(ctx, namespace, metav1.CreateOptions{})
	return err
}

// Play is a gctest.Play on a kube-apiserver.
type Play struct {
	*World
	stage  *gctest.Stage
	reader *cluster.Reader
}

// declares reports whether the namespace is one of the scenario's objects.
func (p *Play) declares(namespace string) bool {
	for _, o := range p.stage.Scenario.Objects {
		if o.Kind == "namespace" && p.stage.NameOf(o.Path) == namespace {
			return true
		}
	}
	return false
}

// Stage implements gctest.Play.
func (p *Play) Stage() *gctest.Stage { return p.stage }

// Options implements gctest.Play.
func (p *Play) Options() gc.Options { return gc.Options{Workers: p.Workers} }

func (p *Play) client(path gctest.Path) dynamic.ResourceInterface {
	client := p.Client.Resource(p.stage.Kind(path.Kind).GroupVersionResource)
	if namespace := p.stage.NamespaceOf(path); namespace != "" {
		return client.Namespace(namespace)
	}
	return client
}

// Create implements gctest.Play. Owner references to objects that come later
// are added when all are there.
func (p *Play) Create(ctx context.Context, objects []*gctest.Object) error {
	var incomplete []*gctest.Object
	for _, o := range objects {
		manifest := p.stage.Manifest(o)
		if p.ownersKnown(o) {
			manifest.SetOwnerReferences(p.stage.OwnerReferences(o.Owners))
		} else {
			incomplete = append(incomplete, o)
		}
		if err := p.create(ctx, o, manifest); err != nil {
			return fmt.Errorf("creating %s: %w", o.Path, err)
		}
	}
	for _, o := range incomplete {
		if err := p.Patch(ctx, o.Path, &o.Owners, nil); err != nil {
			return fmt.Errorf("adding the owners of %s: %w", o.Path, err)
		}
	}
	return nil
}

// ownersKnown reports whether all UIDs that the owner references state are
// known.
func (p *Play) ownersKnown(o *gctest.Object) bool {
	for _, owner := range o.Owners {
		if _, known := p.stage.UIDs[owner.UIDPath()]; !known && !owner.OfNobody() {
			return false
		}
	}
	return true
}

func (p *Play) create(ctx context.Context, o *gctest.Object, manifest *unstructured.Unstructured) error {
	created, err := p.client(o.Path).Create(ctx, manifest, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	p.stage.UIDs[o.Path] = created.GetUID()
	switch {
	case o.Kind == "crd":
		kinds := p.stage.OwnKinds()
		if err := p.define(ctx, kinds[len(kinds)-1]); err != nil {
			return err
		}
		p.reader, err = p.newReader(ctx, kinds)
		return err
	case o.Phase != "":
		status := fmt.Sprintf(`{"status":{"phase":%q}}`, o.Phase)
		_, err = p.client(o.Path).Patch(ctx, manifest.GetName(), types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	}
	return err
}

// Delete implements gctest.Play.
func (p *Play) Delete(ctx context.Context, path gctest.Path, options metav1.DeleteOptions) error {
	return p.client(path).Delete(ctx, p.stage.NameOf(path), options)
}

// Patch implements gctest.Play.
func (p *Play) Patch(ctx context.Context, path gctest.Path, owners *[]gctest.Owner, finalizers *[]string) error {
	metadata := map[string]any{}
	if owners != nil {
		metadata["ownerReferences"] = p.stage.OwnerReferences(*owners)
	}
	if finalizers != nil {
		metadata["finalizers"] = *finalizers
	}
	return p.PatchMetadata(ctx, path, metadata)
}

// PatchMetadata sends a JSON merge patch.
func (p *Play) PatchMetadata(ctx context.Context, path gctest.Path, metadata map[string]any) error {
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = p.client(path).Patch(ctx, p.stage.NameOf(path), types.MergePatchType, data, metav1.PatchOptions{})
	return err
}

// Drop implements gctest.Play. It returns when the kind is not served any more.
func (p *Play) Drop(ctx context.Context, path gctest.Path) error {
	err := p.Client.Resource(gctest.CRDs).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{FieldSelector: "metadata.name=" + p.stage.NameOf(path)})
	if err != nil {
		return err
	}
	config, stats := cluster.ReadOnly(p.Config)
	return eventually(ctx, func() (bool, error) {
		p.reader, err = cluster.NewReader(ctx, config, stats, cluster.Options{PageSize: cluster.DefaultPageSize})
		return err == nil && len(resources(p.reader, p.stage.OwnKinds())) == 0, err
	})
}

// Watch follows the kind in the scenario's namespace.
func (p *Play) Watch(ctx context.Context, kind string) (watch.Interface, error) {
	return p.Client.Resource(p.stage.Kind(kind).GroupVersionResource).Namespace(p.stage.Prefix).Watch(ctx, metav1.ListOptions{})
}

// Snapshot reads the whole cluster.
func (w *World) Snapshot(ctx context.Context) (*graph.Snapshot, error) {
	snapshot, err := w.Reader.Snapshot(ctx, cluster.Scope{})
	if err == nil && !snapshot.Complete() {
		err = fmt.Errorf("something could not be read: %v", snapshot.Unlisted())
	}
	return snapshot, err
}

// Collector reads the whole cluster, for a Collector to which everything there
// belongs. The context ends with its work.
func (w *World) Collector(ctx context.Context) (*graph.Graph, gc.Server, error) {
	snapshot, err := w.Snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	w.readFacts(ctx, snapshot)
	server, err := w.serve(ctx, w.Reader, snapshot, w.Reader.Resources(), w.Settle)
	return graph.New(snapshot), server, err
}

// readFacts adds to a snapshot what a plan needs to know of pods.
func (w *World) readFacts(ctx context.Context, snapshot *graph.Snapshot) {
	var pods []graph.Object
	for o := range snapshot.Objects() {
		if o.Resource.Kind == "Pod" {
			pods = append(pods, o)
		}
	}
	snapshot.Facts = w.Reader.Facts(ctx, snapshot, pods)
}

// Plan returns a server in memory that holds what the graph was made of.
func (w *World) Plan(ctx context.Context, g *graph.Graph) gc.Server {
	return simulator.New(g.Snapshot(), simulator.Options{Now: w.Reader.Now(ctx), Server: w.Reader.Server(ctx), Actors: simulator.Actors{
		Finalizer: func(*graph.Object, string) (simulator.Actor, say.Text) { return simulator.Nobody, say.Text{} },
	}})
}

// serve starts a server from a snapshot. Like a command it waits for its watches: of
// a type that vanishes before its watch is connected nobody knows which objects
// went.
func (w *World) serve(ctx context.Context, reader *cluster.Reader, snapshot *graph.Snapshot, watched []*graph.Resource, settle time.Duration) (*cluster.Server, error) {
	server, err := cluster.NewServer(reader, w.Config, cluster.ServerOptions{Settle: settle, IgnoreGrace: true, FieldManager: "gctest"})
	if err != nil {
		return nil, err
	}
	server.Watch(ctx, snapshot, watched)
	server.AwaitWatches(ctx, patience)
	return server, nil
}

// Objects returns all objects of the kinds by UID.
func (w *World) Objects(ctx context.Context, kinds []gctest.Kind) (map[types.UID]graph.Object, error) {
	objects := map[types.UID]graph.Object{}
	for _, resource := range resources(w.Reader, kinds) {
		page, err := w.Reader.Page(ctx, *resource, "", 0)
		if err != nil {
			return nil, err
		}
		for _, o := range page {
			objects[o.UID] = o
		}
	}
	return objects, nil
}

// StatesIn returns what is left of the play's objects among those that there
// are.
func (p *Play) StatesIn(objects map[types.UID]graph.Object) map[gctest.Path]gctest.State {
	states := map[gctest.Path]gctest.State{}
	for i := range p.stage.Scenario.Objects {
		o := &p.stage.Scenario.Objects[i]
		states[o.Path] = gctest.State{Fate: gctest.Gone}
		if actual, ok := objects[p.stage.UIDs[o.Path]]; ok {
			states[o.Path] = p.stage.StateOf(o, &actual)
		}
	}
	return states
}

// Collector implements gctest.Play.
func (p *Play) Collector(ctx context.Context) (*graph.Graph, gc.Server, error) {
	if p.beyondNamespace() {
		return p.CollectorIn(ctx, "")
	}
	return p.CollectorIn(ctx, p.stage.Prefix)
}

// CollectorIn implements gctest.Play.
func (p *Play) CollectorIn(ctx context.Context, namespace string) (*graph.Graph, gc.Server, error) {
	scope := cluster.Scope{Namespace: namespace}
	snapshot, err := p.reader.Snapshot(ctx, scope)
	if err != nil {
		return nil, nil, err
	}
	return p.CollectorOf(ctx, snapshot)
}

// CollectorOf is Collector for one that goes by a snapshot of all that it may need to know, which may be old.
func (p *Play) CollectorOf(ctx context.Context, snapshot *graph.Snapshot) (*graph.Graph, gc.Server, error) {
	if err := p.complete(snapshot); err != nil {
		return nil, nil, err
	}
	seen, watched := p.own(snapshot)
	p.readFacts(ctx, seen)
	settle := p.Settle
	if len(p.stage.OwnKinds()) > 0 {
		settle += instancePoll
	}
	server, err := p.serve(ctx, p.reader, watched, p.resources(), settle)
	return graph.New(seen), &ownServer{Server: server, play: p}, err
}

// complete returns an error when something could not be read, unless it is a
// type of another scenario, which may vanish at any time.
func (p *Play) complete(s *graph.Snapshot) error {
	for _, u := range s.Unlisted() {
		if !p.foreign(u.Group) {
			return fmt.Errorf("%s could not be read: %s", u.GroupVersionResource, u.Message)
		}
	}
	return nil
}

// foreign reports whether the types of the group are another scenario's.
func (p *Play) foreign(group string) bool {
	return group != p.stage.Group() && strings.HasSuffix(group, "."+gctest.CustomGroup)
}

// beyondNamespace reports whether the scenario has objects outside its
// namespace.
func (p *Play) beyondNamespace() bool {
	for _, o := range p.stage.Scenario.Objects {
		if p.stage.NamespaceOf(o.Path) != p.stage.Prefix {
			return true
		}
	}
	return false
}

// resources returns the types of the scenario's objects.
func (p *Play) resources() []*graph.Resource {
	var kinds []gctest.Kind
	seen := map[string]bool{}
	for _, o := range p.stage.Scenario.Objects {
		if !seen[o.Kind] {
			seen[o.Kind] = true
			kinds = append(kinds, p.stage.Kind(o.Kind))
		}
	}
	return resources(p.reader, kinds)
}

// owns reports whether an object is part of the scenario.
func (p *Play) owns(o *graph.Object) bool {
	for _, namespace := range p.stage.Namespaces() {
		if o.Namespace == namespace {
			return true
		}
	}
	return o.Namespace == "" && (o.Name == p.stage.Prefix || strings.HasPrefix(o.Name, p.stage.Prefix+"-") || strings.HasSuffix(o.Name, "."+p.stage.Group()))
}

// own returns the snapshot with nothing but the scenario's objects, as if there
// were no others: a pass of collection is about everything. The second has the scenario's types
// alone, listed by namespace, so that nothing is watched in those of others.
func (p *Play) own(whole *graph.Snapshot) (seen, watched *graph.Snapshot) {
	seen, watched = &graph.Snapshot{Mapper: whole.Mapper}, &graph.Snapshot{Mapper: whole.Mapper}
	for _, resource := range whole.Types {
		if !p.foreign(resource.Group) {
			seen.Types = append(seen.Types, resource)
		}
	}
	for o := range whole.Objects() {
		if p.owns(&o) {
			seen.Add(o)
			watched.Add(o)
		}
	}
	ours := p.resources()
	for _, resource := range p.reader.Resources() {
		for namespace, version := range whole.Listed(resource.GroupResource()) {
			seen.MarkListed(resource.GroupResource(), namespace, version)
			places := []string{namespace}
			if resource.Namespaced && namespace == "" {
				places = p.stage.Namespaces()
			}
			for _, place := range places {
				if slices.Contains(ours, resource) {
					watched.MarkListed(resource.GroupResource(), place, version)
				}
			}
		}
	}
	for _, u := range seen.Undecided() {
		if whole.Covers(u.Resource.GroupResource(), u.Namespace, u.Name) {
			seen.MarkAbsent(u.Resource.GroupResource(), u.Namespace, u.Name)
		}
	}
	return seen, watched
}

// Unwrap returns the cluster behind the server of a play.
func Unwrap(server gc.Server) *cluster.Server {
	if own, ok := server.(*ownServer); ok {
		return own.Server
	}
	return server.(*cluster.Server)
}

// ownServer is a gc.Server on which nothing but the scenario happens. What the
// cluster's server says of its watches it says, too.
type ownServer struct {
	*cluster.Server
	play *Play
}

// Events implements gc.Server.
func (s *ownServer) Events(ctx context.Context, wait bool) ([]gc.Event, error) {
	for {
		events, err := s.Server.Events(ctx, wait)
		var own []gc.Event
		for _, e := range events {
			if e.CaughtUp > 0 || s.play.owns(&e.Object) {
				own = append(own, e)
			}
		}
		if len(own) > 0 || !wait || err != nil {
			return own, err
		}
	}
}

// States implements gctest.Play.
func (p *Play) States(ctx context.Context) (map[gctest.Path]gctest.State, error) {
	states := map[gctest.Path]gctest.State{}
	for i := range p.stage.Scenario.Objects {
		o := &p.stage.Scenario.Objects[i]
		item, err := p.client(o.Path).Get(ctx, p.stage.NameOf(o.Path), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && item.GetUID() != p.stage.UIDs[o.Path]:
			states[o.Path] = gctest.State{Fate: gctest.Gone}
		case err != nil:
			return nil, errors.Join(fmt.Errorf("reading %s", o.Path), err)
		default:
			actual := graph.NewObject(&graph.Resource{}, item)
			states[o.Path] = p.stage.StateOf(o, &actual)
		}
	}
	return states, nil
}
