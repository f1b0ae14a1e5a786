// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/kubectl-gc/kubectl-gc/test/bench/canned"
)

// etcd is what an API server keeps its objects in, by the gateway for JSON that etcd has
// beside gRPC (etcd, api/etcdserverpb/rpc.proto).
type etcd struct {
	url    string
	client *http.Client
}

// stored is an object as the API server stores it. Both are in base64 in JSON.
type stored struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// etcdOf reads from the command line of an API server where its etcd is, which on Linux is
// in a file.
func etcdOf(apiserver int) (*etcd, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", apiserver))
	if err != nil {
		return nil, err
	}
	e, pool := &etcd{}, x509.NewCertPool()
	for word := range strings.SplitSeq(string(line), "\x00") {
		if url, ok := strings.CutPrefix(word, "--etcd-servers="); ok {
			e.url = url
		}
		if file, ok := strings.CutPrefix(word, "--etcd-cafile="); ok {
			pem, err := os.ReadFile(file)
			if err != nil || !pool.AppendCertsFromPEM(pem) {
				return nil, errors.Join(fmt.Errorf("reading the certificate of etcd's authority from %s", file), err)
			}
		}
	}
	if e.url == "" {
		return nil, fmt.Errorf("process %d does not say where its etcd is", apiserver)
	}
	e.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: writers}}
	return e, nil
}

func (e *etcd) call(ctx context.Context, method string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/v3/kv/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking etcd for %s: %s: %.200s", method, response.Status, said)
	}
	return json.Unmarshal(said, answer)
}

// under returns what is stored under a prefix.
func (e *etcd) under(ctx context.Context, prefix string) ([]stored, error) {
	end := []byte(prefix)
	end[len(end)-1]++
	var answer struct {
		Values []stored `json:"kvs"`
	}
	err := e.call(ctx, "range", map[string][]byte{"key": []byte(prefix), "range_end": end}, &answer)
	return answer.Values, err
}

// put stores objects in one transaction.
func (e *etcd) put(ctx context.Context, objects []stored) error {
	type operation struct {
		Put stored `json:"requestPut"`
	}
	operations := make([]operation, len(objects))
	for i := range objects {
		operations[i].Put = objects[i]
	}
	return e.call(ctx, "txn", map[string]any{"success": operations}, &struct{}{})
}

var uid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// copies stores the applications from one number to another, in namespaces of a hundred, as
// copies of the one with the number 0. What differs, the names and the UIDs, is of the same
// length, so that it can be replaced in what is stored, whatever that is. It takes the API
// server a hundredth of what creating takes: it sees the objects in its watches.
func (c *creator) copies(ctx context.Context, e *etcd, from, to int) error {
	original, err := e.original(ctx)
	if err != nil {
		return err
	}
	uids := map[string]bool{}
	for _, o := range original {
		for _, id := range uid.FindAllString(string(o.Value), -1) {
			uids[id] = true
		}
	}
	const atOnce = 12 // etcd has at most 128 operations in a transaction
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for first := from; first < to; first += atOnce {
		for i := first; i < min(to, first+atOnce); i++ {
			if i%perNamespace > 0 {
				continue
			}
			if err := c.namespace(ctx, namespaceOf(i)); err != nil {
				return errors.Join(err, group.Wait())
			}
		}
		group.Go(func() error {
			var objects []stored
			for i := first; i < min(to, first+atOnce); i++ {
				words := []string{nameOf(0), nameOf(i), namespaceOf(0), namespaceOf(i)}
				for id := range uids {
					words = append(words, id, string(uuid.NewUUID()))
				}
				replacer := strings.NewReplacer(words...)
				for _, o := range original {
					objects = append(objects, stored{Key: []byte(replacer.Replace(string(o.Key))), Value: []byte(replacer.Replace(string(o.Value)))})
				}
			}
			return e.put(ctx, objects)
		})
	}
	return group.Wait()
}

// original returns the objects of the application with the number 0.
func (e *etcd) original(ctx context.Context) ([]stored, error) {
	var original []stored
	for _, resource := range []string{"deployments", "replicasets", "pods", "configmaps", "secrets"} {
		objects, err := e.under(ctx, "/registry/"+resource+"/"+namespaceOf(0)+"/"+nameOf(0))
		if err != nil {
			return nil, err
		}
		original = append(original, objects...)
	}
	if len(original) != canned.PerApplication {
		return nil, fmt.Errorf("the first application has %d objects in etcd, not %d", len(original), canned.PerApplication)
	}
	return original, nil
}
