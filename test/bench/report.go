// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// report is the page while it is written.
type report struct {
	head                                  []string
	growth, whole, roots, fars, cascading []string
	memory                                []string
}

const introduction = `# Benchmarks

This page is written by ` + "`make bench`" + `, and [the one about a million objects](benchmarks-million.md) by ` + "`make bench-million`" + `. It compares processes that ran in turn on one machine, so the ratios travel
and the seconds do not. Each figure is the median of several runs, with the least and the greatest in parentheses.

- **graph** reads the metadata of everything, builds the graph, classifies every owner reference and applies the rules
  of ` + "`kubectl gc check`" + `, on one processor, as the plugin does.
- **bare download** asks for every list once, in one piece, with Go's HTTP client, four at a time, and throws the answers
  away. The types it knows from the same discovery.
- **client-go metadata client** reads the same lists with client-go and its pager, without a rate limit, and keeps what it
  decodes. Of a million objects that takes minutes and gigabytes, so it is left out there.

Where there are more than 500,000 objects, server and clients give a request five minutes instead of one
(` + "`--request-timeout=5m`" + `), and of the applications all but the first hundred are copies, written to etcd. Their
pods state no resources and mount no token, which are much of what an API server keeps of a pod, so that it has room:
where it collects garbage all the time, that is what one measures.

`

// describe notes where and of what the figures are.
func (r *report) describe(ctx context.Context, args []string) {
	command := strings.TrimSpace("go run ./test/bench run " + strings.Join(args, " "))
	r.head = []string{
		"| | |", "|---|---|",
		fmt.Sprintf("| machine | %d cores, %s of memory, %s |", runtime.NumCPU(), memory(), processor()),
		fmt.Sprintf("| system | %s/%s, %s |", runtime.GOOS, runtime.GOARCH, runtime.Version()),
		"| commit | " + output(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12") + " |",
		"| Kubernetes | " + output(ctx, "go", "list", "-C", "test/cluster", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes") +
			", client-go " + output(ctx, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/client-go") + " |",
		"| command | `" + command + "` |",
	}
}

// output returns what a command prints, or a question mark.
func output(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(out))
}

// field returns the first value of a field in a file of /proc, or a question
// mark.
func field(file, name string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return "?"
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "?"
}

func memory() string {
	var kB float64
	if _, err := fmt.Sscan(field("/proc/meminfo", "MemTotal"), &kB); err != nil {
		return "?"
	}
	return fmt.Sprintf("%.0f GB", kB*1024/1e9)
}

func processor() string { return field("/proc/cpuinfo", "model name") }

func (r *report) startUp(s Samples, size int64) {
	ms := s.stat(func(s Sample) float64 { return s.Wall.Seconds() * 1000 })
	r.head = append(r.head,
		fmt.Sprintf("| binary | %.1f MB; `--help` takes %s ms |", float64(size)/1e6, ms))
}

// perObject divides by the number of objects.
func perObject(x float64, objects int) string { return number(x / float64(max(1, objects))) }

func (r *report) madeUp(results map[string]Samples, heap Answer) {
	if r.growth == nil {
		r.growth = []string{
			"| objects | | wall s | CPU s | peak RSS MB | µs of CPU an object | RSS bytes an object beyond 40 MB | heap bytes an object |",
			"|---:|---|---|---|---|---:|---:|---:|",
		}
	}
	objects := heap.Objects
	for _, name := range []string{ourGraph, bare} {
		s := results[name]
		beyond, held := "", ""
		if name == ourGraph {
			beyond = perObject(max(0, s.rss().median-40)*1e6, objects)
			held = perObject(float64(heap.Heap), objects)
		}
		r.growth = append(r.growth, fmt.Sprintf("| %d | %s | %s | %s | %s | %s | %s | %s |",
			objects, name, s.wall(), s.cpu(), s.rss(), perObject(s.cpu().median*1e6, objects), beyond, held))
	}
}

func (r *report) real(results map[string]Samples, server map[string][]float64) {
	if r.whole == nil {
		r.whole = []string{
			"| objects | | wall s | ratio | CPU s | ratio | peak RSS MB | API server CPU s |",
			"|---:|---|---|---:|---|---:|---|---:|",
		}
	}
	objects := results[ourGraph][0].Answer.Objects
	base := results[bare]
	for _, name := range []string{bare, ourGraph, ourTree, ourCheck, ourSettled, ourExplain, ourCollect, ourSnapshot, metadataAll, inPages} {
		s := results[name]
		if len(s) == 0 {
			continue
		}
		r.whole = append(r.whole, fmt.Sprintf("| %d | %s | %s | %.2f | %s | %.2f | %s | %s |", objects, name,
			s.wall(), ratio(s.wall(), base.wall()), s.cpu(), ratio(s.cpu(), base.cpu()), s.rss(), number(newStat(server[name]).median)))
	}
}

func (r *report) root(objects int, contenders []contender, results map[string]Samples) {
	if r.roots == nil {
		r.roots = []string{"| objects in the cluster | | wall s | CPU s | peak RSS MB |", "|---:|---|---|---|---|"}
	}
	for _, c := range contenders {
		s := results[c.name]
		r.roots = append(r.roots, fmt.Sprintf("| %d | %s | %s | %s | %s |", objects, c.name, s.wall(), s.cpu(), s.rss()))
	}
}

func (r *report) far(objects int, contenders []contender, results map[string]Samples) {
	if r.fars == nil {
		r.fars = []string{"| objects in the cluster | | wall s | ratio | CPU s |", "|---:|---|---|---:|---|"}
	}
	for _, c := range contenders {
		s := results[c.name]
		r.fars = append(r.fars, fmt.Sprintf("| %d | %s | %s | %.2f | %s |", objects, c.name, s.wall(), ratio(s.wall(), results[bare].wall()), s.cpu()))
	}
}

func (r *report) cascades(dependents int, results map[string]Samples, asked map[string]string) {
	r.cascading = []string{"| dependents | | wall s | CPU s | peak RSS MB | objects a second | requests for single objects |", "|---:|---|---|---|---|---:|---|"}
	for _, name := range []string{"kubectl gc delete", "bare DELETEs", "kube-controller-manager"} {
		s := results[name]
		cpu, rss := s.cpu().String(), s.rss().String()
		if name == "kube-controller-manager" {
			cpu, rss = "", "" // those of who waits for it
		}
		r.cascading = append(r.cascading, fmt.Sprintf("| %d | %s | %s | %s | %s | %s | %s |", dependents, name, s.wall(), cpu, rss,
			number(float64(dependents+1)/s.wall().median), asked[name]))
	}
}

// String returns the page.
func (r *report) String() string {
	var page strings.Builder
	page.WriteString(introduction + strings.Join(r.head, "\n") + "\n")
	for _, part := range []struct {
		title, text string
		lines       []string
	}{
		{"A cluster of any size", "The cluster is made up, and served by another process on the same machine. Half of the objects are Pods.\n" +
			"Where the time of **graph** goes at 1,000,000 objects `make profile` shows: a quarter is reading from the connection, which is all that\n" +
			"the bare download does; about half is decoding, and packing what is kept; a fifth is building the graph. A download costs a processor\n" +
			"with fast memory very little, so there the ratios are worst. Client and server share the cores, which are both busy.", r.growth},
		{"A whole cluster", "kube-apiserver and etcd run on the same machine. Of 300 objects one has an owner reference that is wrong, of 700 one\n" +
			"is stuck in deletion, and there are sixty types beside Kubernetes' own. Ratios are to the bare download. The cluster is at rest: nothing has changed\n" +
			"since etcd was last compacted. Then the API server has no page of a list in its cache but the first, and reads the others\n" +
			"from etcd: those of client-go's pager, and of **graph, in pages**, which is how servers older than 1.33 are read, and lists that take\n" +
			"longer than a request may. The server collects its garbage before each run.\n" +
			"kube-controller-manager runs, with a controller that has nothing to do: where its lease is not renewed, **explain-stuck** takes a second look, five\n" +
			"seconds after the first, and so does **check** without `--settle=0`, where references are wrong.\n" +
			"Beyond what that reads the first time, **collect** reads the pods of namespaces in which a claim is in deletion, and all Deployments,\n" +
			"StatefulSets, DaemonSets and rights, whole: among them are the controllers of finalizers.", r.whole},
		{"One Deployment", "The Deployment is in a namespace of a thousand objects. **requests of kubectl tree** sends what `kubectl tree deployment`\n" +
			"sends, with the same client, and does nothing with the answers: kubectl tree itself does that and more.", r.roots},
		{"A server that is far away", "The same server, with a round trip of 50 ms between it and the client; connections themselves are made at once. The bare\n" +
			"download asks for four lists at a time here, too. Ratios are to it. kubectl gc tree shows a Deployment, the others everything.", r.fars},
		{"In memory", "Go benchmarks. Preview simulates a deletion of an owner with 100,000 dependents, from the snapshot on. Load reads a\n" +
			"made-up cluster like **graph** above, with its pages made up in the same process.", r.memory},
		{"A cascade", "One ConfigMap owns all others. The plugin and the bare DELETEs have 16 requests in flight; kube-controller-manager has its\n" +
			"defaults, and starts when the owner is deleted. The plugin's time includes reading, the preview and watching.", r.cascading},
	} {
		if len(part.lines) > 0 {
			fmt.Fprintf(&page, "\n## %s\n\n%s\n\n%s\n", part.title, part.text, strings.Join(part.lines, "\n"))
		}
	}
	return page.String()
}
