{{/*
SPDX-License-Identifier: Apache-2.0
What the entries of both webhook configurations have in common. The chart writes no
caBundle, so that an upgrade does not remove it. The operator makes its own CA and
writes the bundle, or cert-manager does.
Takes a dict of "root" (the top scope), "path" and, where it is not Fail,
"failurePolicy".
*/}}
{{- define "crypto-broker-operator.webhook.call" -}}
clientConfig:
  service:
    name: {{ include "crypto-broker-operator.webhookServiceName" .root | quote }}
    namespace: {{ .root.Release.Namespace | quote }}
    path: {{ .path }}
    port: 443
admissionReviewVersions: [v1]
sideEffects: None
failurePolicy: {{ .failurePolicy | default "Fail" }}
matchPolicy: Equivalent
timeoutSeconds: {{ .root.Values.webhook.timeoutSeconds }}
{{- end }}

{{/*
Namespaces whose pods are never sent to the webhook. The operator's own is
among them, so that it can always start.
*/}}
{{- define "crypto-broker-operator.webhook.excludedNamespaces" -}}
- key: kubernetes.io/metadata.name
  operator: NotIn
  values:
    {{- range concat (list "kube-system" "kube-node-lease" .Release.Namespace) (.Values.webhook.excludedNamespaces | default list) | uniq }}
    - {{ . | quote }}
    {{- end }}
{{- end }}

{{/*
Pods that cannot have a broker. Every access is optional: an expression that
fails would refuse the pod.
*/}}
{{- define "crypto-broker-operator.webhook.podConditions" -}}
- name: not-a-mirror-pod
  expression: "!object.metadata.?annotations['kubernetes.io/config.mirror'].hasValue()"
- name: not-a-windows-pod
  expression: >-
    !({{ include "crypto-broker-operator.webhook.isForWindows" "object" | nindent 4 | trim }})
{{- end }}

{{/*
Whether a pod runs only on nodes with Windows, as IsForWindows of the Go package
api/injected has it. Takes the expression of the pod or of the pod template.
*/}}
{{- define "crypto-broker-operator.webhook.isForWindows" -}}
{{ . }}.spec.?os.?name.orValue('linux') == 'windows' ||
{{ . }}.spec.?nodeSelector['kubernetes.io/os'].orValue('linux') == 'windows' ||
[{{ . }}.spec.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue([])].exists(terms,
size(terms) > 0 && terms.all(t, t.?matchExpressions.orValue([]).exists(e,
e.key == 'kubernetes.io/os' && e.operator == 'In' && e.?values.orValue([]) == ['windows'])))
{{- end }}

{{/*
Annotations of both webhook configurations, as a dict in YAML.
*/}}
{{- define "crypto-broker-operator.webhook.annotations" -}}
{{- $annotations := dict }}
{{- if .Values.certManager.enabled }}
{{- $_ := set $annotations "cert-manager.io/inject-ca-from" (printf "%s/%s" .Release.Namespace (include "crypto-broker-operator.servingCertificateName" .)) }}
{{- end }}
{{- merge $annotations (.Values.webhook.annotations | default dict) | toYaml }}
{{- end }}
