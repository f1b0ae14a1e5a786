<!-- Written by "make licenses" from hack/licenses.tpl; do not edit. -->
# Licences of what the binary contains

Beside this project's own code, under the licence in LICENSE, the binary contains the Go standard library (BSD-3-Clause)
and the libraries below. The text of the Apache License 2.0 is that in LICENSE; the other texts follow.

| library | version | licence |
|---|---|---|
{{- range . }}{{ if ne .Name "github.com/kubectl-gc/kubectl-gc" }}
| {{ .Name }} | {{ .Version }} | {{ .LicenseName }} |
{{- end }}{{ end }}
{{ range . }}{{ if ne .LicenseName "Apache-2.0" }}
## {{ .Name }}

```text
{{ .LicenseText }}
```
{{ end }}{{ end -}}
