// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
)

// itemVerbs are those of requests for one object.
var itemVerbs = []string{"DELETE", "PATCH", "PUT", "GET"}

// requests counts requests by verb.
type requests map[string]int

// requestsOf asks the API server how many requests for single ConfigMaps it has
// had.
func requestsOf(ctx context.Context, kubeconfig string) (requests, error) {
	metrics, err := ask(ctx, kubeconfig, "/metrics")
	return parseRequests(metrics), err
}

// ask reads a path of the API server that is no object's.
func ask(ctx context.Context, kubeconfig, path string) ([]byte, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Timeout = 10 * time.Minute // discovery has half a minute, which a collection of ten gigabytes may take
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	answer, err := client.RESTClient().Get().RequestURI(path).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the API server for %s: %w", path, err)
	}
	return answer, nil
}

var requestTotal = regexp.MustCompile(`^apiserver_request_total\{(.*)\} (\S+)$`)

// parseRequests reads the counters of ConfigMaps from metrics in Prometheus'
// text format.
func parseRequests(metrics []byte) requests {
	counts := requests{}
	lines := bufio.NewScanner(bytes.NewReader(metrics))
	lines.Buffer(nil, len(metrics)+1)
	for lines.Scan() {
		m := requestTotal.FindStringSubmatch(lines.Text())
		if m == nil || !strings.Contains(m[1], `resource="configmaps"`) {
			continue
		}
		value, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			continue
		}
		for _, verb := range itemVerbs {
			if strings.Contains(m[1], `verb="`+verb+`"`) {
				counts[verb] += int(value)
			}
		}
	}
	return counts
}

// since returns what came after the earlier count, as text.
func (r requests) since(earlier requests) string {
	var parts []string
	for _, verb := range itemVerbs {
		if n := r[verb] - earlier[verb]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, verb))
		}
	}
	return strings.Join(parts, ", ")
}
