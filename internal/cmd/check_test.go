// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What one look could not read is unread in the answer, and once.
func TestCarryOver(t *testing.T) {
	unread := func(resource, namespace, name, message string) graph.Unlisted {
		return graph.Unlisted{
			GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: resource},
			Namespace:            namespace, Name: name, Reason: graph.Timeout, Message: message,
		}
	}
	s := &graph.Snapshot{}
	s.MarkUnlisted(unread("pods", "", "", "second"))
	s.MarkUnlisted(unread("secrets", "shop", "", "second"))
	carryOver(s, []graph.Unlisted{
		unread("pods", "", "", "first"), unread("pods", "shop", "", "first"), unread("secrets", "shop", "s", "first"), unread("nodes", "", "", "first"),
	})
	var got []string
	for _, u := range s.Unlisted() {
		got = append(got, fmt.Sprintf("%s/%s/%s %s", u.Resource, u.Namespace, u.Name, u.Message))
	}
	want := []string{"nodes// first", "pods// second", "pods/shop/ first", "secrets/shop/ second", "secrets/shop/s first"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	whole := &graph.Snapshot{}
	if carryOver(whole, nil); !whole.Complete() {
		t.Error("incomplete without a reason")
	}
}

// Every error is printed, in whatever way they were put together.
func TestPrintError(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	for _, test := range []struct {
		err  error
		want string
	}{
		{a, "error: a\n"},
		{errors.Join(utilerrors.NewAggregate([]error{a, b}), c), "error: a\nerror: b\nerror: c\n"},
		{utilerrors.NewAggregate([]error{a, utilerrors.NewAggregate([]error{b, c})}), "error: a\nerror: b\nerror: c\n"},
		{errors.Join(a, errors.Join(b, c)), "error: a\nerror: b\nerror: c\n"},
		{hintedError{a, "try"}, "error: a\nhint: try\n"},
		{errors.Join(hintedError{a, "try"}, c), "error: a\nerror: c\nhint: try\n"},
	} {
		var out bytes.Buffer
		if printError(&out, test.err, "kubectl gc"); out.String() != test.want {
			t.Errorf("got %q, want %q", out.String(), test.want)
		}
	}
}
