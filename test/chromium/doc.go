// SPDX-License-Identifier: Apache-2.0

// Package chromium gives tests a real browser without a window: Debian's
// Chromium, which is talked to over two pipes. It works on Linux.
package chromium
