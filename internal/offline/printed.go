// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Source is a file that kubectl get -o json or yaml printed.
type Source struct {
	Name string
	In   io.Reader
}

var zipMagic, gzipMagic = [2]byte{'P', 'K'}, [2]byte{0x1f, 0x8b}

// IsSnapshot reports whether a file begins as snapshots do, or did.
func IsSnapshot(in io.ReaderAt) bool {
	var magic [2]byte
	n, _ := in.ReadAt(magic[:], 0)
	return n == 2 && (magic == zipMagic || magic == gzipMagic)
}

// maxFiles bounds the files of a directory, maxPrinted their size together.
const (
	maxFiles   = 10000
	maxPrinted = 1 << 30
)

// Directory returns the files below a directory whose names end as those of JSON and
// YAML do, in order. Each is opened when it is read, and closed at its end.
func Directory(path string) ([]Source, error) {
	var sources []Source
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".json", ".yaml", ".yml"}, strings.ToLower(filepath.Ext(file))) {
			return err
		}
		if len(sources) == maxFiles {
			return fmt.Errorf("%s has more than %d files", path, maxFiles)
		}
		sources = append(sources, Source{Name: file, In: &lazyFile{path: file}})
		return nil
	})
	if err == nil && len(sources) == 0 {
		err = fmt.Errorf("%s has no file that ends in .json, .yaml or .yml", path)
	}
	return sources, err
}

// lazyFile is a file that is opened by the first Read and closed by the last.
type lazyFile struct {
	path string
	file *os.File
	done bool
}

// Read implements io.Reader.
func (f *lazyFile) Read(p []byte) (int, error) {
	if f.done {
		return 0, io.EOF
	}
	if f.file == nil {
		file, err := os.Open(f.path)
		if err != nil {
			return 0, err
		}
		f.file = file
	}
	n, err := f.file.Read(p)
	if err != nil {
		f.done = true
		_ = f.file.Close() // it was read
	}
	return n, err
}

// FromPrinted reads what kubectl printed. That says of single objects what they are, and
// never that there are no others: so every list is partial. now is the time that ages
// are counted to.
func FromPrinted(sources []Source, now time.Time) (*File, error) {
	p := &printed{types: map[schema.GroupVersionKind]*List{}, objects: map[schema.GroupResource][]*Entry{}, seen: map[string]bool{}}
	p.addBuiltin()
	left := &io.LimitedReader{N: maxPrinted + 1}
	for _, source := range sources {
		left.R = source.In
		if err := p.read(left); err != nil {
			return nil, fmt.Errorf("%s: %w", source.Name, err)
		}
		if left.N == 0 {
			return nil, fmt.Errorf("%s: the files are too long", source.Name)
		}
	}
	if p.count == 0 {
		return nil, errors.New("there is no object in it")
	}
	p.define()
	return p.file(now)
}

// printed is what was read of files that kubectl printed.
type printed struct {
	types map[schema.GroupVersionKind]*List
	short map[schema.GroupResource][]string
	// raw are the objects as they were read, until their types are known.
	raw     []map[string]any
	objects map[schema.GroupResource][]*Entry
	seen    map[string]bool // UIDs
	count   int
	// unknown are versions of groups of which objects are spoken of, and nothing is known.
	unknown map[schema.GroupVersion]bool
	// namespace is that of all objects, "" for several.
	namespace string
	several   bool
}

// read reads a file: JSON, or documents of YAML.
func (p *printed) read(in io.Reader) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	start, err := firstCharacter(buffered)
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case err != nil:
		return err
	case start == '{':
		return p.readJSON(buffered)
	}
	return p.readYAML(buffered)
}

// firstCharacter returns the first character that is no space, without taking it.
func firstCharacter(in *bufio.Reader) (rune, error) {
	for {
		r, _, err := in.ReadRune()
		if err != nil {
			return 0, err
		}
		if !unicode.IsSpace(r) && r != '\ufeff' {
			return r, in.UnreadRune()
		}
	}
}

// readJSON reads objects one after the other, and those of a list one by one.
func (p *printed) readJSON(in io.Reader) error {
	d := json.NewDecoder(in)
	for {
		var text json.RawMessage
		switch err := d.Decode(&text); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("it is no JSON that kubectl prints: %w", err)
		}
		if err := p.addText(text, 0); err != nil {
			return err
		}
	}
}

// readYAML reads documents. Their anchors are resolved by the library, which refuses
// those that would multiply (sigs.k8s.io/yaml, goyaml.v2).
func (p *printed) readYAML(in *bufio.Reader) error {
	documents := utilyaml.NewYAMLReader(in)
	for {
		document, err := documents.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("it is no YAML: %w", err)
		case len(bytes.TrimSpace(document)) == 0:
			continue
		}
		text, err := yaml.YAMLToJSON(document)
		if err != nil {
			return fmt.Errorf("it is no YAML: %w", err)
		}
		if string(text) == "null" { // comments alone
			continue
		}
		if err := p.addText(text, 0); err != nil {
			return err
		}
	}
}

// maxNesting is how deep lists may be in lists.
const maxNesting = 3

// addText adds an object, or the items of a list.
func (p *printed) addText(text []byte, depth int) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Items           *[]json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return noObject(err)
	}
	if head.Items != nil && strings.HasSuffix(head.Kind, "List") {
		for _, item := range *head.Items {
			if err := p.addItem(item, head.TypeMeta, depth); err != nil {
				return err
			}
		}
		p.count++ // an empty list is an answer, too
		return nil
	}
	return p.addItem(text, metav1.TypeMeta{}, depth)
}

// addItem adds an object. That of a typed list need not say what it is.
func (p *printed) addItem(text []byte, list metav1.TypeMeta, depth int) error {
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		return noObject(err)
	}
	kind, _ := object["kind"].(string)
	if strings.HasSuffix(kind, "List") && object["items"] != nil {
		if depth == maxNesting {
			return errors.New("it has lists in lists in lists")
		}
		return p.addText(text, depth+1)
	}
	if kind == "" && list.Kind != "List" && list.Kind != "" {
		object["apiVersion"], object["kind"] = list.APIVersion, strings.TrimSuffix(list.Kind, "List")
		kind = strings.TrimSuffix(list.Kind, "List")
	}
	apiVersion, _ := object["apiVersion"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if kind == "" || apiVersion == "" || name == "" {
		return errors.New("it has an object without an apiVersion, a kind or a name")
	}
	var checked metav1.PartialObjectMetadata
	if err := json.Unmarshal(text, &checked); err != nil {
		return fmt.Errorf("%s %q: %w", kind, name, noObject(err))
	}
	if uid := string(checked.UID); uid != "" && p.seen[uid] {
		return nil
	} else if uid != "" {
		p.seen[uid] = true
	}
	p.count++
	p.raw = append(p.raw, object)
	p.noteNamespace(checked.Namespace)
	return nil
}

// noObject says in plain words what JSON has that no object of the API has there.
func noObject(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return fmt.Errorf("it has something that is no object: %w", err)
	case wrong.Field == "":
		return fmt.Errorf("it has a JSON %s where an object belongs", wrong.Value)
	}
	return fmt.Errorf("%s is a JSON %s there, which it never is", wrong.Field, wrong.Value)
}

func (p *printed) noteNamespace(namespace string) {
	switch {
	case namespace == "" || namespace == p.namespace:
	case p.namespace == "" && !p.several:
		p.namespace = namespace
	default:
		p.namespace, p.several = "", true
	}
}

// define finds out the types of the objects: first by the definitions among them.
func (p *printed) define() {
	p.unknown = map[schema.GroupVersion]bool{}
	for _, object := range p.raw {
		if object["kind"] == "CustomResourceDefinition" {
			p.addDefinition(object)
		}
	}
	for _, object := range p.raw {
		p.place(object)
	}
	p.raw = nil
}

// addDefinition takes the types of a CustomResourceDefinition.
func (p *printed) addDefinition(object map[string]any) {
	var definition struct {
		Spec struct {
			Group string `json:"group"`
			Scope string `json:"scope"`
			Names struct {
				Kind       string   `json:"kind"`
				Plural     string   `json:"plural"`
				ShortNames []string `json:"shortNames"`
			} `json:"names"`
			Versions []struct {
				Name   string `json:"name"`
				Served bool   `json:"served"`
			} `json:"versions"`
		} `json:"spec"`
	}
	text, err := json.Marshal(object)
	if err != nil || json.Unmarshal(text, &definition) != nil {
		return
	}
	s := definition.Spec
	for _, v := range s.Versions {
		if v.Served && s.Names.Kind != "" && s.Names.Plural != "" && s.Group != "" {
			p.addType(&List{Group: s.Group, Version: v.Name, Resource: s.Names.Plural, Kind: s.Names.Kind, Namespaced: s.Scope == "Namespaced"},
				s.Names.ShortNames)
		}
	}
}

func (p *printed) addType(l *List, short []string) {
	l.Holds = Parts
	p.types[schema.GroupVersionKind{Group: l.Group, Version: l.Version, Kind: l.Kind}] = l
	if p.short == nil {
		p.short = map[schema.GroupResource][]string{}
	}
	p.short[l.GroupResource()] = short
}

// place puts an object into the list of its type. One of an unknown type is called as
// types mostly are, in the plural.
func (p *printed) place(object map[string]any) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	metadata, _ := object["metadata"].(map[string]any)
	t := p.types[gvk]
	if t == nil {
		t = p.otherVersion(gvk)
	}
	if t == nil {
		namespace, _ := metadata["namespace"].(string)
		t = &List{Group: gvk.Group, Version: gvk.Version, Resource: plural(gvk), Kind: gvk.Kind, Namespaced: namespace != ""}
		p.addType(t, nil)
	}
	p.noteOwners(metadata)
	e, err := NewEntry(t.GroupResource(), object)
	if err != nil {
		return
	}
	p.objects[t.GroupResource()] = append(p.objects[t.GroupResource()], e)
}

// otherVersion is the type in another version that is known.
func (p *printed) otherVersion(gvk schema.GroupVersionKind) *List {
	for known, t := range p.types {
		if known.GroupKind() == gvk.GroupKind() {
			return t
		}
	}
	return nil
}

// noteOwners notes versions of groups that references state and of which nothing is
// known: whether a server serves them, no file says.
func (p *printed) noteOwners(metadata map[string]any) {
	refs, _ := metadata["ownerReferences"].([]any)
	for _, each := range refs {
		ref, _ := each.(map[string]any)
		apiVersion, _ := ref["apiVersion"].(string)
		kind, _ := ref["kind"].(string)
		gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
		if p.types[gvk] == nil && p.otherVersion(gvk) == nil && gvk.Version != "" {
			p.unknown[gvk.GroupVersion()] = true
		}
	}
}

// file makes a snapshot of what was read, in memory.
func (p *printed) file(now time.Time) (*File, error) {
	var text bytes.Buffer
	w, err := NewWriter(&text, Header{Begun: now, ContextNamespace: p.namespace})
	if err != nil {
		return nil, err
	}
	for _, a := range p.discovery() {
		if err := w.Answer(a); err != nil {
			return nil, err
		}
	}
	for _, t := range sortedTypes(p.types) {
		objects := p.objects[t.GroupResource()]
		if objects == nil {
			continue
		}
		delete(p.objects, t.GroupResource()) // another version has the same
		if err := w.Begin(t); err != nil {
			return nil, err
		}
		for _, e := range objects {
			if err := w.Add(e); err != nil {
				return nil, err
			}
		}
		if err := w.End(End{Partial: "the file need not have all objects of these types"}); err != nil {
			return nil, err
		}
	}
	if err := w.Close(now); err != nil {
		return nil, err
	}
	return Open(bytes.NewReader(text.Bytes()), int64(text.Len()))
}
