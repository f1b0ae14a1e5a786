// SPDX-License-Identifier: Apache-2.0

package render

// Worded is how an answer writes a text.
var Worded = worded
