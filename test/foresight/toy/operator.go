// SPDX-License-Identifier: Apache-2.0

package toy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
)

// workers is how many objects an operator handles at a time.
const workers = 4

// errNoLeader is how an operator ends that has lost its Lease.
var errNoLeader = errors.New("the lease is lost")

// Run works until ctx ends, or the lease is lost. The config is that of its service
// account; pod and namespace are where it runs. working is called when it has
// begun, which with a Lease may take a while.
func Run(ctx context.Context, config *rest.Config, o Options, pod, namespace string, working func()) error {
	config = rest.CopyConfig(config)
	config.UserAgent = o.Name // from which the API server takes the field manager of what states none
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	op := &operator{Options: o, client: client, working: working}
	if !o.LeaderElect {
		op.work(ctx)
		return nil
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	// These are the usual times.
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.Name}, Client: kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: pod},
		},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks:       leaderelection.LeaderCallbacks{OnStartedLeading: op.work, OnStoppedLeading: func() {}},
	})
	if ctx.Err() == nil {
		return errNoLeader
	}
	return nil
}

// An operator is one that runs.
type operator struct {
	Options
	client  dynamic.Interface
	working func()
}

// item is an object in the queue.
type item struct {
	resource schema.GroupVersionResource
	name     cache.ObjectName
}

// work watches the objects, and handles each that changes, until ctx ends.
func (op *operator) work(ctx context.Context) {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(op.client, 0, op.Watch, nil)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[item](200*time.Millisecond, 5*time.Second))
	defer queue.ShutDown()
	for _, name := range op.Resources {
		resource := schema.GroupVersionResource{Group: op.Group, Version: op.Version, Resource: name}
		add := func(object any) {
			if o, ok := object.(*unstructured.Unstructured); ok {
				queue.Add(item{resource, cache.MetaObjectToName(o)})
			}
		}
		_, _ = factory.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: add, UpdateFunc: func(_, object any) { add(object) },
		}) // fails only for an informer that has stopped
	}
	factory.Start(ctx.Done())
	op.working()
	for range workers {
		go op.handleAll(ctx, queue)
	}
	<-ctx.Done()
}

func (op *operator) handleAll(ctx context.Context, queue workqueue.TypedRateLimitingInterface[item]) {
	for {
		it, shutdown := queue.Get()
		if shutdown {
			return
		}
		if err := op.handle(ctx, it); err != nil && ctx.Err() == nil {
			queue.AddRateLimited(it)
		} else {
			queue.Forget(it)
		}
		queue.Done(it)
	}
}

// handle sets the finalizer on an object, or, when it is being deleted, cleans up
// and takes the finalizer off. It leaves alone what is suspended.
func (op *operator) handle(ctx context.Context, it item) error {
	objects := op.client.Resource(it.resource).Namespace(it.name.Namespace)
	o, err := objects.Get(ctx, it.name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); suspended {
		return nil
	}
	has, finalizers := slices.Contains(o.GetFinalizers(), op.Finalizer), slices.Clone(o.GetFinalizers())
	switch {
	case o.GetDeletionTimestamp() == nil && !has && op.Adopt:
		o.SetFinalizers(append(finalizers, op.Finalizer))
	case o.GetDeletionTimestamp() != nil && has:
		select {
		case <-time.After(op.Cleanup): // what there is outside the cluster goes
		case <-ctx.Done():
			return ctx.Err()
		}
		o.SetFinalizers(slices.DeleteFunc(finalizers, func(f string) bool { return f == op.Finalizer }))
	default:
		return nil
	}
	_, err = objects.Update(ctx, o, metav1.UpdateOptions{FieldManager: op.Name})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
