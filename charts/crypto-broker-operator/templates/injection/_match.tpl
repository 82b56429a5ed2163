{{/*
SPDX-License-Identifier: Apache-2.0
The constraints, match conditions and variables that the policy that injects and the
policy that refuses have in common. The variables treat annotations with wrong values
as absent, because a mutation that fails would refuse the pod without an explanation.
The policy that refuses explains what is wrong.
There are two of each policy, for namespaces with the label of injection and for
namespaces without it, because a match condition cannot read the namespace.
Take a dict of "root" (the top scope) and "kind" ("labelled" or "annotated").
*/}}
{{- define "crypto-broker-operator.injection.constraints" -}}
matchPolicy: Equivalent
namespaceSelector:
  matchExpressions:
    - key: cryptobroker.io/injection
      operator: {{ eq .kind "labelled" | ternary "In" "NotIn" }}
      values:
        - enabled
    {{- include "crypto-broker-operator.webhook.excludedNamespaces" .root | nindent 4 }}
resourceRules:
  - apiGroups: [""]
    apiVersions: [v1]
    operations: [CREATE]
    resources: [pods]
    scope: Namespaced
{{- end }}

{{- define "crypto-broker-operator.injection.conditions" -}}
- name: asked
  expression: object.metadata.?annotations['cryptobroker.io/inject'].orValue('{{ eq .kind "labelled" | ternary "true" "false" }}') != 'false'
{{ include "crypto-broker-operator.webhook.podConditions" .root }}
{{- end }}

{{- define "crypto-broker-operator.injection.variables" -}}
- name: annotations
  expression: object.metadata.?annotations.orValue({})
- name: initContainers
  expression: object.spec.?initContainers.orValue([])
- name: names
  expression: (variables.initContainers.map(c, c.name) + object.spec.containers.map(c, c.name)).filter(n, n != 'crypto-broker')
- name: hostNetwork
  expression: object.spec.?hostNetwork.orValue(false)
- name: sharesProcesses
  expression: object.spec.?hostPID.orValue(false) || object.spec.?shareProcessNamespace.orValue(false)
# An empty field counts as an absent field, as it does for Kubernetes.
- name: podResources
  expression: size(object.spec.?resources.?requests.orValue({})) + size(object.spec.?resources.?limits.orValue({})) > 0
{{ include "crypto-broker-operator.injection.annotationVariables" . }}
{{- end }}

{{/*
The arguments of the broker, from variables.callers, the containers with a socket. With
injection.mode=webhook, arguments that the policy does not compare are left out.
*/}}
{{- define "crypto-broker-operator.injection.arguments" -}}
# The value has an item for each caller that may not use all profiles.
- name: allowed
  expression: >-
    variables.callers.filter(n, 'cryptobroker.io/profiles.' + n in variables.annotations || 'cryptobroker.io/profiles' in variables.annotations)
    .map(n, n + '=' + variables.annotations[?'cryptobroker.io/profiles.' + n].or(variables.annotations[?'cryptobroker.io/profiles']).orValue('')
    .split(',', 101).map(p, p.trim()).join(',')).join(';')
{{- if eq .Values.injection.mode "policy" }}
# The type of namespaceObject declares the field UID, but the value has it as uid.
- name: home
  expression: dyn(namespaceObject).metadata
{{- end }}
{{ include "crypto-broker-operator.injection.annotationArguments" . }}
- name: arguments
  expression: >-
    params.spec.firstArguments.map(a, string(a)) +
    ['--callers=' + variables.callers.join(','), '--socket-group=' + string(params.spec.socketGroup)] +
    {{- if eq .Values.injection.mode "policy" }}
    (params.spec.?cluster.orValue('') == '' ? [] : ['--profiles-audience=' + string(params.spec.cluster) + '/' + variables.home.name + '/' + variables.home.uid]) +
    (variables.opensPort ? ['--status-address=:' + string(variables.statusPort)] : []) +
    {{- end }}
    variables.annotationArguments +
    (params.spec.?requireFIPS.orValue(false) ? ['--require-fips'] : []) +
    (variables.allowed == '' ? [] : ['--caller-profiles=' + variables.allowed]) +
    (size(variables.keys) == 0 ? [] : ['--keys-dir=/etc/crypto-broker/keys']) +
    (variables.redisSecret == '' ? [] : ['--session-redis-dir=/etc/crypto-broker/session-redis']) +
    {{- if ne .Values.injection.mode "policy" }}
    (variables.keyGateway == '' ? [] : ['--key-gateway=' + variables.keyGateway, '--key-gateway-token=/etc/crypto-broker/key-gateway/token',
    '--key-gateway-authorities=/etc/crypto-broker/key-gateway/key-gateway-ca.crt'
    {{- if .Values.keyGateway.brokerCertificates }}, '--key-gateway-certificate=/etc/crypto-broker/key-gateway/certificate.pem'{{ end }}]) +
    {{- end }}
    (variables.sharesProcesses ? ['--shared-identity'] : [])
{{- end }}
