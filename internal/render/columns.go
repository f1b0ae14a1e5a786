// SPDX-License-Identifier: Apache-2.0

package render

import "io"

// Columns writes a table with the columns that a user has chosen, with or without its
// header.
func Columns(w io.Writer, style Style, header []string, headers bool, rows [][]string) error {
	t := table{style: style, header: plain(header...), bare: !headers, rows: func(yield func([]cell) bool) {
		for _, row := range rows {
			if !yield(plain(row...)) {
				return
			}
		}
	}}
	return t.write(w)
}
