// SPDX-License-Identifier: Apache-2.0

package foresight

import "github.com/kubectl-gc/kubectl-gc/pkg/graph"

// deprivation is what a controller loses by a plan. The zero value is nothing.
type deprivation struct {
	kind deprived
	// what names the objects that go.
	what []graph.Identity
	// step is the write by which it goes, counted from 1, and with the namespace with which it does; zero for neither.
	step int
	with graph.Identity
}

// deprived is the kind of a deprivation.
type deprived int

const (
	ofNothing deprived = iota
	ofItself
	ofObject // its account, or what its pods mount
	ofRights
	ofNodes
	ofNeed // what it needs for the object, as an account in whose name it acts
)
