// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/unstick"
)

// What is taken back is the webhook of the name, wherever it is by now, and nothing when it is as it was.
func TestTakeBack(t *testing.T) {
	op := remedy.PatchOf(identity("config"), remedy.Test("/webhooks/0/name", "w"), remedy.Replace("/webhooks/0/failurePolicy", "Ignore"))
	back := remedy.PatchOf(identity("config"), remedy.Test("/webhooks/0/failurePolicy", "Ignore"), remedy.Replace("/webhooks/0/failurePolicy", "Fail"), remedy.Test("/webhooks/0/name", "w"))
	op.Back = &back
	for name, test := range map[string]struct {
		webhooks, uid, sent string
		gone                bool
	}{
		"as it was left":       {`[{"name":"w","failurePolicy":"Ignore"}]`, "uid-config", "replace /webhooks/0/failurePolicy Fail", false},
		"another before it":    {`[{"name":"x","failurePolicy":"Fail"},{"name":"w","failurePolicy":"Ignore"}]`, "uid-config", "replace /webhooks/1/failurePolicy Fail", false},
		"put back by a user":   {`[{"name":"w","failurePolicy":"Fail"}]`, "uid-config", "", false},
		"another of its name":  {`[{"name":"w","failurePolicy":"Ignore"}]`, "other", "", true},
		"it does not exist":    {``, "", "", true},
		"the webhook was lost": {`[{"name":"x","failurePolicy":"Ignore"}]`, "uid-config", "replace /webhooks/0/failurePolicy Fail", false}, // refused by the test of the name
	} {
		read := func(context.Context, graph.Identity) (*unstructured.Unstructured, error) {
			o := &unstructured.Unstructured{}
			if test.webhooks == "" {
				return nil, apierrors.NewNotFound(identity("config").Resource.GroupResource(), "config")
			}
			text := fmt.Sprintf(`{"metadata":{"uid":%q},"webhooks":%s}`, test.uid, test.webhooks)
			return o, json.Unmarshal([]byte(text), &o.Object)
		}
		sent := ""
		do := func(_ context.Context, op *remedy.Op) error {
			for _, s := range op.Patch {
				if s.Op == "replace" {
					sent = fmt.Sprint(s.Op, " ", s.Path, " ", s.Value)
				}
				if s.Op == "test" && strings.HasSuffix(s.Path, "/name") && s.Value != "w" {
					t.Errorf("%s: the name is not tested: %+v", name, s)
				}
			}
			return nil
		}
		_, err := unstick.TakeBack(t.Context(), read, do, &op)
		if unstick.IsGone(err) != test.gone || err != nil && !test.gone || sent != test.sent {
			t.Errorf("%s: %v, sent %q, want %q", name, err, sent, test.sent)
		}
	}
}

// TestTakeBackBesideOthers: that others were faster is no proof that there is nothing to take back.
func TestTakeBackBesideOthers(t *testing.T) {
	id := identity("config")
	op := remedy.PatchOf(id, remedy.Replace("/data/a", "2"))
	back := remedy.PatchOf(id, remedy.Replace("/data/a", "1"))
	op.Back = &back
	read := func(context.Context, graph.Identity) (*unstructured.Unstructured, error) {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": string(id.UID)}, "data": map[string]any{"a": "2"}}}, nil
	}
	conflict := fmt.Errorf("%w: %w", remedy.ErrChanged, apierrors.NewConflict(id.Resource.GroupResource(), id.Name, errors.New("changed")))
	for name, conflicts := range map[string]int{"once": 1, "always": 1000} {
		sent := 0
		_, err := unstick.TakeBack(t.Context(), read, func(context.Context, *remedy.Op) error {
			if sent++; sent <= conflicts {
				return conflict
			}
			return nil
		}, &op)
		if always := conflicts > 1; (err != nil) != always || errors.Is(err, remedy.ErrChanged) || !always && sent != 2 {
			t.Errorf("%s: sent %d times: %v", name, sent, err)
		}
	}
}

// The policy Delete is put back only while the claim of the volume uses it: otherwise its data would be destroyed.
func TestUndoReclaimPolicy(t *testing.T) {
	volume := graph.Identity{Name: "v", UID: "uid-v"}
	volume.Resource.Version, volume.Resource.Resource, volume.Resource.Kind = "v1", "persistentvolumes", "PersistentVolume"
	const path = "/spec/persistentVolumeReclaimPolicy"
	op := remedy.PatchOf(volume, remedy.Test(path, "Delete"), remedy.Replace(path, "Retain"))
	back := remedy.PatchOf(volume, remedy.Test(path, "Retain"), remedy.Replace(path, "Delete"))
	op.Back = &back
	for name, test := range map[string]struct {
		phase, claim string
		want         unstick.Obstacle
	}{
		"in use":              {"Bound", `{"metadata":{"uid":"c"}}`, ""},
		"its claim is going":  {"Bound", `{"metadata":{"uid":"c","deletionTimestamp":"2026-01-02T03:04:05Z"}}`, unstick.Destroys},
		"another claim":       {"Bound", `{"metadata":{"uid":"d"}}`, unstick.Destroys},
		"its claim is gone":   {"Released", ``, unstick.Destroys},
		"released, a new one": {"Released", `{"metadata":{"uid":"c"}}`, unstick.Destroys},
		"cannot be read":      {"Bound", `no`, unstick.Destroys},
	} {
		recorded := &unstick.Recorded{Changes: []unstick.Entry{{Number: 1, Op: &op, Result: unstick.Done}}}
		read := func(_ context.Context, id graph.Identity) (*unstructured.Unstructured, error) {
			text := fmt.Sprintf(`{"metadata":{"uid":"uid-v","resourceVersion":"7"},"spec":{"persistentVolumeReclaimPolicy":"Retain","claimRef":{"namespace":"s","name":"c","uid":"c"}},"status":{"phase":%q}}`, test.phase)
			if id.Resource.Resource == "persistentvolumeclaims" {
				text = test.claim
			}
			switch text {
			case "":
				return nil, apierrors.NewNotFound(id.Resource.GroupResource(), id.Name)
			case "no":
				return nil, errors.New("no right")
			}
			o := &unstructured.Unstructured{}
			return o, json.Unmarshal([]byte(text), &o.Object)
		}
		reversals := recorded.Undo(t.Context(), &unstick.Reading{Read: read})
		if len(reversals) != 1 || reversals[0].Obstacle != test.want || (reversals[0].Op != nil) != (test.want == "") {
			t.Errorf("%s: %+v", name, reversals)
		}
	}
}
