// SPDX-License-Identifier: Apache-2.0

package say

import "testing"

const (
	owned  Word = "owned by %s"
	half   Word = "it is at 50 %%"
	reason Word = "; %s"
)

func TestText(t *testing.T) {
	text := Of(owned, "Deployment/web").And(reason, Of(half))
	if got, want := text.String(), "owned by Deployment/web; it is at 50 %"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !text.Has(owned) || text.Has(half) {
		t.Error("Has looks at the words of the text alone")
	}
	if !text.Equal(Of(owned, "Deployment/web").And(reason, Of(half))) || text.Equal(Of(owned, "Deployment/web")) || !(Text{}).IsZero() {
		t.Error("texts are compared by words and arguments")
	}
	if got := Plain("100%").String(); got != "100%" {
		t.Errorf("a plain value is said as it is: %q", got)
	}
	if data, err := Of(owned, "x").MarshalJSON(); err != nil || string(data) != `"owned by x"` {
		t.Errorf("%s %v", data, err)
	}
}
