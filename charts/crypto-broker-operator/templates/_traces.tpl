{{/*
SPDX-License-Identifier: Apache-2.0
Arguments of the operator about its own traces and the traces of brokers, if there is an
endpoint. The checks are here, because their messages say more than a schema's pattern.
*/}}
{{- define "crypto-broker-operator.traces" -}}
{{- with .Values.broker.traces }}
{{- if .endpoint }}
{{- include "crypto-broker-operator.collector" (dict "value" "broker.traces" "whose" "broker's" "endpoint" .endpoint "caBundle" .caBundle "protocol" .protocol) -}}
- {{ printf "--broker-traces-endpoint=%s" .endpoint | quote }}
{{- with .caBundle }}
- {{ printf "--broker-traces-ca-bundle=%s" . | replace "$" "$$" | quote }}
{{- end }}
- --broker-traces-protocol={{ .protocol }}
- --broker-traces-sampler={{ .sampler }}
- --broker-traces-sampler-argument={{ .samplerArgument }}
{{- end }}
{{- end }}
{{- with .Values.traces }}
{{- if .endpoint }}
{{- include "crypto-broker-operator.collector" (dict "value" "traces" "whose" "operator's" "endpoint" .endpoint "caBundle" .caBundle "protocol" "grpc") }}
- {{ printf "--traces-endpoint=%s" .endpoint | quote }}
{{- with .caBundle }}
- {{ printf "--traces-ca-bundle=%s" . | replace "$" "$$" | quote }}
{{- end }}
- --traces-ratio={{ .ratio }}
{{- else if .caBundle }}
{{- fail "traces.caBundle is set, expected nothing without traces.endpoint" }}
{{- end }}
{{- end }}
{{- end }}
