// SPDX-License-Identifier: Apache-2.0

package finalizers

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Characters of names.
const (
	letters  = "abcdefghijklmnopqrstuvwxyz"
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits   = "0123456789"
)

var (
	allFields     = []Field{Metadata, Spec}
	uses          = []Use{OnlyWaits, AlsoEnds}
	components    = []Component{ControllerManager, APIServer, CloudControllerManager}
	workloadKinds = []string{"Deployment", "StatefulSet", "DaemonSet"}
)

// validate checks what the fields hold and compiles the form.
func (e *entry) validate() field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("finalizer")
	switch {
	case e.Finalizer == "":
		errs = append(errs, field.Required(at, "a string or a pattern"))
	case strings.ContainsAny(e.Finalizer, " \t\r\n"):
		errs = append(errs, field.Invalid(at, e.Finalizer, "no finalizer has white space in it"))
	case isPattern(e.Finalizer):
		form, err := compile(e.Finalizer)
		if err != nil {
			return append(errs, field.Invalid(at, e.Finalizer, err.Error()))
		}
		e.form = form
	}
	if e.Product == "" {
		errs = append(errs, field.Required(field.NewPath("product"), "what the finalizer belongs to"))
	}
	if e.Builtin != "" && !slices.Contains(components, e.Builtin) {
		errs = append(errs, field.NotSupported(field.NewPath("builtin"), e.Builtin, components))
	}
	if e.WhileUsed != "" && !slices.Contains(uses, e.WhileUsed) {
		errs = append(errs, field.NotSupported(field.NewPath("whileUsed"), e.WhileUsed, uses))
	}
	for i, user := range e.Users {
		if resource, path, ok := strings.Cut(user, " "); !ok || !strings.Contains(resource, ".") || path == "" {
			errs = append(errs, field.Invalid(field.NewPath("users").Index(i), user, "want <plural>.<group> <field.of.the.object>"))
		}
	}
	if stated := strings.Fields(e.Place); e.Place != "" && (len(stated) < 2 || len(stated) > 3 || !strings.Contains(stated[0], ".")) {
		errs = append(errs, field.Invalid(field.NewPath("place"), e.Place, "want <plural>.<group> <field.of.the.object> <prefix>"))
	}
	resource, name, _ := strings.Cut(e.Names, " ")
	if e.Names != "" && (!strings.Contains(resource, ".") || name == "" || e.withoutPlaceholders(name) != "") {
		errs = append(errs, field.Invalid(field.NewPath("names"), e.Names, "want <plural>.<group> and a placeholder of the finalizer"))
	}
	errs = append(errs, e.validateKinds()...)
	errs = append(errs, e.validateWorkloads("workloads", e.Workloads)...)
	errs = append(errs, e.validateWorkloads("helpers", e.Helpers)...)
	for i, l := range e.Leases {
		errs = append(errs, e.validateName(field.NewPath("leases").Index(i), l.Namespace, l.Name)...)
	}
	for i, example := range e.Examples {
		if e.form == nil || !e.form.re.MatchString(example) {
			errs = append(errs, field.Invalid(field.NewPath("examples").Index(i), example, "the finalizer of the entry is no pattern for it"))
		}
	}
	return errs
}

func (e *entry) validateKinds() field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("field")
	switch {
	case !slices.Contains(allFields, e.Field):
		errs = append(errs, field.NotSupported(at, e.Field, allFields))
	case e.Field == Spec && !slices.Equal(e.Kinds, []string{"Namespace"}):
		errs = append(errs, field.Invalid(at, e.Field, "only namespaces have these: kinds has to be [Namespace]"))
	}
	for i, kind := range e.Kinds {
		if kind == "" || strings.Trim(kind, ".-") != kind || !consists(kind, letters+capitals+digits+".*-") {
			errs = append(errs, field.Invalid(field.NewPath("kinds").Index(i), kind, `want Kind or Kind.group, with "*" for any characters`))
		}
	}
	return errs
}

func (e *entry) validateWorkloads(name string, list []Workload) field.ErrorList {
	var errs field.ErrorList
	for i, w := range list {
		at := field.NewPath(name).Index(i)
		if w.Kind != "" && !w.Instance() && !slices.Contains(workloadKinds, w.Kind) {
			errs = append(errs, field.NotSupported(at.Child("kind"), w.Kind, workloadKinds))
		}
		errs = append(errs, e.validateName(at, w.Namespace, w.Name)...)
	}
	return errs
}

func (e *entry) validateName(at *field.Path, namespace, name string) field.ErrorList {
	var errs field.ErrorList
	if namespace != ObjectNamespace && !consists(e.withoutPlaceholders(namespace), letters+digits+"-") {
		errs = append(errs,
			field.Invalid(at.Child("namespace"), namespace, "want a namespace, with placeholders of the finalizer, or "+ObjectNamespace))
	}
	if name == "" {
		errs = append(errs, field.Required(at.Child("name"), `with "*" for any characters`))
	}
	if !consists(e.withoutPlaceholders(name), letters+digits+".*-") {
		errs = append(errs, field.Invalid(at.Child("name"), name, `want a name, with "*" for any characters and placeholders of the finalizer`))
	}
	return errs
}

// withoutPlaceholders takes fields of the object and the placeholders of the form out of a text.
func (e *entry) withoutPlaceholders(text string) string {
	text = fieldOfObject().ReplaceAllString(text, "")
	if e.form == nil {
		return text
	}
	for _, name := range e.form.names {
		text = strings.ReplaceAll(text, "<"+name+">", "")
	}
	return text
}

// consists reports whether the text has no other characters than these.
func consists(text, of string) bool { return strings.Trim(text, of) == "" }
