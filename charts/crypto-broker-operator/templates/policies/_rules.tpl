{{/*
SPDX-License-Identifier: Apache-2.0
The match condition and the validations of a policy for updates of pods, which are
many: kubelets and the operator write all pods. For each list of expressions, the API
server copies the old and the new pod. The match conditions are one list, and
validations are three, with those of messages and of audit annotations. So a
policy matches only what breaks one of its rules. The validations are the rules once
more, and say which one it was.
Takes a list of dicts of "when", an expression of whom the rules are for, and "rules",
a list of dicts of "expression" and "message".
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
Whether somebody else than the operator writes a pod with a broker. A pod has one by its
spec, which nobody can change, not by the stamp.
*/}}
{{- define "crypto-broker-operator.othersWriteBrokerPod" -}}
request.userInfo.username != '{{ include "crypto-broker-operator.username" . }}' &&
oldObject.spec.?initContainers.orValue([]).exists(c,
c.name == 'crypto-broker' && c.?restartPolicy.orValue('') == 'Always') &&
oldObject.spec.?volumes.orValue([]).exists(v, v.name == 'crypto-broker-socket')
{{- end }}

{{/*
What nobody but the operator changes of a pod with a broker. What the snapshot says is
mounted as the broker's profiles.
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
