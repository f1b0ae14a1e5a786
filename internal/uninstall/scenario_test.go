// SPDX-License-Identifier: Apache-2.0

package uninstall_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/scenarios"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// TestScenarios runs the scenarios in testdata/*.txt. The first line of a case says which tool removes what: "helm 3 web shop" is the
// release web in the namespace shop, "flux Kustomization/shop/web shop" and "applyset Secret/shop/web shop" are of that object, "prune
// BY shop" is a prune, by those, of objects that are in the namespace shop if they state none. Then comes a cluster, as explaintest.World reads it; after
// a line with -- the manifest, of a prune two of them; and after the last such line what the tool does, and what is left.
func TestScenarios(t *testing.T) {
	scenarios.Run(t, func(t *testing.T, body string) string {
		end := strings.LastIndex(body, "\n--\n")
		if end < 0 {
			t.Fatal("no line --")
		}
		given := body[:end]
		if strings.HasPrefix(given, "leftovers ") {
			return given + "\n--\n" + judged(t, given) + body[len(strings.TrimRight(body, "\n")):]
		}
		answer := told(t, given, func(*explaintest.World) {})
		if diff := cmp.Diff(answer, told(t, given, reduced)); diff != "" {
			t.Errorf("from a snapshot the answer differs:\n%s", diff)
		}
		if other, is := strings.CutPrefix(given, "helm 3 "); is { // nor are there contradictions in what the other says
			told(t, "helm 4 "+other, reduced)
		} else if other, is := strings.CutPrefix(given, "helm 4 "); is {
			told(t, "helm 3 "+other, reduced)
		}
		return given + "\n--\n" + answer + body[len(strings.TrimRight(body, "\n")):]
	})
}

// reduced takes out of a cluster what a snapshot does not have.
func reduced(cluster *explaintest.World) {
	for n := range cluster.Graph().Nodes() {
		resource := n.Resource().GroupResource()
		if o := cluster.Whole[resource.Resource+"/"+n.Namespace()+"/"+n.Name()]; o != nil && !n.Virtual() {
			gvk := o.GroupVersionKind()
			e, err := offline.NewEntry(resource, o.Object)
			if err != nil {
				panic(err)
			}
			o.Object = nil
			if err := json.Unmarshal(e.Object, &o.Object); err != nil {
				panic(err)
			}
			o.SetGroupVersionKind(gvk)
		}
	}
}

func told(t *testing.T, given string, change func(*explaintest.World)) string {
	parts := strings.Split(given, "\n--\n")
	order, text, _ := strings.Cut(parts[0], "\n")
	cluster := explaintest.Parse(t, text)
	change(cluster)
	g := cluster.Graph()
	g.Snapshot().Facts = cluster.Facts()
	words := strings.Fields(order)
	source := evidence.Source{Cluster: cluster, Graph: g, Events: cluster.Events, Now: explaintest.Now}
	w := &uninstall.World{Graph: g, Evidence: evidence.New(t.Context(), source), Namespace: words[len(words)-1]}
	if items := parts[1:]; len(items) > 0 && words[0] == "flux" {
		w.Release = func(namespace, name string) (*uninstall.Release, error) {
			items, err := uninstall.ReadManifest([]byte(items[0]))
			return uninstall.NewRelease(namespace, name, items), err
		}
	}
	p, err := planned(t, w, words, parts[1:])
	if err != nil {
		return err.Error()
	}
	report, err := w.Foretell(p, func(job preview.Job) (*preview.Plan, *foresight.Forecast, error) {
		return foreseen(t, cluster, source, job)
	})
	if err != nil {
		t.Fatal(err)
	}
	if two := contradictions(report); len(two) > 0 {
		t.Errorf("in two rows:\n%s", strings.Join(two, "\n"))
	}
	forecast := report.Forecast
	lines := saidOf(p)
	if forecast != nil {
		for _, o := range report.Preview.Report.Outcomes {
			lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", o.Object.Identity(), o.Result, o.Reason), ": "))
		}
		for _, id := range p.First(forecast) {
			lines = append(lines, "first: "+id.String())
		}
		if len(p.First(forecast)) == 0 && len(forecast.Saved(func(id graph.Identity) (graph.Identity, bool) { return id, true })) > 0 {
			lines = append(lines, "not first: "+p.WhyNotFirst(forecast).String())
		}
		for _, b := range forecast.Breaks {
			word := "breaks"
			if b.Strands() != nil {
				word = "hangs later"
			}
			lines = append(lines, fmt.Sprintf("%s: %s: %s", word, b.Object, b.Why)+unsure(b.Certain))
		}
		for _, uid := range slices.Sorted(slices.Values(forecast.Refused())) {
			lines = append(lines, "refused: "+string(uid))
		}
		for _, l := range report.Left {
			lines = append(lines, fmt.Sprintf("left: %s: %s", l.Object, l.Says())+instances(len(l.Instances)))
		}
	}
	for _, k := range p.Kept {
		lines = append(lines, fmt.Sprintf("kept: %s: %s", k.Object, k.Says())+instances(len(k.Instances)))
	}
	if len(p.Open) > 0 {
		lines = append(lines, fmt.Sprintf("fails or might: %t", report.Fails))
	}
	for _, unread := range report.Unread {
		lines = append(lines, "unread: "+unread.String())
	}
	if len(lines) == 0 {
		return "nothing"
	}
	return strings.Join(lines, "\n")
}

// contradictions are the objects of which two things are said that cannot both be.
func contradictions(r *uninstall.Report) (two []string) {
	said := map[string]map[string]bool{}
	say := func(id graph.Identity, what string) {
		if said[id.String()] == nil {
			said[id.String()] = map[string]bool{}
		}
		said[id.String()][what] = true
	}
	for _, o := range r.Preview.Report.Outcomes {
		say(o.Object.Identity(), string(o.Result))
	}
	for _, k := range r.Kept {
		if k.Object.UID != "" {
			say(k.Object, "keeps")
		}
	}
	for _, l := range r.Left {
		say(l.Object, "leaves")
	}
	for i := range r.Absent {
		say(r.Absent[i].Identity(), "gone already")
	}
	for _, o := range r.Open {
		if slices.Contains([]uninstall.Cause{uninstall.HookExists, uninstall.NoSuchKind, uninstall.Unread}, o.Cause) {
			say(o.Item.Identity(), "fails")
		}
	}
	if r.Forecast != nil {
		for _, b := range r.Forecast.Breaks {
			if b.Strands() == nil && len(b.Users) == 0 {
				say(b.Object, "breaks")
			}
		}
		for _, o := range r.Preview.Report.Outcomes {
			if slices.Contains(r.Forecast.Refused(), o.Object.UID) {
				say(o.Object.Identity(), "refused")
			}
		}
	}
	for _, pair := range [][2]string{
		{"Deleted", "keeps"}, {"Deleted", "leaves"}, {"Deleted", "gone already"}, {"Deleted", "fails"}, {"Deleted", "breaks"}, {"Deleted", "refused"},
		{"Remaining", "keeps"}, {"Remaining", "leaves"}, {"Remaining", "gone already"}, {"Remaining", "breaks"}, {"Unknown", "keeps"}, {"Unknown", "leaves"},
		{"keeps", "leaves"}, {"keeps", "gone already"}, {"leaves", "gone already"}, {"leaves", "fails"}, {"Untouched", "breaks"},
	} {
		for id, all := range said {
			if all[pair[0]] && all[pair[1]] {
				two = append(two, id+": "+pair[0]+", "+pair[1])
			}
		}
	}
	return two
}

func instances(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d instances)", n)
}

func planned(t *testing.T, w *uninstall.World, words, texts []string) (*uninstall.Plan, error) {
	t.Helper()
	var sets [][]uninstall.Item
	for _, text := range texts {
		items, err := uninstall.ReadManifest([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, items)
	}
	switch words[0] {
	case "helm", "helm-file": // of which the record was not read
		version, err := strconv.Atoi(words[1])
		if err != nil {
			t.Fatal(err)
		}
		release := uninstall.NewRelease(words[3], words[2], sets[0])
		release.HooksUnread = words[0] == "helm-file"
		return uninstall.Helm(w, release, version), nil
	case "prune":
		return uninstall.Prune(w, sets[0], sets[1], words[1:len(words)-1])
	}
	for n := range w.Graph.Nodes() {
		if n.Identity().String() != words[1] {
			continue
		}
		whole, err := w.Evidence.Whole(n)
		if err != nil {
			t.Fatal(err)
		}
		if words[0] == "applyset" {
			return uninstall.ApplySet(w, n, whole), nil
		}
		for _, tool := range uninstall.Tools() {
			for _, k := range tool.Kinds {
				if tool.Name == words[0] && k.Resource == n.Resource().GroupResource() {
					p, _ := k.Plan(w, n, whole) // with an error of the release it is of the object alone
					return p, nil
				}
			}
		}
	}
	return nil, fmt.Errorf("no such tool: %s", words[0])
}

// saidOf is what the plan itself says.
func saidOf(p *uninstall.Plan) []string {
	var lines []string
	if len(p.By) > 0 {
		lines = append(lines, "by "+p.By.String())
	}
	if p.Halt != nil {
		lines = append(lines, "nothing is deleted: "+p.Halt.Says().String())
	}
	for i, b := range p.Barriers {
		var names []string
		for _, id := range b.Objects {
			names = append(names, id.String())
		}
		line := fmt.Sprintf("%d. %s", i+1, strings.Join(names, ", "))
		if b.By.Name != "" {
			line += fmt.Sprintf(" (by %s, after %d)", b.By, b.After)
		}
		lines = append(lines, line)
	}
	for i := range p.Absent {
		lines = append(lines, "gone already: "+p.Absent[i].Identity().String())
	}
	for i := range p.Open {
		lines = append(lines, fmt.Sprintf("not known: %s: %s", p.Open[i].Item.Identity(), p.Open[i].Says()))
	}
	return lines
}

func foreseen(t *testing.T, cluster *explaintest.World, source evidence.Source, job preview.Job) (*preview.Plan, *foresight.Forecast, error) {
	t.Helper()
	world := preview.World{Graph: source.Graph, Now: explaintest.Now, ControllerManager: true, Server: cluster.Server}
	first, err := preview.Make(t.Context(), &job, world)
	if err != nil {
		t.Fatal(err)
	}
	forecast := foresight.Look(t.Context(), foresight.Input{Plan: first, Source: source, Server: cluster.Server})
	job.Waves = job.InWaves()
	world.Serves = forecast.Serves
	made, err := preview.Again(t.Context(), first, &job, world)
	if err != nil {
		t.Fatal(err)
	}
	forecast.Annotate(made)
	return made, forecast, nil
}

func unsure(certain bool) string {
	if certain {
		return ""
	}
	return " (not certain)"
}
