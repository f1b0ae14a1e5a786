// SPDX-License-Identifier: Apache-2.0

package node

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
)

// Import gives the node the images of an archive in the format of docker save.
// Pods that use them need the imagePullPolicy Never.
func (n *Node) Import(archive string) {
	n.t.Helper()
	n.must(n.run("ctr", "--address", n.socket(), "--namespace", "k8s.io", "images", "import", archive))
}

// Logs returns what a container has written so far, as the kubelet tells the API
// server when somebody asks that for logs. The kubelet of a test trusts everybody
// and has a certificate of its own making.
func (n *Node) Logs(namespace, pod, container string) string {
	n.t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // see above
	defer client.CloseIdleConnections()
	response, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/containerLogs/%s/%s/%s", n.port, namespace, pod, container))
	n.must(err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	n.must(err)
	if response.StatusCode != http.StatusOK {
		n.t.Fatalf("node %s: reading the log of %s/%s: %s: %s", n.Name, namespace, pod, response.Status, text)
	}
	return string(text)
}
