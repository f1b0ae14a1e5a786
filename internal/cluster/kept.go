// SPDX-License-Identifier: Apache-2.0

package cluster

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kept are lists that were read to their end. The zero value has none.
type Kept struct{ lists map[keptList]*listing }

type keptList struct {
	resource          schema.GroupVersionResource
	namespace, labels string
}

// list makes those of the lists that are not kept, and keeps them.
func (k *Kept) list(work []*listing, read func([]*listing)) {
	var left []*listing
	at := func(l *listing) keptList {
		return keptList{l.resource.GroupVersionResource, l.namespace, l.labels}
	}
	for i, l := range work {
		if kept := k.lists[at(l)]; kept != nil {
			work[i] = kept
		} else {
			left = append(left, l)
		}
	}
	read(left)
	if k.lists == nil {
		k.lists = map[keptList]*listing{}
	}
	for _, l := range left {
		if l.complete {
			k.lists[at(l)] = l
		}
	}
}
