{{/*
SPDX-License-Identifier: Apache-2.0
The binding by which a policy applies to all namespaces.
Takes a dict of "root" (the top scope) and "name" (of the policy).
*/}}
{{- define "crypto-broker-operator.policyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name | quote }}
  {{- include "crypto-broker-operator.metadata" (dict "root" .root) | nindent 2 }}
spec:
  policyName: {{ .name | quote }}
  validationActions: [Deny]
{{- end }}
