// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// page is a list of 500 objects of about 1.8 kB each.
func page(b *testing.B) []byte {
	list := sample()
	for i := range 500 {
		item := *list.Items[0].DeepCopy()
		item.Name = fmt.Sprintf("web-5d4f8c7b9-%05d", i)
		item.DeletionTimestamp, item.DeletionGracePeriodSeconds, item.Finalizers = nil, nil, nil
		item.Annotations = map[string]string{"checksum/config": strings.Repeat("0123456789abcdef", 4)}
		for range 3 {
			item.ManagedFields = append(item.ManagedFields, metav1.ManagedFieldsEntry{
				Manager: "kubelet", FieldsV1: &metav1.FieldsV1{Raw: []byte(strings.Repeat(`"f:labels":{".":{},"f:name":{}},`, 14))},
			})
		}
		list.Items = append(list.Items, item)
	}
	list.Items = list.Items[1:]
	return encode(b, list)
}

// BenchmarkDecode decodes a page: with client-go, with a Decoder, and with a
// Decoder that keeps no labels into compact form, as a Reader does.
func BenchmarkDecode(b *testing.B) {
	body := page(b)
	b.Run("client-go", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := reference(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	var packer graph.Packer
	for _, test := range []struct {
		name   string
		labels []string
		each   func(*graph.Object) error
	}{
		{"labels", nil, func(*graph.Object) error { return nil }},
		{"packed", []string{}, func(o *graph.Object) error {
			packer.Add(o)
			return nil
		}},
	} {
		b.Run(test.name, func(b *testing.B) {
			d := Decoder{Labels: test.labels}
			r := bytes.NewReader(nil)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				r.Reset(body)
				if _, err := d.Decode(r, test.each); err != nil {
					b.Fatal(err)
				}
				packer.Batch()
			}
		})
	}
}
