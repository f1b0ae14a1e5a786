// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A quota that is used up has room for what is recreated; one that is lower than what is used has not.
func TestFull(t *testing.T) {
	for said, want := range map[string]bool{
		"exceeded quota: q, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=2, limited: persistentvolumeclaims=2":                                                                true,
		"exceeded quota: q, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=2, limited: persistentvolumeclaims=1":                                                                false,
		"exceeded quota: q, requested: persistentvolumeclaims=1,requests.storage=1Gi, used: persistentvolumeclaims=1,requests.storage=3Gi, limited: persistentvolumeclaims=4,requests.storage=2Gi": false,
		"exceeded quota: q": false,
		"no":                false,
	} {
		if is := full(apierrors.NewForbidden(schema.GroupResource{}, "c", errors.New(said))); is != want {
			t.Errorf("%s: %t", said, is)
		}
	}
}
