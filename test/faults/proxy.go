// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A Rule says which requests go wrong, and how. Requests are counted for each rule by
// itself, in the order in which they come.
type Rule struct {
	// URI matches a method and a URI, as in "GET /api"; nil matches all.
	URI *regexp.Regexp
	// After lets so many of these requests through first.
	After int
	// Times is how many go wrong then; 0 means all.
	Times int
	Fault Fault
}

// String returns the rule in one line.
func (r Rule) String() string {
	text := r.Fault.Name
	if r.URI != nil {
		text += " " + r.URI.String()
	}
	if r.After > 0 {
		text += fmt.Sprintf(" after %d", r.After)
	}
	if r.Times > 0 {
		text += fmt.Sprintf(" times %d", r.Times)
	}
	return text
}

// A Proxy is a reverse proxy before an API server, in which requests go wrong. Its
// methods may be called concurrently.
type Proxy struct {
	// URL is where it is reached.
	URL string

	server *httptest.Server
	stale  *stale
	// done is closed when requests that hang are to end.
	done chan struct{}

	mu     sync.Mutex
	rules  []Rule
	counts []int
	log    []string
}

// Options say how a Proxy is reached.
type Options struct {
	// TLS: with a certificate of its own, and HTTP/2, as an API server is. Otherwise in
	// plain text.
	TLS bool
}

// Start starts a proxy before the API server of the config, whose credentials all
// requests get, whatever they have. Where several rules match, the first counts. The caller must call Close.
func Start(config *rest.Config, options Options, rules ...Rule) (*Proxy, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("starting a proxy: %w", err)
	}
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("starting a proxy: %w", err)
	}
	return start(transport, target, options, rules), nil
}

func start(transport http.RoundTripper, target *url.URL, options Options, rules []Rule) *Proxy {
	p := &Proxy{done: make(chan struct{}), stale: &stale{answers: map[string]*answer{}}}
	p.SetRules(rules...)
	reverse := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization")
		},
		ModifyResponse: p.answered,
		FlushInterval:  -1,                         // what comes before a fault is to arrive
		ErrorLog:       log.New(io.Discard, "", 0), // requests that go wrong are what it is for
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, reverse) }))
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if options.TLS {
		p.server.EnableHTTP2 = true
		p.server.StartTLS()
	} else {
		p.server.Start()
	}
	p.URL = p.server.URL
	return p
}

// SetRules replaces the rules, and begins to count anew.
func (p *Proxy) SetRules(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.counts = slices.Clone(rules), make([]int, len(rules))
}

// Close ends the proxy, and what goes through it.
func (p *Proxy) Close() {
	close(p.done)
	p.server.CloseClientConnections()
	p.server.Close()
}

// Log returns what went wrong so far, one line a request.
func (p *Proxy) Log() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

// WriteKubeconfig writes a kubeconfig that leads through the proxy.
func (p *Proxy) WriteKubeconfig(path string) error { return p.WriteKubeconfigOf(path, nil) }

// WriteKubeconfigOf is WriteKubeconfig for a user with credentials, if it is not nil.
func (p *Proxy) WriteKubeconfigOf(path string, user *clientcmdapi.AuthInfo) error {
	config := clientcmdapi.NewConfig()
	cluster := clientcmdapi.NewCluster()
	cluster.Server = p.URL
	if certificate := p.server.Certificate(); certificate != nil {
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
	}
	config.Clusters["faults"] = cluster
	context := clientcmdapi.NewContext()
	context.Cluster = "faults"
	if user != nil {
		context.AuthInfo, config.AuthInfos["faults"] = "faults", user
	}
	config.Contexts["faults"] = context
	config.CurrentContext = "faults"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig of a proxy: %w", err)
	}
	return nil
}

// chosen is the key of the fault in the context of a request.
type chosen struct{}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	fault := p.choose(r)
	if fault == nil {
		next.ServeHTTP(w, r)
		return
	}
	if fault.whole { // what is packed cannot be changed
		r.Header.Del("Accept-Encoding")
		r.Header.Set("Accept-Encoding", "identity")
	}
	if fault.before != nil && fault.before(p, w, r) {
		return
	}
	next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), chosen{}, fault)))
}

// choose returns what goes wrong with a request, nil for nothing.
func (p *Proxy) choose(r *http.Request) *Fault {
	line := r.Method + " " + r.URL.RequestURI()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.rules {
		rule := &p.rules[i]
		if rule.URI != nil && !rule.URI.MatchString(line) || !rule.Fault.concerns(r) {
			continue
		}
		p.counts[i]++
		if n := p.counts[i] - rule.After; n > 0 && (rule.Times == 0 || n <= rule.Times) {
			p.log = append(p.log, rule.Fault.Name+" "+line)
			return &rule.Fault
		}
	}
	return nil
}

// answered lets a fault change an answer.
func (p *Proxy) answered(response *http.Response) error {
	p.stale.remember(response)
	fault, _ := response.Request.Context().Value(chosen{}).(*Fault)
	if fault == nil || fault.after == nil {
		return nil
	}
	return fault.after(p, response)
}

// isWatch reports whether a request is for a watch.
func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return r.Method == http.MethodGet && (watch == "1" || watch == "true")
}
