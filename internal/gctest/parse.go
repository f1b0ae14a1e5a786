// SPDX-License-Identifier: Apache-2.0

package gctest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
)

// Parse reads the scenarios of a text. See the package's documentation for the
// language.
func Parse(text string) ([]Scenario, error) {
	var scenarios []Scenario
	var p *parser
	for number, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, " #")
		line = strings.TrimRight(line, " ")
		name, isTitle := strings.CutPrefix(line, "== ")
		var err error
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case isTitle:
			scenarios, err = appendScenario(scenarios, p)
			p = &parser{Scenario: Scenario{Name: name, Needs: map[string]string{}}}
		case p == nil:
			err = fmt.Errorf("before the first scenario")
		default:
			err = p.line(line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", number+1, line, err)
		}
	}
	scenarios, err := appendScenario(scenarios, p)
	if err != nil {
		return nil, fmt.Errorf("in the last scenario: %w", err)
	}
	return scenarios, nil
}

func appendScenario(scenarios []Scenario, p *parser) ([]Scenario, error) {
	if p == nil {
		return scenarios, nil
	}
	if err := p.resolve(); err != nil {
		return nil, fmt.Errorf("%q: %w", p.Name, err)
	}
	return append(scenarios, p.Scenario), nil
}

// parser reads one scenario. Owners and expectations are kept as text until all
// objects are known.
type parser struct {
	Scenario
	block   string
	pending []func() error
}

// blocks are the lines that indented ones follow.
var blocks = map[string]bool{"objects": true, "expect": true, "either": true, "or": true, "steps": true, "outcome": true}

func (p *parser) line(line string) error {
	words := strings.Fields(line)
	switch indented := strings.HasPrefix(line, " "); {
	case indented:
		return p.indented(words)
	case words[0] == "needs" && len(words) > 1:
		p.Needs[words[1]] = strings.Join(words[2:], " ")
		return nil
	case len(words) == 1 && blocks[words[0]]:
		p.block = words[0]
		p.open()
		return nil
	}
	p.block = ""
	return p.action(words)
}

// open prepares for the lines of a block.
func (p *parser) open() {
	switch p.block {
	case "expect":
		p.Expect = map[Path]State{}
	case "either", "or":
		p.Either = append(p.Either, map[Path]State{})
	case "steps":
		p.Steps = []string{}
	}
}

func (p *parser) indented(words []string) error {
	switch p.block {
	case "objects":
		return p.object(words)
	case "expect":
		p.later(func() error { return p.state(p.Expect, words) })
		return nil
	case "either", "or":
		states := p.Either[len(p.Either)-1]
		p.later(func() error { return p.state(states, words) })
		return nil
	case "steps":
		p.Steps = append(p.Steps, strings.Join(words, " "))
		return nil
	case "outcome":
		if len(words) < 2 {
			return fmt.Errorf("an outcome has an object and a result")
		}
		path := pathOf(words[0])
		p.Outcomes = append(p.Outcomes, Outcome{path, gc.Result(words[1]), strings.Join(words[2:], " ")})
		return nil
	}
	return fmt.Errorf("an indented line outside a block")
}

func (p *parser) later(f func() error) { p.pending = append(p.pending, f) }

// resolve does what had to wait, and checks that the scenario is whole.
func (p *parser) resolve() error {
	for _, f := range p.pending {
		if err := f(); err != nil {
			return err
		}
	}
	for _, o := range p.Objects {
		for _, end := range p.Alternatives() {
			if _, ok := end[o.Path]; !ok {
				return fmt.Errorf("it is not said what is left of %s", o.Path)
			}
		}
	}
	if len(p.Actions) == 0 {
		return fmt.Errorf("nothing is done")
	}
	return nil
}

// pathOf reads a path, without looking whether there is such an object.
func pathOf(text string) Path {
	namespace, rest, ok := strings.Cut(text, ":")
	if !ok {
		namespace, rest = "", text
	}
	kind, name, _ := strings.Cut(rest, "/")
	return Path{namespace, kind, name}
}

// known reads the path of an object that must be there.
func (p *parser) known(text string) (Path, error) {
	path := pathOf(text)
	if p.Object(path) == nil {
		return path, fmt.Errorf("there is no object %s", path)
	}
	return path, nil
}

// object reads a line of the objects.
func (p *parser) object(words []string) error {
	o := Object{Path: pathOf(words[0])}
	if p.Object(o.Path) != nil {
		return fmt.Errorf("a second object %s", o.Path)
	}
	owners, words := cutOwners(words[1:])
	for _, word := range words {
		if err := o.set(word); err != nil {
			return err
		}
	}
	if _, err := p.kind(o.Path.Kind); err != nil {
		return err
	}
	p.Objects = append(p.Objects, o)
	path := o.Path
	p.later(func() (err error) {
		o := p.Object(path)
		o.Owners, err = p.owners(owners)
		return err
	})
	return nil
}

// cutOwners returns the words between < and the next word with a = outside
// braces or without a name, and the rest.
func cutOwners(words []string) (owners, rest []string) {
	i := slices.Index(words, "<")
	if i < 0 {
		return nil, words
	}
	end := i + 1
	for end < len(words) && isOwner(words[end]) {
		end++
	}
	return words[i+1 : end], append(slices.Clone(words[:i]), words[end:]...)
}

func isOwner(word string) bool {
	name, _, _ := strings.Cut(word, "{")
	return !strings.Contains(name, "=") && name != "later" && name != "ready" && name != "cluster" && name != "->"
}

// set reads one property of an object.
func (o *Object) set(word string) error {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "finalizers":
		o.Finalizers = strings.Split(value, ",")
	case "deleting":
		o.Deleting = value
	case "later":
		o.Later = true
	case "node":
		o.Node = value
	case "phase":
		o.Phase = value
	case "ready":
		o.Ready = true
	case "cluster":
		o.ClusterScoped = true
	case "grace":
		seconds, err := strconv.ParseInt(value, 10, 64)
		o.Grace = &seconds
		return err
	default:
		return fmt.Errorf("unknown word %q", word)
	}
	return nil
}

func (p *parser) owners(words []string) ([]Owner, error) {
	var owners []Owner
	for _, word := range words {
		owner, err := p.owner(word)
		if err != nil {
			return nil, fmt.Errorf("owner %q: %w", word, err)
		}
		owners = append(owners, owner)
	}
	return owners, nil
}

// owner reads an owner reference.
func (p *parser) owner(text string) (Owner, error) {
	var o Owner
	for ; strings.ContainsRune("!~*", rune(text[len(text)-1])); text = text[:len(text)-1] {
		switch text[len(text)-1] {
		case '!':
			o.Block = Blocks
		case '~':
			o.Block = DoesNotBlock
		case '*':
			o.Controller = true
		}
	}
	name, stated, _ := strings.Cut(strings.TrimSuffix(text, "}"), "{")
	for word := range strings.SplitSeq(stated, ",") {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "":
		case "apiVersion":
			o.APIVersion = value
		case "kind":
			o.Kind = value
		case "name":
			o.Name = value
		case "uid":
			o.UID = value
		default:
			return o, fmt.Errorf("unknown word %q", word)
		}
	}
	var err error
	o.Of, err = p.ownerPath(name, o.UID)
	return o, err
}

// ownerPath finds the object that an owner reference speaks of: one with the
// path, or the only one with the name. With a UID of its own it need not be
// there.
func (p *parser) ownerPath(name, uid string) (Path, error) {
	if strings.Contains(name, "/") {
		if uid != "" {
			return pathOf(name), nil
		}
		return p.known(name)
	}
	var found []Path
	for _, o := range p.Objects {
		if o.Name == name {
			found = append(found, o.Path)
		}
	}
	if len(found) != 1 {
		return Path{}, fmt.Errorf("%d objects have this name", len(found))
	}
	return found[0], nil
}

// state reads a line of what is left.
func (p *parser) state(states map[Path]State, words []string) error {
	path, err := p.known(words[0])
	if err != nil {
		return err
	}
	state := p.Object(path).Declared()
	owners, rest := cutOwners(words[1:])
	if len(rest) == 0 {
		return fmt.Errorf("%s: it is not said what is left", path)
	}
	if slices.Contains(words, "<") {
		refs, err := p.owners(owners)
		if err != nil {
			return err
		}
		state.Owners = nil
		for _, ref := range refs {
			state.Owners = append(state.Owners, ref.String())
		}
	}
	switch fate, finalizers := rest[0], rest[1:]; {
	case fate == "gone" && len(rest) == 1:
		state = State{Fate: Gone}
	case fate == "intact" && len(finalizers) == 0:
	case fate == "intact" && len(finalizers) == 1:
		state.Finalizers = finalizersOf(finalizers[0])
	case fate == "terminating" && len(finalizers) == 1:
		state.Fate = Terminating
		state.Finalizers = finalizersOf(finalizers[0])
	default:
		return fmt.Errorf("%q is not a state", strings.Join(words[1:], " "))
	}
	states[path] = state
	return nil
}

func finalizersOf(text string) []string {
	if text == "-" {
		return nil
	}
	return slices.Sorted(slices.Values(strings.Split(text, ",")))
}

// action reads an action.
func (p *parser) action(words []string) error {
	a := Action{Verb: Verb(words[0])}
	words = words[1:]
	if a.Verb == "user" && len(words) > 0 {
		a.Verb, words = Verb("user "+words[0]), words[1:]
	}
	switch a.Verb {
	case Collect:
		return p.collection(words)
	case Delete, UserDelete, UserPatch, UserCreate, UserDrop:
	default:
		return fmt.Errorf("unknown action %q", a.Verb)
	}
	owners, rest := cutOwners(words)
	for i, word := range rest {
		if word == "->" && i == len(rest)-2 {
			status, err := strconv.Atoi(rest[i+1])
			if err != nil {
				return err
			}
			a.Status = status
			break
		}
		if err := p.actionWord(&a, word); err != nil {
			return err
		}
	}
	index := len(p.Actions)
	p.Actions = append(p.Actions, a)
	if slices.Contains(words, "<") {
		p.later(func() error {
			refs, err := p.owners(owners)
			p.Actions[index].Owners = &refs
			return err
		})
	}
	return nil
}

// collection reads what stands behind collect.
func (p *parser) collection(words []string) error {
	a := Action{Verb: Collect}
	if len(words) > 1 && words[0] == "in" {
		a.In, words = words[1], words[2:]
		if len(words) == 1 && words[0] == "only" {
			a.Only, words = true, nil
		}
	}
	if len(words) > 0 {
		return fmt.Errorf("unknown word %q", words[0])
	}
	p.Actions = append(p.Actions, a)
	return nil
}

func (p *parser) actionWord(a *Action, word string) error {
	key, value, hasValue := strings.Cut(word, "=")
	switch {
	case strings.Contains(key, "/"):
		path := pathOf(word)
		a.Paths = append(a.Paths, path)
		if p.Object(path) == nil {
			return fmt.Errorf("there is no object %s", path)
		}
	case word == "then" && a.Verb == Delete:
		a.Then = append(a.Then, len(a.Paths))
	case word == "early" && a.Verb == Delete:
		a.Early = append(a.Early, len(a.Paths))
	case word == "uid=nobody":
		a.OtherUID = true
	case word == "version=stale":
		a.OtherVersion = true
	case word == "dryRun":
		a.DryRun = true
	case key == "orphanDependents":
		orphan := value == "true"
		a.OrphanDependents = &orphan
	case key == "finalizers":
		finalizers := slices.DeleteFunc(strings.Split(value, ","), func(f string) bool { return f == "" })
		a.Finalizers = &finalizers
	case key == "grace":
		seconds, err := strconv.ParseInt(value, 10, 64)
		a.Grace = &seconds
		return err
	case !hasValue && a.Policy == "":
		a.Policy = metav1.DeletionPropagation(word)
	default:
		return fmt.Errorf("unknown word %q", word)
	}
	return nil
}
