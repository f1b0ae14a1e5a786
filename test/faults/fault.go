// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Fault is one way in which a request goes wrong.
type Fault struct {
	// Name says what it is.
	Name string
	// before answers a request instead of the API server, or returns false.
	before func(*Proxy, http.ResponseWriter, *http.Request) bool
	// after changes the API server's answer.
	after func(*Proxy, *http.Response) error
	// whole: the answer must not be compressed.
	whole bool
	// watches and reads limit it to watches, and to other reads; writes to what is
	// neither, lasting to those of them that change what is stored.
	watches, reads, writes, lasting bool
}

// concerns reports whether the fault can happen to such a request.
func (f *Fault) concerns(r *http.Request) bool {
	watch, read := isWatch(r), r.Method == http.MethodGet
	switch {
	case f.watches:
		return watch
	case f.reads:
		return read && !watch
	case f.lasting:
		return !read && lasts(r)
	case f.writes:
		return !read
	}
	return true
}

// lasts reports whether a write is neither a dry run nor a question about rights.
func lasts(r *http.Request) bool {
	if strings.Contains(r.URL.Path, "/authorization.k8s.io/") || r.URL.Query().Has("dryRun") {
		return false
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err != nil || !bytes.Contains(body, []byte(`"dryRun":["All"]`)) // the options of a DELETE
}

// Latency delays the request.
func Latency(by time.Duration) Fault {
	return Fault{Name: fmt.Sprintf("late by %s", by), before: func(p *Proxy, _ http.ResponseWriter, r *http.Request) bool {
		p.wait(r, by)
		return false
	}}
}

// wait returns after the time, or when the request or the proxy ends.
func (p *Proxy) wait(r *http.Request, d time.Duration) {
	select {
	case <-r.Context().Done():
	case <-p.done:
	case <-time.After(d):
	}
}

// Hang never answers.
func Hang() Fault {
	return Fault{Name: "hang", before: func(p *Proxy, _ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body) // only after it the end of the connection is noticed
		select {
		case <-r.Context().Done():
		case <-p.done:
		}
		panic(http.ErrAbortHandler)
	}}
}

// Cut ends the connection instead of passing the request on.
func Cut() Fault {
	return Fault{Name: "cut", before: func(*Proxy, http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }}
}

// Lose passes the request on, and ends the connection instead of the answer: a write is
// carried out, and nobody is told.
func Lose() Fault {
	return Fault{Name: "lose the answer", after: func(_ *Proxy, r *http.Response) error {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20)) // by then it was carried out
		return http.ErrAbortHandler
	}}
}

// LoseTo is Lose with an error of the API server in the place of the answer.
func LoseTo(code int) Fault {
	f := Lose()
	f.Name = fmt.Sprintf("carried out, and answered %d", code)
	f.after = func(_ *Proxy, r *http.Response) error {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20))
		replace(r, code, "application/json", status(code, "", 0))
		return nil
	}
	f.writes = true
	return f
}

// errReset ends an answer in the middle.
var errReset = errors.New("reset by the test")

// Reset ends the connection in the middle of the answer, after so many bytes.
func Reset(after int64) Fault {
	return Fault{Name: fmt.Sprintf("reset after %d bytes", after), after: func(_ *Proxy, r *http.Response) error {
		body := r.Body
		r.Body = &wrapped{io.MultiReader(io.LimitReader(body, after), failing{errReset}), body}
		return nil
	}}
}

// Truncate ends the answer after so many bytes as if that were all.
func Truncate(after int64) Fault {
	return Fault{Name: fmt.Sprintf("truncated after %d bytes", after), whole: true, after: func(_ *Proxy, r *http.Response) error {
		body := r.Body
		r.Body = &wrapped{io.LimitReader(body, after), body}
		r.ContentLength = -1
		r.Header.Del("Content-Length")
		return nil
	}}
}

// Drip sends the answer a byte at a time.
func Drip(pause time.Duration) Fault {
	return Fault{Name: fmt.Sprintf("a byte each %s", pause), after: func(p *Proxy, r *http.Response) error {
		body := r.Body
		r.Body = &wrapped{&dripping{body, pause, p.done, r.Request.Context().Done()}, body}
		r.ContentLength = -1
		r.Header.Del("Content-Length")
		return nil
	}}
}

// Clock has the server's clock run ahead by so much, behind if it is negative.
func Clock(by time.Duration) Fault {
	return Fault{Name: fmt.Sprintf("clock off by %s", by), after: func(_ *Proxy, r *http.Response) error {
		r.Header.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
		return nil
	}}
}

// Meanwhile does something before the request is passed on, or after it was carried out
// and before the answer is.
func Meanwhile(name string, carriedOut bool, do func()) Fault {
	f := Fault{Name: name}
	if carriedOut {
		f.after = func(_ *Proxy, _ *http.Response) error {
			do()
			return nil
		}
	} else {
		f.before = func(*Proxy, http.ResponseWriter, *http.Request) bool {
			do()
			return false
		}
	}
	return f
}

// Moment is one around a write.
type Moment string

// The moments.
const (
	// Sent: the write may be carried out, or not.
	Sent Moment = "sent"
	// CarriedOut: it was carried out, and not answered.
	CarriedOut Moment = "carried out"
	// Answered: it was answered, and the next request was sent.
	Answered Moment = "answered"
)

// OfLasting is the fault, of writes that change what is stored.
func (f Fault) OfLasting() Fault {
	f.writes, f.lasting = false, true
	return f
}

// AtWrite does something at a moment of the n-th write, counted from 1, that changes what is stored.
func (p *Proxy) AtWrite(n int, moment Moment, do func()) Rule {
	f := Meanwhile(string(moment), moment != Sent, do)
	if moment == Answered {
		f = Meanwhile(string(moment), true, func() { p.SetRules(Rule{Times: 1, Fault: Meanwhile("next", false, do)}) })
	}
	return Rule{After: n - 1, Times: 1, Fault: f.OfLasting()}
}

// Status answers with an error of the API server: its code, the reason that goes with
// it when reason is empty, and Retry-After when that is not 0.
func Status(code int, reason metav1.StatusReason, retryAfter int) Fault {
	return Fault{Name: strings.TrimSpace(fmt.Sprintf("%d %s", code, reason)), before: func(_ *Proxy, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		if retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		}
		w.WriteHeader(code)
		_, _ = w.Write(status(code, reason, retryAfter))
		return true
	}}
}

// Plain answers with a code and a text that are not an API server's.
func Plain(code int, text string) Fault {
	return Fault{Name: fmt.Sprintf("%d in plain text", code), before: func(_ *Proxy, w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, text, code)
		return true
	}}
}

// reasons are what API servers say with these codes.
var reasons = map[int]metav1.StatusReason{
	http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusForbidden: metav1.StatusReasonForbidden,
	http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusConflict: metav1.StatusReasonConflict,
	http.StatusGone: metav1.StatusReasonExpired, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout: metav1.StatusReasonTimeout,
}

// status returns an error as API servers write it.
func status(code int, reason metav1.StatusReason, retryAfter int) []byte {
	if reason == "" {
		reason = reasons[code]
	}
	s := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: reason, Code: int32(code), Message: fmt.Sprintf("%d by the test", code),
	}
	if retryAfter > 0 {
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(retryAfter)}
	}
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // it has nothing that cannot be written
	}
	return data
}

// Body answers 200 with this text in the place of the answer, with the type that the
// answer has.
func Body(name, text string) Fault {
	return Fault{Name: name, reads: true, whole: true, after: func(_ *Proxy, r *http.Response) error {
		replace(r, http.StatusOK, r.Header.Get("Content-Type"), []byte(text))
		return nil
	}}
}

// ContentType says that the answer is of another type.
func ContentType(contentType string) Fault {
	return Fault{Name: "content type " + contentType, reads: true, after: func(_ *Proxy, r *http.Response) error {
		r.Header.Set("Content-Type", contentType)
		return nil
	}}
}

// Garble replaces the bytes of the answer from one on, by some that are neither JSON nor
// a message of protobuf.
func Garble(from int64) Fault {
	return Fault{Name: fmt.Sprintf("garbled from byte %d", from), whole: true, after: func(_ *Proxy, r *http.Response) error {
		body := r.Body
		r.Body = &wrapped{&garbling{body, from}, body}
		return nil
	}}
}

// replace puts another answer in the place of one.
func replace(r *http.Response, code int, contentType string, data []byte) {
	_ = r.Body.Close()
	r.StatusCode, r.Status = code, ""
	r.Header = http.Header{"Content-Type": {contentType}, "Content-Length": {strconv.Itoa(len(data))}}
	r.ContentLength = int64(len(data))
	r.Body = io.NopCloser(bytes.NewReader(data))
}

// Stale answers a read that was answered before as it was then.
func Stale() Fault {
	return Fault{Name: "stale", reads: true, whole: true, before: func(p *Proxy, w http.ResponseWriter, r *http.Request) bool {
		return p.stale.serve(w, r)
	}}
}

// stale remembers the first answers to reads.
type stale struct {
	mu      sync.Mutex
	answers map[string]*answer
}

type answer struct {
	contentType string
	body        []byte
}

// staleKey is the same for requests that should have the same answer.
func staleKey(r *http.Request) string {
	uri := *r.URL
	query := uri.Query()
	query.Del("resourceVersion") // which would not let an older answer through
	uri.RawQuery = query.Encode()
	return r.Header.Get("Accept") + " " + uri.Path + "?" + uri.RawQuery
}

func (s *stale) serve(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	a := s.answers[staleKey(r)]
	s.mu.Unlock()
	if a == nil {
		return false
	}
	w.Header().Set("Content-Type", a.contentType)
	_, _ = w.Write(a.body)
	return true
}

// longestStale is the length of the longest answer that is remembered.
const longestStale = 1 << 20

// remember keeps an answer while it is passed on, if it is the first of its kind, whole
// and not packed.
func (s *stale) remember(r *http.Response) {
	if r.Request.Method != http.MethodGet || isWatch(r.Request) || r.StatusCode != http.StatusOK || r.Header.Get("Content-Encoding") != "" {
		return
	}
	key, body, read := staleKey(r.Request), r.Body, &bytes.Buffer{}
	kept := &answer{contentType: r.Header.Get("Content-Type")}
	r.Body = &wrapped{&remembering{io.LimitReader(body, longestStale), body, read, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.answers[key] == nil {
			kept.body = bytes.Clone(read.Bytes())
			s.answers[key] = kept
		}
	}}, body}
}
