{{/*
SPDX-License-Identifier: Apache-2.0
Labels and annotations of an object, below its metadata. commonLabels and
commonAnnotations come last: labels and annotations of only this object take precedence.
Takes a dict of "root" (the top scope) and, where an object has its own, "labels"
and "annotations".
*/}}
{{- define "crypto-broker-operator.metadata" -}}
{{- $release := include "crypto-broker-operator.labels" .root }}
{{- $labels := merge dict (.labels | default dict) (.root.Values.commonLabels | default dict) }}
{{- include "crypto-broker-operator.checkLabels" (dict "own" (fromYaml $release) "given" $labels) -}}
labels:
  {{- $release | nindent 2 }}
  {{- with $labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge dict (.annotations | default dict) (.root.Values.commonAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
Labels of pods: the chart's own, podLabels and commonLabels.
Takes a dict of "root" (the top scope), "own" (the chart's) and "podLabels" (the value).
*/}}
{{- define "crypto-broker-operator.podLabels" -}}
{{- $given := merge dict (.podLabels | default dict) (.root.Values.commonLabels | default dict) }}
{{- include "crypto-broker-operator.checkLabels" (dict "own" .own "given" $given) -}}
{{ merge dict .own $given | toYaml }}
{{- end }}

{{/*
Refuses labels in the values that the chart itself sets.
Takes a dict of "own" (the labels of the chart) and "given" (the labels in the values).
*/}}
{{- define "crypto-broker-operator.checkLabels" -}}
{{- range $label := keys .own | sortAlpha }}
{{- if hasKey $.given $label }}
{{- fail (printf "a value has the label %q with %q, expected another label: the chart sets this one itself" $label (get $.given $label)) }}
{{- end }}
{{- end }}
{{- end }}
