// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/internal/testworld"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// start is when the simulations of the tests begin.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// since writes a time as the seconds since then.
func since(t time.Time) string { return fmt.Sprintf("%+ds", int(t.Sub(start).Seconds())) }

// world is what the lines of a case say is in the cluster. Everything is listed
// and all facts are read unless a line says otherwise.
type world struct {
	testworld.World
	facts        graph.Facts
	actors       simulator.Actors
	unlisted     []graph.Unlisted
	noNamespaces []string
	nodes        map[string]string // silent or absent
}

func newWorld() *world {
	w := &world{World: testworld.World{Types: testworld.Served(), Now: start, UID: testworld.Path}, nodes: map[string]string{}, facts: graph.Facts{
		Pods:       map[types.UID]graph.PodFacts{},
		Namespaces: map[types.UID]graph.NamespaceFacts{},
		CRDs:       map[types.UID]graph.CRDFacts{},
		Nodes:      map[string]bool{},
		NodesRead:  true,
	}}
	return w
}

// add understands
//
//	Pod/shop/p ...                    an object, see addObject
//	actors kubelets podgc namespace-controller x=Acts y=Nobody
//	node n1 silent                    a node whose kubelet does not report; or: absent
//	nodes unread
//	unlisted configmaps               could not be listed; or: unlisted configmaps in shop
//	unlisted group metrics.k8s.io     could not be discovered
//	no namespace shop                 the namespace's object is missing
//
// Namespaces and nodes that only other lines name are there, and nodes report.
func (w *world) add(words []string, line string) error {
	if len(words) == 0 || strings.HasPrefix(line, "#") {
		return nil
	}
	switch words[0] {
	case "actors":
		return w.addActors(words[1:])
	case "node":
		w.nodes[words[1]] = words[2]
	case "nodes":
		w.facts.NodesRead = false
	case "no":
		w.noNamespaces = append(w.noNamespaces, words[2])
	case "unlisted":
		u := graph.Unlisted{Reason: graph.Forbidden}
		switch {
		case words[1] == "group":
			u.Group, u.Reason = words[2], graph.DiscoveryFailed
		case len(words) == 4:
			u.Namespace = words[3]
			fallthrough
		default:
			u.GroupVersionResource = schema.ParseGroupResource(words[1]).WithVersion("")
		}
		w.unlisted = append(w.unlisted, u)
	default:
		return w.addObject(words)
	}
	return nil
}

func (w *world) addActors(words []string) error {
	finalizers := map[string]simulator.Actor{}
	for _, word := range words {
		finalizer, actor, isFinalizer := strings.Cut(word, "=")
		switch {
		case isFinalizer:
			finalizers[finalizer] = map[string]simulator.Actor{"Acts": simulator.Acts, "Nobody": simulator.Nobody}[actor]
		case word == "kubelets":
			w.actors.Kubelets = true
		case word == "podgc":
			w.actors.PodGC = true
		case word == "namespace-controller":
			w.actors.NamespaceController = true
		default:
			return fmt.Errorf("unknown actor %q", word)
		}
	}
	if len(finalizers) > 0 {
		w.actors.Finalizer = func(_ *graph.Object, f string) (simulator.Actor, say.Text) { return finalizers[f], say.Text{} }
	}
	return nil
}

// addObject understands what testworld.World does, and
//
//	node=n1 phase=Failed grace=5 mirror claims=c   facts of a pod; default Running, 30
//	spec=kubernetes,other                      facts of a namespace; default kubernetes, - for none
//	not-established                            facts of a CustomResourceDefinition
//	unread                                     the facts could not be read
func (w *world) addObject(words []string) error {
	pod := graph.PodFacts{Phase: "Running", TerminationGracePeriodSeconds: 30}
	namespace := graph.NamespaceFacts{Finalizers: []string{"kubernetes"}}
	crd := graph.CRDFacts{Established: true}
	read := true
	o, err := w.Add(words, func(_ *graph.Object, key, value string) error {
		number, _ := strconv.ParseInt(value, 10, 64)
		switch key {
		case "node":
			pod.NodeName = value
		case "phase":
			pod.Phase = value
		case "grace":
			pod.TerminationGracePeriodSeconds = number
		case "claims":
			pod.Claims = strings.Split(value, ",")
		case "mirror":
			pod.Mirror = true
		case "spec":
			namespace.Finalizers = slices.DeleteFunc(strings.Split(value, ","), func(f string) bool { return f == "-" })
		case "not-established":
			crd.Established = false
		case "unread":
			read = false
		default:
			return fmt.Errorf("unknown word %q", key)
		}
		return nil
	})
	if err != nil || !read {
		return err
	}
	switch o.Resource.Kind {
	case "Pod":
		w.facts.Pods[o.UID] = pod
	case "Namespace":
		w.facts.Namespaces[o.UID] = namespace
	case "CustomResourceDefinition":
		crd.Plural, crd.Group, _ = strings.Cut(o.Name, ".")
		w.facts.CRDs[o.UID] = crd
	}
	return nil
}

func (w *world) resource(kind, apiVersion string) *graph.Resource {
	r, err := w.Type(kind, apiVersion)
	if err != nil {
		panic(err)
	}
	return r
}

// identity understands Kind/namespace/name, Kind/name, and both with @apiVersion
// behind. The UID is that of the last object there, and otherwise the text.
func (w *world) identity(text string) graph.Identity {
	path, apiVersion, _ := strings.Cut(text, "@")
	parts := strings.Split(path, "/")
	id := graph.Identity{Resource: *w.resource(parts[0], apiVersion), Name: parts[len(parts)-1], UID: types.UID(path)}
	if len(parts) == 3 {
		id.Namespace = parts[1]
	}
	if id.Resource.Namespaced != (id.Namespace != "") {
		panic(text + " is of the other scope")
	}
	for _, o := range w.Objects {
		if o.Resource.Kind == parts[0] && o.Namespace == id.Namespace && o.Name == id.Name {
			id.UID = o.UID
		}
	}
	return id
}

func (w *world) first(uid types.UID) graph.Object {
	i := slices.IndexFunc(w.Objects, func(o graph.Object) bool { return o.UID == uid })
	return w.Objects[i]
}

func (w *world) options() simulator.Options {
	return simulator.Options{Actors: w.actors, Now: start}
}

func (w *world) snapshot() *graph.Snapshot {
	s := &graph.Snapshot{Mapper: testworld.Mapper(w.Types), Facts: w.facts}
	w.addNamespaces()
	for _, pod := range w.facts.Pods {
		if w.facts.NodesRead && pod.NodeName != "" && w.nodes[pod.NodeName] != "absent" {
			w.facts.Nodes[pod.NodeName] = w.nodes[pod.NodeName] == ""
		}
	}
	for _, o := range w.Objects {
		s.Add(o)
	}
	for _, r := range w.Types {
		unlisted := func(u graph.Unlisted) bool { return u.GroupResource() == r.GroupResource() }
		if !slices.ContainsFunc(w.unlisted, unlisted) {
			s.MarkListed(r.GroupResource(), "", "")
		}
	}
	for _, u := range w.unlisted {
		s.MarkUnlisted(u)
	}
	return s
}

// addNamespaces adds the namespaces that objects name.
func (w *world) addNamespaces() {
	for _, o := range w.Objects {
		id := w.identity("Namespace/" + o.Namespace)
		known := slices.ContainsFunc(w.Objects, func(n graph.Object) bool { return n.UID == id.UID })
		if o.Namespace != "" && !known && !slices.Contains(w.noNamespaces, o.Namespace) {
			_ = w.addObject([]string{"Namespace/" + o.Namespace})
		}
	}
}
