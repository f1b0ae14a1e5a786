// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"filippo.io/age"
	"github.com/gofrs/flock"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

const (
	// journalFile has a Header, and then a line of JSON for each Entry, and for what became of it.
	journalFile = "journal.jsonl"
	// lockFile is locked as long as the run lasts.
	lockFile = "lock"
)

// JournalError says that a change could not be kept, so that nothing more was changed.
type JournalError struct{ error }

// Unwrap returns why.
func (e *JournalError) Unwrap() error { return e.error }

// Header begins a journal.
type Header struct {
	Started time.Time `json:"started"`
	// Asked is the command line, without what proves who the user is.
	Asked []string `json:"asked,omitempty"`
	// Where is the cluster.
	Where answer.Where `json:"cluster"`
	// Undoes is the directory of the run that this one takes back, empty for any other run. Redoes: that took back another.
	Undoes string `json:"undoes,omitempty"`
	Redoes bool   `json:"redoes,omitempty"`
	// Digest is that of the plan, where there was one before the first change.
	Digest string `json:"digest,omitempty"`
}

// Back reports whether the run took changes back, so that to take it back would make them again.
func (h *Header) Back() bool { return h.Undoes != "" && !h.Redoes }

// Same reports whether a journal is known to be of a cluster: addresses prove nothing.
func (h *Header) Same(cluster types.UID) bool { return cluster != "" && h.Where.UID == cluster }

// Entry is a change before it is sent, and what is known of it.
type Entry struct {
	// Number is that of the change, counted from 1.
	Number int       `json:"number"`
	Time   time.Time `json:"time"`
	// Status is what became of the change; empty when it is about to be sent.
	Status Status `json:"status,omitempty"`
	// Cause and Why say what for, Risk what it costs.
	Cause string       `json:"cause,omitempty"`
	Why   string       `json:"why,omitempty"`
	Risk  explain.Risk `json:"risk,omitempty"`
	// Op is the change. It was sent for Version alone, empty where it has none.
	Op      *remedy.Op `json:"op,omitempty"`
	Version string     `json:"version,omitempty"`
	// Metadata is what a write of the garbage collector's work may change, as it was before; nil for a delete.
	Metadata *Metadata `json:"metadata,omitempty"`
	// Before is the object before the change, Lets are others that it lets go.
	Before *Kept  `json:"before,omitempty"`
	Lets   []Kept `json:"lets,omitempty"`
	// Made is the UID of an object that the change has made, in the line that says what became of it.
	Made types.UID `json:"made,omitempty"`
	was  types.UID // that of what was made again
	// Temporary: the change is to be taken back.
	Temporary bool `json:"temporary,omitempty"`
}

// Metadata is what the garbage collector's patches are about.
type Metadata struct {
	Finalizers      []string                `json:"finalizers,omitempty"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences,omitempty"`
}

// Kept is the manifest of an object, in a file of the journal's directory with the checksum.
type Kept struct {
	File string `json:"file"`
	Sum  string `json:"sha256"`
	// Partial: the data of a Secret is left out. Going: it was being deleted.
	Partial bool `json:"partial,omitempty"`
	Going   bool `json:"going,omitempty"`
}

// Journal keeps the changes of a run in a directory, each before it is sent, with the manifest of its object. A nil
// Journal keeps nothing, and refuses temporary changes. Its methods may be called by several goroutines at once.
type Journal struct {
	// Dir is the directory.
	Dir string
	// Secrets are for whom Secrets are encrypted that are kept. With none their data is left out.
	Secrets []age.Recipient

	mu     sync.Mutex
	file   *os.File
	lock   *flock.Flock
	closed bool
	keeps  bool  // what a run lets go
	size   int64 // of the whole lines
	number int
	files  int
	kept   map[keptVersion]Kept
	// whole reads objects again that have changed since they were kept; nil where none are.
	whole WholeReader
	// numbers are those of the changes, by their keys.
	numbers map[string][]int
}

// keptVersion is an object in a version.
type keptVersion struct {
	uid     types.UID
	version string
}

// NewJournal makes a directory below another for a run, readable by its user alone. The error is ErrForeign where others may write to the
// other.
func NewJournal(base string, header Header) (*Journal, error) {
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, err
	}
	if err := trusted(base, true, false); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(base, header.Started.UTC().Format("20060102-150405-")) // 0700
	if err != nil {
		return nil, err
	}
	lock := lockOf(dir)
	if _, err := lock.TryLock(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, journalFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &Journal{Dir: dir, file: file, lock: lock, kept: map[keptVersion]Kept{}, numbers: map[string][]int{}}
	if err := errors.Join(j.append(header, true), syncDir(dir), syncDir(base)); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// lockOf is held by the run of a journal; the system releases it when that ends, however.
func lockOf(dir string) *flock.Flock {
	return flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))
}

// Close ends the journal; a second time it does nothing. One without changes, and that keeps nothing that was let go, is removed.
func (j *Journal) Close() error {
	if j == nil || j.closed {
		return nil
	}
	j.closed = true
	err := errors.Join(j.file.Sync(), j.file.Close(), j.lock.Unlock())
	if j.number == 0 && !j.keeps {
		err = errors.Join(err, os.RemoveAll(j.Dir))
	}
	return err
}

// Used reports whether the journal has changes.
func (j *Journal) Used() bool { return j != nil && j.number > 0 }

// Begin keeps a change that is about to be sent, with its object as it is before, which is nil for none, and the others that it lets go.
// When it returns, all that is on the disk, but for what is made again: that is found by its name. What it returns keeps the status.
func (j *Journal) Begin(c *Change, before *unstructured.Unstructured, lets ...*unstructured.Unstructured) (finish func(Status,
	types.UID) error, _ error) {
	if j == nil {
		if c.Temporary {
			return nil, errors.New("a change that is to be taken back needs a backup directory")
		}
		return func(Status, types.UID) error { return nil }, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	entry := Entry{Number: j.number + 1, Time: time.Now().UTC(), Op: recorded(&c.Op), Risk: c.Risk, Why: c.Why,
		Cause: c.Cause, Temporary: c.Temporary}
	if before != nil {
		kept, err := j.keep(before, true)
		if err != nil {
			return nil, err
		}
		entry.Before, entry.Version = &kept, before.GetResourceVersion()
	}
	for _, other := range lets {
		kept, err := j.keep(other, true)
		if err != nil {
			return nil, err
		}
		entry.Lets = append(entry.Lets, kept)
	}
	return j.begin(&entry, c.Op.Verb != remedy.Restore)
}

// step keeps a write of a deletion or collection before it is sent, with the metadata that it changes. Its plan is on the disk already.
// What it returns keeps the answer.
func (j *Journal) step(s *gc.Step) (answered func(error) error, _ error) {
	op, before := s.Op(), (*graph.Object)(nil)
	if s.Action != gc.ActionDelete {
		before = &s.Object
	}
	again, err := j.again(s)
	if err != nil {
		return nil, &JournalError{err}
	}
	finish, err := j.beginStep(&op, before, again)
	if err != nil {
		return nil, &JournalError{err}
	}
	return func(answer error) error {
		status := StatusOf(answer)
		switch {
		// an earlier try of it may have been carried out; it is recreated
		case apierrors.IsNotFound(answer) && j.whole != nil && s.Action == gc.ActionDelete:
			status = Unanswered
		case apierrors.IsNotFound(answer), apierrors.IsConflict(answer): // others were faster
			status = Skipped
		}
		if err := finish(status, ""); err != nil {
			return &JournalError{err}
		}
		return nil
	}, nil
}

// again reads an object that is about to be deleted, where it has changed since it was kept.
func (j *Journal) again(s *gc.Step) (*unstructured.Unstructured, error) {
	if j.whole == nil || s.Action != gc.ActionDelete || j.has(s.Object.UID, s.Object.ResourceVersion) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), sending)
	defer cancel()
	o, err := j.whole.Read(ctx, s.Object.Identity())
	if IsGone(s.Object.Identity(), o, err) || err == nil && j.has(o.GetUID(), o.GetResourceVersion()) {
		return nil, nil
	}
	return o, err
}

// has reports whether an object is kept as it was in a version.
func (j *Journal) has(uid types.UID, version string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, is := j.kept[keptVersion{uid, version}]
	return is
}

func (j *Journal) beginStep(op *remedy.Op, before *graph.Object, again *unstructured.Unstructured) (finish func(Status,
	types.UID) error, _ error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	entry := Entry{Number: j.number + 1, Time: time.Now().UTC(), Op: recorded(op)}
	if again != nil {
		kept, err := j.keep(again, true)
		if err != nil {
			return nil, err
		}
		entry.Before = &kept
	}
	if before != nil {
		entry.Version, entry.Metadata = before.ResourceVersion, &Metadata{before.Finalizers, before.OwnerReferences}
	}
	return j.begin(&entry, false)
}

// begin writes the line of a change.
func (j *Journal) begin(e *Entry, durable bool) (finish func(Status, types.UID) error, _ error) {
	if err := j.append(e, durable); err != nil {
		return nil, err
	}
	key := e.Op.Key()
	j.number, j.numbers[key] = e.Number, append(j.numbers[key], e.Number)
	return func(status Status, uid types.UID) error {
		j.mu.Lock()
		defer j.mu.Unlock()
		if !e.Op.Creates() {
			uid = ""
		}
		return j.append(Entry{Number: e.Number, Time: time.Now().UTC(), Status: status, Made: uid}, durable)
	}, nil
}

// takenBack keeps that a temporary change was ended, as often as it was sent.
func (j *Journal) takenBack(op *remedy.Op) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, number := range j.numbers[op.Key()] {
		if err := j.append(Entry{Number: number, Time: time.Now().UTC(), Status: TakenBack}, true); err != nil {
			return err
		}
	}
	return nil
}

// recorded is a change as a journal has it: without what takes it back, which is found from the object as it was, and without what was
// restored, which another journal has, Secrets encrypted, but for its owners.
func recorded(op *remedy.Op) *remedy.Op {
	plain := *op
	plain.Back = nil
	if op.Manifest != nil {
		plain.Manifest = map[string]any{"apiVersion": op.Manifest["apiVersion"], "kind": op.Manifest["kind"]}
		if refs, owned := remedy.At(op.Manifest, "/metadata/ownerReferences"); owned {
			plain.Manifest["metadata"] = map[string]any{"ownerReferences": refs}
		}
	}
	return &plain
}

// append writes a line, and if it is to be durable to the disk.
func (j *Journal) append(line any, durable bool) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	written, err := j.file.Write(append(data, '\n'))
	if err != nil {
		return errors.Join(err, j.file.Truncate(j.size)) // half a line
	}
	if j.size += int64(written); !durable {
		return nil
	}
	return j.file.Sync()
}

// syncKept has the manifests that were kept without that on the disk.
func (j *Journal) syncKept() error {
	for _, kept := range j.kept {
		file, err := os.OpenFile(filepath.Join(j.Dir, kept.File), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// keep writes the manifest of an object, if it is to be durable to the disk, once for each version, as it can be created again.
func (j *Journal) keep(object *unstructured.Unstructured, durable bool) (Kept, error) {
	version := keptVersion{object.GetUID(), object.GetResourceVersion()}
	if kept, known := j.kept[version]; known && version.version != "" {
		return kept, nil
	}
	m := manifest(object)
	secret, file := object.GetKind() == "Secret" && object.GroupVersionKind().Group == "", j.fileOf(object)
	partial := secret && len(j.Secrets) == 0
	if partial {
		withoutData(m)
	}
	data, err := json.MarshalIndent(m.Object, "", "  ") // YAML has not all of its strings
	if secret && !partial && err == nil {
		file += encrypted
		data, err = encrypt(data, j.Secrets)
	}
	if err != nil {
		return Kept{}, err
	}
	kept := Kept{File: file, Sum: fmt.Sprintf("%x", sha256.Sum256(data)), Partial: partial, Going: object.GetDeletionTimestamp() != nil}
	out, err := os.OpenFile(filepath.Join(j.Dir, kept.File), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return Kept{}, err
	}
	_, err = out.Write(data)
	if durable {
		err = errors.Join(err, out.Sync(), syncDir(j.Dir))
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return Kept{}, err
	}
	j.kept[version] = kept
	return kept, nil
}

// withoutData removes the data of a Secret, also from annotations that hold a manifest of it, as that of "kubectl apply" does.
func withoutData(secret *unstructured.Unstructured) {
	delete(secret.Object, "data")
	delete(secret.Object, "stringData")
	annotations := secret.GetAnnotations()
	maps.DeleteFunc(annotations, func(_, value string) bool {
		var held map[string]any
		return json.Unmarshal([]byte(value), &held) == nil && (held["data"] != nil || held["stringData"] != nil)
	})
	secret.SetAnnotations(annotations)
}

// fileOf is the name of a new file for an object: of characters that are plain everywhere.
func (j *Journal) fileOf(object *unstructured.Unstructured) string {
	j.files++
	plain := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}
	name := fmt.Sprintf("%03d", j.files)
	for _, part := range []string{strings.ToLower(object.GetKind()), object.GetNamespace(), object.GetName()} {
		if part != "" {
			name += "-" + strings.Map(plain, part[:min(len(part), 63)])
		}
	}
	return name + ".json"
}

// manifest is an object without what the API server alone sets.
func manifest(object *unstructured.Unstructured) *unstructured.Unstructured {
	m := object.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(m.Object, "metadata", field)
	}
	return m
}

// syncDir has the entries of a directory on the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
