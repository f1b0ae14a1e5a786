// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// codec is the serializer of client-go's metadata client (client-go,
// metadata.go), which is what a Decoder is compared with.
var codec = func() *protobuf.Serializer {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		panic(err)
	}
	return protobuf.NewSerializer(scheme, scheme)
}()

func encode(t testing.TB, list *metav1.PartialObjectMetadataList) []byte {
	t.Helper()
	list.TypeMeta = metav1.TypeMeta{APIVersion: listAPIVersion, Kind: listKind}
	var body bytes.Buffer
	if err := codec.Encode(list, &body); err != nil {
		t.Fatal(err)
	}
	return body.Bytes()
}

// result is what a decoder made of a body.
type result struct {
	List    List
	Objects []graph.Object
}

// reference decodes as client-go does.
func reference(body []byte) (result, error) {
	decoded, _, err := codec.Decode(body, nil, nil)
	if err != nil {
		return result{}, err
	}
	list, ok := decoded.(*metav1.PartialObjectMetadataList)
	if !ok {
		return result{}, fmt.Errorf("this is a %T", decoded)
	}
	r := result{List: List{ResourceVersion: list.ResourceVersion, Continue: list.Continue}}
	if list.RemainingItemCount != nil {
		r.List.Remaining = *list.RemainingItemCount
	}
	for i := range list.Items {
		r.Objects = append(r.Objects, graph.NewObject(nil, &list.Items[i]))
	}
	return r, nil
}

// decode runs a Decoder and copies what it passes on.
func decode(d *Decoder, body io.Reader) (result, error) {
	var r result
	var err error
	r.List, err = d.Decode(body, func(o *graph.Object) error {
		r.Objects = append(r.Objects, clone(o))
		return nil
	})
	return r, err
}

func clone(o *graph.Object) graph.Object {
	c := *o
	c.Name, c.ResourceVersion, c.UID = strings.Clone(o.Name), strings.Clone(o.ResourceVersion), types.UID(strings.Clone(string(o.UID)))
	c.DeletionTimestamp = o.DeletionTimestamp.DeepCopy()
	if o.DeletionGracePeriodSeconds != nil {
		seconds := *o.DeletionGracePeriodSeconds
		c.DeletionGracePeriodSeconds = &seconds
	}
	c.Labels = maps.Clone(o.Labels)
	c.Finalizers, c.OwnerReferences = slices.Clone(o.Finalizers), slices.Clone(o.OwnerReferences)
	for i := range c.OwnerReferences {
		ref := &c.OwnerReferences[i]
		ref.Name, ref.UID = strings.Clone(ref.Name), types.UID(strings.Clone(string(ref.UID)))
	}
	return c
}

// texts are strings that an API server would send and some that it would not.
var texts = rapid.OneOf(
	rapid.SampledFrom([]string{"", "web", "shop", "apps/v1", "ReplicaSet", "c1b7c9a0-3a52-4a3c-8f8e-2f3f4d5e6a7b", "18446744073709551615"}),
	rapid.String(),
)

var stamps = rapid.Custom(func(t *rapid.T) metav1.Time {
	if rapid.Bool().Draw(t, "zero") {
		return metav1.Time{}
	}
	return metav1.Unix(rapid.Int64Range(-1e10, 1e11).Draw(t, "seconds"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanoseconds"))
})

func optional[T any](t *rapid.T, values *rapid.Generator[T], label string) *T {
	return rapid.Ptr(values, true).Draw(t, label)
}

var owners = rapid.Custom(func(t *rapid.T) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: texts.Draw(t, "apiVersion"), Kind: texts.Draw(t, "kind"), Name: texts.Draw(t, "name"), UID: types.UID(texts.Draw(t, "uid")),
		Controller: optional(t, rapid.Bool(), "controller"), BlockOwnerDeletion: optional(t, rapid.Bool(), "blockOwnerDeletion"),
	}
})

var managers = rapid.Custom(func(t *rapid.T) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: texts.Draw(t, "manager"), Operation: metav1.ManagedFieldsOperationApply, Time: optional(t, stamps, "time"),
		FieldsV1: &metav1.FieldsV1{Raw: []byte(strings.Repeat("x", rapid.SampledFrom([]int{0, 10, 500, bufferSize}).Draw(t, "fields")))},
	}
})

var items = rapid.Custom(func(t *rapid.T) metav1.PartialObjectMetadata {
	pairs := rapid.MapOfN(texts, texts, 0, 3)
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: texts.Draw(t, "name"), GenerateName: texts.Draw(t, "generateName"), Namespace: texts.Draw(t, "namespace"),
		UID: types.UID(texts.Draw(t, "uid")), ResourceVersion: texts.Draw(t, "resourceVersion"),
		Generation: rapid.Int64().Draw(t, "generation"), CreationTimestamp: stamps.Draw(t, "created"),
		DeletionTimestamp:          optional(t, stamps, "deletion"),
		DeletionGracePeriodSeconds: optional(t, rapid.Int64(), "grace"),
		Labels:                     pairs.Draw(t, "labels"), Annotations: pairs.Draw(t, "annotations"),
		OwnerReferences: rapid.SliceOfN(owners, 0, 3).Draw(t, "owners"),
		Finalizers:      rapid.SliceOfN(texts, 0, 3).Draw(t, "finalizers"),
		ManagedFields:   rapid.SliceOfN(managers, 0, 2).Draw(t, "managedFields"),
	}}
})

var lists = rapid.Custom(func(t *rapid.T) *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{
		ListMeta: metav1.ListMeta{
			ResourceVersion: texts.Draw(t, "resourceVersion"), Continue: texts.Draw(t, "continue"),
			RemainingItemCount: optional(t, rapid.Int64(), "remaining"),
		},
		Items: rapid.SliceOfN(items, 0, 4).Draw(t, "items"),
	}
})

// Whatever an API server can send is decoded as client-go decodes it, in
// whatever pieces it comes in, and by a Decoder that was used before.
func TestEqualsClientGo(t *testing.T) {
	var d Decoder
	rapid.Check(t, func(rt *rapid.T) {
		body := encode(t, lists.Draw(rt, "list"))
		want, err := reference(body)
		if err != nil {
			rt.Fatal(err)
		}
		for name, r := range map[string]io.Reader{
			"at once": bytes.NewReader(body), "in bytes": iotest.OneByteReader(bytes.NewReader(body)),
			"with the end at once": iotest.DataErrReader(bytes.NewReader(body)),
		} {
			got, err := decode(&d, r)
			if err != nil {
				rt.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

// A body that ends anywhere before its end is an error, unless it is whole for
// client-go, too: the last fields of the envelope may be missing. One without a
// list is empty for client-go and an error here.
func TestTruncated(t *testing.T) {
	var d Decoder
	rapid.Check(t, func(rt *rapid.T) {
		body := encode(t, lists.Draw(rt, "list"))
		body = body[:rapid.IntRange(0, len(body)-1).Draw(rt, "length")]
		want, wantErr := reference(body)
		got, err := decode(&d, bytes.NewReader(body))
		if none := err != nil && strings.Contains(err.Error(), "the body has none"); (wantErr == nil) != (err == nil) && !none {
			rt.Fatalf("got error %v, client-go has %v", err, wantErr)
		}
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			rt.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// FuzzDecode holds the Decoder to client-go for any bytes: what both decode is
// equal, and what client-go refuses for a field that the Decoder reads is
// refused. Skipped fields are not looked into, so the Decoder may accept more.
func FuzzDecode(f *testing.F) {
	f.Add(encode(f, &metav1.PartialObjectMetadataList{}))
	f.Add(encode(f, sample()))
	f.Fuzz(func(t *testing.T, body []byte) {
		var d Decoder
		got, err := decode(&d, bytes.NewReader(body))
		want, wantErr := reference(body)
		if err != nil || wantErr != nil {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A list of whole objects is taken apart into their messages, whatever they are.
func TestSplit(t *testing.T) {
	want := metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}
	sent := &metav1.PartialObjectMetadataList{TypeMeta: want, ListMeta: metav1.ListMeta{Continue: "more"}}
	for i := range 3 {
		o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("o", i), Annotations: map[string]string{"note": strings.Repeat("x", 300_000*i)}}}
		sent.Items = append(sent.Items, o)
	}
	message := encode(t, sent)
	var d Decoder
	var got []string
	list, err := d.Split(bytes.NewReader(message), want, func(item []byte) error {
		var o metav1.PartialObjectMetadata
		if err := o.Unmarshal(item); err != nil {
			return err
		}
		got = append(got, o.Name)
		return nil
	})
	if err != nil || list.Continue != "more" || strings.Join(got, " ") != "o0 o1 o2" {
		t.Errorf("got %s, %+v, error %v", got, list, err)
	}
	var kind *KindError
	other := metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}
	if _, err := d.Split(bytes.NewReader(message), other, nil); !errors.As(err, &kind) || kind.Error() != "the server sent meta.k8s.io/v1, PartialObjectMetadataList instead of v1, PodList" {
		t.Errorf("another list: %v", err)
	}
	stop := errors.New("enough")
	if _, err := d.Split(bytes.NewReader(message), want, func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of who takes it: %v", err)
	}
}

// A part that says that it is longer than any object is not waited for.
func TestLongPart(t *testing.T) {
	for name, list := range map[string][]byte{
		"an object":  protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.BytesType), 1<<30),
		"its prefix": protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.BytesType), 1<<30),
	} {
		message := protowire.AppendVarint(append(body(1, kind), byte(protowire.EncodeTag(2, protowire.BytesType))), 1<<31)
		read := &counted{zeros{append(message, list...)}, 0}
		var d Decoder
		if _, err := d.Decode(read, func(*graph.Object) error { return nil }); err == nil || !strings.Contains(err.Error(), "no object so many") {
			t.Errorf("%s: got error %v", name, err)
		}
		if read.n > 2*bufferSize {
			t.Errorf("%s: %d bytes were read", name, read.n)
		}
	}
}

// zeros reads some bytes, and zeros after them.
type zeros struct{ first []byte }

// Read implements io.Reader.
func (z zeros) Read(p []byte) (int, error) {
	return copy(p, append(z.first, make([]byte, len(p))...)), nil
}

// counted counts what is read.
type counted struct {
	in zeros
	n  int
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if c.n == 0 {
		c.in.first = nil
	}
	c.n += n
	return n, err
}

// sample is a list with every field that is kept.
func sample() *metav1.PartialObjectMetadataList {
	yes, no, grace, remaining := true, false, int64(30), int64(7)
	deleted := metav1.Unix(1700000100, 0)
	return &metav1.PartialObjectMetadataList{
		ListMeta: metav1.ListMeta{ResourceVersion: "42", Continue: "next", RemainingItemCount: &remaining},
		Items: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
			Name: "web-1", Namespace: "shop", UID: "c1b7c9a0-3a52-4a3c-8f8e-2f3f4d5e6a7b", ResourceVersion: "17",
			CreationTimestamp: metav1.Unix(1700000000, 0), DeletionTimestamp: &deleted, DeletionGracePeriodSeconds: &grace,
			Labels: map[string]string{"app": "web", "tier": "front"}, Finalizers: []string{"example.com/a", "orphan"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "0a", Controller: &yes, BlockOwnerDeletion: &no},
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)}}},
		}}},
	}
}

// body builds an encoding by hand: a field number and its bytes, again and
// again.
func body(parts ...any) []byte {
	b := []byte(magic)
	for i := 0; i < len(parts); i += 2 {
		b = field(b, parts[i].(int), parts[i+1].([]byte))
	}
	return b
}

func field(b []byte, number int, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, protowire.Number(number), protowire.BytesType), content)
}

// kind is the typeMeta of a list.
var kind = field(field(nil, 1, []byte(listAPIVersion)), 2, []byte(listKind))

// What is no list of metadata is an error that says so.
func TestErrors(t *testing.T) {
	pods := field(field(nil, 1, []byte("v1")), 2, []byte("PodList"))
	wrongType := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
	item := func(meta []byte) []byte { return body(1, kind, 2, field(nil, 2, field(nil, 1, meta))) }
	number := func(n protowire.Number) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), 1)
	}
	for _, test := range []struct {
		name string
		body []byte
		want string
	}{
		{"nothing", nil, "not Kubernetes' protobuf"},
		{"JSON", []byte(`{"kind":"PartialObjectMetadataList"}`), "not Kubernetes' protobuf"},
		{"an empty envelope", body(), "does not say what it is"},
		{"no type", body(2, []byte{}), "does not say what it is"},
		{"no list", body(1, kind), "the body has none"},
		{"two lists", body(1, kind, 2, []byte{}, 2, []byte{}), "the body has two"},
		{"something else", body(1, pods, 2, []byte{}), "the server sent v1, PodList instead of"},
		{"a length beyond the end", append(body(1, kind), 0x12, 0x7f), "unexpected EOF"},
		{"a length beyond every end", protowire.AppendVarint(append(body(1, kind), 0x12), math.MaxUint64-1), "unexpected EOF"},
		{"an item beyond the list", body(1, kind, 2, []byte{0x12, 0x7f}), "unexpected EOF"},
		{"a varint without end", body(1, kind, 2, bytes.Repeat([]byte{0xff}, 11)), "overflow"},
		{"a group without end", body(1, kind, 2, []byte{0x1b}), "unexpected EOF"},
		{"a group beyond the list", body(1, kind, 2, []byte{0x1b, 0x0a, 0x7f}), "unexpected EOF"},
		{"the end of no group", body(1, kind, 2, []byte{0x1c}), "wrong wire type"},
		{"no wire type in a group", body(1, kind, 2, []byte{0x1b, 0x0f}), "wrong wire type"},
		{"field 0", body(1, kind, 2, []byte{0x02}), "number 0"},
		{"a name that is a number", item(wrongType), "wrong wire type"},
		{"a namespace that is a number", item(number(3)), "wrong wire type"},
		{"a finalizer that is a number", item(number(14)), "wrong wire type"},
		{"a time that is a number", item(number(8)), "wrong wire type"},
		{"a grace period that is text", item(field(nil, 10, []byte("x"))), "wrong wire type"},
		{"an owner with a text for controller", item(field(nil, 13, field(nil, 6, []byte("x")))), "wrong wire type"},
		{"an owner that is cut off", item(field(nil, 13, []byte{0x0a, 0x05})), "unexpected EOF"},
		{"a label that is cut off", item(field(nil, 11, []byte{0x0a, 0x05})), "unexpected EOF"},
		{"a time that is cut off", item(field(nil, 8, []byte{0x08})), "unexpected EOF"},
		{"a token that is a number", body(1, kind, 2, field(nil, 1, number(3))), "wrong wire type"},
		{"a count that is text", body(1, kind, 2, field(nil, 1, field(nil, 4, []byte("x")))), "wrong wire type"},
		{"metadata that is a number", body(1, kind, 2, field(nil, 2, number(1))), "wrong wire type"},
	} {
		var d Decoder
		if _, err := decode(&d, bytes.NewReader(test.body)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want %q", test.name, err, test.want)
		}
	}
}

// Fields that are not known are skipped wherever they stand and whatever their
// type is.
func TestUnknownFields(t *testing.T) {
	unknown := func(b []byte) []byte {
		b = protowire.AppendVarint(protowire.AppendTag(b, 100, protowire.VarintType), 1<<40)
		b = protowire.AppendFixed32(protowire.AppendTag(b, 101, protowire.Fixed32Type), 1)
		b = protowire.AppendFixed64(protowire.AppendTag(b, 102, protowire.Fixed64Type), 1)
		b = protowire.AppendTag(b, 104, protowire.StartGroupType)
		b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), 1<<40)
		b = field(protowire.AppendTag(b, 2, protowire.StartGroupType), 3, []byte("in the inner one"))
		b = protowire.AppendFixed64(protowire.AppendTag(b, 4, protowire.Fixed64Type), 1)
		b = protowire.AppendTag(protowire.AppendTag(b, 2, protowire.EndGroupType), 104, protowire.EndGroupType)
		return field(b, 103, []byte("new"))
	}
	meta := unknown(field(unknown(nil), 1, []byte("web")))
	item := unknown(field(unknown(nil), 1, meta))
	list := unknown(field(unknown(nil), 2, item))
	data := unknown(field(unknown(field([]byte(magic), 1, kind)), 2, list))
	want, err := reference(data)
	if err != nil {
		t.Fatal(err)
	}
	var d Decoder
	got, err := decode(&d, bytes.NewReader(data))
	if diff := cmp.Diff(want, got); err != nil || diff != "" || got.Objects[0].Name != "web" {
		t.Errorf("got error %v (-want +got):\n%s", err, diff)
	}
}

// A read that fails, and a caller that has enough, end the list with their
// error.
func TestErrorsOfOthers(t *testing.T) {
	data := encode(t, sample())
	broken := errors.New("broken")
	var d Decoder
	if _, err := decode(&d, io.MultiReader(bytes.NewReader(data[:len(data)/2]), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("got error %v", err)
	}
	if _, err := d.Decode(bytes.NewReader(data), func(*graph.Object) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got error %v", err)
	}
	if got, err := decode(&d, bytes.NewReader(data)); err != nil || len(got.Objects) != 1 {
		t.Errorf("afterwards: got %v, %v", got, err)
	}
}

func TestLabels(t *testing.T) {
	d := Decoder{Labels: []string{"tier"}}
	got, err := decode(&d, bytes.NewReader(encode(t, sample())))
	if diff := cmp.Diff(map[string]string{"tier": "front"}, got.Objects[0].Labels); err != nil || diff != "" {
		t.Errorf("got error %v (-want +got):\n%s", err, diff)
	}
	d.Labels = []string{}
	if got, err := decode(&d, bytes.NewReader(encode(t, sample()))); err != nil || got.Objects[0].Labels != nil {
		t.Errorf("got %v, %v", got.Objects[0].Labels, err)
	}
}

// However many fields an object has that are not kept, and however large they
// are, no memory is allocated for it.
func TestAllocations(t *testing.T) {
	list := sample()
	list.Items[0].Labels = nil
	for i := range 1000 {
		item := list.Items[0]
		item.Name = fmt.Sprintf("web-%d", i)
		item.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: &metav1.FieldsV1{Raw: []byte(strings.Repeat("x", i))}}}
		item.Annotations = map[string]string{"a": strings.Repeat("y", i)}
		list.Items = append(list.Items, item)
	}
	data := encode(t, list)
	var d Decoder
	r := bytes.NewReader(nil)
	objects := 0
	allocations := testing.AllocsPerRun(10, func() {
		r.Reset(data)
		if _, err := d.Decode(r, func(*graph.Object) error { objects++; return nil }); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 20 || objects == 0 {
		t.Errorf("%.0f allocations for %d objects", allocations, objects)
	}
}
