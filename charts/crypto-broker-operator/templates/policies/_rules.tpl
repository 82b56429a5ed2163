{{/*
SPDX-License-Identifier: Apache-2.0
The match condition and the validations of a policy for updates of pods, which are
many: kubelets and the operator write all pods. For each list of expressions, the API
server copies the old and the new pod. The match conditions are one list. The
validations, their messages and the audit annotations are three more. So a policy
matches only updates that break one of its rules. The validations repeat the rules,
and say which one the update breaks.
Takes a list of dicts of "when", an expression that is true for the writers and pods
that the rules are for, and "rules", a list of dicts of "expression" and "message".
*/}}
{{- define "crypto-broker-operator.policyRules" -}}
matchConditions:
  - name: breaks-a-rule
    expression: >-
      {{- range $i, $group := . }}
      {{ if $i }}|| {{ end }}({{ $group.when | indent 6 | trim }} && !(
      {{- range $i, $rule := $group.rules }}
      {{ if $i }}&& {{ end }}({{ $rule.expression | indent 6 | trim }})
      {{- end }}))
      {{- end }}
validations:
  {{- range $group := . }}
  {{- range $group.rules }}
  - expression: >-
      !({{ $group.when | indent 6 | trim }}) ||
      ({{ .expression | indent 6 | trim }})
    reason: Forbidden
    message: >-
      {{ .message }}
  {{- end }}
  {{- end }}
{{- end }}

{{- define "crypto-broker-operator.isOperator" -}}
request.userInfo.username == '{{ include "crypto-broker-operator.username" . }}'
{{- end }}

{{/*
Whether somebody else than the operator writes a pod with a broker. The spec of the pod
decides whether it has one, because nobody can change the spec. The stamp can be changed.
*/}}
{{- define "crypto-broker-operator.othersWriteBrokerPod" -}}
request.userInfo.username != '{{ include "crypto-broker-operator.username" . }}' &&
oldObject.spec.?initContainers.orValue([]).exists(c,
c.name == 'crypto-broker' && c.?restartPolicy.orValue('') == 'Always') &&
oldObject.spec.?volumes.orValue([]).exists(v, v.name == 'crypto-broker-socket')
{{- end }}

{{/*
The rules for annotations that only the operator may change in a pod with a broker. The
snapshot is mounted into the broker as its profiles.
*/}}
{{- define "crypto-broker-operator.brokerAnnotationRules" -}}
- expression: |-
    ['cryptobroker.io/injected', 'cryptobroker.io/profiles-snapshot', 'cryptobroker.io/profiles-snapshot-signature']
    .all(key, object.metadata.?annotations[?key] == oldObject.metadata.?annotations[?key])
  message: >-
    the annotations cryptobroker.io/injected, cryptobroker.io/profiles-snapshot and
    cryptobroker.io/profiles-snapshot-signature stay as they were when the pod was admitted
- expression: |-
    object.metadata.?annotations['cryptobroker.io/profiles-digest'] == oldObject.metadata.?annotations['cryptobroker.io/profiles-digest']
  message: only the Crypto Broker Operator may write the annotation cryptobroker.io/profiles-digest
{{- end }}
