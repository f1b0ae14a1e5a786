// SPDX-License-Identifier: Apache-2.0

// Package foresight says before a deletion what explain-stuck would say after it: who
// removes the finalizers of what goes, and whether they will still be there to do it
// (serve.go); what stops working outside the plan (breaks.go); what is lost with it
// (lost.go), and what comes back (returns.go); and in which order it works (waves.go).
// It looks at the cluster as it is and as it will be without what the plan takes away,
// and changes nothing.
package foresight
