// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// templateFlags are the output formats that cli-runtime prints: JSON, YAML,
// JSONPath and Go templates.
type templateFlags struct {
	template *genericclioptions.KubeTemplatePrintFlags
	json     *genericclioptions.JSONYamlPrintFlags
}

func (f *templateFlags) init() {
	if f.json == nil {
		f.json = genericclioptions.NewJSONYamlPrintFlags()
		f.template = genericclioptions.NewKubeTemplatePrintFlags()
	}
}

func (f *templateFlags) addFlags(flags *pflag.FlagSet) {
	f.init()
	flags.StringVar(f.template.TemplateArgument, "template", *f.template.TemplateArgument,
		"Template string or path to a template file, for -o go-template, go-template-file, jsonpath or jsonpath-file")
}

func (f *templateFlags) formats() []string {
	f.init()
	formats := slices.Concat(f.json.AllowedFormats(), f.template.AllowedFormats())
	slices.Sort(formats)
	return formats
}

// printer returns the printer of a format. all are the formats that the
// command has, for the error message.
func (f *templateFlags) printer(output string, all []string) (printers.ResourcePrinter, error) {
	printer, err := f.json.ToPrinter(output)
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		printer, err = f.template.ToPrinter(output)
	}
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, usageError{fmt.Errorf("unknown output format %q: must be one of %s", output, strings.Join(all, ", "))}
	}
	if err != nil {
		return nil, usageError{err}
	}
	return printer, nil
}
