// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/differential/live"
)

// TestBesideOthers runs delete and collect, several at a time, beside the cluster's own
// garbage collector, a controller that makes objects again, a deletion of the namespace,
// and somebody who changes owner references and finalizers all the time. Afterwards the
// audit log says what the plugin wrote, and watches say what was when it did. Each write
// has to be for one version of one object; nothing may go that had an owner which stayed,
// but what was named; and in the end nothing is left that should have gone.
func TestBesideOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	t.Parallel() // it mostly waits
	cp := controlplane.Start(t, controlplane.Options{AuditLog: true, Controllers: "garbage-collector-controller,namespace-controller"})
	world, err := live.Connect(t.Context(), cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	history, err := record(ctx, world.Client, besideTypes...)
	if err != nil {
		t.Fatal(err)
	}
	seeds(t, 2, 1, func(seed uint64) {
		s := &storm{world: world, cp: cp, random: rand.New(rand.NewPCG(seed, 5)), namespace: fmt.Sprintf("beside-%d", seed), endsEarly: seed%2 == 1}
		if err := s.run(t.Context()); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	})
	cp.Logged(t)
	if err := history.catchUp(t.Context(), world.Client); err != nil {
		t.Fatal(err)
	}
	stop()
	history.watches.Wait()
	if history.failed != nil {
		t.Fatal(history.failed)
	}
	counts := map[string]int{}
	for _, w := range writesIn(t, cp.AuditLog) {
		counts[w.Verb]++
		if !named(w.ObjectRef.Name) {
			counts[w.Verb+" of what nobody named"]++
		}
		if err := history.judge(w, named); err != nil {
			t.Error(err)
		}
		if w.Verb != "delete" && w.Verb != "patch" {
			t.Errorf("%s", w)
		}
	}
	t.Logf("writes of the plugin: %v", counts)
	if counts["delete of what nobody named"] < 10 || counts["patch of what nobody named"] == 0 {
		t.Errorf("the plugin wrote %v, which tells nothing", counts)
	}
}

// besideTypes are the types of the objects.
var besideTypes = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"},
	{Group: gctest.CustomGroup, Version: "v1", Resource: "widgets"},
}

var besideKinds = map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "widgets": "Widget"}

// named reports whether an object may be named in a command, by itself or by a selector.
func named(name string) bool {
	return strings.HasPrefix(name, "root-") || strings.HasPrefix(name, "pick-")
}

// storm is a namespace in which much happens.
type storm struct {
	world     *live.World
	cp        *controlplane.ControlPlane
	random    *rand.Rand
	namespace string
	// endsEarly: the namespace is deleted in the middle of it.
	endsEarly bool

	mu   sync.Mutex // of errs
	errs []error
}

// How many objects there are at first, of which the roots own nothing but are owned by
// none; and how long it blows.
const (
	roots, picks, others = 4, 6, 60
	stormTakes           = 5 * time.Second
)

func (s *storm) run(ctx context.Context) error {
	if err := s.world.CreateNamespace(ctx, s.namespace); err != nil {
		return err
	}
	if err := s.fill(ctx); err != nil {
		return err
	}
	blowing, calm := context.WithTimeout(ctx, stormTakes)
	defer calm()
	var all sync.WaitGroup
	for i := range 4 {
		random := rand.New(rand.NewPCG(s.random.Uint64(), uint64(i)))
		all.Go(func() { s.command(ctx, blowing, random) })
	}
	for i := range 2 {
		random := rand.New(rand.NewPCG(s.random.Uint64(), uint64(i)))
		all.Go(func() { s.meddle(blowing, random) })
	}
	all.Go(func() { s.remake(blowing) })
	if s.endsEarly {
		all.Go(func() {
			time.Sleep(stormTakes / 2)
			if err := s.world.Client.Resource(gctest.Namespaces).Delete(ctx, s.namespace, metav1.DeleteOptions{}); err != nil {
				s.failed(err)
			}
		})
	}
	all.Wait()
	return errors.Join(errors.Join(s.errs...), s.settle(ctx))
}

func (s *storm) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
}

// fill makes the objects: each but the roots is owned by one or two of those before it.
func (s *storm) fill(ctx context.Context) error {
	var made []metav1.OwnerReference
	for i := range roots + picks + others {
		name := fmt.Sprintf("dependent-%d", i)
		switch {
		case i < roots:
			name = fmt.Sprintf("root-%d", i)
		case i < roots+picks:
			name = fmt.Sprintf("pick-%d", i)
		}
		var owners []metav1.OwnerReference
		if i >= roots {
			for range 1 + s.random.IntN(2) {
				owners = append(owners, made[s.random.IntN(len(made))])
			}
		}
		ref, err := s.make(ctx, besideTypes[s.random.IntN(len(besideTypes))], name, owners)
		if err != nil {
			return err
		}
		made = append(made, ref)
	}
	return nil
}

// make creates an object and returns a reference to it.
func (s *storm) make(ctx context.Context, resource schema.GroupVersionResource, name string, owners []metav1.OwnerReference) (metav1.OwnerReference, error) {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(resource.GroupVersion().String())
	o.SetKind(besideKinds[resource.Resource])
	o.SetName(name)
	o.SetOwnerReferences(unique(owners))
	if strings.HasPrefix(name, "pick-") {
		o.SetLabels(map[string]string{"pick": "yes"})
	}
	made, err := s.client(resource).Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	return reference(made), nil
}

func (s *storm) client(resource schema.GroupVersionResource) dynamic.ResourceInterface {
	return s.world.Client.Resource(resource).Namespace(s.namespace)
}

// unique leaves the second of two references to the same owner out, which the API server
// would warn of.
func unique(refs []metav1.OwnerReference) []metav1.OwnerReference {
	var one []metav1.OwnerReference
	for _, ref := range refs {
		if !slices.ContainsFunc(one, func(other metav1.OwnerReference) bool { return other.UID == ref.UID }) {
			one = append(one, ref)
		}
	}
	return one
}

// reference is one to an object. It blocks if the last digit of the object's UID is even.
func reference(o *unstructured.Unstructured) metav1.OwnerReference {
	uid := o.GetUID()
	blocks := (uid[len(uid)-1]-'0')%2 == 0
	return metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: uid, BlockOwnerDeletion: &blocks}
}

// command runs the plugin again and again.
func (s *storm) command(ctx, blowing context.Context, random *rand.Rand) {
	for blowing.Err() == nil {
		cascade := "--cascade=" + []string{"background", "foreground"}[random.IntN(2)]
		words := []string{"collect"}
		switch kind := besideTypes[random.IntN(len(besideTypes))].Resource; random.IntN(4) {
		case 0:
			words = []string{"delete", kind, "-l", "pick=yes", cascade}
		case 1, 2:
			words = []string{"delete", fmt.Sprintf("%s/root-%d", kind, random.IntN(roots)), cascade, "--ignore-not-found"}
		}
		r, err := run(ctx, s.cp.Kubeconfig, append(words, "-n", s.namespace, "--yes", "--wait=false")...)
		if err == nil {
			err = r.manners()
		}
		if err != nil {
			s.failed(fmt.Errorf("%w\n%s", err, r))
		}
	}
}

// meddle changes owner references and finalizers of what nobody names.
func (s *storm) meddle(ctx context.Context, random *rand.Rand) {
	const pause = 15 * time.Millisecond
	for ctx.Err() == nil {
		all, err := s.objects(ctx)
		if err != nil || len(all) == 0 {
			continue
		}
		o := all[random.IntN(len(all))]
		if named(o.GetName()) {
			continue
		}
		switch random.IntN(5) {
		case 0, 1: // another owner, which others may own that it owns itself
			o.SetOwnerReferences(unique(append(o.GetOwnerReferences(), reference(all[random.IntN(len(all))]))))
		case 2:
			if refs := o.GetOwnerReferences(); len(refs) > 1 {
				o.SetOwnerReferences(refs[:len(refs)-1])
			}
		case 3:
			o.SetFinalizers(append(slices.DeleteFunc(o.GetFinalizers(), isTests), testsFinalizer))
		case 4:
			o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), isTests))
		}
		s.update(ctx, o)
		time.Sleep(pause)
	}
}

const testsFinalizer = "example.com/hold"

func isTests(finalizer string) bool { return finalizer == testsFinalizer }

// update stores an object, unless it has changed or gone, or may not change so.
func (s *storm) update(ctx context.Context, o *unstructured.Unstructured) {
	_, err := s.client(resourceOf(o)).Update(ctx, o, metav1.UpdateOptions{})
	if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		s.failed(err)
	}
}

func resourceOf(o *unstructured.Unstructured) schema.GroupVersionResource {
	for _, resource := range besideTypes {
		if besideKinds[resource.Resource] == o.GetKind() {
			return resource
		}
	}
	panic(o.GetKind())
}

// objects returns all that were made in the namespace.
func (s *storm) objects(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, resource := range besideTypes {
		list, err := s.client(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if o := &list.Items[i]; o.GetName() != "kube-root-ca.crt" {
				all = append(all, o)
			}
		}
	}
	return all, nil
}

// remake makes roots again that have gone, and a dependent of each, as a controller would.
func (s *storm) remake(ctx context.Context) {
	const pause = 100 * time.Millisecond
	for n := 0; ctx.Err() == nil; n++ {
		root, err := s.make(ctx, besideTypes[n%len(besideTypes)], fmt.Sprintf("root-%d", n%roots), nil)
		if err == nil {
			_, err = s.make(ctx, besideTypes[(n+1)%len(besideTypes)], fmt.Sprintf("dependent-again-%d", n), []metav1.OwnerReference{root})
		}
		ended := apierrors.HasStatusCause(err, "NamespaceTerminating") || apierrors.IsNotFound(err) && s.endsEarly
		if err != nil && ctx.Err() == nil && !apierrors.IsAlreadyExists(err) && !ended {
			s.failed(err)
		}
		time.Sleep(pause)
	}
}

// settle takes away what holds objects, and returns when what is left has a reason to be
// there: nothing that is being deleted, and nothing whose owners are all gone.
func (s *storm) settle(ctx context.Context) error {
	const pause, patience = 500 * time.Millisecond, 90 * time.Second
	var left []string
	err := wait.PollUntilContextTimeout(ctx, pause, patience, true, func(ctx context.Context) (bool, error) {
		all, err := s.objects(ctx)
		if err != nil {
			return false, err
		}
		there := map[string]bool{}
		for _, o := range all {
			there[string(o.GetUID())] = true
		}
		left = nil
		for _, o := range all {
			if slices.ContainsFunc(o.GetFinalizers(), isTests) {
				o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), isTests))
				s.update(ctx, o)
			}
			owners := o.GetOwnerReferences()
			lost := len(owners) > 0 && !slices.ContainsFunc(owners, func(ref metav1.OwnerReference) bool { return there[string(ref.UID)] })
			if lost || o.GetDeletionTimestamp() != nil || s.endsEarly {
				left = append(left, fmt.Sprintf("%s/%s %v", o.GetKind(), o.GetName(), owners))
			}
		}
		if len(left) == 0 {
			return true, nil
		}
		_, err = run(ctx, s.cp.Kubeconfig, "collect", "-n", s.namespace, "--yes", "--wait=false")
		return false, err
	})
	if err != nil {
		return fmt.Errorf("%w: what is left and should not be: %s", err, strings.Join(left, "; "))
	}
	return nil
}
