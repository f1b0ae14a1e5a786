// SPDX-License-Identifier: Apache-2.0

// Package faults puts a proxy between a client and a real API server, in which
// requests go wrong by rule: late, never answered, cut off in the middle,
// answered by an error or by nonsense, with watch events out of order, or with
// what was true a while ago.
//
//	proxy, err := faults.Start(config, faults.Rule{URI: regexp.MustCompile(`^GET .*/secrets\?`), Fault: faults.Cut(), Times: 1})
//	defer proxy.Close()
//	err = proxy.WriteKubeconfig(path)
//
// [Draw] makes rules from a seed. The proxy notes what it did to which request,
// so that a failure can be told as it happened.
//
// The tests of the package are the campaigns of docs/reliability.md: every
// command, on a real control plane, under drawn faults; and kills at random moments.
package faults
