// SPDX-License-Identifier: Apache-2.0

package toy

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// restartAfter is the pause before a container that ended runs again.
const restartAfter = time.Second

// Nodes run the containers of Image in the pods of a cluster. The fake kubelet says
// of these pods that they run; Nodes make it so.
type Nodes struct {
	kube    kubernetes.Interface
	config  *rest.Config
	network *Network
	log     func(string)

	mu   sync.Mutex
	pods map[types.UID]*running
	wait sync.WaitGroup
}

// running is a pod with an operator.
type running struct {
	namespace string
	working   bool
	// told ends what heeds a deletion, end everything.
	told, end context.CancelFunc
}

// NewNodes returns nodes for a cluster. The config is that of one who may do
// everything; the network may be nil for pods that nobody calls. log gets a line for
// what goes wrong in a pod, and may be called concurrently.
func NewNodes(config *rest.Config, network *Network, log func(string)) (*Nodes, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making nodes: %w", err)
	}
	return &Nodes{kube: kube, config: config, network: network, log: log, pods: map[types.UID]*running{}}, nil
}

// Run runs the pods that there are, and that come, until ctx ends, and returns when
// all operators have ended.
func (n *Nodes) Run(ctx context.Context) {
	factory := informers.NewSharedInformerFactory(n.kube, 0)
	_, _ = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { n.see(ctx, o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { n.see(ctx, o.(*corev1.Pod)) },
		DeleteFunc: n.forget,
	}) // fails only for an informer that has stopped
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	n.wait.Wait()
}

// Working returns how many operators work in a namespace: those that wait for their
// Lease do not.
func (n *Nodes) Working(namespace string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, p := range n.pods {
		if p.namespace == namespace && p.working {
			count++
		}
	}
	return count
}

// see takes a step with a pod.
func (n *Nodes) see(ctx context.Context, pod *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pods[pod.UID]
	switch {
	case len(pod.Spec.Containers) != 1 || pod.Spec.Containers[0].Image != Image:
	case p == nil && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil:
		n.pods[pod.UID] = n.start(ctx, pod.DeepCopy())
	case p == nil:
	case pod.Status.Phase != corev1.PodRunning:
		p.end()
	case pod.DeletionTimestamp != nil:
		p.told()
	}
}

// forget ends what runs in a pod that is gone.
func (n *Nodes) forget(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if pod, ok := object.(*corev1.Pod); ok && n.pods[pod.UID] != nil {
		n.pods[pod.UID].end()
		delete(n.pods, pod.UID)
	}
}

// start runs a pod's container; the mutex is held.
func (n *Nodes) start(ctx context.Context, pod *corev1.Pod) *running {
	end, endAll := context.WithCancel(ctx)
	told, tell := context.WithCancel(end)
	p := &running{namespace: pod.Namespace, told: tell, end: endAll}
	o, err := Parse(pod.Spec.Containers[0].Args)
	if err != nil {
		n.log(pod.Name + ": " + err.Error())
		return p
	}
	ctx = told
	if o.Linger {
		ctx = end
	}
	n.wait.Go(func() {
		for ctx.Err() == nil {
			if err := n.once(ctx, o, pod, p); err != nil && ctx.Err() == nil {
				n.log(fmt.Sprintf("%s/%s: %v", pod.Namespace, pod.Name, err))
			}
			select {
			case <-ctx.Done():
			case <-time.After(restartAfter):
			}
		}
	})
	return p
}

// once is one run of a pod's container.
func (n *Nodes) once(ctx context.Context, o Options, pod *corev1.Pod, p *running) error {
	if o.Crash {
		return n.showCrash(ctx, pod)
	}
	certificate, err := n.mounts(ctx, pod)
	if err != nil {
		return err
	}
	if o.Serve != "" && n.network != nil {
		server, address, err := serve(o, certificate)
		if err != nil {
			return err
		}
		defer func() { _ = server.Close() }() // the pod ends
		defer n.network.connect(net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(Port)), address)()
	}
	config, err := n.credentials(ctx, pod)
	if err != nil {
		return err
	}
	defer n.setWorking(p, false)
	return Run(ctx, config, o, pod.Name, pod.Namespace, func() { n.setWorking(p, true) })
}

func (n *Nodes) setWorking(p *running, working bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.working = working
}

// mounts does what a kubelet does before it starts a container: everything that the
// pod mounts must be there. It returns the certificate among that.
func (n *Nodes) mounts(ctx context.Context, pod *corev1.Pod) (tls.Certificate, error) {
	var certificate tls.Certificate
	for _, volume := range pod.Spec.Volumes {
		if source := volume.ConfigMap; source != nil {
			if _, err := n.kube.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, source.Name, metav1.GetOptions{}); err != nil {
				return certificate, fmt.Errorf("mounting volume %s: %w", volume.Name, err)
			}
		}
		if source := volume.Secret; source != nil {
			secret, err := n.kube.CoreV1().Secrets(pod.Namespace).Get(ctx, source.SecretName, metav1.GetOptions{})
			if err == nil && secret.Type == corev1.SecretTypeTLS {
				certificate, err = tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
			}
			if err != nil {
				return certificate, fmt.Errorf("mounting volume %s: %w", volume.Name, err)
			}
		}
	}
	return certificate, nil
}

// credentials returns a configuration with a token of the pod's service account, as
// is mounted in a pod: bound to both, so that it dies with either.
func (n *Nodes) credentials(ctx context.Context, pod *corev1.Pod) (*rest.Config, error) {
	seconds := int64(3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	answer, err := n.kube.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking for a token: %w", err)
	}
	config := rest.AnonymousClientConfig(n.config)
	config.BearerToken = answer.Status.Token
	config.QPS = -1
	return config, nil
}

// showCrash gives a pod the status of one whose container ends again and again.
func (n *Nodes) showCrash(ctx context.Context, pod *corev1.Pod) error {
	now, err := n.kube.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (now.UID != pod.UID || now.DeletionTimestamp != nil) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range now.Status.ContainerStatuses {
		s := &now.Status.ContainerStatuses[i]
		if s.RestartCount > 0 {
			return nil
		}
		started := false
		s.Ready, s.Started, s.RestartCount = false, &started, 7
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s restarting failed container"}}
		s.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}
	}
	for i := range now.Status.Conditions {
		if c := &now.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.Status, c.Reason, c.LastTransitionTime = corev1.ConditionFalse, "ContainersNotReady", metav1.Now()
		}
	}
	_, err = n.kube.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
	return err
}
