// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// backend stands for an API server: it counts, and answers watches with three events.
func backend(t *testing.T) *url.URL {
	t.Helper()
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		switch {
		case isWatch(r) && strings.Contains(r.Header.Get("Accept"), "protobuf"):
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
			for _, event := range []string{"one", "two", "three"} {
				_, _ = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...))
			}
		case isWatch(r):
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "one\ntwo\nthree\n")
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"answer":%d}`, n)
		}
	}))
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// through sends a request through a proxy, and returns the answer in a
// line: its code and text, and whether it ended early.
func through(t *testing.T, p *Proxy, method, uri string, header ...string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.URL+uri, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	client := p.server.Client()
	client.Timeout = 2 * time.Second
	response, err := client.Do(request)
	if err != nil {
		var timeout interface{ Timeout() bool }
		if errors.As(err, &timeout) && timeout.Timeout() {
			return "timeout"
		}
		return "no answer"
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	line := fmt.Sprintf("%d %q", response.StatusCode, text)
	if after := response.Header.Get("Retry-After"); after != "" {
		line += " after " + after
	}
	if err != nil {
		line += " and no end"
	}
	return line
}

func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		fault Fault
		uri   string
		want  string
	}{
		{Latency(time.Millisecond), "/x", `200 "{\"answer\":1}"`},
		{Hang(), "/x", "timeout"},
		{Cut(), "/x", "no answer"},
		{Lose(), "/x", "no answer"},
		{Reset(5), "/x", `200 "{\"ans" and no end`},
		{Truncate(5), "/x", `200 "{\"ans"`},
		{Drip(time.Millisecond), "/x", `200 "{\"answer\":1}"`},
		{Plain(502, "no"), "/x", `502 "no\n"`},
		{Body("empty", ""), "/x", `200 ""`},
		{Garble(2), "/x", "200 \"{\\\"\\xc4\\xcb\\xd6\\xd2\\xc0ׇ\\x9f\\x94\\xd8\""},
		{Status(429, "", 7), "/x", `429 "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",` +
			`\"message\":\"429 by the test\",\"reason\":\"TooManyRequests\",\"details\":{\"retryAfterSeconds\":7},\"code\":429}" after 7`},
		{Duplicate(), "/x?watch=true", `200 "one\none\ntwo\ntwo\nthree\nthree\n"`},
		{Reorder(), "/x?watch=1", `200 "two\none\nthree\n"`},
		{CloseWatch(1), "/x?watch=1", `200 "one\n"`},
		{LateEvents(time.Millisecond), "/x?watch=1", `200 "one\ntwo\nthree\n"`},
		{Duplicate(), "/x", `200 "{\"answer\":1}"`}, // which is no watch
		{Body("empty", ""), "/x?watch=1", `200 "one\ntwo\nthree\n"`},
	}
	for _, test := range tests {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %s %t", test.fault.Name, test.uri, secure), func(t *testing.T) {
				t.Parallel()
				p := start(http.DefaultTransport, backend(t), Options{TLS: secure}, []Rule{{Fault: test.fault}})
				defer p.Close()
				if diff := cmp.Diff(test.want, through(t, p, http.MethodGet, test.uri)); diff != "" {
					t.Errorf("the answer differs (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestFramesOfProtobuf swaps events that are told apart by their length.
func TestFramesOfProtobuf(t *testing.T) {
	p := start(http.DefaultTransport, backend(t), Options{}, []Rule{{Fault: Reorder()}})
	defer p.Close()
	got := through(t, p, http.MethodGet, "/x?watch=1", "Accept", "application/vnd.kubernetes.protobuf")
	if want := `200 "\x00\x00\x00\x03two\x00\x00\x00\x03one\x00\x00\x00\x05three"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestStale answers as before, and passes on what was not asked before.
func TestStale(t *testing.T) {
	p := start(http.DefaultTransport, backend(t), Options{}, []Rule{{Fault: Stale(), After: 2}})
	defer p.Close()
	var got []string
	for _, uri := range []string{"/x?resourceVersion=1", "/y", "/x", "/x?limit=1", "/x"} {
		got = append(got, through(t, p, http.MethodGet, uri, "Accept-Encoding", "identity"))
	}
	want := []string{`200 "{\"answer\":1}"`, `200 "{\"answer\":2}"`, `200 "{\"answer\":1}"`, `200 "{\"answer\":3}"`, `200 "{\"answer\":1}"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the answers differ (-want +got):\n%s", diff)
	}
}

// TestMeanwhile does something before a request is passed on, or after its answer has come.
func TestMeanwhile(t *testing.T) {
	for _, after := range []bool{false, true} {
		did := 0
		p := start(http.DefaultTransport, backend(t), Options{}, []Rule{{Fault: Meanwhile("look", after, func() { did++ }), Times: 1}})
		defer p.Close()
		if got := through(t, p, http.MethodGet, "/x"); got != `200 "{\"answer\":1}"` || did != 1 {
			t.Errorf("after %t: done %d times, got %s", after, did, got)
		}
	}
}

// TestClock changes what a server says of the time.
func TestClock(t *testing.T) {
	p := start(http.DefaultTransport, backend(t), Options{}, []Rule{{Fault: Clock(time.Hour)}})
	defer p.Close()
	response, err := http.Get(p.URL + "/x")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	at, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil || time.Until(at) < 50*time.Minute {
		t.Errorf("it is %s, %v", at, err)
	}
}

// TestRules counts for each rule by itself, and takes the first that matches.
func TestRules(t *testing.T) {
	p := start(http.DefaultTransport, backend(t), Options{}, []Rule{
		{URI: regexp.MustCompile(`^GET /x`), After: 1, Times: 1, Fault: Plain(500, "first")},
		{URI: regexp.MustCompile(`^DELETE `), Fault: LoseTo(503)},
		{Times: 1, Fault: Plain(404, "second")},
	})
	defer p.Close()
	var got []string
	for _, request := range []string{"GET /x", "GET /x", "GET /x", "DELETE /x"} {
		method, uri, _ := strings.Cut(request, " ")
		code, _, _ := strings.Cut(through(t, p, method, uri), " ")
		got = append(got, code)
	}
	if diff := cmp.Diff([]string{"404", "500", "200", "503"}, got); diff != "" {
		t.Errorf("the codes differ (-want +got):\n%s", diff)
	}
	want := []string{"404 in plain text GET /x", "500 in plain text GET /x", "carried out, and answered 503 DELETE /x"}
	if diff := cmp.Diff(want, p.Log()); diff != "" {
		t.Errorf("the log differs (-want +got):\n%s", diff)
	}
}

// TestDraw draws the same rules from the same seed, and every fault from some seed.
func TestDraw(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(2000) {
		rules, again := Draw(seed), Draw(seed)
		if len(rules) == 0 || len(rules) > 3 {
			t.Fatalf("seed %d: %d rules", seed, len(rules))
		}
		for i := range rules {
			if rules[i].String() != again[i].String() {
				t.Errorf("seed %d: %s, and again %s", seed, rules[i], again[i])
			}
			seen[strings.TrimRight(rules[i].Fault.Name, "0123456789.ms")] = true
		}
	}
	for _, name := range []string{
		"hang", "cut", "lose the answer", "stale", "each event twice", "events in another order", "reset after", "a body of nothing",
	} {
		found := false
		for s := range seen {
			found = found || strings.HasPrefix(s, name)
		}
		if !found {
			t.Errorf("%q is never drawn", name)
		}
	}
}
