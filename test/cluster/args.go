// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
)

// ports are the ports of one control plane. A component keeps its port when it
// is started again.
type ports struct {
	etcd, etcdPeer, apiserver, controllerManager int
}

// Ports are chosen between these, below the range the kernel takes the local
// ports of outgoing connections from. Inside that range a client that calls a
// stopped component could connect to itself, and a restarted component could
// find its port taken.
const (
	minPort = 10000
	maxPort = 30000
)

// choosePorts returns ports that are free now. Another process can still take
// one before a component listens on it; then that component fails to start
// with errPortTaken.
func choosePorts() (ports, error) {
	var p ports
	taken := map[int]bool{}
	for _, port := range []*int{&p.etcd, &p.etcdPeer, &p.apiserver, &p.controllerManager} {
		for attempts := 0; *port == 0; attempts++ {
			if attempts == 1000 {
				return ports{}, fmt.Errorf("finding a free port on 127.0.0.1: %d attempts failed", attempts)
			}
			candidate := minPort + rand.IntN(maxPort-minPort)
			if !taken[candidate] && isFree(candidate) {
				*port = candidate
				taken[candidate] = true
			}
		}
	}
	return p, nil
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	listener.Close()
	return true
}

// url127 returns the URL of a port. All components serve TLS.
func url127(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }

func etcdArgs(p ports, c *credentials, dataDir string) []string {
	return []string{
		"--name=default",
		"--data-dir=" + dataDir,
		"--unsafe-no-fsync",
		"--listen-client-urls=" + url127(p.etcd),
		"--advertise-client-urls=" + url127(p.etcd),
		"--cert-file=" + c.certFile(),
		"--key-file=" + c.keyFile(),
		"--listen-peer-urls=" + url127(p.etcdPeer),
		"--initial-advertise-peer-urls=" + url127(p.etcdPeer),
		"--initial-cluster=default=" + url127(p.etcdPeer),
		"--peer-cert-file=" + c.certFile(),
		"--peer-key-file=" + c.keyFile(),
		"--log-level=warn",
	}
}

// apiserverArgs leaves out the ServiceAccount admission plugin: with it, no
// pod can be created before the controller manager has made the service
// account "default", and there may be no controller manager.
func apiserverArgs(p ports, c *credentials, audit auditFiles, extra []string) []string {
	args := []string{
		"--etcd-servers=" + url127(p.etcd),
		"--etcd-cafile=" + c.caFile(),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.apiserver),
		"--tls-cert-file=" + c.certFile(),
		"--tls-private-key-file=" + c.keyFile(),
		// The loopback address is not allowed in the Endpoints of the service
		// "kubernetes", and a machine may have no other: keep none.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--token-auth-file=" + c.tokenFile(),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.serviceAccountKey(),
		"--service-account-signing-key-file=" + c.serviceAccountKey(),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--disable-admission-plugins=ServiceAccount",
		"--allow-privileged=true",
		"--profiling=false",
	}
	if audit.log != "" {
		args = append(args, "--audit-policy-file="+audit.policy, "--audit-log-path="+audit.log)
	}
	return override(args, extra)
}

// controllerManagerArgs elects a leader only under "all": the Lease is part of
// what a complete control plane shows, but a killed leader makes its successor
// wait for the Lease to expire, which tests of the garbage collector alone
// need not pay for.
func controllerManagerArgs(p ports, c *credentials, controllers string, extra []string) []string {
	return override([]string{
		"--kubeconfig=" + c.kubeconfig(controllerManagerUser),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.controllerManager),
		"--tls-cert-file=" + c.certFile(),
		"--tls-private-key-file=" + c.keyFile(),
		"--root-ca-file=" + c.caFile(),
		"--service-account-private-key-file=" + c.serviceAccountKey(),
		"--use-service-account-credentials=false",
		"--controllers=" + controllerList(controllers),
		fmt.Sprintf("--leader-elect=%t", controllers == ControllersAll),
		// The default of 20 requests per second is for sharing a server.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--profiling=false",
	}, extra)
}

// controllerList translates the short names of Options.Controllers.
func controllerList(controllers string) string {
	switch controllers {
	case ControllersAll:
		return "*"
	case ControllersGC:
		return "garbage-collector-controller"
	default:
		return controllers
	}
}

// override appends the extra flags and removes defaults of the same name. Left
// in, they would add up with the extra ones where a flag takes a list.
func override(defaults, extra []string) []string {
	given := map[string]bool{}
	for _, arg := range extra {
		given[flagName(arg)] = true
	}
	args := []string{}
	for _, arg := range defaults {
		if !given[flagName(arg)] {
			args = append(args, arg)
		}
	}
	return append(args, extra...)
}

// flagName returns the name in "--name=value".
func flagName(arg string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return name
}
