// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// HelmHook is a hook of a release, with the events at which it runs.
type HelmHook struct {
	Item
	Events []string
}

// The annotations of hooks.
const (
	hookAnnotation       = "helm.sh/hook"
	hookPolicyAnnotation = "helm.sh/hook-delete-policy"
	hookWeightAnnotation = "helm.sh/hook-weight"
)

// The events of an uninstallation.
const (
	preDelete  = "pre-delete"
	postDelete = "post-delete"
)

// hookRun is a hook with its live object, if there is one.
type hookRun struct {
	HelmHook
	live found
	// before: what has its name is deleted before it is created. after: it is deleted when all hooks of the event have ended well. failed: it
	// is deleted when it has failed.
	before, after, failed bool
	// made: its object was created at an earlier event, and is there.
	made bool
}

func listOf(text string) (all []string) {
	for each := range strings.SplitSeq(text, ",") {
		all = append(all, strings.ToLower(strings.TrimSpace(each)))
	}
	return all
}

// runsOf are the hooks in the order in which they run (helm.sh/helm/v3/pkg/action/hooks.go, hookByWeight). Definitions are never deleted
// (deleteHookByPolicy), and without a policy it is before-hook-creation (execHook).
func runsOf(hooks []HelmHook, live []found) []hookRun {
	var all []hookRun
	for i, hook := range hooks {
		policy, stated := hook.Annotations[hookPolicyAnnotation] // an empty one is a policy, which does nothing
		policies, definition := listOf(policy), hook.Kind == "CustomResourceDefinition"
		has := func(policy string) bool { return !definition && slices.Contains(policies, policy) }
		none := !definition && !stated
		all = append(all, hookRun{HelmHook: hook, live: live[i], before: none || has("before-hook-creation"), after: has("hook-succeeded"),
			failed: has("hook-failed")})
	}
	weight := func(h *hookRun) int {
		n, _ := strconv.Atoi(h.Annotations[hookWeightAnnotation]) // 0 for what is no number
		return n
	}
	slices.SortStableFunc(all, func(a, b hookRun) int {
		return cmp.Or(cmp.Compare(weight(&a), weight(&b)), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// at reports whether the hook runs at an event.
func (h *hookRun) at(event string) bool { return slices.Contains(h.Events, event) }

// program reports whether the hook does more than to be there: it runs, a controller acts on it, or the API server obeys it.
func (h *hookRun) program() bool {
	return !graph.BuiltinGroup(h.Group) || slices.Contains([]string{"apps", "batch", "admissionregistration.k8s.io"}, h.Group) ||
		h.Kind == "Pod" || h.Kind == "ReplicationController"
}

// hooks adds what is known of the hooks: that some run programs, which objects stay as they are, and which Helm creates and does not
// delete.
func (p *Plan) hooks(all []hookRun) {
	for i := range all {
		switch h := &all[i]; {
		case !h.at(preDelete) && !h.at(postDelete):
			if h.live.state == present {
				p.keep(&h.live, Hook, "")
			}
		case h.program() && h.at(preDelete):
			p.Open = append(p.Open, Open{Cause: HookRuns, Item: h.live.Item})
		case h.program():
			p.Open = append(p.Open, Open{Cause: HookRunsAfter, Item: h.live.Item})
		}
	}
}

// replaces adds what Helm does about the objects of hooks that run at an event: one that exists is deleted and created again, as their
// policies say. It returns why Helm fails, nil if that is not certain. Helm 3 awaits the end of what it deletes, and cannot create what
// exists, unless a program has deleted it by then; Helm 4 applies what exists, and awaits nothing (helm.sh/helm/v4/pkg/action/hooks.go,
// with the waiter of pkg/kube/statuswait.go, hookOnlyWaiter).
func (w *World) replaces(p *Plan, all []hookRun, event string, version int) *Open {
	programs, last := false, len(p.Barriers)
	for i := range all {
		h := &all[i]
		if !h.at(event) {
			continue
		}
		made := madeBy(all, i, event, h.live.Item.Identity())
		c := w.creation(p, h, event, func(id graph.Identity) bool { return madeBy(all, i, event, id) })
		there := h.live.state == present && !made && !c.then.IsGone(h.live.node.UID())
		switch {
		case made && !h.before && version == Helm3:
			p.Kept = append(p.Kept, Kept{Object: h.live.Item.Identity(), Reason: HookMade})
			return &Open{Cause: HookDenied, Item: h.live.Item, Detail: say.Of(madeBefore)}
		case made:
		case (h.live.state == unserved || h.live.elsewhere) && !programs:
			return &Open{Cause: NoSuchKind, Item: h.live.Item, Detail: say.Of(ofHook, event)}
		case h.live.state == unnamed && (h.before || h.after || version == Helm4): // Helm deletes it, and Helm 4 applies it, by its name
			return &Open{Cause: Generated, Item: h.live.Item, Detail: say.Of(unnamedHook, event)}
		case h.live.state == unread:
			p.Open = append(p.Open, Open{Cause: Unread, Item: h.live.Item})
		case there && h.before:
			b := barrierOf(h.live.id())
			b.Awaited = version == Helm3
			p.Barriers, last = slices.Insert(p.Barriers, last, b), last+1
		case there && version == Helm4 && h.after:
			p.Barriers = slices.Insert(p.Barriers, last, barrierOf(h.live.id()))
		case there && version == Helm4:
			p.keep(&h.live, Hook, "")
		case there && !programs && c.lacking().Name == "":
			p.keep(&h.live, Hook, "")
			return &Open{Cause: HookExists, Item: h.live.Item, Detail: existing(event)}
		}
		var fails *Open
		if !programs {
			replaced := slices.ContainsFunc(all[i+1:], func(o hookRun) bool {
				return o.at(event) && o.before && alike(o.live.Item.Identity(), h.live.Item.Identity())
			})
			fails = c.fails(version == Helm4 && !h.before && (there || made), removedAfter(all, event, h) || made && h.before || replaced)
		}
		certain := fails != nil && fails.Fails()
		goes := !certain && removedAfter(all, event, h) || certain && (h.failed || c.unmade)
		if !goes && !h.Passing && (version == Helm3 || h.before || !there) {
			p.Kept = append(p.Kept, Kept{Object: h.live.Item.Identity(), Reason: HookMade})
		}
		if certain {
			return fails
		}
		if fails != nil {
			p.Open = append(p.Open, *fails)
		}
		programs = programs || h.program()
	}
	for i := range all {
		if h := &all[i]; h.at(event) {
			h.made = !removedAfter(all, event, h)
		}
	}
	return nil
}

// removedAfter reports whether the object of a hook is deleted after an event, by the policy of a hook that has made it.
func removedAfter(all []hookRun, event string, h *hookRun) bool {
	return slices.ContainsFunc(all, func(o hookRun) bool {
		return o.at(event) && o.after && alike(o.live.Item.Identity(), h.live.Item.Identity())
	})
}

// madeBy reports whether one of the hooks has made an object when the one with a number runs at an event: at an earlier event, or before
// it.
func madeBy(all []hookRun, number int, event string, id graph.Identity) bool {
	for i := range all {
		if h := &all[i]; alike(h.live.Item.Identity(), id) && (h.made || i < number && h.at(event)) {
			return true
		}
	}
	return false
}
