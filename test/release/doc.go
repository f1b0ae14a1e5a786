// SPDX-License-Identifier: Apache-2.0

// Package release tests what users get: the krew manifest, and the archives of
// a release, which the real krew installs and runs on a real control plane.
//
// The archives are those in the directory of the variable KUBECTL_GC_DIST, as
// "make release-snapshot" makes them. Without it the tests of archives are
// skipped; "make release-check" runs all. What the Makefile says to the linker of a
// build is tested here, too, because it is the same as for a release.
package release
