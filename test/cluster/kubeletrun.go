// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// podWorkers is how many pods are handled at the same time.
	podWorkers = 4
	// jobDuration is how long a pod of a Job runs.
	jobDuration = time.Second
	// noNodeRetry is the pause before a pod that found no node is tried again.
	noNodeRetry = time.Second
	// minGrace is the shortest time a kubelet gives to containers, even for
	// grace period 0.
	minGrace = time.Second
)

// A kubeletRun is what a kubelet has in memory between start and stop.
type kubeletRun struct {
	names    []string // of the nodes
	graceCap time.Duration
	client   kubernetes.Interface
	factory  informers.SharedInformerFactory
	pods     corelisters.PodLister
	nodes    corelisters.NodeLister
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]

	mu    sync.Mutex
	binds int                  // pods bound so far
	ips   int                  // pod IPs given so far
	since map[moment]time.Time // when a moment was first seen

	// forgetful: the API server does not keep the generation that a status is for, as
	// 1.33 does with the feature gate PodObservedGenerationTracking off.
	forgetful atomic.Bool
}

// A moment is a change in the life of a pod: that it runs, or that it is being
// deleted.
type moment struct {
	uid         types.UID
	terminating bool
}

func newKubeletRun(client kubernetes.Interface, nodes []string, graceCap time.Duration) *kubeletRun {
	factory := informers.NewSharedInformerFactory(client, 0)
	retry := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](20*time.Millisecond, 2*time.Second)
	return &kubeletRun{
		names:    nodes,
		graceCap: graceCap,
		client:   client,
		factory:  factory,
		pods:     factory.Core().V1().Pods().Lister(),
		nodes:    factory.Core().V1().Nodes().Lister(),
		queue:    workqueue.NewTypedRateLimitingQueue(retry),
		since:    map[moment]time.Time{},
	}
}

// prepare registers the nodes and reads the pods. ctx bounds it; runCtx is the
// context of the watches, which go on.
func (r *kubeletRun) prepare(ctx, runCtx context.Context) error {
	for _, name := range r.names {
		if err := r.registerNode(ctx, name); err != nil {
			return fmt.Errorf("registering node %s: %w", name, err)
		}
	}
	_, err := r.factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(pod any) { r.enqueue(pod) },
		UpdateFunc: func(_, pod any) { r.enqueue(pod) },
		DeleteFunc: r.forget,
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	r.factory.StartWithContext(runCtx)
	if result := r.factory.WaitForCacheSyncWithContext(ctx); result.Err != nil {
		return fmt.Errorf("listing pods and nodes: %w", result.Err)
	}
	return nil
}

// run handles pods and sends heartbeats until ctx ends.
func (r *kubeletRun) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, name := range r.names {
		running.Go(func() { r.sendHeartbeats(ctx, name) })
	}
	for range podWorkers {
		running.Go(func() { r.work(ctx) })
	}
	<-ctx.Done()
	r.queue.ShutDown()
	running.Wait()
	r.factory.Shutdown()
}

func (r *kubeletRun) enqueue(pod any) {
	r.queue.Add(cache.MetaObjectToName(pod.(*corev1.Pod)))
}

// forget drops what is kept about a pod that is gone.
func (r *kubeletRun) forget(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.since, moment{uid: pod.UID})
	delete(r.since, moment{uid: pod.UID, terminating: true})
}

// elapsed returns how long ago a moment was first seen.
func (r *kubeletRun) elapsed(m moment) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, seen := r.since[m]
	if !seen {
		first = time.Now()
		r.since[m] = first
	}
	return time.Since(first)
}

// work handles one pod after another until the queue is shut down.
func (r *kubeletRun) work(ctx context.Context) {
	for {
		name, shutdown := r.queue.Get()
		if shutdown {
			return
		}
		again, err := r.handle(ctx, name)
		switch {
		case err != nil && ctx.Err() == nil:
			klog.FromContext(ctx).Info("Handling a pod failed, trying again", "pod", name, "err", err)
			r.queue.AddRateLimited(name)
		case again > 0:
			r.queue.Forget(name)
			r.queue.AddAfter(name, again)
		default:
			r.queue.Forget(name)
		}
		r.queue.Done(name)
	}
}

// handle takes one step with a pod. What it writes comes back as an event, so
// the next step follows. If the next step has to wait, it returns how long.
func (r *kubeletRun) handle(ctx context.Context, name cache.ObjectName) (time.Duration, error) {
	pod, err := r.pods.Pods(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var again time.Duration
	switch {
	case pod.Spec.NodeName == "":
		again, err = r.schedule(ctx, pod)
	case !slices.Contains(r.names, pod.Spec.NodeName):
		// It belongs to nobody here: its node is dead from the start.
	case pod.DeletionTimestamp != nil:
		again, err = r.terminate(ctx, pod)
	default:
		again, err = r.runPod(ctx, pod)
	}
	if apierrors.IsNotFound(err) {
		err = nil // the pod has just gone
	}
	return again, err
}

// schedule binds a pod to the next node.
func (r *kubeletRun) schedule(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	if pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 ||
		pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
		return 0, nil
	}
	node := r.chooseNode(pod)
	if node == "" {
		return noNodeRetry, nil
	}
	return 0, r.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
		Target:     corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}

// chooseNode returns the node whose turn it is among those that exist and take
// pods, or "". A pod of a DaemonSet is for one node only.
func (r *kubeletRun) chooseNode(pod *corev1.Pod) string {
	wanted := requiredNode(pod)
	candidates := []string{}
	for _, name := range r.names {
		node, err := r.nodes.Get(name)
		if err != nil || (wanted != "" && name != wanted) {
			continue
		}
		if !node.Spec.Unschedulable || wanted != "" {
			candidates = append(candidates, name)
		}
	}
	if len(candidates) == 0 {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.binds++
	return candidates[(r.binds-1)%len(candidates)]
}

// requiredNode returns the node that the DaemonSet controller wants a pod on:
// it says so by a node affinity to the name of the node.
func requiredNode(pod *corev1.Pod) string {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil ||
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// runPod starts a pod, lets one of a Job succeed in time, and otherwise keeps
// the observed generation up to date.
func (r *kubeletRun) runPod(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	switch {
	case isFinished(pod):
		return 0, nil
	case pod.Status.Phase != corev1.PodRunning:
		return 0, r.updateStatus(ctx, pod, runningStatus(pod, r.nextIP(pod)))
	case isJobPod(pod):
		if left := jobDuration - r.elapsed(moment{uid: pod.UID}); left > 0 {
			return left, nil
		}
		return 0, r.updateStatus(ctx, pod, finishedStatus(pod))
	case r.lags(pod):
		return 0, r.updateStatus(ctx, pod, observedStatus(pod))
	}
	return 0, nil
}

// lags reports whether the status of a pod is for an older generation.
func (r *kubeletRun) lags(pod *corev1.Pod) bool {
	return pod.Status.ObservedGeneration != pod.Generation && !r.forgetful.Load()
}

// terminate shows that the kubelet has seen the deletion, waits for the grace
// period, stops the containers and then removes the pod.
func (r *kubeletRun) terminate(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	if isFinished(pod) {
		return 0, r.remove(ctx, pod)
	}
	elapsed := r.elapsed(moment{uid: pod.UID, terminating: true})
	if r.lags(pod) {
		if err := r.updateStatus(ctx, pod, observedStatus(pod)); err != nil || !r.forgetful.Load() {
			return 0, err // the event of that update comes
		}
	}
	if left := r.grace(pod) - elapsed; left > 0 {
		return left, nil
	}
	return 0, r.updateStatus(ctx, pod, finishedStatus(pod))
}

// grace returns how long the pod takes to end.
func (r *kubeletRun) grace(pod *corev1.Pod) time.Duration {
	grace := minGrace
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
		grace = max(minGrace, time.Duration(*seconds)*time.Second)
	}
	if r.graceCap > 0 {
		grace = min(grace, r.graceCap)
	}
	return grace
}

// remove confirms to the API server that the pod has ended. With grace period
// 0 that was done before, and a finalizer keeps the pod.
func (r *kubeletRun) remove(ctx context.Context, pod *corev1.Pod) error {
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil && *seconds == 0 {
		return nil
	}
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	return r.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options)
}

func (r *kubeletRun) updateStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	pod = pod.DeepCopy()
	pod.Status = status
	kept, err := r.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	if err == nil && status.ObservedGeneration != 0 && kept.Status.ObservedGeneration == 0 {
		r.forgetful.Store(true)
	}
	return err
}

// nextIP returns an address for a pod that nothing answers on.
func (r *kubeletRun) nextIP(pod *corev1.Pod) string {
	if pod.Spec.HostNetwork {
		return nodeIP
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ips++
	return fmt.Sprintf("10.244.%d.%d", r.ips/250%250, r.ips%250+1)
}
