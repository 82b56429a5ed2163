{{/*
SPDX-License-Identifier: Apache-2.0
What the endpoints of all monitors have in common, as metrics.podMonitor and
metrics.serviceMonitor say.
Takes a dict of "monitor" (one of the two) and "relabelings" (the chart's own).
*/}}
{{- define "crypto-broker-operator.endpoint" -}}
path: /metrics
{{- with .monitor.interval }}
interval: {{ . }}
{{- end }}
{{- with concat (.relabelings | default list) (.monitor.relabelings | default list) }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .monitor.metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
