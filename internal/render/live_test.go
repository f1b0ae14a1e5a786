// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
)

// at is a time of the watch, in seconds.
func at(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }

func row(key, text string) render.LiveLine { return render.LiveLine{Key: key, Text: text} }

// TestLive draws rows that appear, vanish and change, and keeps the marks while nothing does.
func TestLive(t *testing.T) {
	live := render.Live{What: "kubectl gc tree -w", Since: at(0), Rows: true}
	var out strings.Builder
	draw := func(second int, lines ...render.LiveLine) {
		live.Update(at(second), append([]render.LiveLine{row("header", "NAME      STATUS   AGE")}, lines...))
		out.WriteString(strings.Join(live.Draw(at(second), "a note\n", 24), "\n") + "\n----\n")
	}
	draw(0, row("web", "Deployment/web"), row("a", "|-Pod/a   Running   3s"), row("b", "`-Pod/b   Running   3s"))
	draw(1, row("web", "Deployment/web"), row("a", "|-Pod/a   Running   4s"), row("b", "`-Pod/b   Running   4s"))
	draw(2, row("web", "Deployment/web"), row("a", "|-Pod/a   Error     5s"), row("c", "`-Pod/c   Running   0s"))
	draw(9, row("web", "Deployment/web"), row("a", "`-Pod/a   Error     12s"), row("c", "`-Pod/c   Running   7s"))
	draw(10, row("web", "Deployment/web"), row("a", "|-Pod/a   Error     13s\n|     terminating for 1s"), row("c", "`-Pod/c   Running   8s"))
	golden(t, "live.txt", out.String())
}

// TestLiveText marks the lines of a text that say something else, whatever their ages.
func TestLiveText(t *testing.T) {
	live := render.Live{What: "kubectl gc explain-stuck -w", Since: at(0)}
	live.Update(at(0), render.LiveLines("STUCK  pod/a, deleting for 3s\n\nNext   wait\n"))
	live.Update(at(5), render.LiveLines("STUCK  pod/a, deleting for 8s\n\nNext   restart node/b\n"))
	want := []string{
		"kubectl gc explain-stuck -w   (Ctrl-C ends)", "since 03:04:00, now 03:04:06 UTC; changed 03:04:05", "",
		"  STUCK  pod/a, deleting for 8s", "", "~ Next   restart node/b",
	}
	if got := live.Draw(at(6), "", 24); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// TestLivePaint paints marks, and what vanished loses its own paint.
func TestLivePaint(t *testing.T) {
	live := render.Live{Style: render.Style{Color: true}, Rows: true}
	live.Update(at(0), []render.LiveLine{row("a", "\x1b[31mPod/a\x1b[0m"), row("b", "Pod/b")})
	live.Update(at(1), []render.LiveLine{row("b", "Pod/b"), row("c", "Pod/c")})
	got := live.Draw(at(1), "", 0)[3:]
	want := []string{"\x1b[31m- Pod/a\x1b[0m", "  Pod/b", "\x1b[32m+ Pod/c\x1b[0m"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLiveWindow never draws more lines than the terminal has, and shows what has changed.
func TestLiveWindow(t *testing.T) {
	lines := func(changed int) []render.LiveLine {
		all := []render.LiveLine{row("header", "NAME")}
		for i := range 40 {
			text := fmt.Sprintf("Pod/%d", i)
			if i == changed {
				text += " Error"
			}
			all = append(all, row(fmt.Sprint(i), text))
		}
		return all
	}
	for changed, last := range map[int]string{
		-1: "... 26 lines below", 3: "... 26 lines below", 20: "... 18 lines above, 8 lines below", 39: "... 26 lines above",
	} {
		live := render.Live{Rows: true}
		live.Update(at(0), lines(-1))
		live.Update(at(1), lines(changed))
		got := live.Draw(at(1), "a note\nanother\n", 21)
		if len(got) > 21 || got[3] != "  NAME" || !strings.HasPrefix(got[18], last) {
			t.Errorf("changed %d: %d lines:\n%s", changed, len(got), strings.Join(got, "\n"))
		}
		if text := fmt.Sprintf("~ Pod/%d Error", changed); changed >= 0 && !strings.Contains(strings.Join(got, "\n"), text) {
			t.Errorf("changed %d is not shown:\n%s", changed, strings.Join(got, "\n"))
		}
	}
	for height := range 12 {
		live := render.Live{Rows: true}
		live.Update(at(0), lines(-1))
		live.Update(at(1), lines(20))
		live.Draw(at(1), "", height) // it must not panic
	}
}
