{{/*
SPDX-License-Identifier: Apache-2.0
What the policy that injects and the policy that refuses have in common: the
pods that they are about, and names for what these say. Annotations that can't
be used count as absent here, for a mutation that fails would refuse the pod
without a sentence; the other policy has the sentence.
There are two of each policy, for namespaces with our label and without, since a
match condition can't ask about the namespace.
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
- name: listed
  expression: >-
    'cryptobroker.io/containers' in variables.annotations
    ? variables.annotations['cryptobroker.io/containers'].split(',', 101).map(n, n.trim()) : variables.names
- name: askedDirectory
  expression: variables.annotations[?'cryptobroker.io/socket-path'].orValue('/tmp/open-crypto-broker')
- name: directoryFits
  expression: >-
    size(bytes(variables.askedDirectory)) <= 81 && variables.askedDirectory.matches(r'^(/[\pL\pM\pN\pP\pS ]+)+$') &&
    !variables.askedDirectory.matches('//|/$|[:$]|/[.]{1,2}(/|$)|^/(proc|sys|dev)(/|$)')
- name: socketDirectory
  expression: "variables.directoryFits ? variables.askedDirectory : '/tmp/open-crypto-broker'"
- name: askedPort
  expression: variables.annotations[?'cryptobroker.io/metrics-port'].orValue('')
- name: portFits
  expression: >-
    variables.askedPort.matches('^0*[1-9][0-9]{3,4}$') && int(variables.askedPort) >= 1024 && int(variables.askedPort) <= 65535
- name: statusPort
  expression: "variables.portFits ? int(variables.askedPort) : int(params.spec.statusPort)"
# Ports that containers declare, as the broker can't open them.
- name: portDeclared
  expression: >-
    variables.initContainers.filter(c, c.name != 'crypto-broker').exists(c, c.?ports.orValue([]).exists(p,
    int(p.containerPort) == variables.statusPort && !(p.?protocol.orValue('TCP') in ['UDP', 'SCTP']))) ||
    object.spec.containers.exists(c, c.?ports.orValue([]).exists(p,
    int(p.containerPort) == variables.statusPort && !(p.?protocol.orValue('TCP') in ['UDP', 'SCTP'])))
- name: hostNetwork
  expression: object.spec.?hostNetwork.orValue(false)
- name: opensPort
  expression: "!variables.hostNetwork && !variables.portDeclared"
- name: sharesProcesses
  expression: object.spec.?hostPID.orValue(false) || object.spec.?shareProcessNamespace.orValue(false)
- name: askedKeys
  expression: >-
    'cryptobroker.io/keys' in variables.annotations
    ? variables.annotations['cryptobroker.io/keys'].split(',', 101).map(n, n.trim()) : []
- name: keysFit
  expression: >-
    size(variables.askedKeys) <= 100 && size(variables.askedKeys.distinct()) == size(variables.askedKeys) &&
    variables.askedKeys.all(n, !format.dns1123Subdomain().validate(n).hasValue())
- name: keys
  expression: "variables.keysFit ? variables.askedKeys : []"
- name: images
  expression: "[string(params.spec.container.image)] + params.spec.?allowedImages.orValue([]).map(i, string(i))"
- name: askedImage
  expression: variables.annotations[?'cryptobroker.io/image'].orValue(variables.images[0])
- name: image
  expression: "variables.askedImage in variables.images ? variables.askedImage : variables.images[0]"
# Amounts, which are annotations without their prefix. CPU counts in thousandths and
# memory in bytes; a number that is not whole leaves more than a double is wrong by.
- name: askedAmounts
  expression: >-
    ['cpu-request', 'cpu-limit', 'memory-request', 'memory-limit'].filter(a, 'cryptobroker.io/' + a in variables.annotations)
- name: amounts
  expression: >-
    variables.askedAmounts.filter(a, isQuantity(variables.annotations['cryptobroker.io/' + a])).filter(a,
    [quantity(variables.annotations['cryptobroker.io/' + a]).asApproximateFloat() * (a.startsWith('cpu') ? 1000.0 : 1.0) + 1e-7].all(n,
    n >= (a.startsWith('cpu') ? 1.0 : 33554432.0) && (n >= 1e15 || n - double(int(n)) < 2e-7)))
# Resources of which more would be requested than the limit allows.
- name: exceeded
  expression: >-
    ['cpu', 'memory'].filter(r, variables.amounts.exists(a, a.startsWith(r)) && [['request', 'limit'].map(k, quantity(r + '-' + k in variables.amounts
    ? variables.annotations['cryptobroker.io/' + r + '-' + k]
    : string(params.spec.container.?resources[?(k + 's')][?r].orValue('0'))))].exists(q,
    sign(q[1]) > 0 && q[0].isGreaterThan(q[1])))
{{- end }}

{{/*
The broker's arguments; made from variables.callers, the containers with a socket.
Where the webhook injects, without those that are not compared.
*/}}
{{- define "crypto-broker-operator.injection.arguments" -}}
# An item for each caller that may not use all profiles.
- name: allowed
  expression: >-
    variables.callers.filter(n, 'cryptobroker.io/profiles.' + n in variables.annotations || 'cryptobroker.io/profiles' in variables.annotations)
    .map(n, n + '=' + variables.annotations[?'cryptobroker.io/profiles.' + n].or(variables.annotations[?'cryptobroker.io/profiles']).orValue('')
    .split(',', 101).map(p, p.trim()).join(',')).join(';')
{{- if eq .Values.injection.mode "policy" }}
# Kubernetes declares the field UID and gives it as uid.
- name: home
  expression: dyn(namespaceObject).metadata
{{- end }}
- name: logLevel
  expression: variables.annotations[?'cryptobroker.io/log-level'].orValue(params.spec.?logLevel.orValue(''))
- name: arguments
  expression: >-
    params.spec.firstArguments.map(a, string(a)) +
    ['--callers=' + variables.callers.join(','), '--socket-group=' + string(params.spec.socketGroup)] +
    {{- if eq .Values.injection.mode "policy" }}
    (params.spec.?cluster.orValue('') == '' ? [] : ['--profiles-audience=' + string(params.spec.cluster) + '/' + variables.home.name + '/' + variables.home.uid]) +
    (variables.opensPort ? ['--status-address=:' + string(variables.statusPort)] : []) +
    {{- end }}
    (variables.logLevel == '' ? [] : ['--log-level=' + variables.logLevel]) +
    (params.spec.?requireFIPS.orValue(false) ? ['--require-fips'] : []) +
    (variables.allowed == '' ? [] : ['--caller-profiles=' + variables.allowed]) +
    (size(variables.keys) == 0 ? [] : ['--keys-dir=/etc/crypto-broker/keys']) +
    (variables.sharesProcesses ? ['--shared-identity'] : [])
{{- end }}
