{{/*
SPDX-License-Identifier: Apache-2.0
Names and labels. Everything the release owns derives from the full name.
*/}}

{{- define "crypto-broker-operator.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/*
The full name is the release's name where that already says what it is. It is
cut at 50 characters, so that the longest suffix still fits a DNS label.
*/}}
{{- define "crypto-broker-operator.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := include "crypto-broker-operator.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "crypto-broker-operator.webhookServiceName" -}}
{{ include "crypto-broker-operator.fullname" . }}-webhook
{{- end }}

{{- define "crypto-broker-operator.caSecretName" -}}
{{ include "crypto-broker-operator.fullname" . }}-ca
{{- end }}

{{/* The Certificate of cert-manager, and the Secret that it is in. */}}
{{- define "crypto-broker-operator.servingCertificateName" -}}
{{ include "crypto-broker-operator.fullname" . }}-serving
{{- end }}

{{- define "crypto-broker-operator.signingSecretName" -}}
{{ include "crypto-broker-operator.fullname" . }}-signing
{{- end }}

{{- define "crypto-broker-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "crypto-broker-operator.fullname" .) }}
{{- else }}
{{- required "serviceAccount.name is empty; with serviceAccount.create=false it must name the account that exists" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The user name the API server sees when the operator calls it. */}}
{{- define "crypto-broker-operator.username" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "crypto-broker-operator.serviceAccountName" . }}
{{- end }}

{{- define "crypto-broker-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "crypto-broker-operator.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* The labels that every object of the release has. */}}
{{- define "crypto-broker-operator.labels" -}}
{{ include "crypto-broker-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: crypto-broker
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
