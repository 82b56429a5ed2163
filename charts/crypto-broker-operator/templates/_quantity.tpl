{{/*
SPDX-License-Identifier: Apache-2.0
A quantity as it was written. A number of a values file is a float here, and a
large one would be printed with an exponent.
*/}}
{{- define "crypto-broker-operator.quantity" -}}
{{- if kindIs "float64" . }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- end }}
