// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

func TestTree(t *testing.T) {
	g := loadCluster(t)
	all := everything(g).Forest()
	web := graph.SelectDependents(1, mustNode(t, g, "web"))
	statuses := map[types.UID]render.Status{
		"web": {Ready: "1/2"}, "web-1-a": {Ready: "0/1", Status: "Terminating"}, "web-1-b": {Ready: "1/1", Status: "Running"},
		"ring-a": {Status: "Odd"},
	}
	named := graph.NewSet(mustNode(t, g, "web-1-b"), mustNode(t, g, "web-1-a"))
	for _, test := range []struct {
		file   string
		tree   render.Tree
		forest graph.Forest
	}{
		{"tree.txt", render.Tree{Statuses: statuses}, all},
		{"tree-unicode.txt", render.Tree{Statuses: statuses, Style: render.Style{Unicode: true}}, all},
		{"tree-color.txt", render.Tree{Statuses: statuses, Style: render.Style{Color: true, Unicode: true}, Named: named}, all},
		{"tree-wide.txt", render.Tree{Wide: true}, all},
		{"tree-depth.txt", render.Tree{}, web.Forest()},
		{"tree-owners.txt", render.Tree{}, graph.SelectOwners(mustNode(t, g, "web-1-b")).Forest()},
		{"tree-cluster-scoped.txt", render.Tree{}, graph.SelectDependents(0, mustNode(t, g, "disk")).Forest()},
	} {
		t.Run(test.file, func(t *testing.T) {
			test.tree.Now = now
			var out bytes.Buffer
			if err := test.tree.Write(&out, test.forest); err != nil {
				t.Fatal(err)
			}
			golden(t, test.file, out.String())
		})
	}
}

var escapeSequence = regexp.MustCompile("\x1b\\[[0-9]*m")

// Colours add nothing but colours.
func TestTreeColor(t *testing.T) {
	forest := everything(loadCluster(t)).Forest()
	var plain, colored bytes.Buffer
	for out, style := range map[*bytes.Buffer]render.Style{&plain: {Unicode: true}, &colored: {Unicode: true, Color: true}} {
		tree := render.Tree{Style: style, Now: now, Wide: true}
		if err := tree.Write(out, forest); err != nil {
			t.Fatal(err)
		}
	}
	if got := escapeSequence.ReplaceAllString(colored.String(), ""); got != plain.String() || strings.Contains(plain.String(), "\x1b") {
		t.Errorf("without its colours:\n%s\nplain:\n%s", got, plain.String())
	}
}

func TestNames(t *testing.T) {
	var out bytes.Buffer
	if err := render.Names(&out, everything(loadCluster(t)).Forest()); err != nil {
		t.Fatal(err)
	}
	golden(t, "names.txt", out.String())
}

// What the deletion of an object is shown as.
func TestTreeDeletion(t *testing.T) {
	grace := func(seconds int64) *int64 { return &seconds }
	for _, test := range []struct {
		name  string
		at    time.Duration // deletionTimestamp, from now
		grace *int64
		want  string
	}{
		{"just requested", 0, grace(0), "terminating for 0s"},
		{"requested some time ago", -3 * time.Hour, grace(0), "terminating for 3h"},
		{"a namespace, which never gets a grace period", -90 * time.Second, nil, "terminating for 90s"},
		{"a pod in its grace period", 20 * time.Second, grace(30), "terminating for 10s, grace period ends in 20s"},
		{"a pod at the end of its grace period", 0, grace(30), "terminating for 30s"},
		{"a pod past its grace period", -time.Hour, grace(600), "terminating for 70m"},
		{"a pod deleted by force", -time.Minute, grace(0), "terminating for 60s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSnapshot()
			s.Add(graph.Object{
				Resource: resources["Pod"], Namespace: "shop", Name: "p", UID: "p",
				DeletionTimestamp: &metav1.Time{Time: now.Add(test.at)}, DeletionGracePeriodSeconds: test.grace,
			})
			got := treeText(t, graph.New(s))
			want := "NAMESPACE   NAME    DETAILS\nshop        Pod/p   " + test.want + "\n"
			if got != want {
				t.Errorf("got:\n%swant:\n%s", got, want)
			}
		})
	}
}

type fataler interface{ Fatal(args ...any) }

func treeText(t fataler, g *graph.Graph) string {
	tree := render.Tree{Now: now}
	var out bytes.Buffer
	if err := tree.Write(&out, everything(g).Forest()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A virtual owner is described by what is known: never as absent when it could
// not be read.
func TestTreeVirtual(t *testing.T) {
	secret := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "a", UID: "x"}
	for _, test := range []struct {
		name string
		ref  metav1.OwnerReference
		want string
	}{
		{"absent", secret, "does not exist in this namespace"},
		{"absent, cluster-scoped", metav1.OwnerReference{APIVersion: "v1", Kind: "PersistentVolume", Name: "a", UID: "x"}, "does not exist"},
		{"created again", metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "namesake", UID: "x"}, "another object has this name"},
		{"unread", metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Widget", Name: "w", UID: "x"}, "could not be read"},
		{"unserved", metav1.OwnerReference{APIVersion: "v2", Kind: "Secret", Name: "a", UID: "x"}, "the server does not serve v2 Secret"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSnapshot()
			s.Add(graph.Object{Resource: resources["Secret"], Namespace: "shop", Name: "namesake", UID: "n"})
			s.Add(graph.Object{Resource: resources["Pod"], Namespace: "shop", Name: "p", UID: "p", OwnerReferences: []metav1.OwnerReference{test.ref}})
			if got := treeText(t, graph.New(s)); !strings.Contains(got, "virtual: "+test.want+"\n") {
				t.Errorf("want %q in:\n%s", test.want, got)
			}
		})
	}
}

// Whoever may create a Pod chooses kind, name and uid of the owners that it
// names, and RBAC objects may have nearly any name: no row may break, and the
// terminal of the reader must not obey them.
func TestTreeWritesNoControlCharacters(t *testing.T) {
	for name, text := range map[string]string{"escape": "a\x1b[2Jb", "newline": "a\nb", "carriage return": "a\rb", "C1": "a\u009b2Jb", "NUL": "a\x00b"} {
		t.Run(name, func(t *testing.T) {
			s := newSnapshot()
			s.Add(graph.Object{Resource: resources["ClusterRole"], Name: text, UID: "role"})
			s.Add(graph.Object{
				Resource: resources["Pod"], Namespace: "shop", Name: "p", UID: "p",
				OwnerReferences: []metav1.OwnerReference{{APIVersion: text, Kind: text, Name: text, UID: types.UID(text)}},
			})
			tree := render.Tree{Now: now, Wide: true, Statuses: map[types.UID]render.Status{"p": {Ready: text, Status: text}}}
			var out bytes.Buffer
			if err := tree.Write(&out, everything(graph.New(s)).Forest()); err != nil {
				t.Fatal(err)
			}
			checkText(t, out.String(), 4)
		})
	}
}

func checkText(t *testing.T, text string, lines int) {
	t.Helper()
	if got := strings.Count(text, "\n"); got != lines {
		t.Errorf("%d lines, want %d:\n%q", got, lines, text)
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }); i >= 0 {
		t.Errorf("control character at %d of:\n%q", i, text)
	}
}

// A table has a line for every branch, nothing at the ends of the lines, and
// its columns line up.
func TestTreeIsATable(t *testing.T) {
	name := rapid.StringMatching(`[a-zé世:_"\\]{1,20}`)
	rapid.Check(t, func(t *rapid.T) {
		s := newSnapshot()
		n := rapid.IntRange(1, 10).Draw(t, "objects")
		for i := range n {
			o := graph.Object{Resource: resources["Pod"], Namespace: "shop", Name: name.Draw(t, "name"), UID: types.UID(fmt.Sprint(i))}
			if owner := rapid.IntRange(-1, n-1).Draw(t, "owner"); owner >= 0 {
				o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "x", UID: types.UID(fmt.Sprint(owner))}}
			}
			s.Add(o)
		}
		tree := render.Tree{Now: now, Wide: true, Style: render.Style{Unicode: rapid.Bool().Draw(t, "unicode")}}
		var out bytes.Buffer
		forest := everything(graph.New(s)).Forest()
		if err := tree.Write(&out, forest); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if branches := countBranches(forest); len(lines) != 1+branches {
			t.Fatalf("%d lines for %d branches:\n%s", len(lines), branches, out.String())
		}
		column := strings.Index(lines[0], "APIVERSION")
		for _, line := range lines {
			if text := []rune(line); line != strings.TrimRight(line, " ") || line != lines[0] && string(text[column:column+3]) != "v1 " {
				t.Fatalf("the columns do not line up:\n%s", out.String())
			}
		}
	})
}

func countBranches(forest graph.Forest) int {
	n := 0
	for range forest.Branches() {
		n++
	}
	return n
}

var errFull = errors.New("no space left")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// Whoever writes learns that the writer failed.
func TestWriteErrors(t *testing.T) {
	g := loadCluster(t)
	forest := everything(g).Forest()
	tree := render.Tree{Now: now}
	for name, err := range map[string]error{
		"Tree":     tree.Write(fullDisk{}, forest),
		"Names":    render.Names(fullDisk{}, forest),
		"Warnings": render.Warnings(fullDisk{}, g.Snapshot()),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestTreeOfADeepChain(t *testing.T) {
	const n = 1_000
	s := newSnapshot()
	for i := range n {
		o := graph.Object{Resource: resources["Pod"], Namespace: "shop", Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprint(i))}
		if i > 0 {
			o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: fmt.Sprintf("p%d", i-1), UID: types.UID(fmt.Sprint(i - 1))}}
		}
		s.Add(o)
	}
	if got := strings.Count(treeText(t, graph.New(s)), "\n"); got != n+1 {
		t.Errorf("%d lines, want %d", got, n+1)
	}
}
