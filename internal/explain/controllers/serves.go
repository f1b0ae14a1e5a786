// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"strings"
)

// MayServe reports whether an account is given the right to change objects on which it may
// keep finalizers: most have none, or one to what leaders are elected by.
func (f *Finder) MayServe(a Account) bool {
	return slices.ContainsFunc(f.rights().grantsOf(a), func(g *grant) bool {
		return g.subject.Name != "system:authenticated" && g.allows(changing...) && slices.ContainsFunc(g.Resources, func(resource string) bool {
			return !strings.Contains(resource, "/") && !slices.Contains([]string{"leases", "events", "endpoints"}, resource)
		})
	})
}
