{{/*
SPDX-License-Identifier: Apache-2.0
Made from the table in webhook/injection/pod_options.go by hack/generate/annotations. Do not edit.
*/}}
{{- define "crypto-broker-operator.injection.annotationVariables" -}}
- name: askedInject
  expression: >-
    ['cryptobroker.io/inject'].filter(a, a in variables.annotations)
- name: usableInject
  expression: >-
    variables.askedInject.filter(a, [variables.annotations[a]].all(value,
    value in ['true', 'false']))
- name: askedProfiles
  expression: >-
    ['cryptobroker.io/profiles'].filter(a, a in variables.annotations)
- name: usableProfiles
  expression: >-
    variables.askedProfiles.filter(a, [variables.annotations[a]].all(value,
    [value.split(',', 101).map(item, item.trim())].all(list, size(list) <= 100 && size(list.distinct()) == size(list) &&
    list.all(value, size(bytes(value)) <= 64 && value.matches(r'^[\pL\pM\pN\pP\pS ]+$') && !value.matches('[;$]')))))
- name: askedProfilesOfContainer
  expression: >-
    variables.annotations.filter(a, a.startsWith('cryptobroker.io/profiles.'))
- name: usableProfilesOfContainer
  expression: >-
    variables.askedProfilesOfContainer.filter(a, [variables.annotations[a]].all(value,
    [value.split(',', 101).map(item, item.trim())].all(list, size(list) <= 100 && size(list.distinct()) == size(list) &&
    list.all(value, size(bytes(value)) <= 64 && value.matches(r'^[\pL\pM\pN\pP\pS ]+$') && !value.matches('[;$]')))))
- name: askedContainers
  expression: >-
    ['cryptobroker.io/containers'].filter(a, a in variables.annotations)
- name: usableContainers
  expression: >-
    variables.askedContainers.filter(a, [variables.annotations[a]].all(value,
    [value.split(',', 101).map(item, item.trim())].all(list, size(list) <= 100 && size(list.distinct()) == size(list) &&
    list.all(value, value != ''))))
- name: askedSocketPath
  expression: >-
    ['cryptobroker.io/socket-path'].filter(a, a in variables.annotations)
- name: usableSocketPath
  expression: >-
    variables.askedSocketPath.filter(a, [variables.annotations[a]].all(value,
    size(bytes(value)) <= 81 && value.matches(r'^(/[\pL\pM\pN\pP\pS ]+)+$') &&
    !value.matches('//|/$|[:$]|/[.]{1,2}(/|$)|^(/proc|/sys|/dev)(/|$)')))
- name: askedCpuRequest
  expression: >-
    ['cryptobroker.io/cpu-request'].filter(a, a in variables.annotations)
- name: usableCpuRequest
  expression: >-
    variables.askedCpuRequest.filter(a, [variables.annotations[a]].all(value,
    isQuantity(value) && [quantity(value)].all(q, q.compareTo(quantity('1m')) >= 0 && q.compareTo(quantity('10k')) <= 0 &&
    q.compareTo(quantity(string(int(q.asApproximateFloat() * 1000.0 + 0.5)) + 'm')) == 0)))
- name: askedCpuLimit
  expression: >-
    ['cryptobroker.io/cpu-limit'].filter(a, a in variables.annotations)
- name: usableCpuLimit
  expression: >-
    variables.askedCpuLimit.filter(a, [variables.annotations[a]].all(value,
    isQuantity(value) && [quantity(value)].all(q, q.compareTo(quantity('1m')) >= 0 && q.compareTo(quantity('10k')) <= 0 &&
    q.compareTo(quantity(string(int(q.asApproximateFloat() * 1000.0 + 0.5)) + 'm')) == 0)))
- name: askedMemoryRequest
  expression: >-
    ['cryptobroker.io/memory-request'].filter(a, a in variables.annotations)
- name: usableMemoryRequest
  expression: >-
    variables.askedMemoryRequest.filter(a, [variables.annotations[a]].all(value,
    isQuantity(value) && [quantity(value)].all(q, q.compareTo(quantity('32Mi')) >= 0 && q.compareTo(quantity('1Pi')) <= 0 &&
    q.compareTo(quantity(string(int(q.asApproximateFloat() * 1.0 + 0.5)) + '')) == 0)))
- name: askedMemoryLimit
  expression: >-
    ['cryptobroker.io/memory-limit'].filter(a, a in variables.annotations)
- name: usableMemoryLimit
  expression: >-
    variables.askedMemoryLimit.filter(a, [variables.annotations[a]].all(value,
    isQuantity(value) && [quantity(value)].all(q, q.compareTo(quantity('32Mi')) >= 0 && q.compareTo(quantity('1Pi')) <= 0 &&
    q.compareTo(quantity(string(int(q.asApproximateFloat() * 1.0 + 0.5)) + '')) == 0)))
- name: askedLogLevel
  expression: >-
    ['cryptobroker.io/log-level'].filter(a, a in variables.annotations)
- name: usableLogLevel
  expression: >-
    variables.askedLogLevel.filter(a, [variables.annotations[a]].all(value,
    value in ['debug', 'info', 'warn', 'error']))
- name: askedTracesSampler
  expression: >-
    ['cryptobroker.io/traces-sampler'].filter(a, a in variables.annotations)
- name: usableTracesSampler
  expression: >-
    variables.askedTracesSampler.filter(a, [variables.annotations[a]].all(value,
    value in ['always_on', 'always_off', 'traceidratio', 'parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio']))
- name: askedTracesRatio
  expression: >-
    ['cryptobroker.io/traces-ratio'].filter(a, a in variables.annotations)
- name: usableTracesRatio
  expression: >-
    variables.askedTracesRatio.filter(a, [variables.annotations[a]].all(value,
    value.matches('^(0|1|0[.][0-9]{1,9})$')))
- name: askedMetricsPort
  expression: >-
    ['cryptobroker.io/metrics-port'].filter(a, a in variables.annotations)
- name: usableMetricsPort
  expression: >-
    variables.askedMetricsPort.filter(a, [variables.annotations[a]].all(value,
    value.matches('^0*[1-9][0-9]{3,4}$') && int(value) >= 1024 && int(value) <= 65535))
- name: askedSessionGateway
  expression: >-
    ['cryptobroker.io/session-gateway'].filter(a, a in variables.annotations)
- name: usableSessionGateway
  expression: >-
    variables.askedSessionGateway.filter(a, [variables.annotations[a]].all(value,
    value.matches('^[1-9][0-9]{0,4}:[1-9][0-9]{0,4}$') && [value.split(':', 3).map(p, int(p))].all(ports,
    ports[0] >= 1024 && ports[0] <= 65535 && ports[1] <= 65535 && ports[0] != ports[1])))
- name: askedSessionProfile
  expression: >-
    ['cryptobroker.io/session-profile'].filter(a, a in variables.annotations)
- name: usableSessionProfile
  expression: >-
    variables.askedSessionProfile.filter(a, [variables.annotations[a]].all(value,
    size(bytes(value)) <= 64 && value.matches(r'^[\pL\pM\pN\pP\pS ]+$') && !value.matches('[,;$]')))
- name: askedSessionPlainPaths
  expression: >-
    ['cryptobroker.io/session-plain-paths'].filter(a, a in variables.annotations)
- name: usableSessionPlainPaths
  expression: >-
    variables.askedSessionPlainPaths.filter(a, [variables.annotations[a]].all(value,
    size(bytes(value)) <= 2048 && value.matches('^(/[.]?[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+(,(/[.]?[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+)*$') && !value.matches('(^|,)(/session/init|/health)(,|$)')))
- name: askedSessionRedis
  expression: >-
    ['cryptobroker.io/session-redis'].filter(a, a in variables.annotations)
- name: usableSessionRedis
  expression: >-
    variables.askedSessionRedis.filter(a, [variables.annotations[a]].all(value,
    !format.dns1123Subdomain().validate(value).hasValue()))
- name: askedKeys
  expression: >-
    ['cryptobroker.io/keys'].filter(a, a in variables.annotations)
- name: usableKeys
  expression: >-
    variables.askedKeys.filter(a, [variables.annotations[a]].all(value,
    [value.split(',', 101).map(item, item.trim())].all(list, size(list) <= 100 && size(list.distinct()) == size(list) &&
    list.all(value, !format.dns1123Subdomain().validate(value).hasValue()))))
- name: askedImage
  expression: >-
    ['cryptobroker.io/image'].filter(a, a in variables.annotations)
- name: usableImage
  expression: >-
    variables.askedImage.filter(a, [variables.annotations[a]].all(value,
    true))
- name: askedImagePullSecret
  expression: >-
    ['cryptobroker.io/image-pull-secret'].filter(a, a in variables.annotations)
- name: usableImagePullSecret
  expression: >-
    variables.askedImagePullSecret.filter(a, [variables.annotations[a]].all(value,
    !format.dns1123Subdomain().validate(value).hasValue()))
- name: unknown
  expression: >-
    variables.annotations.filter(a, a.startsWith('cryptobroker.io/') &&
    !(a in ['cryptobroker.io/injected', 'cryptobroker.io/profiles-snapshot', 'cryptobroker.io/profiles-snapshot-signature', 'cryptobroker.io/profiles-digest']) &&
    !(a in variables.askedInject) &&
    !(a in variables.askedProfiles) &&
    !(a in variables.askedProfilesOfContainer) &&
    !(a in variables.askedContainers) &&
    !(a in variables.askedSocketPath) &&
    !(a in variables.askedCpuRequest) &&
    !(a in variables.askedCpuLimit) &&
    !(a in variables.askedMemoryRequest) &&
    !(a in variables.askedMemoryLimit) &&
    !(a in variables.askedLogLevel) &&
    !(a in variables.askedTracesSampler) &&
    !(a in variables.askedTracesRatio) &&
    !(a in variables.askedMetricsPort) &&
    !(a in variables.askedSessionGateway) &&
    !(a in variables.askedSessionProfile) &&
    !(a in variables.askedSessionPlainPaths) &&
    !(a in variables.askedSessionRedis) &&
    !(a in variables.askedKeys) &&
    !(a in variables.askedImage) &&
    !(a in variables.askedImagePullSecret))
- name: podProfiles
  expression: >-
    size(variables.usableProfiles) == 0 ? [] : variables.annotations['cryptobroker.io/profiles'].split(',', 101).map(n, n.trim())
- name: listed
  expression: >-
    size(variables.askedContainers) == 0 ? variables.names : variables.annotations['cryptobroker.io/containers'].split(',', 101).map(n, n.trim())
- name: socketDirectory
  expression: >-
    size(variables.usableSocketPath) == 0 ? '/tmp/open-crypto-broker' : variables.annotations['cryptobroker.io/socket-path']
- name: amounts
  expression: >-
    (variables.usableCpuRequest + variables.usableCpuLimit + variables.usableMemoryRequest + variables.usableMemoryLimit)
    .map(a, a.substring(16))
- name: exceeded
  expression: >-
    ['cpu', 'memory'].filter(r, variables.amounts.exists(a, a.startsWith(r)) && [['request', 'limit'].map(k, quantity(r + '-' + k in variables.amounts
    ? variables.annotations['cryptobroker.io/' + r + '-' + k]
    : string(params.spec.container.?resources[?(k + 's')][?r].orValue('0'))))].exists(q,
    sign(q[1]) > 0 && q[0].isGreaterThan(q[1])))
- name: statusPort
  expression: >-
    size(variables.usableMetricsPort) == 0 ? int(params.spec.statusPort) : int(variables.annotations['cryptobroker.io/metrics-port'])
- name: declarers
  expression: >-
    variables.initContainers.filter(c, c.name != 'crypto-broker' && c.?ports.orValue([]).exists(p,
    int(p.containerPort) == variables.statusPort && !(p.?protocol.orValue('TCP') in ['UDP', 'SCTP']))).map(c, c.name) +
    object.spec.containers.filter(c, c.?ports.orValue([]).exists(p,
    int(p.containerPort) == variables.statusPort && !(p.?protocol.orValue('TCP') in ['UDP', 'SCTP']))).map(c, c.name)
- name: opensPort
  expression: >-
    !variables.hostNetwork && size(variables.declarers) == 0
- name: sessionPorts
  expression: >-
    size(variables.usableSessionGateway) == 0 ? [] : variables.annotations['cryptobroker.io/session-gateway'].split(':', 3).map(p, int(p))
- name: sessionDeclarers
  expression: >-
    size(variables.sessionPorts) == 0 ? [] : variables.initContainers.filter(c, c.name != 'crypto-broker' && c.?ports.orValue([]).exists(p,
    int(p.containerPort) == variables.sessionPorts[0] && !(p.?protocol.orValue('TCP') in ['UDP', 'SCTP']))).map(c, c.name) +
    object.spec.containers.filter(c, c.?ports.orValue([]).exists(p,
    int(p.containerPort) == variables.sessionPorts[0] && !(p.?protocol.orValue('TCP') in ['UDP', 'SCTP']))).map(c, c.name)
- name: sessionProfile
  expression: >-
    size(variables.usableSessionProfile) == 0 ? 'Session' : variables.annotations['cryptobroker.io/session-profile']
- name: redisSecret
  expression: >-
    size(variables.usableSessionRedis) == 0 ? '' : variables.annotations['cryptobroker.io/session-redis']
- name: keys
  expression: >-
    size(variables.usableKeys) == 0 ? [] : variables.annotations['cryptobroker.io/keys'].split(',', 101).map(n, n.trim())
- name: images
  expression: >-
    [string(params.spec.container.image)] + params.spec.?allowedImages.orValue([]).map(i, string(i))
- name: image
  expression: >-
    size(variables.askedImage) == 0 || !(variables.annotations['cryptobroker.io/image'] in variables.images) ? variables.images[0]
    : variables.annotations['cryptobroker.io/image']
- name: pullSecret
  expression: >-
    size(variables.usableImagePullSecret) == 0 ? '' : variables.annotations['cryptobroker.io/image-pull-secret']
{{- end }}
{{- define "crypto-broker-operator.injection.annotationRefusals" -}}
- expression: >-
    size(variables.unknown) == 0
  messageExpression: >-
    'metadata.annotations[' + variables.unknown[0] + ']: found an unknown annotation; ' +
    'expected one of cryptobroker.io/inject, profiles, profiles.<container>, containers, socket-path, cpu-request, cpu-limit, memory-request, memory-limit, log-level, traces-sampler, traces-ratio, metrics-port, session-gateway, session-profile, session-plain-paths, session-redis, keys, image, image-pull-secret'
- expression: >-
    !variables.askedInject.exists(annotation, !(annotation in variables.usableInject))
  messageExpression: >-
    variables.askedInject.filter(annotation, !(annotation in variables.usableInject)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected "true" to get a broker or "false" to get none')[0]
- expression: >-
    !variables.askedProfiles.exists(annotation, !(annotation in variables.usableProfiles))
  messageExpression: >-
    variables.askedProfiles.filter(annotation, !(annotation in variables.usableProfiles)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected names of profiles separated by commas, at most 100 and each of them once, of at most 64 bytes in printable characters, without a semicolon or a dollar sign')[0]
- expression: >-
    !variables.askedProfilesOfContainer.exists(annotation, !(annotation in variables.usableProfilesOfContainer))
  messageExpression: >-
    variables.askedProfilesOfContainer.filter(annotation, !(annotation in variables.usableProfilesOfContainer)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected names of profiles separated by commas, at most 100 and each of them once, of at most 64 bytes in printable characters, without a semicolon or a dollar sign')[0]
- expression: >-
    !variables.askedContainers.exists(annotation, !(annotation in variables.usableContainers))
  messageExpression: >-
    variables.askedContainers.filter(annotation, !(annotation in variables.usableContainers)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected names of containers separated by commas, at most 100 and each of them once')[0]
- expression: >-
    !variables.askedSocketPath.exists(annotation, !(annotation in variables.usableSocketPath))
  messageExpression: >-
    variables.askedSocketPath.filter(annotation, !(annotation in variables.usableSocketPath)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected an absolute path such as /tmp/open-crypto-broker, at most 81 bytes in printable characters, without a colon or a dollar sign, without //, /./, /../ or a slash at the end, and outside of /proc, /sys, /dev')[0]
- expression: >-
    !variables.askedCpuRequest.exists(annotation, !(annotation in variables.usableCpuRequest))
  messageExpression: >-
    variables.askedCpuRequest.filter(annotation, !(annotation in variables.usableCpuRequest)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected an amount of CPU from 1m to 10k, in whole thousandths, such as 100m or 1')[0]
- expression: >-
    !variables.askedCpuLimit.exists(annotation, !(annotation in variables.usableCpuLimit))
  messageExpression: >-
    variables.askedCpuLimit.filter(annotation, !(annotation in variables.usableCpuLimit)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected an amount of CPU from 1m to 10k, in whole thousandths, such as 100m or 1')[0]
- expression: >-
    !variables.askedMemoryRequest.exists(annotation, !(annotation in variables.usableMemoryRequest))
  messageExpression: >-
    variables.askedMemoryRequest.filter(annotation, !(annotation in variables.usableMemoryRequest)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected an amount of memory from 32Mi to 1Pi, in whole bytes, such as 64Mi or 1Gi: an idle broker takes half of 32Mi, and requests take more')[0]
- expression: >-
    !variables.askedMemoryLimit.exists(annotation, !(annotation in variables.usableMemoryLimit))
  messageExpression: >-
    variables.askedMemoryLimit.filter(annotation, !(annotation in variables.usableMemoryLimit)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected an amount of memory from 32Mi to 1Pi, in whole bytes, such as 64Mi or 1Gi: an idle broker takes half of 32Mi, and requests take more')[0]
- expression: >-
    !variables.askedLogLevel.exists(annotation, !(annotation in variables.usableLogLevel))
  messageExpression: >-
    variables.askedLogLevel.filter(annotation, !(annotation in variables.usableLogLevel)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected debug, info, warn or error')[0]
- expression: >-
    !variables.askedTracesSampler.exists(annotation, !(annotation in variables.usableTracesSampler))
  messageExpression: >-
    variables.askedTracesSampler.filter(annotation, !(annotation in variables.usableTracesSampler)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off or parentbased_traceidratio')[0]
- expression: >-
    !variables.askedTracesRatio.exists(annotation, !(annotation in variables.usableTracesRatio))
  messageExpression: >-
    variables.askedTracesRatio.filter(annotation, !(annotation in variables.usableTracesRatio)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected a number from 0 to 1 such as 0.01, with at most 9 digits behind the point')[0]
- expression: >-
    !variables.askedMetricsPort.exists(annotation, !(annotation in variables.usableMetricsPort))
  messageExpression: >-
    variables.askedMetricsPort.filter(annotation, !(annotation in variables.usableMetricsPort)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected a port from 1024 to 65535')[0]
- expression: >-
    !variables.askedSessionGateway.exists(annotation, !(annotation in variables.usableSessionGateway))
  messageExpression: >-
    variables.askedSessionGateway.filter(annotation, !(annotation in variables.usableSessionGateway)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected two different ports such as 8443:8080, the first from 1024 to 65535 and the second from 1 to 65535')[0]
- expression: >-
    !variables.askedSessionProfile.exists(annotation, !(annotation in variables.usableSessionProfile))
  messageExpression: >-
    variables.askedSessionProfile.filter(annotation, !(annotation in variables.usableSessionProfile)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected the name of a profile, of at most 64 bytes in printable characters, without a comma, a semicolon or a dollar sign')[0]
- expression: >-
    !variables.askedSessionPlainPaths.exists(annotation, !(annotation in variables.usableSessionPlainPaths))
  messageExpression: >-
    variables.askedSessionPlainPaths.filter(annotation, !(annotation in variables.usableSessionPlainPaths)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected paths such as /healthz,/readyz, at most 2048 bytes: letters, digits and . _ ~ - between slashes, no spaces, no slash at the end, and not /session/init or /health, which the session gateway serves itself')[0]
- expression: >-
    !variables.askedSessionRedis.exists(annotation, !(annotation in variables.usableSessionRedis))
  messageExpression: >-
    variables.askedSessionRedis.filter(annotation, !(annotation in variables.usableSessionRedis)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected the name of a Secret in the pod\'s namespace')[0]
- expression: >-
    !variables.askedKeys.exists(annotation, !(annotation in variables.usableKeys))
  messageExpression: >-
    variables.askedKeys.filter(annotation, !(annotation in variables.usableKeys)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected names of Secrets in the pod\'s namespace separated by commas, at most 100 and each of them once, of lower-case letters, digits, hyphens and dots')[0]
- expression: >-
    !variables.askedImagePullSecret.exists(annotation, !(annotation in variables.usableImagePullSecret))
  messageExpression: >-
    variables.askedImagePullSecret.filter(annotation, !(annotation in variables.usableImagePullSecret)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected the name of a Secret in the pod\'s namespace')[0]
- expression: >-
    !variables.askedProfilesOfContainer.exists(annotation, size(variables.callers) > 0 && !(annotation.substring(25) in variables.names && annotation.substring(25) in variables.callers))
  messageExpression: >-
    variables.askedProfilesOfContainer.filter(annotation, size(variables.callers) > 0 && !(annotation.substring(25) in variables.names && annotation.substring(25) in variables.callers)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected no such annotation: of the pod\'s containers these get a socket: ' + variables.callers.join(', ') + '; a container that another injector adds later is named in cryptobroker.io/containers, too')[0]
- expression: >-
    !variables.askedProfilesOfContainer.exists(annotation, variables.sharesProcesses)
  messageExpression: >-
    variables.askedProfilesOfContainer.filter(annotation, variables.sharesProcesses).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected no such annotation: ' + (object.spec.?hostPID.orValue(false) ? 'spec.hostPID' : 'spec.shareProcessNamespace') + ' lets the pod\'s containers act for each other, so that the broker can\'t tell them apart; cryptobroker.io/profiles holds for all of them')[0]
- expression: >-
    !variables.askedProfilesOfContainer.exists(annotation, size(variables.usableProfiles) > 0 &&
    !variables.annotations[annotation].split(',', 101).all(p, p.trim() in variables.podProfiles))
  messageExpression: >-
    variables.askedProfilesOfContainer.filter(annotation, size(variables.usableProfiles) > 0 &&
    !variables.annotations[annotation].split(',', 101).all(p, p.trim() in variables.podProfiles)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected some of the profiles in cryptobroker.io/profiles; ' + strings.quote(variables.annotations[annotation].split(',', 101).map(p, p.trim())
    .filter(p, !(p in variables.podProfiles))[0]) + ' is not among them')[0]
- expression: >-
    !variables.askedContainers.exists(annotation, !variables.listed.all(n, n in variables.names))
  messageExpression: >-
    variables.askedContainers.filter(annotation, !variables.listed.all(n, n in variables.names)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected names of containers of the pod, which are ' + variables.names.join(', ') + '; it has no ' + strings.quote(variables.listed.filter(n, !(n in variables.names))[0]))[0]
- expression: >-
    !variables.askedCpuRequest.exists(annotation, variables.podResources)
  messageExpression: >-
    variables.askedCpuRequest.filter(annotation, variables.podResources).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected no such annotation: the pod has resources as a whole (spec.resources), of which its broker takes a part')[0]
- expression: >-
    !variables.askedCpuRequest.exists(annotation, 'cpu' in variables.exceeded)
  messageExpression: >-
    variables.askedCpuRequest.filter(annotation, 'cpu' in variables.exceeded).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected at most the limit of the broker, ' + variables.annotations[?'cryptobroker.io/cpu-limit'].orValue(string(params.spec.container.?resources[?'limits'][?'cpu'].orValue('0'))) + ', or additionally a higher ' + 'cryptobroker.io/cpu-limit')[0]
- expression: >-
    !variables.askedCpuLimit.exists(annotation, variables.podResources)
  messageExpression: >-
    variables.askedCpuLimit.filter(annotation, variables.podResources).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected no such annotation: the pod has resources as a whole (spec.resources), of which its broker takes a part')[0]
- expression: >-
    !variables.askedCpuLimit.exists(annotation, 'cpu' in variables.exceeded && !('cryptobroker.io/cpu-request' in variables.annotations))
  messageExpression: >-
    variables.askedCpuLimit.filter(annotation, 'cpu' in variables.exceeded && !('cryptobroker.io/cpu-request' in variables.annotations)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected at least the request of the broker, ' + variables.annotations[?'cryptobroker.io/cpu-request'].orValue(string(params.spec.container.?resources[?'requests'][?'cpu'].orValue('0'))) + ', or additionally a lower ' + 'cryptobroker.io/cpu-request')[0]
- expression: >-
    !variables.askedMemoryRequest.exists(annotation, variables.podResources)
  messageExpression: >-
    variables.askedMemoryRequest.filter(annotation, variables.podResources).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected no such annotation: the pod has resources as a whole (spec.resources), of which its broker takes a part')[0]
- expression: >-
    !variables.askedMemoryRequest.exists(annotation, 'memory' in variables.exceeded)
  messageExpression: >-
    variables.askedMemoryRequest.filter(annotation, 'memory' in variables.exceeded).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected at most the limit of the broker, ' + variables.annotations[?'cryptobroker.io/memory-limit'].orValue(string(params.spec.container.?resources[?'limits'][?'memory'].orValue('0'))) + ', or additionally a higher ' + 'cryptobroker.io/memory-limit')[0]
- expression: >-
    !variables.askedMemoryLimit.exists(annotation, variables.podResources)
  messageExpression: >-
    variables.askedMemoryLimit.filter(annotation, variables.podResources).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected no such annotation: the pod has resources as a whole (spec.resources), of which its broker takes a part')[0]
- expression: >-
    !variables.askedMemoryLimit.exists(annotation, 'memory' in variables.exceeded && !('cryptobroker.io/memory-request' in variables.annotations))
  messageExpression: >-
    variables.askedMemoryLimit.filter(annotation, 'memory' in variables.exceeded && !('cryptobroker.io/memory-request' in variables.annotations)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected at least the request of the broker, ' + variables.annotations[?'cryptobroker.io/memory-request'].orValue(string(params.spec.container.?resources[?'requests'][?'memory'].orValue('0'))) + ', or additionally a lower ' + 'cryptobroker.io/memory-request')[0]
- expression: >-
    !variables.askedTracesRatio.exists(annotation, size(variables.askedTracesSampler) == 0 || !(variables.annotations['cryptobroker.io/traces-sampler'] in ['traceidratio', 'parentbased_traceidratio']))
  messageExpression: >-
    variables.askedTracesRatio.filter(annotation, size(variables.askedTracesSampler) == 0 || !(variables.annotations['cryptobroker.io/traces-sampler'] in ['traceidratio', 'parentbased_traceidratio'])).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected cryptobroker.io/traces-sampler beside it, with traceidratio or parentbased_traceidratio')[0]
- expression: >-
    !variables.askedMetricsPort.exists(annotation, variables.hostNetwork)
  messageExpression: >-
    variables.askedMetricsPort.filter(annotation, variables.hostNetwork).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected no such annotation: the pod uses the host\'s network, where its broker opens no port')[0]
- expression: >-
    !variables.askedMetricsPort.exists(annotation, !variables.hostNetwork && size(variables.declarers) > 0)
  messageExpression: >-
    variables.askedMetricsPort.filter(annotation, !variables.hostNetwork && size(variables.declarers) > 0).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected a port that no other container declares, as container ' + strings.quote(variables.declarers[0]) + ' does')[0]
- expression: >-
    !variables.askedSessionGateway.exists(annotation, variables.hostNetwork)
  messageExpression: >-
    variables.askedSessionGateway.filter(annotation, variables.hostNetwork).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected no such annotation: the pod uses the host\'s network, where its broker opens no port')[0]
- expression: >-
    !variables.askedSessionGateway.exists(annotation, !variables.hostNetwork && size(variables.sessionDeclarers) > 0)
  messageExpression: >-
    variables.askedSessionGateway.filter(annotation, !variables.hostNetwork && size(variables.sessionDeclarers) > 0).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected a first port that no other container declares, as container ' + strings.quote(variables.sessionDeclarers[0]) + ' does')[0]
- expression: >-
    !variables.askedSessionGateway.exists(annotation, variables.opensPort && variables.statusPort in variables.sessionPorts)
  messageExpression: >-
    variables.askedSessionGateway.filter(annotation, variables.opensPort && variables.statusPort in variables.sessionPorts).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected ports other than ' + string(variables.statusPort) + ', the status port of the broker')[0]
- expression: >-
    !variables.askedSessionGateway.exists(annotation, size(variables.usableProfiles) > 0 && !(variables.sessionProfile in variables.podProfiles))
  messageExpression: >-
    variables.askedSessionGateway.filter(annotation, size(variables.usableProfiles) > 0 && !(variables.sessionProfile in variables.podProfiles)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected ' + strings.quote(variables.sessionProfile) + ' among the profiles in cryptobroker.io/profiles, or one of them in cryptobroker.io/session-profile')[0]
- expression: >-
    !variables.askedSessionProfile.exists(annotation, size(variables.askedSessionGateway) == 0)
  messageExpression: >-
    variables.askedSessionProfile.filter(annotation, size(variables.askedSessionGateway) == 0).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected no such annotation: the pod has no session gateway, which cryptobroker.io/session-gateway asks for')[0]
- expression: >-
    !variables.askedSessionPlainPaths.exists(annotation, size(variables.askedSessionGateway) == 0)
  messageExpression: >-
    variables.askedSessionPlainPaths.filter(annotation, size(variables.askedSessionGateway) == 0).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected no such annotation: the pod has no session gateway, which cryptobroker.io/session-gateway asks for')[0]
- expression: >-
    !variables.askedImage.exists(annotation, !(variables.annotations[annotation] in variables.images))
  messageExpression: >-
    variables.askedImage.filter(annotation, !(variables.annotations[annotation] in variables.images)).map(annotation,
    'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +
    ', expected one of the images that the operator allows, letter by letter: ' + variables.images.join(', '))[0]
{{- end }}
{{- define "crypto-broker-operator.injection.annotationArguments" -}}
- name: annotationArguments
  expression: >-
    [['--log-level=', variables.annotations[?'cryptobroker.io/log-level'].orValue(string(params.spec.?logLevel.orValue('')))],
    ['--traces-sampler=', variables.annotations[?'cryptobroker.io/traces-sampler'].orValue('')],
    ['--traces-sampler-arg=', variables.annotations[?'cryptobroker.io/traces-ratio'].orValue('')],
    ['--session-gateway=', variables.annotations[?'cryptobroker.io/session-gateway'].orValue('')],
    ['--session-gateway-profile=', variables.annotations[?'cryptobroker.io/session-profile'].orValue('')],
    ['--session-gateway-plain=', variables.annotations[?'cryptobroker.io/session-plain-paths'].orValue('')]]
    .filter(a, a[1] != '').map(a, a[0] + a[1])
{{- end }}
