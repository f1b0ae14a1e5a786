// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

var errNobody = errors.New("nobody is there")

const (
	owner     = "Widget/shop/a"
	dependent = "Widget/shop/b owner=Widget/a"
	other     = "Widget/shop/c owner=Widget/a"
	bystander = "Widget/shop/z"
)

// What destroys data is agreed to by a name.
func TestQuestion(t *testing.T) {
	target := graph.Identity{
		Resource:  graph.Resource{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), Kind: "PersistentVolumeClaim", Namespaced: true},
		Namespace: "shop", Name: "data-db-0",
	}
	question := func(forecast *foresight.Forecast) change.Question {
		j := &change.Job{Job: preview.Job{Targets: []graph.Identity{target}}}
		p := &change.Plan{Plan: &preview.Plan{Job: &j.Job, Report: &gc.Report{}}, Job: j, Forecast: forecast}
		return p.Question()
	}
	losses := []foresight.Loss{{Volume: "shop-db", Size: "5Gi"}}
	for _, test := range []struct {
		q             change.Question
		destroyed     []foresight.Loss
		agree, refuse []string
	}{
		{question(&foresight.Forecast{Lost: []foresight.Loss{{Stays: true}}}), nil, []string{"y", "Y", "yes", "YES"}, []string{"", "n", "no", "data-db-0"}},
		{question(&foresight.Forecast{Lost: losses}), losses, []string{"data-db-0"}, []string{"", "y", "yes", "Data-db-0"}},
		{question(nil), nil, []string{"y"}, []string{"n"}},
	} {
		if test.q.System || !slices.EqualFunc(test.q.Destroyed, test.destroyed, func(a, b foresight.Loss) bool { return a.Volume == b.Volume && a.Size == b.Size }) {
			t.Errorf("got %+v, want %v", test.q, test.destroyed)
		}
		for _, answer := range test.agree {
			if !change.Agrees(answer, test.q.Name) {
				t.Errorf("%q is no consent to %v", answer, test.destroyed)
			}
		}
		for _, answer := range test.refuse {
			if change.Agrees(answer, test.q.Name) {
				t.Errorf("%q is taken for consent to %v", answer, test.destroyed)
			}
		}
	}
}

// consent makes the plan of a job and asks.
func consent(t *testing.T, j *change.Job, o change.Options) (*change.Consent, error) {
	t.Helper()
	p, err := change.Make(t.Context(), j, o)
	if err != nil {
		t.Fatal(err)
	}
	return p.Consent(t.Context())
}

// Neither a plan nor consent to it writes. A consent is for one run, and what is done needs none.
func TestRun(t *testing.T) {
	w := newWorld(t, owner, dependent, bystander)
	var events []string
	log := func(e change.Event) {
		switch {
		case e.Begins:
			events = append(events, "begins")
		case e.Wrote != nil:
			events = append(events, e.Wrote.Object.Name)
		case e.Ends:
			events = append(events, "ends")
		}
	}
	c, err := consent(t, w.job("a"), change.Options{Beforehand: change.Beforehand{Yes: true}, Log: log})
	if err != nil || w.has() != "a b z" || w.writers > 0 {
		t.Fatalf("%v, there is %s, %d writers", err, w.has(), w.writers)
	}
	result, err := c.Run(t.Context())
	if err != nil || w.has() != "z" || len(result.Report.Outcomes) != 2 || len(result.Report.Remaining()) > 0 {
		t.Errorf("%v, %+v, there is %s", err, result, w.has())
	}
	if got := strings.Join(events, " "); got != "begins a b ends" {
		t.Errorf("it was told of %s", got)
	}
	if result, err := c.Run(t.Context()); err == nil || result != nil {
		t.Errorf("the consent was used again: %v", result)
	}
	w.become(dependent, bystander) // as an interrupted run leaves it
	resumed := w.job()
	for n := range resumed.Graph.Nodes() {
		if n.Virtual() {
			resumed.Targets = append(resumed.Targets, n.Identity())
		}
	}
	if c, err = consent(t, resumed, change.Options{Beforehand: change.Beforehand{Yes: true}}); err != nil {
		t.Fatal(err)
	}
	if _, err = c.Run(t.Context()); err != nil || w.has() != "z" {
		t.Errorf("%v, there is %s", err, w.has())
	}
	c, err = consent(t, w.job(), change.Options{Beforehand: change.Beforehand{Yes: true}}) // a collection
	if err != nil || len(c.Plan.Report.Steps) > 0 {
		t.Fatalf("%v, %+v", err, c)
	}
	if result, err := c.Run(t.Context()); err == nil || result != nil {
		t.Errorf("nothing was run: %v", result)
	}
	if result, err := (&change.Consent{Plan: c.Plan}).Run(t.Context()); err == nil || result != nil {
		t.Errorf("a consent that nobody gave was run: %v", result)
	}
}

// What nobody agrees to, and of what too little is known, is refused before anything can write.
func TestRefused(t *testing.T) {
	digest := func() string {
		p, err := change.Make(t.Context(), newWorld(t, owner, dependent).job("a"), change.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Digest
	}()
	unlisted := graph.Unlisted{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}, Reason: graph.Forbidden}
	const system = "Namespace/kube-system"
	for name, test := range map[string]struct {
		options  change.Options
		unlisted bool
		of       string
		agreed   bool
		want     error
	}{
		"nobody to ask":                  {want: change.ErrNotConfirmed},
		"no":                             {options: change.Options{Asker: &asker{answers: []string{"n\n"}}}, want: change.ErrNotConfirmed},
		"yes":                            {options: change.Options{Asker: &asker{answers: []string{"yes\n"}}}, agreed: true},
		"no answer":                      {options: change.Options{Asker: &asker{}}, want: errNobody},
		"the digest":                     {options: change.Options{Beforehand: change.Beforehand{Digest: digest}}, agreed: true},
		"another digest":                 {options: change.Options{Beforehand: change.Beforehand{Digest: "sha256:0", Yes: true}}, want: &change.DigestError{Agreed: "sha256:0", Now: digest}},
		"something unread":               {options: change.Options{Beforehand: change.Beforehand{Yes: true}}, unlisted: true, want: &change.IncompleteError{Missing: []string{"gadgets.example.com"}}},
		"something unread, tolerated":    {options: change.Options{Beforehand: change.Beforehand{Yes: true}, Tolerance: change.Tolerance{Names: []string{"example.com"}}}, unlisted: true, agreed: true},
		"the system":                     {options: change.Options{Beforehand: change.Beforehand{Yes: true}}, of: system, want: change.ErrNotConfirmed},
		"the system, yes":                {options: change.Options{Beforehand: change.Beforehand{Yes: true}, Asker: &asker{answers: []string{"yes"}}}, of: system, want: change.ErrNotConfirmed},
		"the system, and its name":       {options: change.Options{Beforehand: change.Beforehand{Yes: true}, Asker: &asker{answers: []string{"kube-system"}}}, of: system, agreed: true},
		"another answer after the first": {options: change.Options{Asker: &asker{answers: []string{"", "yes"}}}, want: change.ErrNotConfirmed},
	} {
		w, target := newWorld(t, owner, dependent), "a"
		if test.of != "" {
			w, target = newWorld(t, test.of), "kube-system"
		}
		if test.unlisted {
			w.unlisted = []graph.Unlisted{unlisted}
		}
		c, err := consent(t, w.job(target), test.options)
		if fmt.Sprint(err) != fmt.Sprint(test.want) || (c != nil) != test.agreed || w.writers > 0 {
			t.Errorf("%s: %v, %v, %d writers", name, c, err, w.writers)
		}
		if missing := new(change.IncompleteError); errors.As(err, &missing) && !slices.Equal(missing.Missing, []string{"gadgets.example.com"}) {
			t.Errorf("%s: %q is missing", name, missing.Missing)
		}
		if a, is := test.options.Asker.(*asker); is && (a.shown != 1 || len(a.asked) != 1) {
			t.Errorf("%s: %d plans were shown, and %d questions asked", name, a.shown, len(a.asked))
		}
	}
}

// What has changed while somebody was asked is asked about if it is more, and not if it is less.
func TestChangedWhileAsked(t *testing.T) {
	for name, test := range map[string]struct {
		targets, later []string
		answers        int
		agreed, gone   bool
		steps          int
		left, told     string
	}{
		"nothing":                     {[]string{"a"}, []string{owner, dependent}, 1, true, false, 2, "", ""},
		"a version":                   {[]string{"a"}, []string{owner + " rv=7", dependent + " rv=8"}, 1, true, false, 2, "", ""},
		"another dependent":           {[]string{"a"}, []string{owner, dependent, other}, 2, true, false, 3, "", "changed Widget/shop/c"},
		"another dependent, but no":   {[]string{"a"}, []string{owner, dependent, other}, 1, false, false, 0, "", "changed Widget/shop/c"},
		"a dependent is gone":         {[]string{"a"}, []string{owner}, 1, true, false, 1, "", ""},
		"the target is gone":          {[]string{"a"}, []string{bystander}, 1, true, true, 0, "", ""},
		"the target, not all":         {[]string{"a"}, []string{"Widget/shop/b"}, 1, true, true, 0, "b", ""},
		"one of two targets":          {[]string{"a", "b"}, []string{owner}, 1, true, false, 1, "", "left out b"},
		"another object has the name": {[]string{"a", "b"}, []string{owner, "Widget/shop/b uid=x"}, 1, true, false, 1, "", "left out b"},
	} {
		w := newWorld(t, owner, dependent)
		var told []string
		a := &asker{answers: slices.Repeat([]string{"yes"}, test.answers), before: func(int) { w.become(test.later...) }}
		c, err := consent(t, w.job(test.targets...), change.Options{Asker: a, Log: func(e change.Event) {
			if e.Changed != nil {
				told = append(told, "changed "+e.Changed.String())
			}
			for _, id := range e.LeftOut {
				told = append(told, "left out "+id.Name)
			}
		}})
		if got := strings.Join(told, ", "); got != test.told || w.writers > 0 {
			t.Errorf("%s: it was told %q, want %q; %d writers", name, got, test.told, w.writers)
		}
		if (err == nil) != test.agreed || err != nil && !errors.Is(err, errNobody) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		var left []string
		for _, id := range c.Left {
			left = append(left, id.Name)
		}
		if c.Gone != test.gone || strings.Join(left, " ") != test.left || len(c.Plan.Report.Steps) != test.steps || len(a.asked) != test.answers {
			t.Errorf("%s: %+v, %d steps, asked %d times", name, c, len(c.Plan.Report.Steps), len(a.asked))
		}
		if result, err := c.Run(t.Context()); (result != nil) != (test.steps > 0) || test.steps > 0 && err != nil {
			t.Errorf("%s: %v, %v", name, result, err)
		}
	}
}

// waves has the dependent go before its owner.
func waves(j *change.Job) *change.Job {
	for i := len(j.Targets) - 1; i >= 0; i-- {
		j.Waves = append(j.Waves, preview.Wave{Objects: []graph.Identity{j.Targets[i]}})
	}
	return j
}

// Before each wave everything is read again: what came that nobody agreed to holds the rest back.
func TestWaves(t *testing.T) {
	for name, test := range map[string]struct {
		comes   string
		refused string
		has     string
		reason  string
	}{
		"nothing comes":                   {"", "", "z", ""},
		"its dependent comes":             {other, "", "z", ""},
		"one with a finalizer comes":      {other + " finalizers=example.com/x", "", "a c z", "it would also delete what was created or changed since the preview: Widget/shop/c"},
		"the owner would be refused":      {"", "a", "a b z", ""},
		"the dependent is the first wave": {"", "b", "z", ""},
	} {
		w := newWorld(t, owner, dependent, bystander)
		w.refused = map[string]error{test.refused: errors.New("denied")}
		c, err := consent(t, waves(w.job("a", "b")), change.Options{Beforehand: change.Beforehand{Yes: true}, Log: func(e change.Event) {
			if e.Wrote != nil && e.Wrote.Object.Name == "b" && test.comes != "" {
				w.become(owner, bystander, test.comes)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		result, err := c.Run(t.Context())
		if unacceptable := errors.As(err, new(change.UnacceptableError)); unacceptable != (test.refused == "a") || !unacceptable && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := w.has(); got != test.has || err != nil && w.writers > 0 {
			t.Errorf("%s: there is %s, want %s; %d writers", name, got, test.has, w.writers)
		}
		if test.reason != "" {
			remaining := result.Report.Remaining()
			if len(remaining) != 1 || !strings.Contains(remaining[0].Reason.String(), test.reason) {
				t.Errorf("%s: %+v", name, remaining)
			}
		}
	}
}

// A dry run has the answer to each write, and writes nothing.
func TestAskServer(t *testing.T) {
	w := newWorld(t, owner, dependent)
	w.refused = map[string]error{"b": errNobody}
	p, err := change.Make(t.Context(), w.job("a"), change.Options{})
	if err != nil {
		t.Fatal(err)
	}
	answers, err := p.AskServer(t.Context())
	if err != nil || !slices.Equal(answers.Steps, []error{nil, errNobody}) || answers.Others != 0 || w.writers > 0 {
		t.Errorf("%+v, %v, %d writers", answers, err, w.writers)
	}
}
