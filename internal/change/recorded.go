// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/internal/restore"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Recorded is what a journal says of a run.
type Recorded struct {
	Dir string
	Header
	// Keys decrypt the Secrets that were kept.
	Keys []age.Identity
	size int64 // of its whole lines
	// Changes are those that were sent or about to be, in their order, each with the last that is known of it, and unanswered the numbers of
	// some.
	Changes    []Entry
	unanswered []int
	// Planned are the objects that the plan of a deletion or collection speaks for.
	Planned []Planned
}

// Journals returns the directories of journals below another, which need not exist, the oldest first. The error is ErrForeign
// where another user may write to it.
func Journals(base string) ([]string, error) {
	entries, err := os.ReadDir(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = trusted(base, true, false)
	}
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, entry := range entries {
		dir := filepath.Join(base, entry.Name())
		if _, err := os.Lstat(filepath.Join(dir, journalFile)); err == nil && entry.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// elsewhere has, below the usual place of journals, the other directories below which there are some, each a quoted line.
const elsewhere = "elsewhere"

// Remember has the usual place of journals know of another, so that what is open there is found.
func Remember(usual, base string) error {
	if slices.Contains(Bases(usual, usual), base) {
		return nil
	}
	if err := os.MkdirAll(usual, 0o700); err != nil {
		return err
	}
	if err := trusted(usual, true, false); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(usual, elsewhere), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%q\n", base)
	return errors.Join(err, file.Close())
}

// Bases are a directory below which journals are, the usual one, and those that this knows of, each once.
func Bases(usual, base string) []string {
	bases := slices.Compact([]string{base, usual})
	file, err := openTrusted(usual, elsewhere, os.O_RDONLY)
	if err != nil {
		return bases
	}
	defer func() { _ = file.Close() }() // only read
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if base, err := strconv.Unquote(lines.Text()); err == nil && filepath.IsAbs(base) && !slices.Contains(bases, base) {
			bases = append(bases, base)
		}
	}
	return bases
}

// ReadJournal reads the journal in a directory. Half a line at its end is one that was not written: its change was not sent. The error is
// ErrForeign where another user might have written it.
func ReadJournal(dir string) (*Recorded, error) {
	if err := trusted(dir, true, true); err != nil {
		return nil, err
	}
	file, err := openTrusted(dir, journalFile, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	r := &Recorded{Dir: dir}
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && n > 1:
			return r, nil
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%s does not say of which run it is", file.Name())
		case err != nil:
			return nil, err
		}
		r.size += int64(len(line))
		if err := r.line(n, line); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", file.Name(), n, err)
		}
	}
}

// line takes a line in.
func (r *Recorded) line(n int, line []byte) error {
	if n == 1 {
		return json.Unmarshal(line, &r.Header)
	}
	var e struct {
		Entry
		Planned *Planned `json:"planned"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	switch {
	case e.Planned != nil: // also what has come to depend on what is let go
		r.Planned = append(r.Planned, *e.Planned)
	case e.Op != nil && e.Op.Complete() && e.Number == len(r.Changes)+1:
		e.Op = recorded(e.Op)
		r.Changes = append(r.Changes, e.Entry)
	case e.Op == nil && e.Number > 0 && e.Number <= len(r.Changes):
		c := &r.Changes[e.Number-1]
		if c.Status = e.Status; e.Made != "" && c.Op.Creates() {
			c.was, c.Op.Object.UID = c.Op.Object.UID, e.Made
		}
		r.supersede(c)
	default:
		return errors.New("it does not follow the line before")
	}
	return nil
}

// supersede drops what was sent without an answer before the same change was made: that is one change, and it is taken back once.
func (r *Recorded) supersede(made *Entry) {
	switch made.Status {
	case Unanswered:
		r.unanswered = append(r.unanswered, made.Number)
	case Done:
		for _, n := range r.unanswered {
			if earlier := &r.Changes[n-1]; n < made.Number && earlier.Op.Key() == made.Op.Key() {
				earlier.Status = Reverted
			}
		}
	}
}

// ErrGoing says that the run of a journal is not over.
var ErrGoing = errors.New("the run of this directory is still going")

// Claim holds the journal of a run that is over, so that no other process takes the same change back, until release is called. Until it was
// held the run may have written on, so it is read again.
func (r *Recorded) Claim() (release func(), _ error) {
	if err := trusted(filepath.Join(r.Dir, lockFile), false, true); err != nil {
		return nil, err
	}
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
	now.Keys = r.Keys
	*r = *now
	return release, nil
}

// Open returns the temporary changes that were not taken back, the last first.
func (r *Recorded) Open() []Entry {
	var open []Entry
	for _, c := range slices.Backward(r.Changes) {
		if c.Temporary && c.Status.stands() {
			open = append(open, c)
		}
	}
	return open
}

// Standing is how many changes were made, or may have been, and not taken back.
func (r *Recorded) Standing() int {
	n := 0
	for i := range r.Changes {
		if r.Changes[i].Status.stands() {
			n++
		}
	}
	return n
}

// MarkTakenBack keeps that changes were taken back after their run.
func (r *Recorded) MarkTakenBack(at time.Time, numbers ...int) error {
	if len(numbers) == 0 {
		return nil
	}
	file, err := openTrusted(r.Dir, journalFile, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return err
	}
	if err := file.Truncate(r.size); err != nil { // half a line at its end
		return errors.Join(err, file.Close())
	}
	j := &Journal{file: file, size: r.size}
	for n, number := range numbers {
		err = errors.Join(err, j.append(Entry{Number: number, Time: at.UTC(), Status: TakenBack}, n == len(numbers)-1))
	}
	r.size, _ = file.Seek(0, io.SeekEnd)
	return errors.Join(err, file.Close())
}

// before returns the object before a change as far as it was kept, nil if nothing was.
func (r *Recorded) before(e *Entry) (*unstructured.Unstructured, error) {
	before, err := r.Manifest(e.Before)
	if e.Metadata != nil {
		var metadata map[string]any
		metadata, err = runtime.DefaultUnstructuredConverter.ToUnstructured(e.Metadata)
		before = &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
	}
	if err != nil || before == nil {
		return nil, err
	}
	before.SetResourceVersion(e.Version)
	return before, nil
}

// Manifest returns what was kept of an object, nil if nothing was. The error says that it is not what was kept.
func (r *Recorded) Manifest(k *Kept) (*unstructured.Unstructured, error) {
	if k == nil {
		return nil, nil
	}
	file, err := openTrusted(r.Dir, filepath.Base(k.File), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(data)); sum != k.Sum {
		return nil, fmt.Errorf("%s was changed since it was written", file.Name())
	}
	if strings.HasSuffix(k.File, encrypted) {
		if data, err = decrypt(data, r.Keys); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(data) // numbers as the API server has them
}

// restoredBy reports whether a restoration takes a change back: its object is lost, or one of its name, for which a controller had made
// another.
func restoredBy(lost []restore.Saved) func(*Entry) bool {
	uids := map[graph.Identity]types.UID{}
	for i := range lost {
		uids[lost[i].Object.Unidentified()] = lost[i].Object.UID
	}
	return func(e *Entry) bool {
		uid, is := uids[e.Op.Object.Unidentified()]
		return is && (e.Op.Verb == remedy.Delete || e.Metadata != nil || uid == e.Op.Object.UID && e.Op.Unfinalizes())
	}
}

// Completed are the numbers of the changes that a restoration takes back when nothing of it is left, besides what reversals do. What others
// deleted because of them has no number: as long as some of it is not recreated, all of them stand.
func (r *Recorded) Completed(lost []restore.Saved, besides []Reversal) []int {
	var numbers []int
	restored := restoredBy(lost)
	for i := range r.Changes {
		reverses := func(v Reversal) bool { return v.Entry.Number == r.Changes[i].Number }
		if restored(&r.Changes[i]) && r.Changes[i].Status.stands() && !slices.ContainsFunc(besides, reverses) {
			numbers = append(numbers, r.Changes[i].Number)
		}
	}
	return numbers
}
