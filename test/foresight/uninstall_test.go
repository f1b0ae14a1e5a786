// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

var (
	chartsPage = flag.String("charts-page", "", "the file to write the table of charts to")
	charts     = flag.String("charts", "", "a regular expression for the names of charts")
	helmsIn    = flag.String("helms", "", "a directory with the programs helm3 and helm4, which are built otherwise")
)

// TestUninstall installs charts with the real helms, says what their uninstallation takes away, keeps and leaves, uninstalls them with
// the real helms, and compares.
func TestUninstall(t *testing.T) {
	if *charts == "" {
		nightly.Only(t, "two helms are compiled, and each chart is looked at for a minute")
	}
	a, err := newArena(t.Context(), func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	programs := map[int]string{3: *helmsIn + "/helm3", 4: *helmsIn + "/helm4"}
	if *helmsIn == "" {
		if programs, err = helms(t.Context(), a.cp.Dir); err != nil {
			t.Fatal(err)
		}
	}
	issuer, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	only := regexp.MustCompile(*charts)
	rows, mu := map[string]string{}, sync.Mutex{}
	for at, c := range withPrepared(chartList) {
		for _, version := range []int{3, 4} {
			name := fmt.Sprintf("%s-helm-%d", c.name, version)
			if c.helm != 0 && c.helm != version || !only.MatchString(name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				if c.layout.api == "" && c.layout.conversion == "" { // without which nobody can ask a server for its types, or read all of it
					t.Parallel()
				}
				i := &installed{copied: copied{arena: a, layout: c.layout.defaults(), id: fmt.Sprintf("c%d-%d", at, version), authority: issuer}, chart: c, helm: programs[version], version: version}
				row := i.compare(t)
				i.remove(t.Context())
				mu.Lock()
				defer mu.Unlock()
				rows[name] = row
			})
		}
	}
	t.Cleanup(func() { // when all have ended
		if *chartsPage == "" {
			return
		}
		text := ""
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			text += rows[name]
		}
		if err := os.WriteFile(*chartsPage, []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	})
}

// withPrepared adds the charts of which something gets stuck once more, with --prepare before.
func withPrepared(all []chart) []chart {
	charts := slices.Clone(all)
	for _, c := range all {
		if c.objects && !c.guarded {
			c.name, c.about, c.prepared, c.fails, c.want = c.name+"-prepared", c.about+"; prepared", true, false, nil
			charts = append(charts, c)
		}
	}
	return charts
}

// compare plays a chart, and returns the row of the table about it.
func (i *installed) compare(t *testing.T) string {
	ctx := t.Context()
	first, err := i.objectsNow(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.install(ctx); err != nil {
		t.Fatal(err)
	}
	if i.chart.again {
		if out, err := i.run(ctx, "uninstall", i.id, "-n", i.expand("$S"), "--timeout=5s"); err == nil {
			t.Errorf("the first uninstallation did not fail: %s", out)
		}
	}
	before, err := i.objectsNow(ctx)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"uninstall", "helm", i.id, "-n", i.expand("$S"), fmt.Sprintf("--helm-version=%d", i.version)}
	if i.chart.prepared || i.chart.guarded {
		prepare := append(slices.Clone(args), "--prepare", "--yes")
		if i.version == 4 { // the exit code is that of the text
			prepare = append(prepare, "-o", "json")
		}
		text, stderr, code, err := i.plugin(ctx, prepare...)
		t.Logf("%s%s", stderr, text)
		if refused := strings.Contains(stderr, "Nothing can be prepared: "); err != nil || refused != i.chart.guarded || (code != 0 && !i.amongOthers(text)) != (i.chart.guarded || i.chart.partly) {
			t.Errorf("--prepare: exit code %d: %v", code, err)
		}
	}
	if i.chart.guarded {
		now, err := i.objectsNow(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for uid, n := range before {
			if is, there := now[uid]; n.Kind != "Pod" && (!there || is.DeletionTimestamp != n.DeletionTimestamp) { // pods come and go with their Deployment
				t.Errorf("--prepare has nothing to do, and has deleted %s", n)
			}
		}
	}
	text, stderr, _, err := i.plugin(ctx, append(args, "-o", "wide")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s%s", text, stderr)
	for _, line := range i.chart.want {
		if !strings.Contains(text, i.expand(line)) {
			t.Errorf("the preview does not say: %s", i.expand(line))
		}
	}
	stdout, stderr, code, err := i.plugin(ctx, append(args, "-o", "json")...)
	if i.chart.prepared && (code != 0 && !i.amongOthers(stdout)) != i.chart.partly {
		t.Errorf("after --prepare: exit code %d", code)
	}
	if err != nil {
		t.Fatal(err)
	}
	var plan uninstallPlan
	if err := json.Unmarshal([]byte(stdout), &plan); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	done := make(chan error, 1)
	earlier := i.cleanup(ctx)
	go func() { done <- i.program(ctx, earlier) }()
	out, err := i.run(ctx, "uninstall", i.id, "-n", i.expand("$S"), "--timeout=20s")
	t.Logf("%s%v", out, err)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if (err != nil) != i.chart.fails {
		t.Errorf("helm: %v", err)
	}
	after, err := i.settle(ctx, &plan)
	if err != nil {
		t.Fatal(err)
	}
	row := i.judge(t, first, before, after, &plan, code)
	if !i.chart.nothing && !i.chart.fails && !slices.ContainsFunc(plan.Outcome, func(s saying) bool { return s.Result != "Deleted" }) {
		i.removeLeftovers(t, stdout, &plan)
	}
	if !i.chart.nothing {
		i.hang(t, &plan)
	}
	return row
}

// strange is a finalizer of a chart that the controller of another one might remove, as they have the same program.
var strange = regexp.MustCompile(`might remove the finalizer (c\d+-\d)\.`)

// amongOthers reports whether what is said is about objects of other charts in the cluster.
func (i *installed) amongOthers(text string) bool {
	return slices.ContainsFunc(strange.FindAllStringSubmatch(text, -1), func(found []string) bool { return found[1] != i.id })
}

// cleanup is the UID of the Job of the hook, empty when it does not exist.
func (i *installed) cleanup(ctx context.Context) string {
	uid, _ := i.kubectl(ctx, "", "-n", i.expand("$S"), "get", "job/cleanup", "--ignore-not-found", "-o", "jsonpath={.metadata.uid}")
	return uid
}

// program does what the program of the chart's hook does, whose Job is another one than earlier.
func (i *installed) program(ctx context.Context, earlier string) error {
	if len(i.chart.during) == 0 {
		return nil
	}
	if err := until(ctx, "the hook runs", func() (bool, error) {
		uid := i.cleanup(ctx)
		return uid != "" && uid != earlier, nil
	}); err != nil {
		return err
	}
	for _, command := range append(slices.Clone(i.chart.during), `-n $S patch job/cleanup --type=merge -p {"spec":{"suspend":false}}`) {
		if _, err := i.kubectl(ctx, "", strings.Fields(i.expand(command))...); err != nil {
			return err
		}
	}
	return nil
}

// hang deletes the objects of the operators that are left: what was said to hang later stays, and all else goes. explain-stuck says of all
// that is there after it was deleted that it is stuck, and the preview has said so.
func (i *installed) hang(t *testing.T, plan *uninstallPlan) {
	ctx, hangs := t.Context(), map[string]bool{}
	for _, s := range plan.Stranded {
		for _, name := range s.Names {
			hangs[s.Kind+"/"+name] = s.Certain
		}
	}
	now, err := i.objectsNow(ctx)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for uid, n := range now {
		goes := slices.ContainsFunc(plan.Outcome, func(s saying) bool { return s.Object.UID == uid })
		if n.Kind != "Toy" && n.Kind != "Gadget" || n.DeletionTimestamp != "" || goes {
			continue
		}
		name := fmt.Sprintf("%s.%s/%s", strings.ToLower(n.Kind)+"s", i.expand("$GROUP"), n.Name)
		document, _, _, err := i.plugin(ctx, "delete", name, "-n", n.Namespace, "--dry-run=client", "-o", "json")
		var preview struct{ Outcome []saying }
		if unread := json.Unmarshal([]byte(document), &preview) != nil; err != nil || unread != (i.layout.conversion != "") {
			t.Fatalf("delete --dry-run: %v: %s", err, document)
		} else if unread {
			if _, err := i.kubectl(ctx, "", "delete", name, "-n", n.Namespace, "--wait=false"); err == nil {
				t.Errorf("said to be unreadable, and deleted: %s", n)
			}
			continue
		}
		for _, s := range preview.Outcome {
			if s.Object.UID == uid {
				said[uid] = s.Result
			}
		}
		if _, err := i.kubectl(ctx, "", "delete", name, "-n", n.Namespace, "--wait=false"); err != nil {
			t.Error(err)
		}
	}
	time.Sleep(8 * time.Second)
	after, err := i.objectsNow(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for uid, result := range said {
		n, stays := after[uid]
		n = now[uid]
		hung, wrong := hangs[n.Kind+"/"+n.Namespace+"/"+n.Name], stays && result == "Deleted" || !stays && result == "Remaining"
		if stays != hung || wrong {
			t.Errorf("deleted later, and stays: %v; the uninstallation said %v, and the preview of its deletion %s: %s", stays, hung, result, n)
		}
	}
	if err := until(ctx, "explain-stuck says that all is stuck", func() (bool, error) { // in the first minute it does not know
		err := i.explained(ctx, plan, after)
		return err == nil, err
	}); err != nil {
		t.Error(err)
	}
}

// explained compares what explain-stuck says of what is being deleted with what was said before.
func (i *installed) explained(ctx context.Context, plan *uninstallPlan, now map[string]node) error {
	document, stderr, _, err := i.plugin(ctx, "explain-stuck", "-A", "-o", "json")
	var report struct {
		Objects []struct {
			Object  ref
			Verdict string
		}
	}
	if err != nil || json.Unmarshal([]byte(document), &report) != nil {
		return fmt.Errorf("explain-stuck: %w: %s%s", err, stderr, document)
	}
	verdicts := map[string]string{}
	for _, o := range report.Objects {
		verdicts[o.Object.UID] = o.Verdict
	}
	for _, s := range plan.Outcome {
		n, is := now[s.Object.UID]
		if verdict := verdicts[s.Object.UID]; is && n.DeletionTimestamp != "" && s.Result == "Remaining" && verdict != "Stuck" {
			return fmt.Errorf("said to be stuck, and explain-stuck says %q: %s", verdict, s.Object)
		}
	}
	return nil
}

// removeLeftovers deletes what is printed as left of an uninstallation that has ended: nothing is left but what is kept on purpose, for its
// data or for its instances, and their namespace.
func (i *installed) removeLeftovers(t *testing.T, document string, plan *uninstallPlan) {
	ctx := t.Context()
	file, list := filepath.Join(i.cp.Dir, "charts", i.id+".json"), filepath.Join(i.cp.Dir, "charts", i.id+".yaml")
	if err := write(file, document); err != nil {
		t.Fatal(err)
	}
	text, stderr, code, err := i.plugin(ctx, "uninstall", "helm", i.id, "-n", i.expand("$S"), "--remove-leftovers="+file)
	t.Logf("%s%s", stderr, text)
	if err != nil || code != 0 && code != 2 {
		t.Errorf("--remove-leftovers: exit code %d: %v", code, err)
	}
	if err := write(list, text); err != nil {
		t.Fatal(err)
	}
	text, stderr, code, err = i.plugin(ctx, "delete", "-f", list, "--yes", "--timeout=2m")
	t.Logf("%s%s", stderr, text)
	if err != nil || code != 0 {
		t.Errorf("delete -f: exit code %d: %v", code, err)
	}
	now, err := i.objectsNow(ctx)
	if err != nil {
		t.Fatal(err)
	}
	needed := func(left stayed) bool {
		return left.Object.Kind == "PersistentVolumeClaim" || left.Object.Kind == "Deployment"
	}
	for _, each := range plan.Left {
		n, is := now[each.Object.UID]
		holds := func(k stayed) bool { return k.Object.Namespace == n.Name }
		instances := n.Kind == "CustomResourceDefinition" && i.layout.conversion != ""
		spared := len(n.Owners) > 0 || needed(each) || instances || n.Kind == "Namespace" && (slices.ContainsFunc(plan.Kept, holds) || slices.ContainsFunc(plan.Left, needed))
		if is && n.DeletionTimestamp == "" && !spared {
			t.Errorf("left after delete -f: %s", n)
		}
	}
	for _, each := range plan.Kept {
		if n, is := now[each.Object.UID]; each.Object.UID != "" && (!is || n.DeletionTimestamp != "") {
			t.Errorf("kept on purpose, and gone after delete -f: %s", each.Object)
		}
	}
}

// settle waits until what is said to go is gone, and nothing goes any more.
func (i *installed) settle(ctx context.Context, plan *uninstallPlan) (map[string]node, error) {
	start, unchanged, last := time.Now(), time.Now(), 0
	for {
		now, err := i.objectsNow(ctx)
		if err != nil {
			return nil, err
		}
		promised := slices.ContainsFunc(plan.Outcome, func(s saying) bool { _, is := now[s.Object.UID]; return is && s.Result == "Deleted" })
		if len(now) != last {
			last, unchanged = len(now), time.Now()
		}
		if !promised && time.Since(unchanged) > 8*time.Second || time.Since(start) > lastWord {
			return now, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// judge compares what was said with what is there.
func (i *installed) judge(t *testing.T, first, before, after map[string]node, plan *uninstallPlan, code int) string {
	if i.chart.nothing {
		for uid, n := range before {
			if _, is := after[uid]; !is && n.Namespace == i.expand("$S") && n.Kind != "Pod" {
				t.Errorf("was to stay, and is gone: %s", n)
			}
		}
		return fmt.Sprintf("| %s | %s | %d | 0 | | | | | %d |\n", i.chart.name, i.chart.about, i.version, code)
	}
	said, counts := map[string]string{}, map[string]int{}
	for _, s := range plan.Outcome {
		said[s.Object.UID] = s.Result
		_, is := after[s.Object.UID]
		switch {
		case s.Result == "Deleted" && is:
			t.Errorf("said to go, and is there: %s", s.Object)
		case s.Result == "Remaining" && !is:
			t.Errorf("said to be stuck, and is gone: %s: %s", s.Object, s.Reason)
		case s.Result == "Deleted":
			counts["gone"]++
		case s.Result == "Remaining":
			counts["stuck"]++
		case s.Result == "Unknown":
			counts["open"]++
		}
	}
	stays := map[string][]ref{}
	for _, k := range plan.Kept {
		stays["kept"] = append(append(stays["kept"], k.Object), k.Owned...)
	}
	for _, l := range plan.Left {
		stays["left"] = append(stays["left"], l.Object)
	}
	counts["kept"], counts["left"] = len(plan.Kept), len(plan.Left)
	for kind, listed := range stays {
		for _, object := range listed {
			for uid, n := range after { // what a hook makes has no UID before
				if object.UID == "" && n.Kind == object.Kind && n.Namespace == object.Namespace && n.Name == object.Name {
					object.UID = uid
				}
			}
			said[object.UID] = kind
			if n, is := after[object.UID]; !is || n.DeletionTimestamp != "" {
				t.Errorf("said to be %s, and is gone or going: %s", kind, object)
			}
		}
	}
	for uid, n := range after {
		_, old := first[uid]
		owned := slices.ContainsFunc(n.Owners, func(o struct{ UID string }) bool { _, is := after[o.UID]; return is })
		if !old && !owned && said[uid] == "" && !i.mine(n) {
			t.Errorf("is there, and nothing was said of it: %s", n)
		}
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %d | %d | %d |\n", i.chart.name, i.chart.about, i.version, counts["gone"], counts["stuck"], counts["open"], counts["kept"], counts["left"], code)
}

// mine reports whether an object is the user's, or Kubernetes' own.
func (i *installed) mine(n node) bool {
	elsewhere := slices.ContainsFunc(i.layout.operators, func(o operator) bool {
		return o.elsewhere && (strings.HasPrefix(n.Name, o.name+"-") || n.Namespace == i.expand(o.in))
	})
	users := elsewhere || !i.chart.objects && (n.Kind == "Toy" || n.Kind == "Gadget")
	system := n.Kind == "APIService" || n.Name == "kube-root-ca.crt" || n.Kind == "ServiceAccount" && n.Name == "default" || strings.HasPrefix(n.Name, "sh.helm.release.v1.")
	return users || system || strings.HasSuffix(n.Name, "-admin") || n.Kind == "Namespace" || i.chart.types == "outside" && n.Kind == "CustomResourceDefinition"
}
