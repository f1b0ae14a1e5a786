// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Selection is what chooses objects of a type, in the words of kubectl. An empty
// one chooses all.
type Selection struct{ Labels, Fields string }

// Selected asks the server whether the selection has the object with this name,
// and returns the object as it is then: the match holds for that version. Which
// labels and fields match only the server knows, so it is one list with the
// selectors, and not a look at the object. That the list has no such object does
// not say that there is none.
func (r *Reader) Selected(ctx context.Context, id graph.Identity, s Selection) (graph.Object, bool, error) {
	options := metav1.ListOptions{LabelSelector: s.Labels,
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, id.Name).String()}
	if s.Fields != "" {
		options.FieldSelector += "," + s.Fields
	}
	r.stats.lists.Add(1)
	r.stats.pages.Add(1)
	list, err := r.client(&id.Resource, id.Namespace).List(ctx, options)
	if err != nil {
		return graph.Object{}, false, err
	}
	for i := range list.Items {
		if item := &list.Items[i]; item.Name == id.Name && item.Namespace == id.Namespace {
			return graph.NewObject(r.catalog.canonical(id.Resource), item), true, nil
		}
	}
	return graph.Object{}, false, nil
}

// Selected is that of the Reader, and is asked again while the API server cannot
// answer, as every request of a Server is.
func (s *Server) Selected(ctx context.Context, id graph.Identity, selection Selection) (o graph.Object, selected bool, err error) {
	err = s.insist(ctx, retries, func(ctx context.Context) (err error) {
		o, selected, err = s.reader.Selected(ctx, id, selection)
		return err
	})
	return o, selected, err
}
