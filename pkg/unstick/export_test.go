// SPDX-License-Identifier: Apache-2.0

package unstick

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Keep keeps a change in a journal as one that was made.
func Keep(j *Journal, w *Write, before *unstructured.Unstructured) error {
	finish, err := j.begin(w, before)
	if err != nil {
		return err
	}
	return finish(Done)
}
