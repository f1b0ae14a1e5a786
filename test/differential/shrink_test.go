// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"slices"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
)

// smaller returns the scenarios that are a little simpler than this one, the
// simplest first.
func smaller(s *gctest.Scenario) []*gctest.Scenario {
	var all []*gctest.Scenario
	add := func(change func(*gctest.Scenario)) {
		c := clone(s)
		change(c)
		all = append(all, c)
	}
	if n := len(s.Actions); n > 1 {
		add(func(c *gctest.Scenario) { c.Actions = c.Actions[:n-1] })
	}
	if len(s.Actions) > 1 && s.Actions[0].In != "" {
		add(func(c *gctest.Scenario) { c.Actions = c.Actions[1:] })
	}
	for i := range s.Objects {
		if len(s.Objects) > 1 {
			add(func(c *gctest.Scenario) { remove(c, i) })
		}
		for k := range s.Objects[i].Owners {
			add(func(c *gctest.Scenario) { c.Objects[i].Owners = slices.Delete(c.Objects[i].Owners, k, k+1) })
			if plain := (gctest.Owner{Of: s.Objects[i].Owners[k].Of}); s.Objects[i].Owners[k] != plain {
				add(func(c *gctest.Scenario) { c.Objects[i].Owners[k] = plain })
			}
		}
		for k := range s.Objects[i].Finalizers {
			add(func(c *gctest.Scenario) { c.Objects[i].Finalizers = slices.Delete(c.Objects[i].Finalizers, k, k+1) })
		}
		if s.Objects[i].Deleting != "" {
			add(func(c *gctest.Scenario) { c.Objects[i].Deleting = "" })
		}
	}
	return all
}

func clone(s *gctest.Scenario) *gctest.Scenario {
	c := *s
	c.Objects = slices.Clone(s.Objects)
	for i := range c.Objects {
		c.Objects[i].Owners = slices.Clone(c.Objects[i].Owners)
		c.Objects[i].Finalizers = slices.Clone(c.Objects[i].Finalizers)
	}
	c.Actions = slices.Clone(s.Actions)
	return &c
}

// remove removes an object, the references to it, and the deletions of it.
func remove(s *gctest.Scenario, i int) {
	path := s.Objects[i].Path
	s.Objects = slices.Delete(s.Objects, i, i+1)
	for k := range s.Objects {
		s.Objects[k].Owners = slices.DeleteFunc(s.Objects[k].Owners, func(o gctest.Owner) bool {
			return o.Of == path || o.UIDPath() == path
		})
	}
	s.Actions = slices.DeleteFunc(s.Actions, func(a gctest.Action) bool { return slices.Contains(a.Paths, path) })
}

// TestSmaller holds every step of shrinking to be a scenario that can be
// written down, and other than the one before.
func TestSmaller(t *testing.T) {
	for seed := range 50 {
		s := scenarios.Example(seed)
		for _, c := range smaller(&s) {
			if c.String() == s.String() {
				t.Errorf("not smaller:\n%s", c)
			}
			for _, o := range c.Objects {
				for _, owner := range o.Owners {
					if c.Object(owner.Of) == nil {
						t.Errorf("%s has an owner that is not there:\n%s", o.Path, c)
					}
				}
			}
		}
	}
}
