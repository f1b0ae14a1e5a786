// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Prober asks the API server what it would answer to a write that it does not
// carry out: dry runs. Errors are those of the API server.
type Prober interface {
	// TryPatch sends a JSON merge patch and returns the metadata of the object as
	// it would be.
	TryPatch(ctx context.Context, resource schema.GroupVersionResource, namespace, name, subresource string,
		patch []byte) (*unstructured.Unstructured, error)
	// TryDelete sends a DELETE.
	TryDelete(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) error
}

// Reviewer asks what would become of a write: whether the API server would accept it,
// who refuses it, and whether the webhooks that are asked about it can be reached. It
// creates no cause. It is for one goroutine.
type Reviewer struct {
	ctx      context.Context // of the run
	prober   Prober
	evidence *evidence.Reader
	finder   *controllers.Finder

	// Versions are those of the API in which objects are deleted, where it is not that of their resource.
	Versions map[types.UID]string

	// hooks is nil until it is needed.
	hooks *webhookList
	// services holds what was found out about services.
	services map[types.NamespacedName]*Serving
	probed   probing
	// early are probes that were sent, or will be, before they are asked for; ahead has as
	// many tokens as there are of the former.
	early map[write]*early
	ahead chan struct{}
}

// New returns an Admission. The prober may be nil: then nothing is asked, and what is
// known of webhooks has to do. So may the finder: then no workload is looked for behind a service.
func New(ctx context.Context, prober Prober, reader *evidence.Reader, finder *controllers.Finder) *Reviewer {
	return &Reviewer{
		ctx: ctx, prober: prober, evidence: reader, finder: finder,
		services: map[types.NamespacedName]*Serving{},
		probed:   probing{kinds: map[string]*probesOfAKind{}, noted: map[string]bool{}, again: map[string]tally{}},
		early:    map[write]*early{}, ahead: make(chan struct{}, aheadOf),
	}
}

const (
	// probeDeadline is how long a probe may take: the slowest webhook is given
	// 30 seconds.
	probeDeadline = 33 * time.Second
	// maxProbes bounds the probes of a run, maxProbing the time that they take:
	// a webhook that does not answer takes up to 30 seconds each time.
	maxProbes  = 40
	maxProbing = time.Minute
	// slowAnswer is how long an answer takes that is slow.
	slowAnswer = 5 * time.Second
	// probesAlike is how often the same answer must have come that does not
	// depend on the object, before it is taken as that about others of its kind.
	probesAlike = 2
	// maxOfAKind bounds the probes that are alike: one type with many objects
	// must not use up those of all others.
	maxOfAKind = 10
)

// Reply is the API server's answer to a probe.
type Reply struct {
	answer.Refusal
	// Write is what was asked for, PATCH or DELETE, and subresource of what part
	// of the object, empty for the whole.
	Write, Subresource string
	// About is the object that was asked about.
	About graph.Identity
	// Took is how long the answer took.
	Took time.Duration
	// Asked is how often it was asked when a webhook failed that may work, and Passed how often that did not fail.
	Asked, Passed int
	// Gone: the object is not there any more.
	Gone bool
	// Unsent: it was not asked, because too much was.
	Unsent bool
	// Sole: nobody but the caller is known to send such a write, so that the answer to the caller is the answer.
	Sole bool
	// tellsNothing says that the answer is worth a note and is no answer.
	tellsNothing bool
}

// Slow reports whether the answer took as long as one takes for which somebody else had to be
// waited for.
func (r Reply) Slow() bool { return r.Took >= slowAnswer }

// OK reports whether nothing is known to be against the write.
func (r Reply) OK() bool { return r.Kind == answer.Accepted || r.Kind == answer.NoAnswer }

// probing keeps what was asked.
type probing struct {
	sent  atomic.Int64
	spent time.Duration
	// kinds holds what was asked by what it is about.
	kinds map[string]*probesOfAKind
	noted map[string]bool
	// slow are the answers that a webhook delayed.
	slow []delayed
	// again has by name what came of asking once more for webhooks that failed.
	again map[string]tally
}

// delayed is an answer that took long, with the one webhook that did not answer meanwhile.
type delayed struct {
	Reply
	by *Webhook
}

// probesOfAKind are the probes of objects that differ in little but their names.
type probesOfAKind struct {
	sent int
	// common are the answers that do not depend on the object.
	common []Reply
}

// kindOf names what is alike about probes: what is written, the type and the namespace, and
// what the answer is about.
func kindOf(what string, n graph.Node, alike string) string {
	return what + " " + n.Resource().GroupVersionResource.String() + " " + n.Namespace() + " " + alike
}

// probe asks about a write, unless the answer is known from others of its kind, or
// enough was asked. alike tells what the answer is about; it is empty for a
// question that is about one object. What ask may have sent ahead, send asks again.
func (a *Reviewer) probe(write, subresource string, n graph.Node, alike string, ask, send func() Reply) Reply {
	id := n.Identity()
	resource := id.Resource.GroupVersionResource
	what := strings.TrimSpace(write + " " + subresource)
	key := kindOf(what, n, alike)
	kind := a.probed.kinds[key]
	if kind == nil || alike == "" {
		kind = &probesOfAKind{}
		a.probed.kinds[key] = kind
	}
	if known := len(kind.common); known >= probesAlike && a.holdsFor(kind.common[known-1], n) {
		return kind.common[known-1]
	}
	none := Reply{Refusal: answer.Refusal{Kind: answer.NoAnswer}, Write: what, Subresource: subresource, About: id}
	unsent := none
	unsent.Unsent = true
	if late, waits := a.waitsToo(none, n); waits {
		if late.Kind == answer.WebhookFailed {
			return late.Reply
		}
		a.noteProbe("slow "+late.by.Name, say.Of(slowWrites, late.by.Name, late.Took.Round(time.Second)), false)
		return unsent
	}
	switch {
	case a.prober == nil || len(a.evidence.Missed()) > 0 || !a.local(resource.GroupVersion()):
		return none
	case a.probed.sent.Load() >= maxProbes || a.probed.spent >= maxProbing || a.ctx.Err() != nil:
		a.noteProbe("the limit", say.Of(tooManyWrites), false)
		return unsent
	case kind.sent >= maxOfAKind:
		a.noteProbe(what+" of many "+resource.GroupResource().String(),
			say.Of(tooManyOfAKind, what, resource.GroupResource(), maxOfAKind), false)
		return unsent
	}
	a.probed.sent.Add(1)
	start := time.Now()
	r := ask()
	r.Write, r.Subresource, r.About = what, subresource, id
	a.probed.spent += time.Since(start)
	a.noteSlow(r, n)
	a.repeat(&r, n, send)
	if r.tellsNothing {
		a.noteProbe(what+" "+resource.GroupResource().String(), say.Of(unansweredWrite, what, resource.GroupResource(), r.Message), r.NoRight)
	}
	if kind.sent++; r.NoRight || r.Kind == answer.NamespaceMissing || r.Kind == answer.WebhookFailed {
		kind.common = append(kind.common, r)
	}
	return r
}

// HalfLeft reports whether half of the probes are left.
func (a *Reviewer) HalfLeft() bool { return a.probed.sent.Load() < maxProbes/2 }

// question returns what sends a probe. It may be called by any goroutine.
func question(ctx context.Context, send func(context.Context) error) func() Reply {
	return func() Reply {
		ctx, cancel := context.WithTimeout(ctx, probeDeadline)
		defer cancel()
		start := time.Now()
		err := send(ctx)
		r := Reply{Refusal: answer.ToWrite(err), Took: time.Since(start)}
		r.Gone = r.Kind == answer.NoAnswer && answer.NoObject(err)
		r.tellsNothing = r.Kind == answer.NoAnswer && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err)
		return r
	}
}

// holdsFor reports whether an answer about one object is that about another of
// its kind, too: a webhook that fails must be asked about this one for certain.
func (a *Reviewer) holdsFor(r Reply, n graph.Node) bool {
	if r.Kind != answer.WebhookFailed {
		return true
	}
	all, err := a.webhooks()
	return err == nil && slices.ContainsFunc(all, func(h *Webhook) bool {
		matches, certain := a.Matches(h, r.operation(), r.Subresource, n)
		return h.Name == r.Name && h.FailurePolicy != "Ignore" && matches && certain
	})
}

// operation is what admission calls the write.
func (r Reply) operation() string {
	if r.Write == "DELETE" {
		return r.Write
	}
	return "UPDATE"
}

// noteProbe keeps once what could not be found out.
func (a *Reviewer) noteProbe(about string, what say.Text, forbidden bool) {
	if !a.probed.noted[about] {
		a.probed.noted[about] = true
		a.evidence.NoteUnread(evidence.Gap{What: what, Open: true, Forbidden: forbidden})
	}
}

// local reports whether the API server itself stores the types of the group
// version: nothing else is probed.
func (a *Reviewer) local(gv schema.GroupVersion) bool {
	local, err := graph.Local(gv, func(name string) (*unstructured.Unstructured, error) {
		return a.evidence.Get(evidence.APIServices, "", name)
	})
	return local && err == nil
}

// metadataOf is a merge patch of the object's metadata that another object of
// its name refuses.
func metadataOf(uid types.UID, field string, value any) []byte {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, field: value}})
	if err != nil {
		panic(err) // strings and owner references can always be marshalled
	}
	return data
}

// TryRemoval asks whether a finalizer may be taken off the object.
func (a *Reviewer) TryRemoval(n graph.Node, finalizer string) Reply {
	send := a.removal(a.ctx, n, finalizer)
	return a.probe("PATCH", "", n, alikeRemovals(finalizer), a.take(write{n.UID(), finalizer}, send), send)
}

// alikeRemovals names what TryRemoval asks about.
func alikeRemovals(finalizer string) string { return "finalizer " + finalizer }

// removal sends the probe of TryRemoval.
func (a *Reviewer) removal(ctx context.Context, n graph.Node, finalizer string) func() Reply {
	id := n.Identity()
	kept := slices.DeleteFunc(slices.Clone(n.Object().Finalizers), func(f string) bool { return f == finalizer })
	return question(ctx, func(ctx context.Context) error {
		o, err := a.prober.TryPatch(ctx, id.Resource.GroupVersionResource, id.Namespace, id.Name, "",
			metadataOf(id.UID, "finalizers", append([]string{}, kept...)))
		if err == nil && slices.Contains(o.GetFinalizers(), finalizer) {
			return answer.ErrKept
		}
		// One that was there when the object was read may be gone, and would be added by this.
		if added := answer.AddedFinalizers(err); slices.ContainsFunc(added, func(f string) bool { return !slices.Contains(kept, f) }) {
			return fmt.Errorf("%w: %w", answer.ErrAdds, err)
		}
		return err
	})
}

// TryDelete asks whether the object may be deleted. Objects of which the guilty
// one is looked for are not alike.
func (a *Reviewer) TryDelete(n graph.Node, alike string) Reply {
	send := a.deletion(a.ctx, n)
	return a.probe("DELETE", "", n, alike, a.take(write{n.UID(), ""}, send), send)
}

// deletion sends the probe of TryDelete.
func (a *Reviewer) deletion(ctx context.Context, n graph.Node) func() Reply {
	id := n.Identity()
	return question(ctx, func(ctx context.Context) error {
		return a.prober.TryDelete(ctx, id.Resource.GroupVersionResource, id.Namespace, id.Name)
	})
}

// TryRelease asks whether the references to an owner may be dropped.
func (a *Reviewer) TryRelease(n graph.Node, owner types.UID) Reply {
	id := n.Identity()
	kept := slices.DeleteFunc(slices.Clone(n.Object().OwnerReferences), func(r metav1.OwnerReference) bool { return r.UID == owner })
	send := question(a.ctx, func(ctx context.Context) error {
		_, err := a.prober.TryPatch(ctx, id.Resource.GroupVersionResource, id.Namespace, id.Name, "",
			metadataOf(id.UID, "ownerReferences", append([]metav1.OwnerReference{}, kept...)))
		return err
	})
	return a.probe("PATCH", "", n, "", send, send)
}

// TryStatus asks whether the status of the object may be written.
func (a *Reviewer) TryStatus(n graph.Node) Reply {
	id := n.Identity()
	send := question(a.ctx, func(ctx context.Context) error {
		_, err := a.prober.TryPatch(ctx, id.Resource.GroupVersionResource, id.Namespace, id.Name, "status", metadataOf(id.UID, "name", id.Name))
		return err
	})
	return a.probe("PATCH", "status", n, "status", send, send)
}

// Fact is the API server's answer as evidence, about the object that was asked about.
func (r Reply) Fact() evidence.Fact {
	fact := evidence.At(say.Of(dryRunOf, r.Write, r.About), "", Shortened(r.Message))
	if r.Asked > 1 && r.Passed == 0 {
		fact.Path = fmt.Sprintf(failedEachTime, r.Asked)
	}
	return fact
}

// longest is how much is shown of what an API server says of a value: it may be all of the object.
const longest = 300

// Shortened is what an API server says, as far as it is shown.
func Shortened(text string) string {
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "..."
	}
	return text
}
