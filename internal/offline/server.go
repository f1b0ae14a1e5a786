// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/rawjson"
)

// Server answers the GET requests of a client from a file, as the API server would
// have at that time. It is the client's transport, so nothing is sent anywhere. What
// the file does not hold is answered with an error (IsNotHeld), and so is everything
// that is no GET. It may be used by several goroutines at once.
type Server struct {
	file   *File
	passed atomic.Bool
}

// NewServer returns a Server over the file.
func NewServer(f *File) *Server { return &Server{file: f} }

// Pass makes time pass: from then on the second look at what may have moved is what
// is answered, where the file has one.
func (s *Server) Pass() {
	s.passed.Store(true)
}

// LooksTwice reports whether the file has a second look.
func (s *Server) LooksTwice() bool {
	for _, lists := range s.file.lists {
		if slices.ContainsFunc(lists, func(l *list) bool { return l.Again }) {
			return true
		}
	}
	return false
}

// Header is that of the file.
func (s *Server) Header() *Header { return &s.file.Header }

// Now is the time of the snapshot.
func (s *Server) Now() time.Time { return s.file.Trailer.Ended }

// RoundTrip implements http.RoundTripper.
func (s *Server) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		_ = request.Body.Close() // nothing of it is read
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	var code int
	contentType, body := "application/json", []byte(nil)
	answer, err := s.answer(request)
	switch {
	case err != nil:
		status := StatusOf(err, err.Error(), false)
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		status.Status = metav1.StatusFailure
		code = int(status.Code)
		if body, err = json.Marshal(status); err != nil {
			return nil, err
		}
	default:
		code, contentType, body = answer.Code, answer.ContentType, answer.Body
	}
	header := http.Header{}
	header.Set("Content-Type", contentType)
	header.Set("Date", s.Now().UTC().Format(http.TimeFormat))
	return &http.Response{
		Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), StatusCode: code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: request,
	}, nil
}

// answer finds out what to say to a request.
func (s *Server) answer(request *http.Request) (*Answer, error) {
	path := strings.TrimSuffix(request.URL.Path, "/")
	switch known := s.file.answers[path]; {
	case request.Method != http.MethodGet:
		return nil, notHeld("a snapshot cannot be written to, and no dry run be asked of it")
	case known != nil:
		return known, nil
	}
	t, ok := parseTarget(path)
	query := request.URL.Query()
	switch {
	case !ok, t.subresource != "":
		return nil, notHeld("the snapshot does not hold " + path)
	case query.Has("watch"):
		return nil, notHeld("nothing happens in a snapshot")
	}
	if t.name != "" {
		return s.get(&t, wantedOf(request))
	}
	q, err := newQuery(&t, query)
	if err != nil {
		return nil, err
	}
	return s.list(&t, q, wantedOf(request))
}

// target is what a path names: an object, or the objects of a type.
type target struct {
	schema.GroupVersionResource
	namespace, name, subresource string
}

// parseTarget takes a path of the API apart.
func parseTarget(path string) (target, bool) {
	var t target
	words := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch {
	case len(words) >= 3 && words[0] == "api":
		t.Version, words = words[1], words[2:]
	case len(words) >= 4 && words[0] == "apis":
		t.Group, t.Version, words = words[1], words[2], words[3:]
	default:
		return t, false
	}
	if words[0] == "namespaces" && len(words) > 2 {
		t.namespace, words = words[1], words[2:]
	}
	t.Resource = words[0]
	if len(words) > 1 {
		t.name = words[1]
	}
	if len(words) > 2 {
		t.subresource = strings.Join(words[2:], "/")
	}
	return t, t.Resource != ""
}

// notHeld is the error about what a file does not hold.
func notHeld(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonUnknown, Message: message,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: CauseNotHeld, Message: message}}},
	}}
}

// listsOf returns the lists of a type that may have what is in the namespace, or
// everything when that is empty: the one that says most first. Lists in other versions
// stand for one in that which is asked for only when that was not tried: where it failed,
// the server cannot convert the objects.
func (s *Server) listsOf(t *target) []*list {
	var found []*list
	for _, l := range s.file.lists[t.GroupResource()] {
		if l.Namespace == "" || l.Namespace == t.namespace {
			found = append(found, l)
		}
	}
	passed := s.passed.Load()
	rank := func(l *list) int {
		n := 0
		for i, less := range []bool{l.Namespace != t.namespace, l.Again != passed, l.Version != t.Version, l.Single,
			l.End.Error != nil, l.End.Partial != ""} {
			if less {
				n |= 1 << i
			}
		}
		return n
	}
	tried := slices.ContainsFunc(found, func(l *list) bool { return l.Version == t.Version && !l.Single })
	found = slices.DeleteFunc(found, func(l *list) bool { return l.Again && !passed || tried && l.Version != t.Version })
	slices.SortStableFunc(found, func(a, b *list) int { return rank(a) - rank(b) })
	return found
}

// get answers the GET of an object.
func (s *Server) get(t *target, want wanted) (*Answer, error) {
	lists := s.listsOf(t)
	if o := s.file.ones[one{t.GroupResource(), t.namespace, t.name, true}]; o != nil && s.passed.Load() {
		return nil, &apierrors.StatusError{ErrStatus: o.Error}
	}
	for _, l := range lists {
		if l.End.Error != nil {
			continue
		}
		e, err := s.find(l, t)
		switch {
		case err != nil:
			return nil, err
		case e == nil:
		case want.form == whole && !e.Whole:
			return nil, notHeld(fmt.Sprintf("the file holds only the metadata of %s %q", t.GroupResource(), t.name))
		default:
			return s.one(l, e, want)
		}
	}
	return nil, s.missing(t, lists)
}

// missing is the error about an object that no list has.
func (s *Server) missing(t *target, lists []*list) error {
	if o := s.file.ones[one{t.GroupResource(), t.namespace, t.name, false}]; o != nil {
		return &apierrors.StatusError{ErrStatus: o.Error}
	}
	var failed *list
	for _, l := range lists {
		switch {
		case l.End.Error == nil && l.End.Partial == "" && !l.Single:
			return apierrors.NewNotFound(t.GroupResource(), t.name)
		case l.End.Error != nil && failed == nil:
			failed = l
		}
	}
	if failed != nil {
		return &apierrors.StatusError{ErrStatus: *failed.End.Error}
	}
	return notHeld(fmt.Sprintf("the file does not hold %s %q", t.GroupResource(), t.name))
}

// find looks for an object in a list, and returns all that is known of it, nil when the list does not have it.
func (s *Server) find(l *list, t *target) (*Entry, error) {
	k := key(t.namespace, t.name)
	quoted, err := json.Marshal(t.name)
	if err != nil {
		return nil, err
	}
	var found *Entry
	var meta *view
	for i := range l.Chunks {
		c := &l.Chunks[i]
		if k < c.First || k > c.Last {
			continue
		}
		err := s.file.entries(c, 0, func(_ int, text []byte) bool {
			if !bytes.Contains(text, quoted) {
				return true
			}
			var e Entry
			if m, err := metadataOf(text, &e); err == nil && m.Name == t.name && m.Namespace == t.namespace {
				found, meta = &e, m
			}
			return found == nil
		})
		if err != nil {
			return nil, err
		}
		if found != nil {
			found, _, err = s.known(l, found, meta)
			return found, err
		}
	}
	return nil, nil
}

// known returns what the file has of an object of a list: the object itself, whole if it was read so by itself, and once time has
// passed as it was seen then: nil when it was gone.
func (s *Server) known(l *list, e *Entry, m *view) (*Entry, *view, error) {
	passed := s.passed.Load()
	at := one{l.GroupResource(), m.Namespace, m.Name, true}
	if o := s.file.ones[at]; passed && o != nil && o.Error.Reason == metav1.StatusReasonNotFound {
		return nil, nil, nil
	}
	for _, at.again = range []bool{true, false} {
		if at.again && !passed {
			continue
		}
		for _, single := range s.file.singles[at] {
			other, meta, err := s.at(&single)
			if err != nil {
				return nil, nil, err
			}
			itself := meta.UID == m.UID
			if single.Version != l.Version || !at.again && (!itself || e.Whole) {
				continue
			}
			if itself {
				other.Ready, other.Status = cmp.Or(other.Ready, e.Ready), cmp.Or(other.Status, e.Status)
			}
			return other, meta, nil
		}
	}
	return e, m, nil
}

// at returns the object at a spot.
func (s *Server) at(p *spot) (e *Entry, m *view, err error) {
	e = &Entry{}
	failed := s.file.entries(&p.Chunks[p.chunk], 0, func(_ int, text []byte) bool {
		m, err = metadataOf(text, e)
		return false
	})
	return e, m, cmp.Or(failed, err)
}

// alone reports whether there is more about objects of a type than its list has.
func (s *Server) alone(resource schema.GroupResource) bool {
	return s.passed.Load() || slices.ContainsFunc(s.file.lists[resource], func(l *list) bool { return l.Single })
}

// parse reads a line, of which the checksum was right. What it has of the object is good as long as the text.
func (e *Entry) parse(text []byte) error {
	rawjson.Fields(text, func(name, value []byte) {
		switch string(name) {
		case "object":
			e.Object = value
		case "ready":
			e.Ready = rawjson.String(value)
		case "status":
			e.Status = rawjson.String(value)
		case "whole":
			e.Whole = string(value) == "true"
		}
	})
	if !rawjson.IsObject(e.Object) {
		return errors.New("reading the snapshot: it is corrupted: a line is no object")
	}
	return nil
}

// metadataOf decodes an entry, and of its object as much as selectors need.
func metadataOf(text []byte, e *Entry) (*view, error) {
	if err := e.parse(text); err != nil {
		return nil, err
	}
	v := &view{}
	if err := json.Unmarshal(rawjson.Field(e.Object, "metadata"), v); err != nil {
		return nil, fmt.Errorf("reading the snapshot: %w", err)
	}
	return v, nil
}

// view is what selectors look at.
type view struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace"`
	UID       types.UID         `json:"uid"`
	Labels    map[string]string `json:"labels"`
}

// one answers with an object.
func (*Server) one(l *list, e *Entry, want wanted) (*Answer, error) {
	body, err := want.one(&l.List, e)
	if err != nil {
		return nil, fmt.Errorf("reading the snapshot: %w", err)
	}
	return &Answer{Code: http.StatusOK, ContentType: "application/json", Body: body}, nil
}

// list answers a list.
func (s *Server) list(t *target, q *query, want wanted) (*Answer, error) {
	l, err := s.listed(t)
	if err != nil {
		return nil, err
	}
	if q.at.beyond(l) {
		return nil, partial(l)
	}
	body := newBody(l, want)
	next, err := s.page(l, t, q, want, body)
	if err != nil {
		return nil, err
	}
	return &Answer{Code: http.StatusOK, ContentType: "application/json", Body: body.end(l, next)}, nil
}

// listed returns the list that answers for a type, or what a list of it failed with.
func (s *Server) listed(t *target) (*list, error) {
	for _, l := range s.listsOf(t) {
		switch {
		case l.Single:
		case l.End.Error != nil:
			return nil, &apierrors.StatusError{ErrStatus: *l.End.Error}
		default:
			return l, nil
		}
	}
	if s.file.Header.Namespace != "" && t.namespace == "" && slices.ContainsFunc(s.file.lists[t.GroupResource()],
		func(l *list) bool { return l.Namespace != "" }) {
		return nil, outside(t, s.file.Header.Namespace)
	}
	return nil, notHeld("the file does not hold these types")
}

// outside is the error about what lies outside the namespace of a snapshot: who made
// it asked for no more, as one who may see no more.
func outside(t *target, namespace string) error {
	err := apierrors.NewForbidden(t.GroupResource(), "", fmt.Errorf("the snapshot is of the namespace %q", namespace))
	err.ErrStatus.Message = fmt.Sprintf("the snapshot is of the namespace %s, and does not hold others' objects of these types", namespace)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: CauseNotHeld}}
	return err
}

// partial is the error at the end of a list that may lack objects.
func partial(l *list) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonUnknown, Message: l.End.Partial,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: CausePartial, Message: l.End.Partial}}},
	}}
}

// page adds the objects of a page to the body, and returns where the next begins.
func (s *Server) page(l *list, t *target, q *query, want wanted, b *body) (place, error) {
	count, alone := 0, s.alone(l.GroupResource())
	var failed error
	for at := q.at; at.chunk < len(l.Chunks); at = (place{at.chunk + 1, 0}) {
		c := &l.Chunks[at.chunk]
		if !q.mayBeIn(c, t.namespace) {
			continue
		}
		next := -1
		err := s.file.entries(c, at.entry, func(i int, text []byte) bool {
			if q.limit > 0 && count == q.limit {
				next = i
				return false
			}
			var e *Entry
			if e, failed = s.taken(l, t, q, alone, text); e != nil {
				count++
				failed = b.add(l, want, e)
			}
			return failed == nil
		})
		switch {
		case err != nil || failed != nil:
			return place{}, cmp.Or(err, failed)
		case next >= 0:
			return place{at.chunk, next}, nil
		}
	}
	if l.End.Partial != "" && !q.about {
		return place{len(l.Chunks), 0}, nil
	}
	return place{}, nil
}

// taken returns an object of a list if it is asked for, otherwise nil. alone: there may be more about it than the text says.
func (s *Server) taken(l *list, t *target, q *query, alone bool, text []byte) (*Entry, error) {
	e := &Entry{}
	switch {
	case !alone && !q.mayMatch(text):
		return nil, nil
	case !alone && q.all(l, t):
		return e, e.parse(text)
	}
	m, err := metadataOf(text, e)
	if err == nil && alone {
		e, m, err = s.known(l, e, m)
	}
	if err != nil || e == nil {
		return nil, err
	}
	if matches, err := q.matches(t, m, e); err != nil || !matches {
		return nil, err
	}
	return e, nil
}

// place is where a page begins; the zero place is the beginning, and that of no page.
type place struct{ chunk, entry int }

func (p place) token() string {
	if p == (place{}) {
		return ""
	}
	return fmt.Sprintf("%d.%d", p.chunk, p.entry)
}

// beyond reports whether the place is after all objects of the list.
func (p place) beyond(l *list) bool { return p != place{} && p.chunk >= len(l.Chunks) }

// parsePlace reads a token.
func parsePlace(token string) (place, error) {
	if token == "" {
		return place{}, nil
	}
	chunk, entry, found := strings.Cut(token, ".")
	a, errA := strconv.Atoi(chunk)
	b, errB := strconv.Atoi(entry)
	if !found || errA != nil || errB != nil || a < 0 || b < 0 {
		return place{}, apierrors.NewBadRequest("the continue token is not one of this snapshot")
	}
	return place{a, b}, nil
}
