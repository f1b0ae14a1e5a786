// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

const (
	nodeIP = "127.0.0.1"
	// Leases are those of a kubelet with default settings.
	leaseDuration  = 40 * time.Second
	leaseInterval  = 10 * time.Second
	heartbeatRetry = time.Second
)

// registerNode creates a node, or makes the one that is there Ready again.
func (r *kubeletRun) registerNode(ctx context.Context, name string) error {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: runtime.GOARCH,
			},
		},
		Status: nodeStatus(name),
	}
	_, err := r.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return r.reportReady(ctx, name)
}

// reportReady writes the status of a healthy node. It patches, as others
// write other parts of the status.
func (r *kubeletRun) reportReady(ctx context.Context, name string) error {
	patch, err := json.Marshal(map[string]any{"status": nodeStatus(name)})
	if err != nil {
		return err
	}
	_, err = r.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// nodeStatus returns the status of a large, healthy node.
func nodeStatus(name string) corev1.NodeStatus {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("1000"),
	}
	status := corev1.NodeStatus{
		Capacity:    resources,
		Allocatable: resources,
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: nodeIP},
			{Type: corev1.NodeHostName, Address: name},
		},
		NodeInfo: corev1.NodeSystemInfo{
			OperatingSystem:         "linux",
			Architecture:            runtime.GOARCH,
			KubeletVersion:          "fake",
			ContainerRuntimeVersion: "fake://0",
		},
	}
	now := metav1.Now()
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
		corev1.NodePIDPressure, corev1.NodeReady} {
		condition := corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: "FakeKubelet",
			LastHeartbeatTime: now, LastTransitionTime: now}
		if kind == corev1.NodeReady {
			condition.Status = corev1.ConditionTrue
		}
		status.Conditions = append(status.Conditions, condition)
	}
	return status
}

// sendHeartbeats keeps a node alive until ctx ends.
func (r *kubeletRun) sendHeartbeats(ctx context.Context, name string) {
	for {
		pause := leaseInterval
		if err := r.heartbeat(ctx, name); err != nil {
			klog.FromContext(ctx).Info("Sending a heartbeat failed, trying again", "node", name, "err", err)
			pause = heartbeatRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// heartbeat renews the Lease of a node, and reports it Ready if the node
// lifecycle controller has given it up. Once deleted, a node stays away until
// the kubelet is started again, as with the real one.
func (r *kubeletRun) heartbeat(ctx context.Context, name string) error {
	node, err := r.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.renewLease(ctx, node); err != nil {
		return fmt.Errorf("renewing the lease: %w", err)
	}
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if ready {
		return nil
	}
	return r.reportReady(ctx, name)
}

// renewLease writes the present time to the Lease of a node, and creates the
// Lease if there is none.
func (r *kubeletRun) renewLease(ctx context.Context, node *corev1.Node) error {
	leases := r.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NowMicro()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": now}})
	if err != nil {
		return err
	}
	_, err = leases.Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	seconds := int32(leaseDuration / time.Second)
	_, err = leases.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:            node.Name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &node.Name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, metav1.CreateOptions{})
	return err
}
