// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// RecordOf returns the release and the revision of which an object of that name is the record; false for any other name
// (helm.sh/helm/v3/pkg/storage/storage.go, makeKey).
func RecordOf(name string) (release string, revision int, is bool) {
	name, is = strings.CutPrefix(name, "sh.helm.release.v1.")
	at := strings.LastIndex(name, ".v")
	if !is || at <= 0 {
		return "", 0, false
	}
	revision, err := strconv.Atoi(name[at+len(".v"):])
	return name[:at], revision, err == nil && revision >= 0
}

// drivers are the types of the objects in which Helm keeps releases (helm.sh/helm/v3/pkg/storage/driver).
var drivers = []schema.GroupResource{Secrets.GroupResource(), ConfigMaps.GroupResource()}

// RecordsListed reports whether all records of the releases of a namespace, with an empty one of all, were listed.
func (r *Reader) RecordsListed(namespace string) bool {
	return !slices.ContainsFunc(drivers, func(driver schema.GroupResource) bool {
		return !r.graph.Snapshot().ListedIn(driver, namespace)
	})
}

// Records returns what Helm keeps of a release in a namespace, of all revisions.
func (r *Reader) Records(namespace, release string) (all []graph.Node) {
	for _, driver := range drivers {
		for _, n := range r.Within(driver, namespace) {
			if of, _, is := RecordOf(n.Name()); is && of == release {
				all = append(all, n)
			}
		}
	}
	slices.SortFunc(all, graph.Node.Compare)
	return all
}

// LatestRecords returns the record of the latest revision of a release that each driver has.
func (r *Reader) LatestRecords(namespace, release string) (latest []graph.Node) {
	for _, n := range r.Records(namespace, release) {
		revision := func(n graph.Node) int { _, revision, _ := RecordOf(n.Name()); return revision }
		i := slices.IndexFunc(latest, func(m graph.Node) bool { return m.Resource() == n.Resource() })
		if i < 0 {
			latest = append(latest, n)
		} else if revision(n) > revision(latest[i]) {
			latest[i] = n
		}
	}
	return latest
}

// Installed returns the LatestRecords that do not say that the release was uninstalled, and kept (--keep-history).
func (r *Reader) Installed(namespace, release string) []graph.Node {
	return slices.DeleteFunc(r.LatestRecords(namespace, release), func(n graph.Node) bool { return n.Object().Labels["status"] == "uninstalled" })
}
