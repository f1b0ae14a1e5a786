// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/http"
	"strings"
	"testing"
)

// TestProbesChangeNothing lists what a Prober's transport lets through.
func TestProbesChangeNothing(t *testing.T) {
	const object = "https://h/api/v1/namespaces/n/configmaps/c"
	for _, test := range []struct {
		method, url, body string
		want              bool
	}{
		{"PATCH", object + "?dryRun=All", "{}", true},
		{"PATCH", object, "{}", false},
		{"PATCH", object + "?dryRun=", "{}", false},
		{"PATCH", object + "?dryRun=None", "{}", false},
		{"PATCH", object + "?dryRun=All&dryRun=None", "{}", false},
		{"PATCH", object + "?dryrun=All", "{}", false},
		{"DELETE", object + "?dryRun=All", "", true},
		{"DELETE", object, "", false},
		{"DELETE", object + "?dryRun=All", "{}", false}, // the body wins over the parameters
		{"POST", object + "?dryRun=All", "{}", false},
		{"PUT", object + "?dryRun=All", "{}", false},
		{"GET", object, "", false},
	} {
		var request *http.Request
		var err error
		if test.body == "" {
			request, err = http.NewRequest(test.method, test.url, http.NoBody)
		} else {
			request, err = http.NewRequest(test.method, test.url, strings.NewReader(test.body))
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := changesNothing(request); got != test.want {
			t.Errorf("changesNothing(%s %s %q) = %t, want %t", test.method, test.url, test.body, got, test.want)
		}
	}
}
