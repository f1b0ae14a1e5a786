// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// memberSize is how much text goes into one member of the gzip file before the next
// begins. Any object is found by reading one member.
const memberSize = 256 << 10

// Writer writes a file line by line; it keeps no objects. It is for one goroutine.
// After an error it returns that error to every call.
type Writer struct {
	out     io.Writer
	zip     *gzip.Writer
	pending int // bytes of text in the current member
	list    *List
	objects int // of the list
	trailer Trailer
	shown   int
	redact  *redactor // nil when names stay
	failed  []string
	err     error
}

// Failed says what could not be read, in the order in which it was written.
func (w *Writer) Failed() []string { return w.failed }

// NewWriter writes the header, of which it fills in what the file is. One that says
// Redacted makes the Writer replace names.
func NewWriter(out io.Writer, h Header) (*Writer, error) {
	w := &Writer{out: out, zip: gzip.NewWriter(out)}
	if h.Redacted {
		w.redact = newRedactor()
		h.ContextNamespace, h.Namespace = w.redact.name(h.ContextNamespace), w.redact.name(h.Namespace)
	}
	h.APIVersion, h.Kind, h.Format = APIVersion, Kind, Format
	return w, w.write(h)
}

// write writes a line, and ends the member when that is large enough.
func (w *Writer) write(value any) error {
	if w.err != nil {
		return w.err
	}
	text, err := lineOf(value)
	if err == nil && len(text) >= maxLine {
		err = fmt.Errorf("a line has %d bytes, which is more than a reader takes", len(text))
	}
	if err == nil {
		_, err = w.zip.Write(append(text, '\n'))
	}
	if w.pending += len(text); err == nil && w.pending >= memberSize {
		if err = w.zip.Close(); err == nil {
			w.zip.Reset(w.out)
			w.pending = 0
		}
	}
	if err != nil {
		w.err = fmt.Errorf("writing a snapshot: %w", err)
	}
	return w.err
}

// lineOf is a value as JSON in one line.
func lineOf(value any) ([]byte, error) {
	e, is := value.(*Entry)
	if !is || bytes.IndexByte(e.Object, '\n') >= 0 {
		return json.Marshal(value)
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
	return w.write(line{Answer: a})
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
		w.failed = append(w.failed, fmt.Sprintf("%s %s: %s", schema.GroupResource{Group: o.Group, Resource: o.Resource}, key(o.Namespace, o.Name), o.Error.Message))
	}
	if w.redact != nil {
		other := *o
		other.Namespace, other.Name = w.redact.name(o.Namespace), w.redact.name(o.Name)
		other.Error = *w.redact.status(&o.Error)
		o = &other
	}
	return w.write(line{One: o})
}

// Begin opens a list.
func (w *Writer) Begin(l *List) error {
	if w.list != nil {
		return errors.New("writing a snapshot: a list begins within another")
	}
	w.list, w.objects = l, 0
	if w.redact != nil && l.Namespace != "" {
		other := *l
		other.Namespace = w.redact.name(l.Namespace)
		l = &other
	}
	return w.write(line{List: l})
}

// Restart begins the list again, without what was added to it: its error says in the file that this does not count.
func (w *Writer) Restart() error {
	if w.list == nil || w.objects == 0 {
		return nil
	}
	l, end := w.list, End{Objects: w.objects, Error: &apierrors.NewResourceExpired("the list was read again").ErrStatus}
	w.list = nil
	w.trailer.Lists++
	if err := w.write(line{End: &end}); err != nil {
		return err
	}
	return w.Begin(l)
}

// Add adds an object to the list.
func (w *Writer) Add(e *Entry) error {
	if w.list == nil {
		return errors.New("writing a snapshot: an object is in no list")
	}
	w.objects++
	w.trailer.Objects++
	if !w.list.Single && !w.list.Again && w.list.Resource != "events" {
		w.shown++
	}
	if w.redact != nil {
		other, err := w.redact.entry(w.list, e)
		if err != nil {
			return fmt.Errorf("replacing names: %w", err)
		}
		e = other
	}
	return w.write(e)
}

// End ends the list. It counts the objects.
func (w *Writer) End(e End) error {
	if w.list == nil {
		return errors.New("writing a snapshot: no list ends")
	}
	e.Objects = w.objects
	if e.Error != nil {
		where := ""
		if w.list.Namespace != "" {
			where = " in namespace " + w.list.Namespace
		}
		w.failed = append(w.failed, fmt.Sprintf("%s%s: %s", w.list.GroupResource(), where, e.Error.Message))
	}
	if w.redact != nil && e.Error != nil {
		e.Error = w.redact.status(e.Error)
	}
	w.list = nil
	w.trailer.Lists++
	return w.write(line{End: &e})
}

// Objects returns how many objects were added so far, but for events and those that are
// there again.
func (w *Writer) Objects() int { return w.shown }

// Close writes the trailer, with the time of the snapshot. It does not close what is
// written to.
func (w *Writer) Close(ended time.Time) error {
	w.trailer.Ended = ended
	if err := w.write(line{Trailer: &w.trailer}); err != nil {
		return err
	}
	if err := w.zip.Close(); err != nil {
		return fmt.Errorf("writing a snapshot: %w", err)
	}
	w.err = errors.New("writing a snapshot: it was ended")
	return nil
}
