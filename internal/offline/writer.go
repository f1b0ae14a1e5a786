// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/rawjson"
)

// memberSize is how much text goes into one member of the zip file before the next
// begins. Any object is found by reading one member.
const memberSize = 256 << 10

// indexName is what the last member is called.
const indexName = "index.jsonl"

// Writer writes objects line by line, and keeps none of them, but their index. It is for one goroutine.
// After an error it returns that error to every call.
type Writer struct {
	zip    *zip.Writer
	member io.Writer // nil before the first object, and after a member's end
	// members are those that were begun; size is that of the text of the last one, and lines how many objects it has.
	members, size, lines int
	index                bytes.Buffer
	list                 *list
	trailer              Trailer
	shown                int
	redact               *redactor // nil when names stay
	failed               []string
	err                  error
}

// Failed says what could not be read, in the order in which it was written.
func (w *Writer) Failed() []string { return w.failed }

// NewWriter writes the header, of which it fills in what the file is. One that says
// Redacted makes the Writer replace names.
func NewWriter(out io.Writer, h Header) (*Writer, error) {
	w := &Writer{zip: zip.NewWriter(out)}
	if h.Redacted {
		w.redact = newRedactor()
		h.ContextNamespace, h.Namespace = w.redact.name(h.ContextNamespace), w.redact.name(h.Namespace)
	}
	h.APIVersion, h.Kind, h.Format = APIVersion, Kind, Format
	return w, w.note(h)
}

// note writes a line of the index.
func (w *Writer) note(value any) error {
	text, err := json.Marshal(value)
	if err == nil && w.err == nil {
		w.index.Write(append(text, '\n'))
	}
	return w.failing(err)
}

// failing keeps the first error.
func (w *Writer) failing(err error) error {
	if w.err == nil && err != nil {
		w.err = fmt.Errorf("writing a snapshot: %w", err)
	}
	return w.err
}

// write writes an object, and ends the member when that is large enough.
func (w *Writer) write(e *Entry) error {
	if w.err != nil {
		return w.err
	}
	text, err := lineOf(e)
	if err == nil && len(text) >= maxLine {
		err = fmt.Errorf("a line has %d bytes, which is more than a reader takes", len(text))
	}
	if err == nil && w.member == nil {
		w.members++
		w.size, w.lines = 0, 0
		w.member, err = w.zip.Create(fmt.Sprintf("objects-%06d.jsonl", w.members))
	}
	if err == nil {
		_, err = w.member.Write(append(text, '\n'))
	}
	if err == nil {
		w.place(e)
	}
	if w.lines, w.size = w.lines+1, w.size+len(text); w.size >= memberSize {
		w.member = nil
	}
	return w.failing(err)
}

// place says in the index where an object is that was written.
func (w *Writer) place(e *Entry) {
	metadata := rawjson.Field(e.Object, "metadata")
	k := key(rawjson.String(rawjson.Field(metadata, "namespace")), rawjson.String(rawjson.Field(metadata, "name")))
	chunks := w.list.Chunks
	if n := len(chunks); n == 0 || w.list.Single || chunks[n-1].In != w.members-1 {
		chunks = append(chunks, chunk{In: w.members - 1, At: w.lines, First: k, Last: k})
	}
	c := &chunks[len(chunks)-1]
	c.Objects++
	c.First, c.Last = min(c.First, k), max(c.Last, k)
	w.list.Chunks = chunks
	w.list.Objects++
}

// lineOf is an object as JSON in one line.
func lineOf(e *Entry) ([]byte, error) {
	if bytes.IndexByte(e.Object, '\n') >= 0 {
		return json.Marshal(e)
	}
	others, err := json.Marshal(&Entry{Object: []byte("0"), Ready: e.Ready, Status: e.Status, Whole: e.Whole})
	const before = `{"object":` // the object is JSON, to be written as it is
	return slices.Concat([]byte(before), e.Object, others[len(before)+len("0"):]), err
}

// Answer adds what the server said to a GET of a path. Those about types come before what
// is redacted.
func (w *Writer) Answer(a *Answer) error {
	if w.redact != nil {
		w.redact.learn(a)
	}
	return w.note(line{Answer: a})
}

// KeepOriginals has a Writer that redacts keep which words stand for which from now on.
func (w *Writer) KeepOriginals() { w.redact.originals = Key{} }

// Originals returns the words that were replaced, when they are kept.
func (w *Writer) Originals() Key {
	if w.redact == nil {
		return nil
	}
	return w.redact.originals
}

// One adds that one object could not be read.
func (w *Writer) One(o *One) error {
	if o.Error.Code != http.StatusNotFound {
		w.failed = append(w.failed, fmt.Sprintf("%s %s: %s", schema.GroupResource{Group: o.Group, Resource: o.Resource},
			key(o.Namespace, o.Name), o.Error.Message))
	}
	if w.redact != nil {
		other := *o
		other.Namespace, other.Name = w.redact.name(o.Namespace), w.redact.name(o.Name)
		other.Error = *w.redact.status(&o.Error)
		o = &other
	}
	return w.note(line{One: o})
}

// Begin opens a list.
func (w *Writer) Begin(l *List) error {
	if w.list != nil {
		return errors.New("writing a snapshot: a list begins within another")
	}
	w.list = &list{List: *l}
	return w.err
}

// Restart begins the list again, without what was added to it.
func (w *Writer) Restart() {
	if w.list != nil {
		w.list.Chunks, w.list.Objects = nil, 0
	}
}

// Add adds an object to the list.
func (w *Writer) Add(e *Entry) error {
	if w.list == nil {
		return errors.New("writing a snapshot: an object is in no list")
	}
	if !w.list.Single && !w.list.Again && w.list.Resource != "events" {
		w.shown++
	}
	if w.redact != nil {
		other, err := w.redact.entry(&w.list.List, e)
		if err != nil {
			return fmt.Errorf("replacing names: %w", err)
		}
		e = other
	}
	return w.write(e)
}

// End ends the list. It counts the objects.
func (w *Writer) End(e End) error {
	l := w.list
	if l == nil {
		return errors.New("writing a snapshot: no list ends")
	}
	e.Objects = l.Objects
	if e.Error != nil {
		where := ""
		if l.Namespace != "" {
			where = " in namespace " + l.Namespace
		}
		w.failed = append(w.failed, fmt.Sprintf("%s%s: %s", l.GroupResource(), where, e.Error.Message))
	}
	if w.redact != nil {
		if l.Namespace = w.redact.name(l.Namespace); e.Error != nil {
			e.Error = w.redact.status(e.Error)
		}
	}
	l.End, w.list = e, nil
	w.trailer.Lists++
	w.trailer.Objects += e.Objects
	return w.note(line{List: l})
}

// Objects returns how many objects were added so far, but for events and those that are
// there again.
func (w *Writer) Objects() int { return w.shown }

// Close writes the index, with the time of the snapshot. It does not close what is
// written to.
func (w *Writer) Close(ended time.Time) error {
	w.trailer.Ended = ended
	err := w.note(line{Trailer: &w.trailer})
	if err != nil {
		return err
	}
	last, err := w.zip.Create(indexName)
	if err == nil {
		_, err = w.index.WriteTo(last)
	}
	if err == nil {
		err = w.zip.Close()
	}
	if err = w.failing(err); err == nil {
		w.err = errors.New("writing a snapshot: it was ended")
	}
	return err
}
