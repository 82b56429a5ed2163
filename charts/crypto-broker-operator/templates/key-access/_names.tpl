{{/*
SPDX-License-Identifier: Apache-2.0
Names and labels of the key access service.
*/}}
{{- define "crypto-broker-operator.keyAccess.fullname" -}}
{{ include "crypto-broker-operator.fullname" . }}-key-access
{{- end }}

{{- define "crypto-broker-operator.keyAccess.serviceAccountName" -}}
{{- $account := .Values.keyAccess.serviceAccount }}
{{- if $account.create }}
{{- $account.name | default (include "crypto-broker-operator.keyAccess.fullname" .) }}
{{- else }}
{{- required "keyAccess.serviceAccount.name is empty; with keyAccess.serviceAccount.create=false it must name the account that exists" $account.name }}
{{- end }}
{{- end }}

{{/* The name differs from the operator's, whose Service must not select these pods. */}}
{{- define "crypto-broker-operator.keyAccess.selectorLabels" -}}
app.kubernetes.io/name: {{ include "crypto-broker-operator.name" . | trunc 51 | trimSuffix "-" }}-key-access
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/*
The metadata of an object, as crypto-broker-operator.metadata has them, with the component.
Takes the same dict.
*/}}
{{- define "crypto-broker-operator.keyAccess.metadata" -}}
{{- $labels := merge (dict "app.kubernetes.io/component" "key-access") (.labels | default dict) }}
{{- include "crypto-broker-operator.metadata" (dict "root" .root "labels" $labels "annotations" .annotations) }}
{{- end }}
