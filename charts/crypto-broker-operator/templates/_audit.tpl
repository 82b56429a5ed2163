{{/*
SPDX-License-Identifier: Apache-2.0
Arguments of the operator about collectors of audit records, of its own and of
brokers; none where there is no endpoint.
*/}}
{{- define "crypto-broker-operator.audit" -}}
{{- with .Values.broker.audit }}
{{- if .endpoint }}
{{- include "crypto-broker-operator.collector" (dict "value" "broker.audit" "whose" "broker's" "endpoint" .endpoint "caBundle" .caBundle "protocol" "grpc") }}
- {{ printf "--broker-audit-endpoint=%s" .endpoint | quote }}
{{- with .caBundle }}
- {{ printf "--broker-audit-ca-bundle=%s" . | replace "$" "$$" | quote }}
{{- end }}
{{- else if .caBundle }}
{{- fail "broker.audit.caBundle is set, expected nothing without broker.audit.endpoint" }}
{{- end }}
{{- end }}
{{- with .Values.audit }}
{{- if .endpoint }}
{{- if not .enabled }}
{{- fail (printf "audit.endpoint is %s, expected none without audit.enabled=true" .endpoint) }}
{{- end }}
{{- include "crypto-broker-operator.collector" (dict "value" "audit" "whose" "operator's" "endpoint" .endpoint "caBundle" .caBundle "protocol" "grpc") }}
- {{ printf "--audit-otlp-endpoint=%s" .endpoint | quote }}
{{- with .caBundle }}
- {{ printf "--audit-otlp-ca-bundle=%s" . | replace "$" "$$" | quote }}
{{- end }}
{{- else if .caBundle }}
{{- fail "audit.caBundle is set, expected nothing without audit.endpoint" }}
{{- end }}
{{- end }}
{{- end }}
