{{/*
SPDX-License-Identifier: Apache-2.0
Names and labels of the key gateway. The operator derives the names of the Secrets and of
the ConfigMap that it makes from the name of the Service.
*/}}
{{- define "crypto-broker-operator.keyGateway.fullname" -}}
{{ include "crypto-broker-operator.fullname" . }}-key-gateway
{{- end }}

{{- define "crypto-broker-operator.keyGateway.serviceAccountName" -}}
{{- $account := .Values.keyGateway.serviceAccount }}
{{- if $account.create }}
{{- $account.name | default (include "crypto-broker-operator.keyGateway.fullname" .) }}
{{- else }}
{{- required "keyGateway.serviceAccount.name is empty; with keyGateway.serviceAccount.create=false it must name the account that exists" $account.name }}
{{- end }}
{{- end }}

{{/* The name differs from the operator's, whose Service must not select these pods. */}}
{{- define "crypto-broker-operator.keyGateway.selectorLabels" -}}
app.kubernetes.io/name: {{ include "crypto-broker-operator.name" . | trunc 51 | trimSuffix "-" }}-key-gateway
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/*
The metadata of an object, as crypto-broker-operator.metadata has them, with the component.
Takes the same dict.
*/}}
{{- define "crypto-broker-operator.keyGateway.metadata" -}}
{{- $labels := merge (dict "app.kubernetes.io/component" "key-gateway") (.labels | default dict) }}
{{- include "crypto-broker-operator.metadata" (dict "root" .root "labels" $labels "annotations" .annotations) }}
{{- end }}
