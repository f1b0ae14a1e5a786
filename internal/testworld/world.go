// SPDX-License-Identifier: Apache-2.0

// Package testworld reads clusters that tests write as lines of text. What all tests need
// is here: the types that are served, and the metadata of objects. What else a line may
// say each test adds.
package testworld

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Types reads a table of types, one a line:
//
//	apps/v1 Deployment deployments namespaced     or: cluster
func Types(table string) []graph.Resource {
	var all []graph.Resource
	for line := range strings.Lines(strings.TrimSpace(table)) {
		f := strings.Fields(line)
		gv, err := schema.ParseGroupVersion(f[0])
		if err != nil || len(f) != 4 {
			panic(line)
		}
		all = append(all, graph.Resource{GroupVersionResource: gv.WithResource(f[2]), Kind: f[1], Namespaced: f[3] == "namespaced"})
	}
	return all
}

// Mapper returns the RESTMapper that client-go makes of the types.
func Mapper(types []graph.Resource) meta.RESTMapper {
	var groups []*restmapper.APIGroupResources
	byName := map[string]*restmapper.APIGroupResources{}
	for _, r := range types {
		version := metav1.GroupVersionForDiscovery{GroupVersion: r.GroupVersion().String(), Version: r.Version}
		g := byName[r.Group]
		if g == nil {
			g = &restmapper.APIGroupResources{
				Group:              metav1.APIGroup{Name: r.Group, PreferredVersion: version},
				VersionedResources: map[string][]metav1.APIResource{},
			}
			byName[r.Group], groups = g, append(groups, g)
		}
		if _, known := g.VersionedResources[r.Version]; !known {
			g.Group.Versions = append(g.Group.Versions, version)
		}
		g.VersionedResources[r.Version] = append(g.VersionedResources[r.Version],
			metav1.APIResource{Name: r.Resource, Kind: r.Kind, Namespaced: r.Namespaced})
	}
	return restmapper.NewDiscoveryRESTMapper(groups)
}

// World is what was read so far.
type World struct {
	Types   []graph.Resource
	Objects []graph.Object
	// Now is what times are counted from.
	Now time.Time
	// UID makes that of an object for which none is stated.
	UID func(kind, namespace, name string) types.UID
}

// Path is a UID that says where the object is.
func Path(kind, namespace, name string) types.UID {
	if namespace == "" {
		return types.UID(kind + "/" + name)
	}
	return types.UID(kind + "/" + namespace + "/" + name)
}

// Name is a UID that is the object's name.
func Name(_, _, name string) types.UID { return types.UID(name) }

// Add reads an object, Kind/namespace/name or Kind/name, with
//
//	uid=u  rv=7  finalizers=a,b  label=key=value
//	owner=...  owners=...,...       as Owner has them
//	deleting  deleting=+30          being deleted, with the deletion timestamp in seconds from now
//	deleted=60  made=60             its deletion was asked for, or it was made, so many seconds ago
//	dgps=30                         the grace period of its deletion
//	as=v1+apps/v1                   read in these versions, in this order
//
// Other words are for the caller. What was added is returned, and may be changed.
func (w *World) Add(words []string, other func(o *graph.Object, key, value string) error) (*graph.Object, error) {
	parts := strings.Split(words[0], "/")
	o := graph.Object{Name: parts[len(parts)-1], ResourceVersion: "1"}
	if len(parts) == 3 {
		o.Namespace = parts[1]
	}
	if w.UID != nil {
		o.UID = w.UID(parts[0], o.Namespace, o.Name)
	}
	versions := []string{""}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		if key == "as" {
			versions = strings.Split(value, "+")
			continue
		}
		known, err := w.word(&o, key, value)
		if !known && other == nil {
			err = fmt.Errorf("unknown word %q", word)
		} else if !known {
			err = other(&o, key, value)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, apiVersion := range versions {
		var err error
		if o.Resource, err = w.Type(parts[0], apiVersion); err != nil {
			return nil, err
		}
		if o.Resource.Namespaced != (o.Namespace != "") {
			return nil, fmt.Errorf("%s is of the other scope", words[0])
		}
		w.Objects = append(w.Objects, o)
	}
	return &w.Objects[len(w.Objects)-1], nil
}

// word takes what a word says that all tests know.
func (w *World) word(o *graph.Object, key, value string) (bool, error) {
	number, notNumber := strconv.ParseInt(value, 10, 64)
	at := func(seconds int64) metav1.Time {
		return metav1.Time{Time: w.Now.Add(time.Duration(seconds) * time.Second)}
	}
	switch key {
	case "uid":
		o.UID = types.UID(value)
	case "rv":
		o.ResourceVersion = value
	case "finalizers":
		o.Finalizers = strings.Split(value, ",")
	case "label":
		k, v, _ := strings.Cut(value, "=")
		if o.Labels == nil {
			o.Labels = map[string]string{}
		}
		o.Labels[k] = v
	case "owner", "owners":
		owners := []string{value}
		if key == "owners" {
			owners = strings.Split(value, ",")
		}
		for _, owner := range owners {
			ref, err := w.Owner(owner, o.Namespace)
			if err != nil {
				return true, err
			}
			o.OwnerReferences = append(o.OwnerReferences, ref)
		}
	case "deleting":
		o.DeletionTimestamp = new(at(number))
	case "deleted":
		o.DeletionTimestamp, o.DeletionGracePeriodSeconds = new(at(-number)), new(int64)
	case "made":
		o.CreationTimestamp = at(-number)
	case "dgps":
		o.DeletionGracePeriodSeconds = &number
	default:
		return false, nil
	}
	if notNumber != nil && (key == "deleted" || key == "made" || key == "dgps" || key == "deleting" && value != "") {
		return true, fmt.Errorf("%s=%s is no number", key, value)
	}
	return true, nil
}

// Type returns the first type of the kind, in the version if one is stated.
func (w *World) Type(kind, apiVersion string) (*graph.Resource, error) {
	i := slices.IndexFunc(w.Types, func(r graph.Resource) bool {
		return r.Kind == kind && (apiVersion == "" || r.GroupVersion().String() == apiVersion)
	})
	if i < 0 {
		return nil, fmt.Errorf("no type %s", strings.TrimSpace(apiVersion+" "+kind))
	}
	return &w.Types[i], nil
}

// Owner reads a reference, with flags behind: ! blocks, ~ says that it does not, *
// controls. It is Kind/name, for an owner in the dependent's namespace or without one,
// or states everything: apiVersion:Kind:name:uid. The name may hold colons then.
func (w *World) Owner(text, namespace string) (metav1.OwnerReference, error) {
	ref := metav1.OwnerReference{}
	for ; text != "" && strings.ContainsRune("!~*", rune(text[len(text)-1])); text = text[:len(text)-1] {
		switch text[len(text)-1] {
		case '!':
			ref.BlockOwnerDeletion = new(true)
		case '~':
			ref.BlockOwnerDeletion = new(false)
		case '*':
			ref.Controller = new(true)
		}
	}
	if f := strings.Split(text, ":"); len(f) > 3 {
		ref.APIVersion, ref.Kind = f[0], f[1]
		ref.Name, ref.UID = strings.Join(f[2:len(f)-1], ":"), types.UID(f[len(f)-1])
		return ref, nil
	}
	kind, name, _ := strings.Cut(text, "/")
	r, err := w.Type(kind, "")
	if err != nil {
		return ref, err
	}
	if !r.Namespaced {
		namespace = ""
	}
	ref.APIVersion, ref.Kind, ref.Name, ref.UID = r.GroupVersion().String(), kind, name, w.UID(kind, namespace, name)
	return ref, nil
}

// Flags writes the flags of a reference as Owner reads them.
func Flags(ref metav1.OwnerReference) string {
	text := ""
	switch blocks := ref.BlockOwnerDeletion; {
	case blocks != nil && *blocks:
		text += "!"
	case blocks != nil:
		text += "~"
	}
	if ref.Controller != nil && *ref.Controller {
		text += "*"
	}
	return text
}
