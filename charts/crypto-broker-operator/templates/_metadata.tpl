{{/*
SPDX-License-Identifier: Apache-2.0
Labels and annotations of an object, below its metadata. commonLabels and
commonAnnotations come last: what is for this object alone counts before them.
Takes a dict of "root" (the top scope) and, where an object has its own, "labels"
and "annotations".
*/}}
{{- define "crypto-broker-operator.metadata" -}}
{{- $release := include "crypto-broker-operator.labels" .root }}
{{- $labels := merge dict (.labels | default dict) .root.Values.commonLabels }}
{{- range $label := fromYaml $release | keys | sortAlpha }}
{{- if hasKey $labels $label }}
{{- fail (printf "a value has the label %q with %q, expected another label: the chart sets this one itself" $label (get $labels $label)) }}
{{- end }}
{{- end -}}
labels:
  {{- $release | nindent 2 }}
  {{- with $labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge dict (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
