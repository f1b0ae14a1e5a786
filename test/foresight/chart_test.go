// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// A chart is a way in which an operator, its types and its objects can be in a chart of Helm. In its texts the names are those of a layout:
// the release is called $X and is in the namespace $S.
type chart struct {
	name string
	// about says what it is, in a line.
	about  string
	layout layout
	// types is where the definitions are: in templates (also ""), in crds/, in templates and kept by their annotation, or made before
	// (outside).
	types string
	// objects says who makes the objects: the chart, or else a user.
	objects bool
	// more are further templates, sub those of a chart in it, and before is made before.
	more, sub, before string
	// again: an uninstallation has failed before.
	again bool
	// helm is the only major version of Helm that is looked at, 0 for both.
	helm int
	// fails: Helm says that it has failed. nothing: it has deleted nothing, as what the preview calls not known may have it.
	// guarded: --prepare has nothing to do, and says so. partly: something still gets stuck after it.
	fails, nothing, guarded, partly bool
	// during are commands of kubectl: what the program of the hook does whose Job is called cleanup, and is suspended until then.
	during []string
	// prepared: --prepare was run before.
	prepared bool
	// want are lines of the preview's text that have to be there.
	want []string
}

// installed is a release of a chart on a cluster.
type installed struct {
	copied
	chart chart
	// helm is the program, and version its major version.
	helm    string
	version int
}

// helms builds the programs of test/helm, and returns them by their major versions.
func helms(ctx context.Context, dir string) (map[int]string, error) {
	programs := map[int]string{}
	for _, version := range []int{3, 4} {
		programs[version] = filepath.Join(dir, fmt.Sprintf("helm%d", version))
		build := exec.CommandContext(ctx, "go", "-C", "../helm", "build", "-trimpath", "-o", programs[version], fmt.Sprintf("helm.sh/helm/v%d/cmd/helm", version))
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building helm %d: %w: %s", version, err, out)
		}
	}
	return programs, nil
}

// run runs helm as the admin.
func (i *installed) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, i.helm, args...)
	home := filepath.Join(i.cp.Dir, "helm")
	cmd.Env = append(i.cp.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("running helm %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// called is the client configuration of the first operator's webhooks.
func (i *installed) called() string {
	if len(i.layout.operators) == 0 {
		return ""
	}
	return i.call(i.layout.operators[0].name, "/validate")
}

var namespaceDocument = regexp.MustCompile(`(?m)^\{apiVersion: v1, kind: Namespace,.*\n---\n`)

// files are those of the chart, and what a user makes before and after it is installed.
func (i *installed) files() (files map[string]string, before, after string) {
	base, types, operators, objects := i.manifests()
	before = strings.Join(namespaceDocument.FindAllString(base, -1), "") + i.expand(strings.ReplaceAll(i.chart.before, "$CALL", i.called()))
	for k := range i.layout.operators {
		if o := &i.layout.operators[k]; o.elsewhere {
			before += i.expand(i.account(o) + i.needs(o) + i.workload(o))
		}
	}
	files = map[string]string{
		"Chart.yaml":               fmt.Sprintf("{apiVersion: v2, name: %s, version: 0.1.0}\n", i.chart.name),
		"templates/operators.yaml": namespaceDocument.ReplaceAllString(base, "") + operators,
		"templates/more.yaml":      i.extensions() + i.expand(strings.ReplaceAll(i.chart.more, "$CALL", i.called())),
	}
	if i.chart.sub != "" {
		files["charts/sub/Chart.yaml"], files["charts/sub/templates/sub.yaml"] = "{apiVersion: v2, name: sub, version: 0.1.0}\n", i.expand(i.chart.sub)
	}
	switch i.chart.types {
	case "crds":
		files["crds/types.yaml"] = types
	case "kept":
		files["templates/types.yaml"] = strings.ReplaceAll(types, "metadata: {name", "metadata: {annotations: {helm.sh/resource-policy: keep}, name")
	case "outside":
		before += types
	default:
		files["templates/types.yaml"] = types
	}
	// Helm cannot make objects of a type that it makes at the same time, so that charts with both are upgraded.
	if i.chart.objects {
		files["templates/objects.yaml"] = objects
		return files, before, ""
	}
	return files, before, objects
}

// install installs the chart, and returns when its operators work and have set their finalizers.
func (i *installed) install(ctx context.Context) error {
	files, before, after := i.files()
	if _, err := i.kubectl(ctx, before, "apply", "-f", "-"); err != nil {
		return err
	}
	dir := filepath.Join(i.cp.Dir, "charts", i.id)
	later := map[string]string{}
	for name, text := range files {
		if name == "templates/objects.yaml" || name == "templates/more.yaml" { // what calls the operators
			later[name] = text
			continue
		}
		if err := write(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	if _, err := i.run(ctx, "install", i.id, dir, "-n", i.expand("$S"), "--no-hooks"); err != nil {
		return err
	}
	if err := until(ctx, "the operators work", i.operatorsWork); err != nil {
		return err
	}
	for name, text := range later {
		if err := write(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	if err := until(ctx, "the chart is installed", func() (bool, error) { // types and webhooks take a moment
		_, err := i.run(ctx, "upgrade", i.id, dir, "-n", i.expand("$S"), "--no-hooks")
		return err == nil, err
	}); err != nil {
		return err
	}
	if after != "" {
		if err := until(ctx, "the objects are made", func() (bool, error) {
			_, err := i.kubectl(ctx, after, "apply", "-f", "-")
			return err == nil, err
		}); err != nil {
			return err
		}
	}
	if err := until(ctx, "the finalizers are set", func() (bool, error) { return i.finalized(ctx) }); err != nil {
		return err
	}
	return i.prepare(ctx)
}

func write(path, text string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
}

// node is an object of a graph, as the plugin prints it.
type node struct {
	ref
	DeletionTimestamp string                 `json:"deletionTimestamp"`
	Owners            []struct{ UID string } `json:"owners"`
	Virtual           bool                   `json:"virtual"`
}

// objectsNow returns the objects of the cluster by their UIDs, but for those of other charts: all have its id in their names or namespaces.
func (i *installed) objectsNow(ctx context.Context) (map[string]node, error) {
	stdout, stderr, code, err := i.plugin(ctx, "graph", "-A", "--isolated", "-o", "json")
	if err != nil || code != 0 {
		return nil, fmt.Errorf("reading the cluster: %d: %w: %s", code, err, stderr)
	}
	var graph struct{ Nodes []node }
	if err := json.Unmarshal([]byte(stdout), &graph); err != nil {
		return nil, err
	}
	nodes := map[string]node{}
	for _, n := range graph.Nodes {
		if !n.Virtual && strings.Contains(n.Namespace+"/"+n.Name, i.id) {
			nodes[n.UID] = n
		}
	}
	return nodes, nil
}

// stayed is an object that is kept or left, with what it owns.
type stayed struct {
	Object ref
	Owned  []ref
}

// uninstallPlan is what is compared of the document.
type uninstallPlan struct {
	Outcome    []saying
	Kept, Left []stayed
	Stranded   []struct {
		Kind    string
		Count   int
		Names   []string
		Certain bool
	}
	Halted *struct{ Message string }
}
