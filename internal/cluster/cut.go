// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster/wire"
)

// cut says by their names in JSON which fields are left out of an object, or of each in a list: with nil all of a field, else what that
// says of what is in it, which may be nothing.
type cut map[string]cut

// cuts leaves out all of some fields.
func cuts(names ...string) cut { return cut{}.and(names...) }

// and leaves out all of some fields, too.
func (c cut) and(names ...string) cut {
	more := cut{}
	for name, inside := range c {
		more[name] = inside
	}
	for _, name := range names {
		more[name] = nil
	}
	return more
}

// from takes them out of a value in JSON.
func (c cut) from(value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			c.from(element)
		}
	case map[string]any:
		for name, inside := range c {
			if inside == nil {
				delete(value, name)
			} else {
				inside.from(value[name])
			}
		}
	}
}

// drop takes them out of a message: its numbers are in the tags of the Go type, without which it panics.
func (c cut) drop(of reflect.Type) wire.Drop {
	drop := wire.Drop{}
	for name, inside := range c {
		if inside != nil && len(inside) == 0 {
			continue
		}
		numbers, field := numbersOf(of, name)
		if field == nil {
			panic(fmt.Sprintf("%s has no field %s", of, name))
		}
		d := &drop
		for _, number := range numbers {
			for len(*d) <= int(number) {
				*d = append(*d, nil)
			}
			d = &(*d)[number]
		}
		if *d = wire.Whole; inside != nil {
			*d = inside.drop(field)
		}
	}
	return drop
}

// numbersOf is where a message has a field of a Go type, of which field is the type of what is in it.
func numbersOf(of reflect.Type, name string) (numbers []protowire.Number, field reflect.Type) {
	for i := range of.NumField() {
		f := of.Field(i)
		called, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inline := called == "" && options == "inline"
		if called != name && !inline {
			continue
		}
		_, tag, numbered := strings.Cut(f.Tag.Get("protobuf"), ",")
		if !numbered { // apiVersion and kind
			continue
		}
		tag, _, _ = strings.Cut(tag, ",")
		number, err := strconv.ParseInt(tag, 10, 32)
		if err != nil {
			panic(err)
		}
		inside := f.Type
		for inside.Kind() == reflect.Pointer || inside.Kind() == reflect.Slice {
			inside = inside.Elem()
		}
		if !inline {
			return []protowire.Number{protowire.Number(number)}, inside
		}
		if below, field := numbersOf(inside, name); field != nil {
			return append([]protowire.Number{protowire.Number(number)}, below...), field
		}
	}
	return nil, nil
}
