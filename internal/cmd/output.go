// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
	answers "github.com/kubectl-gc/kubectl-gc/pkg/answer"
)

// format is one way to write an answer.
type format[A any] struct {
	// name is what -o says, empty for what is written without it.
	name  string
	write func(w io.Writer, style render.Style, answer A) error
}

// output is -o of a command: its own formats, in a table, and those that
// cli-runtime has for documents, JSON, YAML, JSONPath and Go templates.
type output[A any] struct {
	name     string
	formats  []format[A]
	document func(answer A) runtime.Object
	template *genericclioptions.KubeTemplatePrintFlags
	json     *genericclioptions.JSONYamlPrintFlags
}

// newOutput returns the output of a command. The first format is the one without
// -o.
func newOutput[A any](document func(A) runtime.Object, formats ...format[A]) output[A] {
	return output[A]{
		formats: formats, document: document,
		json: genericclioptions.NewJSONYamlPrintFlags(), template: genericclioptions.NewKubeTemplatePrintFlags(),
	}
}

// addFlags adds the flags, with the completion of their values.
func (o *output[A]) addFlags(g *globals, cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.name, "output", "o", "", "Output format: "+strings.Join(o.names(), ", "))
	cmd.Flags().StringVar(o.template.TemplateArgument, "template", *o.template.TemplateArgument,
		"Template string or path to a template file, for -o go-template, go-template-file, jsonpath or jsonpath-file")
	g.completeValues(cmd, map[string][]string{"output": o.names()})
}

// names returns what -o can say: the command's own formats first.
func (o *output[A]) names() []string {
	var own []string
	for _, f := range o.formats {
		if f.name != "" {
			own = append(own, f.name)
		}
	}
	documents := slices.Concat(o.json.AllowedFormats(), o.template.AllowedFormats())
	slices.Sort(documents)
	return append(own, documents...)
}

// own returns the command's own format that -o names, or nil.
func (o *output[A]) own() *format[A] {
	i := slices.IndexFunc(o.formats, func(f format[A]) bool { return f.name == o.name })
	if i < 0 {
		return nil
	}
	return &o.formats[i]
}

// ticketFormat is the name of the format for tickets.
const ticketFormat = "markdown"

// ticket is the format of an answer for a ticket: how it is written with everything, what happened before, and what takes it back.
func ticket[A any](g *globals, wide func(w io.Writer, style render.Style, answer A) error,
	about func(A) (moments []render.Moment, undo string)) format[A] {
	return format[A]{ticketFormat, func(w io.Writer, _ render.Style, a A) error {
		var text strings.Builder
		if err := wide(&text, render.Style{}, a); err != nil {
			return err
		}
		t := render.Ticket{Asked: g.again(nil), When: time.Now(), Where: g.where, Answer: text.String()}
		t.Timeline, t.Undo = about(a)
		return t.Write(w)
	}}
}

// otherFormats are formats that some command here, or kubectl, has, and others do not.
var otherFormats = []string{"name", "wide", "dot", "svg", "html", "mermaid", "graphml", "sarif", "junit", "markdown", "prometheus",
	columnsFormat, columnsFileFormat}

// isText reports whether the answer is for a person.
func (o *output[A]) isText() bool { return o.name == "" || o.name == "wide" }

// validate returns an error unless -o names a format and --color makes sense.
func (o *output[A]) validate(g *globals) error {
	if _, err := g.style(g.Out); err != nil || o.own() != nil {
		return err
	}
	_, err := o.printer()
	return err
}

// printer returns the printer of documents.
func (o *output[A]) printer() (printers.ResourcePrinter, error) {
	printer, err := o.json.ToPrinter(o.name)
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		printer, err = o.template.ToPrinter(o.name)
	}
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		err = fmt.Errorf("unknown output format %q: must be one of %s", o.name, strings.Join(o.names(), ", "))
		if slices.Contains(otherFormats, o.name) {
			return nil, usageError{err} // meant, and no misspelling
		}
		return nil, suggested(err, o.name, o.names())
	}
	if err != nil {
		return nil, usageError{err}
	}
	return printer, nil
}

// print writes the answer in the format.
func (o *output[A]) print(g *globals, answer A) error {
	if f := o.own(); f != nil {
		style, err := g.style(g.Out)
		if err != nil {
			return err
		}
		if o.name == "html" && isTerminal(g.Out) {
			_, err := g.page(func(w io.Writer) error { return f.write(w, style, answer) })
			return err
		}
		return f.write(g.Out, style, answer)
	}
	printer, err := o.printer()
	if err != nil {
		return err
	}
	out := g.Out
	document := o.document(answer)
	if placed, is := document.(interface{ In(where *answers.Where) }); is {
		placed.In(g.where)
	}
	if o.name == "json" || o.name == "jsonpath-as-json" {
		out = render.JSON(out)
	}
	if long, ok := document.(interface{ WriteJSON(w io.Writer) error }); ok && o.name == "json" {
		return long.WriteJSON(out)
	}
	return printer.PrintObj(document, out)
}
