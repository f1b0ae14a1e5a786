// SPDX-License-Identifier: Apache-2.0

// Package debian gives tests programs that a machine may lack, from Debian's
// packages. They are downloaded, once, into the user's cache directory; nothing
// is installed. It works on Linux, as root, with apt.
package debian
