// SPDX-License-Identifier: Apache-2.0

// Package integrations has the loader of k9s read docs/examples/k9s.yaml, and
// Helm's parser deploy/predelete.yaml. It compiles both, which takes some minutes
// once: "make test-integrations" runs it, and "make test" only what test/e2e has,
// which runs what is in the files.
package integrations
