// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"
)

// leaseSeconds is how long the node's lease holds: short, so that a dead
// kubelet shows soon. A kubelet renews it four times as often.
const leaseSeconds = 8

// writeConfig writes what containerd, the network plugins and the kubelet read.
func (n *Node) writeConfig() error {
	for path, text := range map[string]string{
		"containerd.toml":      n.containerdConfig(),
		"kubelet.yaml":         n.kubeletConfig(),
		"net.d/10-test.conf":   `{"cniVersion": "0.4.0", "name": "test", "type": "test"}`,
		"cni/test":             n.networkPlugin(),
		"cni/loopback":         n.networkPlugin(),
		"manifests/.directory": "",
	} {
		path = n.path(path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // plugins are executed
			return err
		}
	}
	return nil
}

// containerdConfig leaves the score of the out-of-memory killer alone, which a
// container without CAP_SYS_RESOURCE may not lower.
func (n *Node) containerdConfig() string {
	return fmt.Sprintf(`version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
`, n.path("containerd"), n.path("run"), n.socket(), Image, n.path("cni"), n.path("net.d"))
}

// kubeletConfig keeps the kubelet off the rest of the machine.
func (n *Node) kubeletConfig() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: %d
healthzPort: 0
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /%s
containerRuntimeEndpoint: unix://%s
enforceNodeAllocatable: []
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%"}
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
makeIPTablesUtilChains: false
nodeLeaseDurationSeconds: %d
nodeStatusUpdateFrequency: 2s
oomScoreAdj: 0
resolvConf: ""
staticPodPath: %s
syncFrequency: 5s
`, n.port, n.cgroup, n.socket(), leaseSeconds, n.path("manifests"))
}

// networkPlugin hands out an address and sets nothing up. It fails to take the
// network of the pod down that the file cni-fails names.
func (n *Node) networkPlugin() string {
	return fmt.Sprintf(`#!/bin/sh
case "$CNI_COMMAND" in
ADD) echo '{"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "10.88.0.2/16"}], "dns": {}}' ;;
DEL)
	case ";$CNI_ARGS;" in *";K8S_POD_NAME=$(cat %s 2>/dev/null);"*)
		echo '{"cniVersion": "0.4.0", "code": 999, "msg": "the network cannot be taken down"}'
		exit 1
	esac
	;;
VERSION) echo '{"cniVersion": "0.4.0", "supportedVersions": ["0.3.1", "0.4.0", "1.0.0"]}' ;;
esac
`, n.path("cni-fails"))
}
