// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// journalFile has a Header, and then an Entry for each step, in a line of JSON each.
const journalFile = "journal.jsonl"

// JournalError says that a change could not be kept, so that nothing more was changed.
type JournalError struct{ error }

// Unwrap returns why.
func (e *JournalError) Unwrap() error { return e.error }

// Header begins a journal.
type Header struct {
	Started time.Time `json:"started"`
	// Server is the address of the API server.
	Server string `json:"server"`
	// Cluster is the UID of its namespace kube-system, empty when that could not be read.
	Cluster types.UID `json:"cluster,omitempty"`
}

// Same reports whether a journal is of a cluster: by the UID of that where both are known, otherwise by its address.
func (h *Header) Same(server string, cluster types.UID) bool {
	if h.Cluster != "" && cluster != "" {
		return h.Cluster == cluster
	}
	return h.Server == server
}

// Entry is a change before it is sent, or what became of it.
type Entry struct {
	// Number is that of the change, counted from 1.
	Number int       `json:"number"`
	Time   time.Time `json:"time"`
	// Result is what became of the change; empty when it is about to be sent.
	Result Result `json:"result,omitempty"`
	// Cause and Why say what for, Risk what it costs.
	Cause string       `json:"cause,omitempty"`
	Why   string       `json:"why,omitempty"`
	Risk  explain.Risk `json:"risk,omitempty"`
	// Op is the change, File the manifest of its object before the first change to it.
	Op   *remedy.Op `json:"op,omitempty"`
	File string     `json:"file,omitempty"`
	// Temporary: the change is to be taken back.
	Temporary bool `json:"temporary,omitempty"`
}

// MayArrive reports whether a change that is not there might still be made: no answer to it is known, and the API server may work on it.
func (e *Entry) MayArrive(now time.Time) bool { return mayArrive(e.Result, now.Sub(e.Time)) }

// Journal keeps the changes of a run in a directory, each before it is sent, with the manifests of the objects as they were. A nil
// Journal keeps nothing, and refuses temporary changes. Its methods may be called by several goroutines at once.
type Journal struct {
	// Dir is the directory.
	Dir string

	mu      sync.Mutex
	file    *os.File
	lock    *flock.Flock // as long as the run is there
	number  int
	files   map[types.UID]string
	numbers map[string][]int // of the changes, by their keys
}

// NewJournal makes a directory below another for a run against the cluster of the header, readable by its user alone.
func NewJournal(base string, header Header) (*Journal, error) {
	if err := os.MkdirAll(base, 0o700); err != nil {
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
	j := &Journal{Dir: dir, file: file, lock: lock, files: map[types.UID]string{}, numbers: map[string][]int{}}
	return j, errors.Join(j.append(header), syncDir(dir), syncDir(base))
}

// lockOf is held by the run of a journal; the system releases it when that ends, however.
func lockOf(dir string) *flock.Flock {
	return flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
}

// Close ends the journal. One without changes is removed.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	err := errors.Join(j.file.Close(), j.lock.Unlock())
	if j.number == 0 {
		err = errors.Join(err, os.RemoveAll(j.Dir))
	}
	return err
}

// Used reports whether the journal has changes.
func (j *Journal) Used() bool { return j != nil && j.number > 0 }

// begin keeps a change that is about to be sent, with its object as it was before the first change to it. What it returns keeps the result.
func (j *Journal) begin(w *Write, before *unstructured.Unstructured) (finish func(Result) error, _ error) {
	if j == nil {
		if w.Temporary() {
			return nil, errors.New("a change that is to be taken back needs a backup directory")
		}
		return func(Result) error { return nil }, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	number := j.number + 1
	if before != nil && j.files[before.GetUID()] == "" {
		name, err := j.save(number, before, w)
		if err != nil {
			return nil, err
		}
		j.files[before.GetUID()] = name
	}
	entry := Entry{
		Number: number, Time: time.Now().UTC(), Op: &w.Op, File: j.files[w.Op.Object.UID], Risk: w.Risk, Why: w.Remedy.Effect, Cause: w.Cause.ID, Temporary: w.Temporary(),
	}
	if err := j.append(entry); err != nil {
		return nil, err
	}
	key := w.Op.Key()
	j.number, j.numbers[key] = number, append(j.numbers[key], number)
	return func(result Result) error {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.append(Entry{Number: number, Time: time.Now().UTC(), Result: result})
	}, nil
}

// takenBack keeps that a temporary change was ended, as often as it was sent.
func (j *Journal) takenBack(w *Write) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, number := range j.numbers[w.Op.Key()] {
		if err := j.append(Entry{Number: number, Time: time.Now().UTC(), Result: TakenBack}); err != nil {
			return err
		}
	}
	return nil
}

// append writes a line to the disk.
func (j *Journal) append(line any) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(data, '\n')); err != nil {
		return err
	}
	return j.file.Sync()
}

// save writes the manifest of an object to the disk, as it can be applied.
func (j *Journal) save(number int, object *unstructured.Unstructured, w *Write) (string, error) {
	id := w.Op.Object
	data, err := yaml.Marshal(manifest(object).Object)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("%03d-%s.yaml", number, strings.Join(slices.DeleteFunc([]string{id.Resource.Resource, id.Namespace, fileName(id.Name)}, func(part string) bool { return part == "" }), "-"))
	file, err := os.OpenFile(filepath.Join(j.Dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	return name, errors.Join(err, file.Sync(), file.Close(), syncDir(j.Dir))
}

// manifest is an object without what the API server alone sets.
func manifest(object *unstructured.Unstructured) *unstructured.Unstructured {
	m := object.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(m.Object, "metadata", field)
	}
	return m
}

// fileName makes a name one that file systems take: those of RBAC have colons.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' {
			return '_'
		}
		return r
	}, name[:min(len(name), 100)])
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

// Recorded is what a journal says of a run.
type Recorded struct {
	Dir string
	Header
	size int64 // of its whole lines
	// Changes are those that were sent or about to be, in their order, each with the last that is known of it.
	Changes []Entry
}

// Journals returns the directories of journals below another, which need not exist, the oldest first.
func Journals(base string) ([]string, error) {
	entries, err := os.ReadDir(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var dirs []string
	for _, entry := range entries {
		dir := filepath.Join(base, entry.Name())
		if _, err := os.Stat(filepath.Join(dir, journalFile)); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs, err
}

// ReadJournal reads the journal in a directory. Half a line at its end is one that was not written: its change was not sent.
func ReadJournal(dir string) (*Recorded, error) {
	file, err := os.Open(filepath.Join(dir, journalFile))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	r := &Recorded{Dir: dir}
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		r.size += int64(len(line))
		if n == 1 {
			if err := json.Unmarshal(line, &r.Header); err != nil {
				return nil, fmt.Errorf("%s, line 1: %w", file.Name(), err)
			}
			continue
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", file.Name(), n, err)
		}
		switch {
		case e.Op != nil && e.Number == len(r.Changes)+1:
			r.Changes = append(r.Changes, e)
		case e.Op == nil && e.Number > 0 && e.Number <= len(r.Changes):
			r.Changes[e.Number-1].Result = e.Result
		default:
			return nil, fmt.Errorf("%s, line %d: it does not follow the line before", file.Name(), n)
		}
	}
	return r, nil
}

// ErrGoing says that the run of a journal is not over.
var ErrGoing = errors.New("the run of this directory is still going")

// Claim holds the journal of a run that is over, so that no other process takes the same change back, until release is called. Until it was
// held the run may have written on, so it is read again.
func (r *Recorded) Claim() (release func(), _ error) {
	lock := lockOf(r.Dir)
	switch held, err := lock.TryLock(); {
	case err != nil:
		return nil, err
	case !held:
		return nil, ErrGoing
	}
	release = func() { _ = lock.Unlock() }
	now, err := ReadJournal(r.Dir)
	if err != nil {
		release()
		return nil, err
	}
	*r = *now
	return release, nil
}

// Open returns the temporary changes that were not taken back, the last first.
func (r *Recorded) Open() []Entry {
	var open []Entry
	for _, c := range slices.Backward(r.Changes) {
		if c.Temporary && (c.Result == Done || c.Result == Unanswered || c.Result == "") {
			open = append(open, c)
		}
	}
	return open
}

// MarkTakenBack keeps that a change was taken back after its run.
func (r *Recorded) MarkTakenBack(number int, at time.Time) error {
	file, err := os.OpenFile(filepath.Join(r.Dir, journalFile), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := file.Truncate(r.size); err != nil { // half a line at its end
		return errors.Join(err, file.Close())
	}
	j := &Journal{file: file}
	err = j.append(Entry{Number: number, Time: at.UTC(), Result: TakenBack})
	r.size, _ = file.Seek(0, io.SeekEnd)
	return errors.Join(err, file.Close())
}

// Saved returns the manifest of the object of a change as it was before.
func (r *Recorded) Saved(e *Entry) (*unstructured.Unstructured, error) {
	data, err := os.ReadFile(filepath.Join(r.Dir, filepath.Base(e.File)))
	if err != nil {
		return nil, err
	}
	if data, err = yaml.YAMLToJSON(data); err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(data) // numbers as the API server has them
}
