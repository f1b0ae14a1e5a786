// SPDX-License-Identifier: Apache-2.0

package argocd_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/argoproj/gitops-engine/pkg/sync/common"
	"github.com/argoproj/gitops-engine/pkg/sync/resource"
	"github.com/argoproj/gitops-engine/pkg/sync/syncwaves"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
)

// objects makes a number of objects with every mix of what Argo CD looks at.
func objects(random *rand.Rand, count int) []*unstructured.Unstructured {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	var all []*unstructured.Unstructured
	for i := range count {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": pick("ConfigMap", "Secret")}}
		o.SetName(fmt.Sprintf("o%d", i))
		o.SetNamespace("op")
		if i%17 == 0 {
			o.SetAPIVersion("apiextensions.k8s.io/v1")
			o.SetKind("CustomResourceDefinition")
			o.SetName(fmt.Sprintf("o%d.example.com", i))
			o.SetNamespace("")
		}
		annotations := map[string]string{
			"argocd.argoproj.io/tracking-id": pick("shop:x", "shop:x", "shop:x", "other:x", ""), "argocd.argoproj.io/sync-options": pick("", "", "Delete=false", "Prune=false, Delete=false", "Delete=true", "Delete=falsely"),
			"helm.sh/resource-policy": pick("", "", "", "keep", " keep ", "delete"), "argocd.argoproj.io/sync-wave": pick("", "0", "-1", "5", "05", "x", " 3"), "helm.sh/hook-weight": pick("", "2", "-7"),
		}
		for key, value := range annotations {
			if value == "" {
				delete(annotations, key)
			}
		}
		o.SetAnnotations(annotations)
		o.SetUID("")
		if i > 20 && random.IntN(10) == 0 {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "owner"}})
		}
		all = append(all, o)
	}
	return all
}

// byEngine is what an Application deletes, wave by wave, as Argo CD puts it together of the engine: it tracks what has its name and no
// owner (pkg/cache/cluster.go, GetManagedLiveObjs), and deletes that by shouldBeDeleted and FilterObjectsForDeletion.
func byEngine(all []*unstructured.Unstructured) [][]string {
	left := map[int][]string{}
	for _, o := range all {
		id, _, _ := strings.Cut(o.GetAnnotations()["argocd.argoproj.io/tracking-id"], ":")
		if id == "shop" && len(o.GetOwnerReferences()) == 0 && !kube.IsCRD(o) && !resource.HasAnnotationOption(o, common.AnnotationSyncOptions, common.SyncOptionDisableDeletion) && !resource.HasAnnotationOption(o, "helm.sh/resource-policy", "keep") {
			left[syncwaves.Wave(o)] = append(left[syncwaves.Wave(o)], o.GetName())
		}
	}
	var waves [][]string
	var numbers []int
	for number := range left {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	for _, number := range slices.Backward(numbers) {
		slices.Sort(left[number])
		waves = append(waves, left[number])
	}
	return waves
}

// byPlan is what internal/uninstall says of the same, but for what it calls not known: objects that bear no mark.
func byPlan(t *testing.T, all []*unstructured.Unstructured) [][]string {
	t.Helper()
	var text strings.Builder
	var resources []string
	text.WriteString("ConfigMap/op/owner\n")
	for _, o := range all {
		at := strings.Trim(o.GetNamespace()+"/"+o.GetName(), "/")
		metadata, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": o.GetAnnotations()}})
		if err != nil {
			t.Fatal(err)
		}
		owner := ""
		if len(o.GetOwnerReferences()) > 0 {
			owner = " owner=ConfigMap/owner"
		}
		fmt.Fprintf(&text, "%s/%s%s %s\n", o.GetKind(), at, owner, metadata)
		gvk := o.GroupVersionKind()
		resources = append(resources, fmt.Sprintf(`{"group":%q,"version":"v1","kind":%q,"namespace":%q,"name":%q}`, gvk.Group, gvk.Kind, o.GetNamespace(), o.GetName()))
	}
	fmt.Fprintf(&text, `Application/argocd/shop finalizers=resources-finalizer.argocd.argoproj.io {"spec":{"destination":{"name":"in-cluster"}},"status":{"resources":[%s]}}`+"\n", strings.Join(resources, ","))
	world := explaintest.Parse(t, text.String())
	g := world.Graph()
	w := &uninstall.World{Graph: g, Evidence: evidence.New(t.Context(), evidence.Source{Cluster: world, Graph: g, Now: explaintest.Now}), Namespace: "argocd"}
	for n := range g.Nodes() {
		if n.Identity().String() != "Application/argocd/shop" {
			continue
		}
		whole, err := w.Evidence.Whole(n)
		if err != nil {
			t.Fatal(err)
		}
		p := uninstall.Application(w, n, whole)
		var waves [][]string
		for _, b := range p.Barriers {
			var names []string
			for _, id := range b.Objects {
				unmarked := slices.ContainsFunc(p.Open, func(o uninstall.Open) bool { return o.Cause == uninstall.Untracked && o.Item.Name == id.Name })
				if !unmarked && id.UID != p.Own.UID {
					names = append(names, id.Name)
				}
			}
			if slices.Sort(names); len(names) > 0 {
				waves = append(waves, names)
			}
		}
		return waves
	}
	t.Fatal("no Application")
	return nil
}

// TestWaves holds the waves of random Applications, and what is kept, to those of the engine.
func TestWaves(t *testing.T) {
	for seed := range uint64(40) {
		all := objects(rand.New(rand.NewPCG(seed, 1)), 60)
		if got, want := fmt.Sprint(byPlan(t, all)), fmt.Sprint(byEngine(all)); got != want {
			t.Errorf("seed %d:\nplan   %s\nengine %s", seed, got, want)
		}
	}
}
