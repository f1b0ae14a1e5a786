// SPDX-License-Identifier: Apache-2.0

package cmd

import "testing"

// The first of the variables that is set says whether the terminal takes UTF-8.
func TestUTF8Locale(t *testing.T) {
	for _, test := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", false},
		{"", "", "C.UTF-8", true},
		{"", "", "en_GB.utf8", true},
		{"C", "", "C.UTF-8", false},
		{"", "de_DE.ISO-8859-1", "de_DE.UTF-8", false},
		{"", "de_DE.UTF-8", "C", true},
	} {
		t.Setenv("LC_ALL", test.all)
		t.Setenv("LC_CTYPE", test.ctype)
		t.Setenv("LANG", test.lang)
		if got := utf8Locale(); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}
