// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/workload"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Types that cannot be listed: apiextensions-apiserver/pkg/apiserver/conversion, and the storage transformers of the API
// server. They blind all that list objects of the type: the garbage collector, the namespace controller, and the API server
// when it deletes the instances.

// Gone reports whether a type could not be listed because it was removed between discovery and the list: then nothing is
// left of it.
func Gone(r *evidence.Reader, u graph.Unlisted) bool {
	if u.Reason != graph.ServerError || !answer.IsNoType(u.Message) || graph.BuiltinGroup(u.Group) {
		return false
	}
	_, err := r.Get(evidence.CRDs, "", u.GroupResource().String())
	if !apierrors.IsNotFound(err) {
		return false
	}
	registered, err := r.Get(evidence.APIServices, "", u.Version+"."+u.Group)
	return apierrors.IsNotFound(err) || err == nil && evidence.Nested(registered, "spec", "service", "name") == ""
}

// Unlisted is why a type could not be listed, nil where that is no cause of its own.
func Unlisted(f *rules.Facts, u graph.Unlisted) *finding.Cause {
	if u.Reason != graph.ServerError {
		return nil
	}
	return Unread(f, u.GroupVersionResource, u.Message)
}

// OwnUnlisted is why the type of an object could not be listed: its controllers cannot either, unless one progresses and has written to the
// object since the deletion, which reads another version.
func OwnUnlisted(f *rules.Facts, n graph.Node, progresses bool) (blockers []finding.Blocker) {
	f.Needs(graph.Part{Resource: n.Resource().GroupResource(), Namespace: n.Namespace()})
	for _, u := range f.Unlisted {
		if u.GroupResource() != n.Resource().GroupResource() || u.Namespace != "" && u.Namespace != n.Namespace() {
			continue
		}
		if full, err := f.Whole(n); progresses && err == nil && !f.Finder.ProgressOf(n, full, nil).Written.IsZero() {
			continue
		}
		if c := Unlisted(f, u); c != nil {
			blockers = append(blockers, finding.Blocker{Because: say.Of(TypeUnread), Cause: c})
		}
	}
	return blockers
}

// Unread is the cause of a failure to read objects of a type, nil when the message does not tell.
func Unread(f *rules.Facts, resource schema.GroupVersionResource, message string) *finding.Cause {
	switch {
	case answer.IsConversionFailure(message):
		return conversion(f, resource.GroupResource(), message)
	case answer.IsUndecodable(message):
		return undecodable(f, resource, message)
	}
	return nil
}

// conversion is a definition whose conversion webhook does not convert.
func conversion(f *rules.Facts, resource schema.GroupResource, message string) *finding.Cause {
	return f.Once(finding.ValConversionDead, resource.String(), func(c *finding.Cause) {
		c.At, c.Verdict, c.Summary = evidence.Identity(evidence.CRDs, "", resource.String()), finding.Stuck, say.Of(ConversionFails)
		c.Decides, c.Evidence = say.Plain(admission.Shortened(message)), []finding.Fact{finding.At("the API server", "", message)}
		definition, err := f.Get(evidence.CRDs, "", resource.String())
		if err != nil {
			return
		}
		c.At = evidence.IdentityOf(evidence.CRDs, "CustomResourceDefinition", definition)
		const client = "spec.conversion.webhook.clientConfig."
		if s := converter(f, definition); s != nil {
			c.Evidence = append(append(c.Evidence, finding.At(c.At, client+"service", s.Namespace+"/"+s.Name)), finding.Facts(s.Evidence...)...)
			c.Summary = c.Summary.Then(workload.Hopeless(s))
			c.Ways = workload.Repair(f.Reader, s, say.Of(ReadAgain))
		} else {
			c.Evidence = append(c.Evidence,
				finding.At(c.At, client+"url", evidence.Nested(definition, "spec", "conversion", "webhook", "clientConfig", "url")))
		}
		for _, resource := range Served(definition) { // in the version they are stored in, objects need no conversion
			path := "spec.versions[" + resource.Version + "]"
			if items, err := f.ListAnew(resource); err == nil {
				c.Evidence = append(c.Evidence, finding.AtSays(c.At, path, Listable, evidence.Number(len(items), "object")))
			} else {
				c.Evidence = append(c.Evidence, finding.AtSays(c.At, path, NotListable))
			}
		}
		way := finding.Does(f.Change(c.At, definition, remedy.Replace("/spec/conversion", map[string]any{"strategy": "None"})), ConvertNothing)
		way.Loss = finding.Lost(remedy.LosesObject, graph.Identity{}, LostFields)
		c.Ways = append(c.Ways, way)
	})
}

// converter is the service that converts the objects of a definition, nil for none.
func converter(f *rules.Facts, definition *unstructured.Unstructured) *admission.Serving {
	namespace, name := evidence.Converter(definition)
	if name == "" {
		return nil
	}
	return f.Admission.Serving(namespace, name)
}

// Served returns the type that a definition defines, in each version that the server serves.
func Served(definition *unstructured.Unstructured) []schema.GroupVersionResource {
	var resources []schema.GroupVersionResource
	gr := defines(definition)
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		if v, ok := version.(map[string]any); ok && v["served"] == true {
			resources = append(resources, gr.WithVersion(fmt.Sprint(v["name"])))
		}
	}
	return resources
}

// OtherVersion reads an object in one of the versions in which it can be read, nil when there is none.
func OtherVersion(f *rules.Facts, id graph.Identity) *unstructured.Unstructured {
	definition, err := f.Get(evidence.CRDs, "", id.Resource.GroupResource().String())
	if err != nil {
		return nil
	}
	for _, resource := range Served(definition) {
		if o, err := f.Anew(resource, id.Namespace, id.Name); err == nil {
			return o
		}
	}
	return nil
}

// defines returns the type that a definition defines.
func defines(definition *unstructured.Unstructured) schema.GroupResource {
	return schema.GroupResource{Group: evidence.Nested(definition, "spec", "group"),
		Resource: evidence.Nested(definition, "spec", "names", "plural")}
}

// undecodable is a type of which the API server cannot read what is stored.
func undecodable(f *rules.Facts, resource schema.GroupVersionResource, message string) *finding.Cause {
	return f.Once(finding.ValUnreadable, resource.GroupResource().String(), func(c *finding.Cause) {
		c.At = evidence.Identity(resource, "", "") // the whole type
		if kind, err := f.Graph.Snapshot().Mapper.KindFor(resource); err == nil {
			c.At.Resource.Kind = kind.Kind
		}
		c.Verdict, c.Summary = finding.Stuck, say.Of(NotDecodable, resource.GroupResource())
		c.Decides, c.Evidence = say.Plain(admission.Shortened(message)), []finding.Fact{finding.At("the API server", "", message)}
		unsafely := say.Of(WithUnsafe) // KEP-3926
		if f.Server().DeletesUnreadable() {
			unsafely = say.Of(UnlessUnsafe)
		}
		find := finding.See(remedy.Look{Words: "get --raw", Args: []string{c.At.URLPath() + "?limit=1"}}, FindDamaged, unsafely)
		find.Loss = finding.Lost(remedy.LosesObject, graph.Identity{}, LostGuarded)
		c.Ways = []finding.Way{{Effect: say.Of(RestoreKey)}, find}
		for _, id := range damaged(f, c.At, message) {
			way := finding.Does(remedy.Op{Verb: remedy.Delete, Object: id,
				Options: &metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: new(true)}}, DeleteUnread, id,
				resource.Resource, unsafely)
			way.Loss = finding.Lost(remedy.LosesObject, id, LostGuarded)
			c.Ways = append(c.Ways, way)
		}
	})
}

// damaged returns the objects of a type that the API server says it cannot read, by where they are in etcd: the namespace
// and the name come last.
func damaged(f *rules.Facts, of graph.Identity, message string) []graph.Identity {
	var found []graph.Identity
	namespaced, _ := f.Namespaced(of.Resource.GroupVersionResource)
	for _, key := range answer.StorageKeys(message) {
		parts := strings.Split(key, "/")
		id := of
		id.Name = parts[len(parts)-1]
		if namespaced {
			id.Resource.Namespaced, id.Namespace = true, parts[len(parts)-2]
		}
		if len(parts) > 4 && id.Name != "" && len(found) < evidence.MaxShown {
			found = append(found, id)
		}
	}
	return found
}

// convertedKind matches the kind in the API server's words for a conversion that failed
// (apiextensions-apiserver/pkg/apiserver/conversion).
var convertedKind = pattern.New(`conversion webhook for ([^\s,/]+)/[^\s,/]+, Kind=([^\s,:;]+)`)

// Initializing finds the definitions whose conversion fails: those of the kinds that the message names, or, where the API
// server says only that a storage is being initialized, as it does to the namespace controller for types of which it has no
// object, those that it cannot list in some version.
func Initializing(f *rules.Facts, message string) []*finding.Cause {
	if !answer.IsInitializing(message) && !answer.IsConversionFailure(message) {
		return nil
	}
	all, err := f.List(evidence.CRDs, "")
	if err != nil {
		return nil
	}
	var causes []*finding.Cause
	for i := range all {
		if evidence.Nested(&all[i], "spec", "conversion", "strategy") != "Webhook" {
			continue
		}
		if namesKind(message, &all[i]) || !answer.IsConversionFailure(message) && conversionBroken(f, &all[i]) {
			causes = append(causes, conversion(f, defines(&all[i]), message))
		}
	}
	return causes
}

// namesKind reports whether the message is about the conversion of objects, or lists, of a definition.
func namesKind(message string, definition *unstructured.Unstructured) bool {
	for _, match := range convertedKind().FindAllStringSubmatch(message, -1) {
		kind, list := evidence.Nested(definition, "spec", "names", "kind"), evidence.Nested(definition, "spec", "names", "listKind")
		if match[1] == evidence.Nested(definition, "spec", "group") && slices.Contains([]string{kind, cmp.Or(list, kind+"List")}, match[2]) {
			return true
		}
	}
	return false
}

// conversionBroken reports whether the service that converts the objects of a definition does not work, and a version of
// them cannot be listed for that.
func conversionBroken(f *rules.Facts, definition *unstructured.Unstructured) bool {
	s := converter(f, definition)
	return s != nil && s.Dead && slices.ContainsFunc(Served(definition), func(resource schema.GroupVersionResource) bool {
		_, err := f.ListAnew(resource)
		return err != nil && answer.IsConversionFailure(err.Error())
	})
}
