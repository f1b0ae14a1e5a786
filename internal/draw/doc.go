// SPDX-License-Identifier: Apache-2.0

// Package draw makes pictures of graphs: DOT, SVG, HTML, Mermaid and GraphML.
// What is drawn is a Picture, a value that knows nothing of clusters; Ownership
// makes one of an ownership graph. It decides nothing about objects, reads
// nothing but its arguments, and what it writes asks for nothing from anywhere.
//
// Names in references are free text. Every writer takes care that none of them
// is anything but text in what it writes.
package draw
