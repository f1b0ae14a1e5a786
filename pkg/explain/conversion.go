// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Types that cannot be listed: apiextensions-apiserver/pkg/apiserver/conversion, and the
// storage transformers of the API server.

// Failed is an object that was asked for and could not be read.
type Failed struct {
	Object graph.Identity
	Err    error
}

// Unreadable reports whether an error says that the server cannot hand out an
// object because of what its type or its stored bytes are like, which Explain
// can explain.
func Unreadable(err error) bool {
	return err != nil && (answer.IsConversionFailure(err.Error()) || answer.IsUndecodable(err.Error()))
}

// unreadableObject explains an object that the server cannot hand out. In
// another version it may.
func (w *walker) unreadableObject(f Failed) Explanation {
	e := Explanation{Object: f.Object, Verdict: Unknown, Chain: []Link{{Object: f.Object, Because: fmt.Sprintf(unreadable, f.Err)}}}
	c := w.unreadableType(f.Object.Resource.GroupVersionResource, f.Err.Error())
	if c == nil {
		return e
	}
	o := otherVersion(w.evidence, f.Object)
	if o != nil {
		e.Object.UID = o.GetUID()
		e.Chain[0].Object.UID = o.GetUID()
		if o.GetDeletionTimestamp() == nil {
			e.Verdict = NotTerminating
			return e
		}
		e.Since = o.GetDeletionTimestamp().Time
	}
	e.Verdict = c.Verdict
	way := append(slices.Clone(e.Chain), Link{Object: c.Object, Because: c.Summary})
	e.Findings = []Finding{{c, way}}
	if o != nil {
		e.Findings = append(e.Findings, w.inOtherVersion(e, o)...)
	}
	e.Chain = way
	return e
}

// otherVersion reads an object in one of the versions in which it can be read,
// nil when there is none.
func otherVersion(facts *evidence.Reader, id graph.Identity) *unstructured.Unstructured {
	definition, err := facts.Get(crds, "", id.Resource.GroupResource().String())
	if err != nil {
		return nil
	}
	for _, resource := range servedVersions(definition) {
		if o, err := facts.Anew(resource, id.Namespace, id.Name); err == nil {
			return o
		}
	}
	return nil
}

// inOtherVersion is what can be done about an object in the version in which it
// can be read.
func (w *walker) inOtherVersion(e Explanation, o *unstructured.Unstructured) []Finding {
	id := e.Object
	id.Resource.Version = o.GroupVersionKind().Version
	if !slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		return nil
	}
	end := atOnceThen
	if len(o.GetFinalizers()) > 1 {
		end = onceFinalized
	}
	c := w.blindOwner(id, end, Evidence{Source: id.String(), Path: "apiVersion", Value: fmt.Sprintf(readableIn, o.GetAPIVersion())})
	return []Finding{{c, e.Chain}}
}

// unreadableType returns the cause of a failure to read objects of a type, nil
// when the message does not tell.
func (w *walker) unreadableType(resource schema.GroupVersionResource, message string) *Cause {
	switch {
	case answer.IsConversionFailure(message):
		return w.conversion(resource.GroupResource(), message)
	case answer.IsUndecodable(message):
		return w.undecodable(resource, message)
	}
	return nil
}

// unlistedCauses returns why types could not be listed, each cause once, where
// that is a cause of its own.
func (w *walker) unlistedCauses(unlisted []graph.Unlisted) []*Cause {
	var causes []*Cause
	for _, u := range unlisted {
		if u.Reason != graph.ServerError {
			continue
		}
		if c := w.unreadableType(u.GroupVersionResource, u.Message); c != nil && !slices.Contains(causes, c) {
			causes = append(causes, c)
		}
	}
	return causes
}

// typeGone reports whether a type could not be listed because it was removed
// between discovery and the list: then nothing is left of it.
func typeGone(facts *evidence.Reader, u graph.Unlisted) bool {
	if u.Reason != graph.ServerError || !answer.IsNoType(u.Message) || graph.BuiltinGroup(u.Group) {
		return false
	}
	_, err := facts.Get(crds, "", u.GroupResource().String())
	if !apierrors.IsNotFound(err) {
		return false
	}
	registered, err := facts.Get(apis, "", u.Version+"."+u.Group)
	return apierrors.IsNotFound(err) || err == nil && evidence.Nested(registered, "spec", "service", "name") == ""
}

// conversion is a definition whose conversion webhook does not convert. It
// blinds all that list objects of the type: the garbage collector, the
// namespace controller, and the API server when it deletes the instances.
func (w *walker) conversion(resource schema.GroupResource, message string) *Cause {
	at := evidence.Identity(crds, "", resource.String())
	definition, err := w.evidence.Get(crds, "", resource.String())
	if err == nil {
		at = evidence.IdentityOf(crds, "CustomResourceDefinition", definition)
	}
	return w.shared(resource.String(), finding.ValConversionDead, at, func(c *Cause) {
		c.Verdict, c.Summary = Stuck, conversionFails
		c.Evidence = []Evidence{{Source: "the API server", Value: message}}
		if err != nil {
			return
		}
		var s *admission.Serving
		if service := evidence.Nested(definition, "spec", "conversion", "webhook", "clientConfig", "service", "name"); service != "" {
			s = w.asker.Serving(evidence.Nested(definition, "spec", "conversion", "webhook", "clientConfig", "service", "namespace"), service)
			c.Evidence = append(c.Evidence, Evidence{Source: at.String(), Path: "spec.conversion.webhook.clientConfig.service", Value: s.Namespace + "/" + s.Name})
			c.Evidence = append(c.Evidence, s.Evidence...)
			c.Summary += hopeless(s)
			c.Remedies = w.repair(s, readAgain)
		} else {
			c.Evidence = append(c.Evidence, Evidence{
				Source: at.String(), Path: "spec.conversion.webhook.clientConfig.url", Value: evidence.Nested(definition, "spec", "conversion", "webhook", "clientConfig", "url"),
			})
		}
		c.Evidence = append(c.Evidence, readableVersions(w.evidence, at, definition)...)
		c.Remedies = append(c.Remedies, Remedy{
			Risk: Dangerous, Action: w.change(at, definition, remedy.Replace("/spec/conversion", map[string]any{"strategy": "None"})),
			Effect: convertNothing, Loss: loses(remedy.LosesObject, fieldsDropped),
		})
	})
}

// readableVersions says in which of its versions the objects of a definition
// can be listed: in the one they are stored in they need no conversion.
func readableVersions(facts *evidence.Reader, at graph.Identity, definition *unstructured.Unstructured) []Evidence {
	var versions []Evidence
	for _, resource := range servedVersions(definition) {
		value := notListable
		if items, err := facts.ListAnew(resource); err == nil {
			value = fmt.Sprintf(listable, evidence.Number(len(items), "object"))
		}
		versions = append(versions, Evidence{Source: at.String(), Path: "spec.versions[" + resource.Version + "]", Value: value})
	}
	return versions
}

// servedVersions returns the type that a definition defines, in each version
// that the server serves.
func servedVersions(definition *unstructured.Unstructured) []schema.GroupVersionResource {
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

// defines returns the type that a definition defines.
func defines(definition *unstructured.Unstructured) schema.GroupResource {
	return schema.GroupResource{Group: evidence.Nested(definition, "spec", "group"), Resource: evidence.Nested(definition, "spec", "names", "plural")}
}

// undecodable is a type of which the API server cannot read what is stored.
func (w *walker) undecodable(resource schema.GroupVersionResource, message string) *Cause {
	at := evidence.Identity(resource, "", "") // the whole type
	if kind, err := w.Graph.Snapshot().Mapper.KindFor(resource); err == nil {
		at.Resource.Kind = kind.Kind
	}
	return w.shared(resource.GroupResource().String(), finding.ValUnreadable, at, func(c *Cause) {
		c.Verdict, c.Summary = Stuck, fmt.Sprintf(notDecodable, resource.GroupResource())
		c.Evidence = []Evidence{{Source: "the API server", Value: message}}
		c.Remedies = []Remedy{
			{Risk: Safe, Effect: restoreKey},
			{
				Risk: Dangerous, Action: shows("%s get --raw %s", w.Kubectl, shell.Quote(at.URLPath()+"?limit=1")),
				Effect: fmt.Sprintf(findDamaged, unsafely(w.Server.DeletesUnreadable())), Loss: loses(remedy.LosesObject, objectAndGuarded),
			},
		}
		for _, id := range w.damaged(at, message) {
			c.Remedies = append(c.Remedies, Remedy{
				Risk:   Dangerous,
				Action: w.does(remedy.Op{Verb: remedy.Delete, Object: id, Options: &metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: new(true)}}),
				Effect: fmt.Sprintf(deleteUnread, id, resource.Resource, unsafely(w.Server.DeletesUnreadable())), Loss: losesObject(id, objectAndGuarded),
			})
		}
	})
}

// damaged returns the objects of a type that the API server says it cannot read, by
// where they are in etcd: the namespace and the name come last.
func (w *walker) damaged(of graph.Identity, message string) []graph.Identity {
	var found []graph.Identity
	namespaced, _ := w.namespaced(of.Resource.GroupVersionResource)
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

// convertedKind matches the kind in the API server's words for a conversion that
// failed (apiextensions-apiserver/pkg/apiserver/conversion).
var convertedKind = pattern.New(`conversion webhook for ([^\s,/]+)/[^\s,/]+, Kind=([^\s,:;]+)`)

// initializing finds the definitions whose conversion fails: those of the kinds
// that the message names, or, where the API server says only that a storage is
// being initialized, as it does to the namespace controller for types of which
// it has no object, those that it cannot list in some version.
func (w *walker) initializing(message string) []*Cause {
	if !answer.IsInitializing(message) && !answer.IsConversionFailure(message) {
		return nil
	}
	all, err := w.evidence.List(crds, "")
	if err != nil {
		return nil
	}
	var causes []*Cause
	for i := range all {
		if evidence.Nested(&all[i], "spec", "conversion", "strategy") != "Webhook" {
			continue
		}
		if namesKind(message, &all[i]) || !answer.IsConversionFailure(message) && conversionBroken(w.evidence, w.asker, &all[i]) {
			causes = append(causes, w.conversion(defines(&all[i]), message))
		}
	}
	return causes
}

// namesKind reports whether the message is about the conversion of objects, or
// lists, of a definition.
func namesKind(message string, definition *unstructured.Unstructured) bool {
	for _, match := range convertedKind().FindAllStringSubmatch(message, -1) {
		kind, list := evidence.Nested(definition, "spec", "names", "kind"), evidence.Nested(definition, "spec", "names", "listKind")
		if match[1] == evidence.Nested(definition, "spec", "group") && slices.Contains([]string{kind, cmp.Or(list, kind+"List")}, match[2]) {
			return true
		}
	}
	return false
}

// conversionBroken reports whether the service that converts the objects of a
// definition does not work, and a version of them cannot be listed for that.
func conversionBroken(facts *evidence.Reader, asker *admission.Asker, definition *unstructured.Unstructured) bool {
	service := evidence.Nested(definition, "spec", "conversion", "webhook", "clientConfig", "service", "name")
	namespace := evidence.Nested(definition, "spec", "conversion", "webhook", "clientConfig", "service", "namespace")
	if service == "" || !asker.Serving(namespace, service).Dead {
		return false
	}
	return slices.ContainsFunc(servedVersions(definition), func(resource schema.GroupVersionResource) bool {
		_, err := facts.ListAnew(resource)
		return err != nil && answer.IsConversionFailure(err.Error())
	})
}

// instancesRefused is what keeps the API server from deleting the instances of a
// definition.
func (w *walker) instancesRefused(n graph.Node, instances schema.GroupResource) []hold {
	var holds []hold
	add := func(symptom Kind, because string, c *Cause) {
		if c != nil && !slices.ContainsFunc(holds, func(h hold) bool { return h.cause == c }) {
			holds = append(holds, hold{symptom: symptom, because: because, cause: c})
		}
	}
	for _, u := range w.unlisted {
		if u.GroupResource() == instances && u.Reason == graph.ServerError {
			if c := w.unreadableType(u.GroupVersionResource, u.Message); c != nil {
				add(finding.CrdConversion, instancesUnlisted, c)
				add(Kind{}, instancesUnlisted, w.definitionBlind(n, c))
			}
		}
	}
	if w.age(n) <= collectorDelay {
		return holds
	}
	for m := range w.evidence.Instances(schema.ParseGroupResource(n.Name())) {
		if m.BeingDeleted() {
			continue
		}
		// It asks no admission, so what that says to others does not matter
		// (apiextensions-apiserver/pkg/controller/finalizer, deleteInstances).
		if r := w.asker.TryDelete(m, "instance"); r.Kind == answer.ConversionFailed || r.Kind == answer.Undecodable {
			add(finding.CrdInstances, fmt.Sprintf(instanceKept, m.Identity()), refusedWrite{w, m, r, "DELETE"}.cause())
		}
	}
	return holds
}

// definitionBlind is a definition whose instances the API server cannot list,
// and so cannot delete.
func (w *walker) definitionBlind(n graph.Node, root *Cause) *Cause {
	return w.cause(finding.CrdConversion, n.Identity(), "", func(c *Cause) {
		c.Verdict, c.Summary = Stuck, definitionKept
		c.Evidence = []Evidence{{Source: root.Object.String(), Value: root.Summary}}
		if full, err := w.evidence.Whole(n); err == nil {
			if condition, ok := evidence.ConditionOf(full, "Terminating"); ok {
				c.Evidence = append(c.Evidence, condition.Fact(n.Identity().String()))
			}
		}
		c.Remedies = []Remedy{w.nudge(n, onceListable)}
	})
}

// nudge makes the API server look at a definition again, which it does ever
// more rarely after failures. when ends the sentence.
func (w *walker) nudge(n graph.Node, when string) Remedy {
	return Remedy{Risk: Safe, Action: w.does(remedy.Op{Verb: remedy.Annotate, Object: n.Identity(), Value: "kubectl-gc/nudge"}), Effect: retryNow + when}
}

// collectorBlind is an owner in foreground deletion of a type that the garbage
// collector cannot list: it does not see the owner, and never looks at it.
func (w *walker) collectorBlind(n graph.Node, root *Cause) *Cause {
	return w.blindOwner(n.Identity(), goes(n), Evidence{Source: root.Object.String(), Value: root.Summary})
}

// blindOwner is an owner in foreground deletion that the garbage collector does not see; end says when it is deleted
// otherwise.
func (w *walker) blindOwner(id graph.Identity, end string, why Evidence) *Cause {
	return w.cause(finding.GcBlind, id, "", func(c *Cause) {
		c.Verdict, c.Summary = Stuck, collectorSeesNot
		c.Evidence = []Evidence{{Source: id.String(), Path: "metadata.finalizers", Value: metav1.FinalizerDeleteDependents}, why}
		c.Remedies = []Remedy{{Risk: Safe, Action: w.delete(id, background), Effect: fmt.Sprintf(blindly, end)}}
	})
}

// blindTo returns the causes that keep the garbage collector from listing the
// type of an object.
func (w *walker) blindTo(n graph.Node) []*Cause {
	resource := n.Resource().GroupResource()
	var own []graph.Unlisted
	for _, u := range w.unlisted {
		if u.GroupResource() == resource {
			own = append(own, u)
		}
	}
	return w.unlistedCauses(own)
}
