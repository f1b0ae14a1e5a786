// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/testworld"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// served are the types of these tests, by the names that worlds use.
var served = func() map[string]*graph.Resource {
	all := map[string]*graph.Resource{}
	for _, r := range testworld.Served() {
		all[strings.Replace(strings.ToLower(r.Kind), "customresourcedefinition", "crd", 1)] = &r
	}
	return all
}()

func servedMapper() meta.RESTMapper { return testworld.Mapper(servedTypes()) }

func servedTypes() []graph.Resource {
	var types []graph.Resource
	for _, r := range served {
		types = append(types, *r)
	}
	return types
}

// fatal is what reading a world needs of a testing.TB or a rapid.T.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// parseWorld reads objects, one a line:
//
//	[namespace:]kind/name [finalizers=a,b] [deleting] [grace=30] [version=1] [< owner ...]
//
// The UID is the name, the namespace shop. An owner is written as parseOwner
// says.
func parseWorld(t fatal, text string) []graph.Object {
	t.Helper()
	world := testworld.World{Types: servedTypes(), UID: testworld.Name}
	for line := range strings.Lines(text) {
		line, owners, _ := strings.Cut(strings.TrimSpace(line), " <")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		stated := parseObject(t, words[0])
		words[0] = stated.Identity().String()
		o, err := world.Add(words, func(o *graph.Object, key, value string) (err error) {
			var seconds int64
			switch key {
			case "version":
				o.ResourceVersion = value
			case "grace":
				seconds, err = strconv.ParseInt(value, 10, 64)
				o.DeletionGracePeriodSeconds = &seconds
			default:
				err = fmt.Errorf("what is %s?", key)
			}
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		o.Resource = stated.Resource
		for _, owner := range strings.Fields(owners) {
			o.OwnerReferences = append(o.OwnerReferences, parseOwner(t, owner))
		}
	}
	return world.Objects
}

func parseObject(t fatal, text string) graph.Object {
	t.Helper()
	namespace, rest, other := strings.Cut(text, ":")
	if !other {
		namespace, rest = "shop", text
	}
	kind, name, _ := strings.Cut(rest, "/")
	r := served[kind]
	if r == nil || name == "" {
		t.Fatalf("what object is %s?", text)
	}
	if !r.Namespaced {
		namespace = ""
	}
	return graph.Object{Resource: r, Namespace: namespace, Name: name, UID: types.UID(name), ResourceVersion: "1"}
}

// parseOwner reads kind/name, with ! when it blocks and ~ when it says that it
// does not. A wrong UID stands behind @, a wrong apiVersion before the kind.
func parseOwner(t fatal, text string) metav1.OwnerReference {
	t.Helper()
	var blocks *bool
	if bare, cut := strings.CutSuffix(text, "!"); cut {
		text, blocks = bare, new(true)
	} else if bare, cut := strings.CutSuffix(text, "~"); cut {
		text, blocks = bare, new(false)
	}
	text, uid, stated := strings.Cut(text, "@")
	fields := strings.Split(text, "/")
	kind, name := fields[len(fields)-2], fields[len(fields)-1]
	if !stated {
		uid = name
	}
	ref := metav1.OwnerReference{Kind: kind, Name: name, UID: types.UID(uid), BlockOwnerDeletion: blocks}
	if r := served[kind]; r != nil {
		ref.APIVersion, ref.Kind = r.GroupVersion().String(), r.Kind
	}
	if prefix := fields[:len(fields)-2]; len(prefix) > 0 {
		ref.APIVersion = strings.Join(prefix, "/")
	}
	return ref
}

func formatOwners(refs []metav1.OwnerReference) string {
	var owners []string
	for _, ref := range refs {
		owner := string(ref.UID)
		if ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion {
			owner += "!"
		} else if ref.BlockOwnerDeletion != nil {
			owner += "~"
		}
		owners = append(owners, owner)
	}
	return strings.Join(owners, " ")
}

// targetsOf returns targets by their UIDs, named as the graph has them.
func targetsOf(g *graph.Graph, uids ...string) []Target {
	var targets []Target
	for _, uid := range uids {
		id := graph.Identity{UID: types.UID(uid)}
		if n, ok := g.Node(id.UID); ok {
			id = n.Identity()
		}
		targets = append(targets, Target{Identity: id})
	}
	return targets
}

// graphOf returns the graph of objects of which nothing was missed.
func graphOf(objects []graph.Object) *graph.Graph {
	s := &graph.Snapshot{Mapper: servedMapper()}
	for _, r := range served {
		s.MarkListed(r.GroupResource(), "", "1")
	}
	for _, o := range objects {
		s.Add(o)
	}
	return graph.New(s)
}

func short(o *graph.Object) string {
	for name, r := range served {
		if r.GroupResource() == o.Resource.GroupResource() {
			return name + "/" + o.Name
		}
	}
	return o.Name
}

// fake is an API server that does what a script says, and otherwise no more than
// the algorithm needs to go on: it has no pods, no namespaces and no defaults.
//
// A script has one line for each thing that happens out of turn:
//
//	DELETE a: touch a        when a DELETE of a comes in, a is changed first
//	PATCH b: always 403      every PATCH of b is refused
//	rest: remove b           when all is at rest, b disappears
//	answer DELETE a: wait    something happens after a was deleted and before the
//	                         answer is given
//
// Several lines for the same request are used one after the other. What can
// happen, several things with a semicolon between them:
//
//	touch NAME               the object's version moves
//	own NAME < OWNERS        its owner references become these
//	free NAME                its finalizers are taken off
//	keep NAME                its finalizers become example.com/x alone
//	foreground NAME          somebody else deletes it, with that policy
//	deselect NAME            it does not match the selector any more
//	lose NAME                its type is not served any more
//	remove NAME              it is deleted by somebody else
//	recreate NAME            the same, and a new one has its name; its UID is NAME'
//	again NAME               its last event comes once more
//	create OBJECT            a line of parseWorld
//	mute                     events of what comes next are lost, up to loud
//	cancel                   the user presses Ctrl-C
//	wait                     nothing goes on until all events have been applied,
//	                         by another goroutine
//	403, 404, 404-namespace, 404-type, 409, 422, 500, 502, 504, late
//	                         the answer, and nothing is done; late is that of a
//	                         client that has waited long enough
type fake struct {
	t      fatal
	cancel context.CancelFunc

	mu      sync.Mutex
	applied *sync.Cond // signals that Events was called
	asked   int        // how often it was, with nothing left to tell
	script  []*scripted
	live    map[types.UID]*graph.Object
	last    map[types.UID]Event
	mute    bool
	version int
	pending []Event
	log     []string

	inFlight, mostInFlight int
	// meet, when it is set, holds the first writes to objects with a long name
	// until so many requests are in flight at once.
	meet int
	met  bool
	// deselected are objects that the selector does not match any more.
	deselected map[types.UID]bool
	// also are other names under which live objects are seen.
	also []graph.Object
	// lenient: what should happen to an object that is not there does not.
	lenient bool
	// deleting, when it is set, is told which object is about to be deleted, and
	// what else there is.
	deleting func(o *graph.Object, live map[types.UID]*graph.Object)
}

type scripted struct {
	request string
	always  bool
	effects []string
}

func newFake(t fatal, objects []graph.Object, script string) *fake {
	t.Helper()
	f := &fake{t: t, live: map[types.UID]*graph.Object{}, last: map[types.UID]Event{}, version: 1, cancel: func() {}}
	f.applied = sync.NewCond(&f.mu)
	for _, o := range objects {
		f.live[o.UID] = &o
	}
	for line := range strings.Lines(script) {
		request, effects, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		effects, always := strings.CutPrefix(strings.TrimSpace(effects), "always ")
		f.script = append(f.script, &scripted{request, always, strings.Split(effects, ";")})
	}
	return f
}

// Get implements Server.
func (f *fake) Get(ctx context.Context, resource graph.Resource, namespace, name string) (graph.Object, error) {
	asked := graph.Object{Resource: &resource, Namespace: namespace, Name: name}
	end, err := f.begin(ctx, "GET", &asked, "")
	if err != nil {
		return graph.Object{}, err
	}
	defer end()
	if o := f.at(&asked); o != nil {
		return *o, nil
	}
	return graph.Object{}, apierrors.NewNotFound(resource.GroupResource(), name)
}

// selects returns targets as if a selector had chosen them. To ask again is a LIST.
func (f *fake) selects(targets []Target) []Target {
	for i := range targets {
		id := targets[i].Identity
		if o := f.live[id.UID]; o != nil {
			targets[i].Matched = o.ResourceVersion
		}
		targets[i].Reselect = func(ctx context.Context, _ Server) (graph.Object, bool, error) {
			asked := graph.Object{Resource: &id.Resource, Namespace: id.Namespace, Name: id.Name}
			end, err := f.begin(ctx, "LIST", &asked, "")
			if err != nil {
				return graph.Object{}, false, err
			}
			defer end()
			o := f.at(&asked)
			if o == nil || f.deselected[o.UID] {
				return graph.Object{}, false, nil
			}
			return *o, true, nil
		}
	}
	return targets
}

// Delete implements Server.
func (f *fake) Delete(ctx context.Context, id graph.Identity, options metav1.DeleteOptions) error {
	asked := graph.Object{Resource: &id.Resource, Namespace: id.Namespace, Name: id.Name}
	details := string(*options.PropagationPolicy)
	if options.Preconditions.ResourceVersion == nil {
		details += " by UID"
	}
	end, err := f.begin(ctx, "DELETE", &asked, details)
	if err != nil {
		return err
	}
	defer end()
	o := f.at(&asked)
	if o == nil {
		return apierrors.NewNotFound(id.Resource.GroupResource(), id.Name)
	}
	wanted := options.Preconditions.ResourceVersion
	if o.UID != *options.Preconditions.UID || wanted != nil && o.ResourceVersion != *wanted {
		return apierrors.NewConflict(id.Resource.GroupResource(), id.Name, errors.New("the object has been modified"))
	}
	if f.deleting != nil {
		f.deleting(o, f.live)
	}
	now := *o
	now.DeletionTimestamp = &metav1.Time{}
	now.Finalizers = slices.DeleteFunc(slices.Clone(o.Finalizers), func(x string) bool {
		return x == metav1.FinalizerDeleteDependents || x == metav1.FinalizerOrphanDependents
	})
	switch *options.PropagationPolicy {
	case metav1.DeletePropagationForeground:
		now.Finalizers = append(now.Finalizers, metav1.FinalizerDeleteDependents)
	case metav1.DeletePropagationOrphan:
		now.Finalizers = append(now.Finalizers, metav1.FinalizerOrphanDependents)
	}
	if o.BeingDeleted() && slices.Equal(now.Finalizers, o.Finalizers) {
		return nil // and there is no event
	}
	f.store(now)
	return nil
}

// Patch implements Server.
func (f *fake) Patch(ctx context.Context, base graph.Object, p Patch) (graph.Object, error) {
	end, err := f.begin(ctx, "PATCH", &base, formatPatch(p))
	if err != nil {
		return graph.Object{}, err
	}
	defer end()
	o := f.at(&base)
	switch {
	case o == nil:
		return graph.Object{}, apierrors.NewNotFound(base.Resource.GroupResource(), base.Name)
	case o.UID != base.UID || o.ResourceVersion != base.ResourceVersion:
		return graph.Object{}, apierrors.NewConflict(base.Resource.GroupResource(), base.Name, errors.New("the object has been modified"))
	}
	now := *o
	now.OwnerReferences, now.Finalizers = p.OwnerReferences(o.OwnerReferences), p.Finalizers(o.Finalizers)
	return f.store(now), nil
}

func formatPatch(p Patch) string {
	switch {
	case p.Unblock:
		return "unblock"
	case p.RemoveFinalizer != "":
		return "drop finalizer " + p.RemoveFinalizer
	}
	return fmt.Sprint("drop owners ", p.RemoveOwners)
}

// Events implements Server. It never blocks: a world at rest says so.
func (f *fake) Events(ctx context.Context, wait bool) ([]Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pending) == 0 && wait && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(f.pending) == 0 && wait {
		_ = f.play("rest") // which is no request, so there is no answer
	}
	if len(f.pending) == 0 {
		f.asked++
		f.applied.Broadcast()
		if wait {
			return nil, ErrAtRest
		}
		return nil, nil
	}
	events := f.pending
	f.pending = nil
	return events, nil
}

// CatchUp implements Server. It is a request that a script may know, as CATCHUP; an answer is why nothing is
// proved.
func (f *fake) CatchUp(round int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.play("CATCHUP")
	if err == nil && len(f.pending) == 0 {
		return true
	}
	f.pending = append(f.pending, Event{CaughtUp: round, Err: err})
	return false
}

// begin takes a request in, with the lock, and plays what the script says of
// it. If it returns no error, end must be called before the answer is given.
func (f *fake) begin(ctx context.Context, verb string, o *graph.Object, details string) (end func(), err error) {
	f.mu.Lock()
	f.inFlight++
	f.mostInFlight = max(f.mostInFlight, f.inFlight)
	if f.meet > 0 && verb != "GET" && len(o.Name) > 1 {
		f.gather()
	}
	f.log = append(f.log, strings.TrimSpace(verb+" "+short(o)+" "+details))
	request := verb + " " + o.Name
	end = func() {
		_ = f.play("answer " + request) // too late for another answer
		f.inFlight--
		f.mu.Unlock()
	}
	if err = ctx.Err(); err == nil {
		err = f.play(request)
	}
	if err != nil {
		end()
	}
	return end, err
}

// gather waits until enough requests are in flight.
func (f *fake) gather() {
	if f.inFlight >= f.meet {
		f.met = true
		f.applied.Broadcast()
	}
	for !f.met {
		f.applied.Wait()
	}
}

// play does what the script says of a request.
func (f *fake) play(request string) error {
	i := slices.IndexFunc(f.script, func(s *scripted) bool { return s.request == request })
	if i < 0 {
		return nil
	}
	s := f.script[i]
	if !s.always {
		f.script = slices.Delete(f.script, i, i+1)
	}
	for _, effect := range s.effects {
		if err := f.effect(strings.TrimSpace(effect), request); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) effect(effect, request string) error {
	verb, rest, _ := strings.Cut(effect, " ")
	name, owners, _ := strings.Cut(rest, " <")
	o := f.live[types.UID(name)]
	switch verb {
	case "cancel":
		f.cancel()
	case "later":
		time.Sleep(2 * proofLasts)
	case "mute", "loud":
		f.mute = verb == "mute"
	case "wait":
		for asked := f.asked; asked == f.asked; {
			f.applied.Wait()
		}
	case "create":
		for _, o := range parseWorld(f.t, rest) {
			f.store(o)
		}
	case "deselect":
		f.deselected = map[types.UID]bool{types.UID(name): true}
		f.meddle("touch", *o, nil)
	case "again":
		f.pending = append(f.pending, f.last[types.UID(name)])
	case "touch", "own", "free", "keep", "foreground", "orphan", "remove", "lose", "recreate":
		if o == nil && !f.lenient {
			f.t.Fatalf("%s: there is no such object", effect)
		}
		if o != nil {
			f.meddle(verb, *o, strings.Fields(owners))
		}
	default:
		return f.answer(verb, request)
	}
	return nil
}

// meddle changes an object as somebody else would.
func (f *fake) meddle(verb string, o graph.Object, owners []string) {
	switch verb {
	case "own":
		o.OwnerReferences = nil
		for _, owner := range owners {
			o.OwnerReferences = append(o.OwnerReferences, parseOwner(f.t, owner))
		}
	case "free":
		o.Finalizers = nil
	case "keep":
		o.Finalizers = []string{"example.com/x"}
	case "foreground":
		o.DeletionTimestamp, o.Finalizers = &metav1.Time{}, []string{metav1.FinalizerDeleteDependents}
	case "orphan":
		o.DeletionTimestamp, o.Finalizers = &metav1.Time{}, []string{metav1.FinalizerOrphanDependents}
	case "remove", "recreate":
		f.removed(o)
	case "lose":
		f.pending = append(f.pending, Event{Object: o, Lost: true})
	}
	switch verb {
	case "touch", "own", "free", "keep", "foreground", "orphan":
		f.store(o)
	case "recreate":
		o.UID += "'"
		o.DeletionTimestamp, o.Finalizers = nil, nil
		f.store(o)
	}
}

func (f *fake) answer(code, request string) error {
	_, name, _ := strings.Cut(request, " ")
	resource := schema.GroupResource{Resource: "things"}
	switch code {
	case "403":
		return apierrors.NewForbidden(resource, name, errors.New("not for you"))
	case "404":
		return apierrors.NewNotFound(resource, name)
	case "404-namespace":
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop")
	case "404-type":
		return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "", "404 page not found", 0, true)
	case "409":
		return apierrors.NewConflict(resource, name, errors.New("no"))
	case "422":
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, name, nil)
	case "500":
		return apierrors.NewInternalError(errors.New("broken"))
	case "etcd": // as the API server passes it on
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "etcdserver: request timed out"}}
	case "502": // as client-go has it from a proxy
		return apierrors.NewGenericServerResponse(http.StatusBadGateway, "delete", schema.GroupResource{}, "", "<html>", 0, true)
	case "504":
		return apierrors.NewTimeoutError("too late", 0)
	case "late":
		return fmt.Errorf("%s: %w", request, context.DeadlineExceeded)
	}
	f.t.Fatalf("%s: what is %s?", request, code)
	return nil
}

// at returns the object with another's coordinates.
func (f *fake) at(asked *graph.Object) *graph.Object {
	there := func(o *graph.Object) bool {
		return o.Resource.GroupResource() == asked.Resource.GroupResource() && o.Namespace == asked.Namespace && o.Name == asked.Name
	}
	for _, o := range f.live {
		if there(o) {
			return o
		}
	}
	for _, also := range f.also {
		if o := f.live[also.UID]; o != nil && there(&also) {
			seen := *o
			seen.Resource, seen.Name = also.Resource, also.Name
			return &seen
		}
	}
	return nil
}

// shows has objects of which several may have one UID, or none: the first is the
// object, the others are how else it is seen.
func (f *fake) shows(objects []graph.Object) {
	for _, o := range objects {
		if f.live[o.UID] == nil && o.UID != "" {
			f.live[o.UID] = &o
		} else {
			f.also = append(f.also, o)
		}
	}
}

// store stores the next version of an object, or removes it when nothing keeps
// it, and returns it.
func (f *fake) store(o graph.Object) graph.Object {
	f.version++
	o.ResourceVersion = strconv.Itoa(f.version)
	if o.BeingDeleted() && len(o.Finalizers) == 0 {
		f.removed(o)
		return o
	}
	f.live[o.UID] = &o
	f.tell(Event{Object: o})
	return o
}

func (f *fake) removed(o graph.Object) {
	delete(f.live, o.UID)
	f.tell(Event{Object: o, Removed: true})
}

func (f *fake) tell(e Event) {
	f.last[e.Object.UID] = e
	if !f.mute {
		f.pending = append(f.pending, e)
	}
}

// left returns the objects that are there, as parseWorld reads them except for
// their owners' kinds.
func (f *fake) left() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var left []string
	for _, o := range f.live {
		line := short(o)
		if o.UID != types.UID(o.Name) {
			line += "'"
		}
		if len(o.Finalizers) > 0 {
			line += " finalizers=" + strings.Join(o.Finalizers, ",")
		}
		if o.BeingDeleted() {
			line += " deleting"
		}
		if len(o.OwnerReferences) > 0 {
			line += " < " + formatOwners(o.OwnerReferences)
		}
		left = append(left, line)
	}
	slices.Sort(left)
	return left
}

// there returns the objects that there are.
func (f *fake) there() []graph.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	var there []graph.Object
	for _, o := range f.live {
		there = append(there, *o)
	}
	slices.SortFunc(there, func(a, b graph.Object) int { return a.Identity().Compare(b.Identity()) })
	return there
}

// outcomes returns a report's outcomes as lines.
func outcomes(r *Report) []string {
	var lines []string
	for _, o := range r.Outcomes {
		line := fmt.Sprintf("%s %s", short(&o.Object), o.Result)
		if !o.Reason.IsZero() {
			line += ": " + o.Reason.String()
		}
		for _, id := range o.WaitingFor {
			line += fmt.Sprintf(" [%s]", id)
		}
		lines = append(lines, line)
	}
	return lines
}

// lines returns the lines of a text without their indentation.
func lines(text string) []string {
	var result []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			result = append(result, line)
		}
	}
	return result
}
