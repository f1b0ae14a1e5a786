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

// LatestRecords returns the records of the latest revision of a release: several if more than one driver has it.
func (r *Reader) LatestRecords(namespace, release string) (latest []graph.Node) {
	last := -1
	for _, n := range r.Records(namespace, release) {
		_, revision, _ := RecordOf(n.Name())
		if revision > last {
			latest, last = nil, revision
		}
		if revision == last {
			latest = append(latest, n)
		}
	}
	return latest
}

// Installed returns the LatestRecords that do not say that the release was uninstalled, and kept (--keep-history).
func (r *Reader) Installed(namespace, release string) []graph.Node {
	return slices.DeleteFunc(r.LatestRecords(namespace, release), func(n graph.Node) bool { return n.Object().Labels["status"] == "uninstalled" })
}
