// SPDX-License-Identifier: Apache-2.0

package answer

import "testing"

func TestWhere(t *testing.T) {
	const server = "https://10.0.0.1:6443"
	for _, test := range []struct {
		where    *Where
		says, in string
	}{
		{&Where{Context: "prod-eu", Server: server}, "context prod-eu, server " + server, " in context prod-eu"},
		{&Where{Server: server}, "server " + server, " on " + server}, // inside a cluster
		{nil, "a file", ""},
	} {
		if got := test.where.In(); got != test.in {
			t.Errorf("In() = %q, want %q", got, test.in)
		}
		if test.where.String() != test.says {
			t.Errorf("String() = %q, want %q", test.where, test.says)
		}
	}
}
