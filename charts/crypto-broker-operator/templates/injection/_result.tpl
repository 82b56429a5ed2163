{{/*
SPDX-License-Identifier: Apache-2.0
The checks of a pod with a broker after all mutations, for the webhook and for policies.
*/}}
{{- define "crypto-broker-operator.injection.broker" -}}
- name: brokers
  expression: variables.initContainers.filter(c, c.name == 'crypto-broker')
# The callers that the broker got at injection. Other injectors may have added
# containers later, which have no socket.
- name: told
  expression: >-
    variables.brokers.map(c, c.?args.orValue([]).filter(a, a.startsWith('--callers=')).map(a, a.substring(10)).join(',')).join(',')
- name: callers
  expression: "variables.told == '' ? [] : variables.told.split(',')"
- name: containers
  expression: >-
    variables.initContainers.filter(c, c.name != 'crypto-broker').map(c, {'name': dyn(c.name), 'mounts': dyn(c.?volumeMounts.orValue([]))}) +
    object.spec.containers.map(c, {'name': dyn(c.name), 'mounts': dyn(c.?volumeMounts.orValue([]))})
- name: volumes
  expression: >-
    object.spec.?volumes.orValue([]).filter(v, v.name in ['crypto-broker-socket', 'crypto-broker-profiles', 'crypto-broker-session-redis', 'crypto-broker-key-gateway'] || v.name.startsWith('crypto-broker-keys-'))
# The order counts, because a value can refer only to variables before it.
- name: variableNames
  expression: dyn(params.spec).container.?env.orValue([]).map(e, e.name)
{{- if eq .Values.injection.mode "policy" }}
# Arguments that may differ. While an upgrade replaces the webhook by the policies, the
# webhook still injects, and adds a revision.
- name: loose
  expression: "['--lowest-revision=']"
- name: isOfAnother
  expression: "false"
{{- else }}
# The address of the key gateway, if the stamp says that the broker can call it. Whether
# the broker should depends on the profiles of the namespace, which a policy cannot read.
- name: keyGateway
  expression: >-
    has(params.spec.keyGateway) && variables.annotations[?'cryptobroker.io/injected'].orValue('') == string(params.spec.keyGateway.stamp)
    ? string(params.spec.keyGateway.address) : ''
# Arguments that may differ. Replicas of the operator learn of profiles and keys at
# different times, and other injectors may add containers with ports later.
- name: loose
  expression: "['--lowest-revision=', '--trusted-keys=', '--profiles-audience=', '--status-address=']"
# Whether the comparison leaves the pod out. In a rolling upgrade, a replica of another
# version or with other values may have injected the pod, and this policy does not know
# the broker of that replica. The policy named-containers refuses pods that name
# containers which they do not have. The policy has-broker refuses pods without a broker.
- name: isOfAnother
  expression: >-
    size(variables.brokers) != 1 ||
    variables.keyGateway == '' && variables.annotations[?'cryptobroker.io/injected'].orValue('') != string(params.spec.stamp) ||
    'cryptobroker.io/containers' in variables.annotations && !variables.listed.all(n, n in variables.names)
{{- end }}
{{- end }}

{{- define "crypto-broker-operator.injection.result" -}}
{{- $certificates := .Values.keyGateway.brokerCertificates }}
{{- $callsGateway := eq .Values.injection.mode "policy" | ternary "false" "variables.keyGateway != ''" }}
{{- $reserved := eq .Values.injection.mode "policy" | ternary "the name is reserved" "another webhook changes it after the operator's and has to leave it alone" -}}
- expression: >-
    variables.isOfAnother || size(variables.callers) > 0 && variables.callers.all(n, n in variables.names && variables.callers.exists_one(m, m == n)) &&
    variables.brokers.all(c, c.?args.orValue([]).filter(a, !variables.loose.exists(p, a.startsWith(p))) ==
    variables.arguments.filter(a, !variables.loose.exists(p, a.startsWith(p))) &&
    variables.loose.all(p, c.args.filter(a, a.startsWith(p)).size() <= 1) &&
    c.args.all(a, !a.startsWith('--trusted-keys=') || !a.contains(',')))
  message: >-
    spec.initContainers: found arguments of the container "crypto-broker" that are not the ones that are added to the pod, expected those; {{ $reserved }}
- expression: variables.isOfAnother || variables.brokers.all(c, c.?image.orValue('') == variables.image)
  messageExpression: >-
    'spec.initContainers: found the image "' + variables.brokers[0].?image.orValue('') + '" of the container "crypto-broker", expected "' + variables.image + '"; {{ $reserved | replace "'" "\\'" }}'
  message: >-
    spec.initContainers: found another image of the container "crypto-broker" than the one that is added to the pod, expected that; {{ $reserved }}
- expression: >-
    variables.isOfAnother || variables.brokers.all(c,
    c.?restartPolicy.orValue('') == 'Always' && !has(c.command) && !has(c.envFrom) && !has(c.lifecycle) && !has(c.workingDir) &&
    !has(c.livenessProbe) && !has(c.readinessProbe) && !has(c.volumeDevices) && !has(dyn(c).restartPolicyRules) &&
    size(c.?resources.?claims.orValue([])) == 0 &&
    !c.?stdin.orValue(false) && !c.?tty.orValue(false) && c.?terminationMessagePath.orValue('/dev/termination-log') == '/dev/termination-log' &&
    c.?ports.orValue([]).all(p, p.?name.orValue('') in ['broker-status', 'broker-session'] && !has(p.hostPort)) &&
    has(c.startupProbe) && !has(c.startupProbe.tcpSocket) && !has(c.startupProbe.grpc) &&
    (!has(c.startupProbe.exec) || c.startupProbe.exec.?command.orValue([]) ==
    ['/broker', 'health', '--socket', '/run/broker/' + variables.callers[0] + '/crypto-broker-server.sock']) &&
    c.?env.orValue([]).all(e, e.name != 'GODEBUG' && !e.name.startsWith('LD_') && !e.name.startsWith('OPENSSL_') && (!e.name.startsWith('CRYPTO_BROKER_') || e.name in variables.variableNames)) &&
    dyn(params.spec).container.?env.orValue([]).all(e, c.?env.orValue([]).exists_one(f, f.name == e.name && f.?value.orValue('') == e.?value.orValue('') &&
    f.?valueFrom.?fieldRef.?fieldPath.orValue('') == e.?valueFrom.?fieldRef.?fieldPath.orValue(''))) &&
    c.?env.orValue([]).map(f, f.name).filter(n, n in variables.variableNames) == variables.variableNames &&
    c.?env.orValue([]).all(f, !f.name.startsWith('OTEL_') || dyn(params.spec).container.?env.orValue([]).exists(e, e.name == f.name)) &&
    has(c.securityContext) && c.securityContext.?allowPrivilegeEscalation.orValue(true) == false && c.securityContext.?privileged.orValue(true) == false &&
    c.securityContext.?readOnlyRootFilesystem.orValue(false) && c.securityContext.?runAsNonRoot.orValue(false) &&
    c.securityContext.?capabilities.?drop.orValue([]) == ['ALL'] && size(c.securityContext.?capabilities.?add.orValue([])) == 0 &&
    c.securityContext.?seccompProfile.?type.orValue('') == 'RuntimeDefault')
  message: >-
    spec.initContainers: found a container "crypto-broker" that is not the one that is added to the pod, expected that one; {{ $reserved }}
- expression: >-
    variables.isOfAnother || variables.brokers.all(c, c.?volumeMounts.orValue([]).exists_one(m, m.name == 'crypto-broker-socket') &&
    c.volumeMounts.exists_one(m, m.name == 'crypto-broker-profiles') &&
    variables.keys.all(k, c.volumeMounts.exists_one(m, m.mountPath == '/etc/crypto-broker/keys/' + k)) &&
    ((variables.redisSecret != '') == c.volumeMounts.exists_one(m, m.name == 'crypto-broker-session-redis')) &&
    (({{ $callsGateway }}) == c.volumeMounts.exists_one(m, m.name == 'crypto-broker-key-gateway')) &&
    c.volumeMounts.filter(m, variables.volumes.exists(v, v.name == m.name)).all(m, !has(m.subPath) && !has(m.subPathExpr) && (
    m.name == 'crypto-broker-socket' ? m.mountPath == '/run/broker' && !m.?readOnly.orValue(false) :
    m.name == 'crypto-broker-profiles' ? m.mountPath == '/etc/crypto-broker/profiles' :
    m.name == 'crypto-broker-session-redis' ? m.mountPath == '/etc/crypto-broker/session-redis' :
    m.name == 'crypto-broker-key-gateway' ? {{ $callsGateway }} && m.mountPath == '/etc/crypto-broker/key-gateway' :
    m.name.matches('^crypto-broker-keys-[1-9][0-9]{0,2}$') && int(m.name.substring(19)) <= size(variables.keys) &&
    m.mountPath == '/etc/crypto-broker/keys/' + variables.keys[int(m.name.substring(19)) - 1])) &&
    c.volumeMounts.filter(m, !variables.volumes.exists(v, v.name == m.name)).all(m, m.mountPath.startsWith('/') && !m.mountPath.matches('//|/[.]{1,2}(/|$)') &&
    !m.mountPath.matches('^(/|/run|/etc|/etc/ssl|/usr)/?$|^/(broker|run/broker|etc/crypto-broker|lib|lib64|usr/lib|etc/ld[.]so[.](preload|cache)|etc/ssl/(openssl|fipsmodule)[.]cnf)(/|$)')))
  message: >-
    spec.initContainers: found mounts of the container "crypto-broker" that cover its own files, expected only those that are added to the pod; {{ $reserved }}
- expression: >-
    variables.isOfAnother || variables.volumes.all(v,
    v.name == 'crypto-broker-socket' ? v.?emptyDir.?medium.orValue('') == 'Memory' :
    v.name == 'crypto-broker-profiles' ? v.?projected.?sources.orValue([]).filter(s, !has(s.downwardAPI)).map(s, s.?configMap.?name.orValue('')) == ['crypto-broker-profiles'] &&
    v.projected.sources.all(s, has(s.downwardAPI) || !has(s.configMap.items)) && has(v.projected.sources[size(v.projected.sources) - 1].configMap) &&
    v.projected.sources.filter(s, has(s.downwardAPI)).all(s, s.downwardAPI.?items.orValue([]).all(i,
    i.?fieldRef.?fieldPath.orValue('').startsWith("metadata.annotations['cryptobroker.io/profiles-snapshot") ||
    (i.path == 'log-level' && i.?fieldRef.?fieldPath.orValue('') == "metadata.annotations['cryptobroker.io/log-level']"))) :
    v.name == 'crypto-broker-session-redis' ? variables.redisSecret != '' &&
    v.?projected.?sources.orValue([]).map(s, s.?secret.?name.orValue('')) == [variables.redisSecret] && !has(v.projected.sources[0].secret.items) :
    v.name == 'crypto-broker-key-gateway' ? {{ $callsGateway }} && v.?projected.?sources.orValue([]).map(s,
    {{- if $certificates }}
    s.?serviceAccountToken.?audience.orValue('') + ' ' + s.?configMap.?name.orValue('') + ' ' + s.?podCertificate.?signerName.orValue('')) ==
    ['crypto-broker-key-gateway  ', ' crypto-broker-profiles ', '  cryptobroker.io/broker'] &&
    v.projected.sources[2].podCertificate.?credentialBundlePath.orValue('') == 'certificate.pem' &&
    {{- else }}
    s.?serviceAccountToken.?audience.orValue('') + ' ' + s.?configMap.?name.orValue('')) == ['crypto-broker-key-gateway ', ' crypto-broker-profiles'] &&
    {{- end }}
    v.projected.sources[0].serviceAccountToken.path == 'token' &&
    v.projected.sources[1].configMap.?items.orValue([]).map(i, i.key + ' ' + i.path) == ['key-gateway-ca.crt key-gateway-ca.crt'] :
    v.name.matches('^crypto-broker-keys-[1-9][0-9]{0,2}$') && int(v.name.substring(19)) <= size(variables.keys) &&
    v.?projected.?sources.orValue([]).map(s, s.?secret.?name.orValue('')) == [variables.keys[int(v.name.substring(19)) - 1]] &&
    !has(v.projected.sources[0].secret.items))
  message: >-
    spec.volumes: found a volume of the broker that is not the one that is added to the pod, expected that one; the names crypto-broker-socket,
    crypto-broker-profiles, crypto-broker-session-redis, crypto-broker-key-gateway and those that begin with crypto-broker-keys- are reserved
- expression: >-
    variables.isOfAnother || variables.containers.all(c, c.mounts.all(m, !variables.volumes.exists(v, v.name == m.name) || (m.name == 'crypto-broker-socket' &&
    c.name in variables.callers && m.?subPath.orValue('') == c.name && m.?readOnly.orValue(false) && m.mountPath == variables.socketDirectory)))
  message: >-
    spec.containers: found a mount of a volume of the broker that is not the one that is added to the pod, expected none; {{ $reserved }}
- expression: >-
    variables.containers.all(c, !(c.name in variables.callers) || c.mounts.all(m, m.?mountPropagation.orValue('') != 'Bidirectional' ||
    [m.mountPath.split('/').filter(p, p != '' && p != '.')].all(path, !('..' in path) &&
    !(variables.socketDirectory + '/').startsWith('/' + path.map(p, p + '/').join('')))))
  message: >-
    spec.containers: found a mount with mountPropagation Bidirectional above the broker's socket, which takes the socket's mount to the node, where
    it keeps the pod from being removed; expected None or HostToContainer, or another directory in the annotation cryptobroker.io/socket-path
# The annotation of a copied pod may differ, or another injector has changed it later.
- expression: >-
    variables.isOfAnother || !('cryptobroker.io/containers' in variables.annotations) ||
    (variables.listed.all(n, n in variables.callers) && variables.callers.all(n, n in variables.listed))
  messageExpression: >-
    'metadata.annotations[cryptobroker.io/containers]: found "' + variables.annotations['cryptobroker.io/containers'] +
    '", expected the same names as in --callers of the container "crypto-broker", which are ' + variables.callers.join(', ') +
    '; leave the broker out of a copy, and let no injector change the annotation after the broker was added'
  message: >-
    metadata.annotations[cryptobroker.io/containers]: found other names than in --callers of the container "crypto-broker", expected the same
- expression: >-
    variables.isOfAnother || variables.callers.all(n, variables.containers.exists(c, c.name == n && c.mounts.exists_one(m, m.name == 'crypto-broker-socket')))
  messageExpression: >-
    'spec.containers: found no socket in one of the containers ' + variables.callers.join(', ') + ', expected the mount that was added to each of them'
  message: >-
    spec.containers: found no socket in a container that the broker was told of, expected the mount that was added to it
{{- end }}
