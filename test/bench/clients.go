// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/process"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/test/bench/canned"
)

// inFlight is how many lists the plugin has in flight; the others do the same.
const inFlight = 4

// Answer is what a client prints when it is done.
type Answer struct {
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes,omitempty"`
	// Findings is how many owner references are wrong.
	Findings int `json:"findings,omitempty"`
	// Heap is what the graph holds, in bytes, when it was asked for.
	Heap uint64 `json:"heap,omitempty"`
}

func (a Answer) print() error { return json.NewEncoder(os.Stdout).Encode(a) }

// clientFlags are what the clients share.
type clientFlags struct {
	kubeconfig string
	pageSize   int64
	inPages    bool
	heap       bool
	cpuProfile string
	memProfile string
}

func parseClientFlags(name string, args []string) (*clientFlags, *rest.Config, error) {
	f := &clientFlags{}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "the cluster")
	timeout := flags.Duration("request-timeout", 0, "how long one request may take; 0 is a minute")
	flags.Int64Var(&f.pageSize, "chunk-size", cluster.AutoPageSize, "objects in a page, always")
	flags.BoolVar(&f.inPages, "in-pages", false, "read lists in pages, as from a server that does not tell its version")
	flags.BoolVar(&f.heap, "heap", false, "measure the heap, which takes time")
	flags.StringVar(&f.cpuProfile, "cpuprofile", "", "file for a CPU profile")
	flags.StringVar(&f.memProfile, "memprofile", "", "file for a heap profile")
	if err := flags.Parse(args); err != nil {
		return nil, nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err == nil {
		config.Timeout = *timeout
	}
	return f, config, err
}

// reader asks the server for its types, as the plugin does.
func (f *clientFlags) reader(ctx context.Context, config *rest.Config) (*cluster.Reader, error) {
	config, stats := cluster.ReadOnly(config)
	if f.inPages {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return withoutVersion{next} })
	}
	return cluster.NewReader(ctx, config, stats, cluster.Options{PageSize: f.pageSize})
}

// withoutVersion is a server that does not tell its version.
type withoutVersion struct {
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t withoutVersion) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Path == "/version" {
		return nil, errors.New("the version is not told")
	}
	return t.RoundTripper.RoundTrip(request)
}

// graphClient reads everything, builds and classifies the graph, and checks it:
// what every command of the plugin does with a whole cluster, and check.
func graphClient(ctx context.Context, args []string) error {
	process.Tune()
	f, config, err := parseClientFlags("graph", args)
	if err != nil {
		return err
	}
	stop, err := f.profile()
	if err != nil {
		return err
	}
	defer stop()
	r, err := f.reader(ctx, config)
	if err != nil {
		return err
	}
	before := uint64(0)
	if f.heap {
		before = heap()
	}
	snapshot, err := r.Snapshot(ctx, cluster.Scope{Labels: []string{}})
	if err != nil {
		return err
	}
	if !snapshot.Complete() {
		return fmt.Errorf("not read: %v", snapshot.Unlisted())
	}
	g := graph.New(snapshot)
	answer := Answer{Objects: snapshot.Len(), Findings: len(check.Check(g, check.Options{}).Findings)}
	if f.heap {
		answer.Heap = heap() - before
	}
	if err := f.profileHeap(); err != nil {
		return err
	}
	runtime.KeepAlive(g)
	return answer.print()
}

// profile starts the CPU profile, if there is to be one, and returns what ends
// it.
func (f *clientFlags) profile() (stop func(), err error) {
	if f.cpuProfile == "" {
		return func() {}, nil
	}
	file, err := os.Create(f.cpuProfile)
	if err != nil {
		return nil, err
	}
	return pprof.StopCPUProfile, pprof.StartCPUProfile(file)
}

// profileHeap writes the profile of all that was allocated, if there is to be one.
func (f *clientFlags) profileHeap() error {
	if f.memProfile == "" {
		return nil
	}
	file, err := os.Create(f.memProfile)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return pprof.Lookup("allocs").WriteTo(file, 0)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// downloadClient asks for every list once with a bare HTTP client, in one piece unless a
// page size is given, and throws the bytes away. It looks at the beginning of each page,
// for the token of the next.
func downloadClient(ctx context.Context, args []string) error {
	f, config, err := parseClientFlags("download", args)
	if err != nil {
		return err
	}
	r, err := f.reader(ctx, config)
	if err != nil {
		return err
	}
	config.NextProtos, config.DisableCompression = []string{"http/1.1"}, true
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return err
	}
	var received atomic.Int64
	var group errgroup.Group
	group.SetLimit(inFlight)
	for _, resource := range r.Resources() {
		group.Go(func() error {
			n, err := download(ctx, client, base.JoinPath(resource.Path("", "")...), f.pageSize)
			received.Add(n)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return Answer{Bytes: received.Load()}.print()
}

// download reads a list to its end and returns its bytes.
func download(ctx context.Context, client *http.Client, list *url.URL, pageSize int64) (int64, error) {
	query := url.Values{}
	if pageSize > 0 {
		query.Set("limit", strconv.FormatInt(pageSize, 10))
	}
	total := int64(0)
	for {
		list.RawQuery = query.Encode()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, list.String(), nil)
		if err != nil {
			return total, err
		}
		request.Header.Set("Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
		n, meta, err := discard(client, request)
		if total += n; err != nil || meta.Continue == "" {
			return total, err
		}
		query = url.Values{"limit": query["limit"], "continue": {meta.Continue}}
	}
}

// discard sends a request and throws the answer away, but for the list's own
// metadata.
func discard(client *http.Client, request *http.Request) (n int64, meta metav1.ListMeta, err error) {
	response, err := client.Do(request)
	if err != nil {
		return 0, meta, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return 0, meta, fmt.Errorf("%s: %s", request.URL, response.Status)
	}
	start := make([]byte, 4096)
	k, err := io.ReadFull(response.Body, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, meta, err
	}
	rest, err := io.Copy(io.Discard, response.Body)
	return int64(k) + rest, metaOf(start[:k]), err
}

// metaOf reads the beginning of a list: raw = 2, metadata = 1.
func metaOf(body []byte) (meta metav1.ListMeta) {
	body = body[min(len(body), 4):]
	for _, want := range []protowire.Number{2, 1} {
		for {
			number, kind, n := protowire.ConsumeTag(body)
			if n < 0 || kind != protowire.BytesType {
				return meta
			}
			length, m := protowire.ConsumeVarint(body[n:])
			if m < 0 {
				return meta
			}
			body = body[n+m:]
			if number == want {
				body = body[:min(uint64(len(body)), length)]
				break
			}
			body = body[min(uint64(len(body)), length):]
		}
	}
	_ = meta.Unmarshal(body) // a list without metadata has no more pages
	return meta
}

// metadataClient reads the same with client-go's metadata client, without a
// rate limit, and keeps what it decoded.
func metadataClient(ctx context.Context, args []string) error {
	f, config, err := parseClientFlags("metadata", args)
	if err != nil {
		return err
	}
	r, err := f.reader(ctx, config)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	resources := r.Resources()
	items := make([][]metav1.PartialObjectMetadata, len(resources))
	var group errgroup.Group
	group.SetLimit(inFlight)
	for i, resource := range resources {
		group.Go(func() error {
			pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (apiruntime.Object, error) {
				page, err := client.Resource(resource.GroupVersionResource).List(ctx, options)
				if err != nil {
					return nil, err
				}
				items[i] = append(items[i], page.Items...)
				return &metav1.PartialObjectMetadataList{ListMeta: page.ListMeta}, nil
			})
			if f.pageSize != cluster.AutoPageSize {
				pages.PageSize = f.pageSize
			}
			_, _, err := pages.List(ctx, metav1.ListOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	n := 0
	for _, list := range items {
		n += len(list)
	}
	return Answer{Objects: n}.print()
}

// serve serves a made-up cluster until its standard input ends. It prints its
// address.
func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	objects := flags.Int("objects", 10_000, "how many objects there are")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := canned.New(*objects)
	server := &http.Server{Handler: s}
	go func() {
		_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin))
		_ = server.Close()
	}()
	fmt.Println("http://" + listener.Addr().String())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// kubeconfig returns a kubeconfig for a server that asks for no credentials.
func kubeconfig(server string) []byte {
	return []byte(strings.ReplaceAll(`{apiVersion: v1, kind: Config, current-context: bench,
  contexts: [{name: bench, context: {cluster: bench}}], clusters: [{name: bench, cluster: {server: "SERVER"}}]}
`, "SERVER", server))
}
