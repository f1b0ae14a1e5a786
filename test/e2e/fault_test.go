// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// fault KIND PATTERN [first|later] puts a proxy before the API server, for the rest of the
// script, in which the requests whose method and URI, as in "GET /api", match the
// regular expression fail: with an HTTP status (KIND is 500, 403, 410 ...), by never being answered
// (hang), or by a connection that breaks off (cut). Several faults add up. With
// first only the first of these requests fails, with later all but that.
func fault(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 || len(args) == 3 && args[2] != "first" && args[2] != "later" {
		ts.Fatalf("usage: fault KIND PATTERN [first|later]")
	}
	behindProxy(ts, func(next http.Handler) http.Handler {
		return faulty(next, args[0], regexp.MustCompile(args[1]), args[2:]...)
	})
}

// meanwhile PATTERN ARG... runs kubectl with the arguments right before the first
// request whose method and URI match the regular expression is passed on to the API
// server: after somebody has decided about it.
func meanwhile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: meanwhile PATTERN ARG...")
	}
	pattern, direct := regexp.MustCompile(args[0]), ts.MkAbs(".kubeconfig-direct")
	ts.Check(os.WriteFile(direct, []byte(ts.ReadFile(ts.Getenv("KUBECONFIG"))), 0o600))
	kubectl, environment := ts.Getenv("KUBECTL"), append(os.Environ(), "KUBECONFIG="+direct)
	var first sync.Once
	behindProxy(ts, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !pattern.MatchString(r.Method + " " + r.URL.RequestURI()) {
				next.ServeHTTP(w, r)
				return
			}
			first.Do(func() {
				command := exec.Command(kubectl, args[1:]...)
				command.Env = environment
				if out, err := command.CombinedOutput(); err != nil {
					http.Error(w, fmt.Sprintf("kubectl %q: %v: %s", args[1:], err, out), http.StatusTeapot)
				}
			})
			next.ServeHTTP(w, r)
		})
	})
}

// reports VERSION puts a proxy before the API server, for the rest of the script, with
// which it says that it has the version.
func reports(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: reports VERSION")
	}
	behindProxy(ts, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/version" {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"gitVersion":%q}`, args[0])
		})
	})
}

// behindProxy puts a proxy before the API server, for the rest of the script.
func behindProxy(ts *testscript.TestScript, wrap func(http.Handler) http.Handler) {
	ts.Setenv(compareDir, "") // what the proxy does, it does to one command
	server, text, err := proxied(ts.Getenv("KUBECONFIG"), wrap)
	ts.Check(err)
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
	})
	ts.Check(os.WriteFile(ts.Getenv("KUBECONFIG"), text, 0o600))
	ts.Setenv("SERVER", server.URL)
}

// proxied starts a proxy before the API server of a kubeconfig, and returns what makes that one of the proxy.
func proxied(kubeconfig string, wrap func(http.Handler) http.Handler) (*httptest.Server, []byte, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorLog:  log.New(io.Discard, "", 0), // requests that the client gives up are part of the tests
	}
	server := httptest.NewServer(wrap(proxy))
	return server, bytes.ReplaceAll(text, []byte(config.Host), []byte(server.URL)), nil
}

func faulty(next http.Handler, kind string, pattern *regexp.Regexp, which ...string) http.Handler {
	var requests atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fails := pattern.MatchString(r.Method + " " + r.URL.RequestURI())
		if fails && len(which) > 0 {
			fails = (requests.Add(1) == 1) == (which[0] == "first")
		}
		if !fails {
			next.ServeHTTP(w, r)
			return
		}
		switch kind {
		case "hang":
			_, _ = io.Copy(io.Discard, r.Body) // only after it the end of the connection is noticed
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
		case "cut":
			panic(http.ErrAbortHandler)
		case "410":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGone)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"continue token expired","code":410}`))
		case "403":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"refused by the test","code":403}`))
		default:
			http.Error(w, "failing for the test", http.StatusInternalServerError)
		}
	})
}
