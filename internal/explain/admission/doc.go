// SPDX-License-Identifier: Apache-2.0

// Package admission finds out what would become of a write: whether the API server
// would accept it, who refuses it, which webhooks and policies are asked about it, and
// whether what serves them can be reached. It asks by dry runs (reviewer.go), and goes by
// the configurations where it may not (webhook.go, mutator.go, serving.go). Whether
// others are seen to meet the same refusal is in seen.go. It creates no cause.
package admission
