{{/*
SPDX-License-Identifier: Apache-2.0
Refuses an endpoint of an OpenTelemetry collector that cannot be used. A sentence of
this chart says more than the pattern of a schema. The context has value (the name of
the value above endpoint and caBundle), whose (image has no authorities), endpoint,
caBundle and protocol.
*/}}
{{- define "crypto-broker-operator.collector" -}}
{{- if and (hasPrefix "https:" .endpoint) (not (contains "-----BEGIN CERTIFICATE-----" .caBundle)) }}
{{- fail (printf "%s.caBundle has no certificate, expected PEM with the certificate authorities of %q, because the %s image has no authorities" .value .endpoint .whose) }}
{{- end }}
{{- if contains "PRIVATE KEY-----" .caBundle }}
{{- fail (printf "%s.caBundle has a private key, expected PEM with only certificates" .value) }}
{{- end }}
{{- if and .caBundle (not (hasPrefix "https:" .endpoint)) }}
{{- fail (printf "%s.caBundle is set, expected nothing, because %s.endpoint is %q, which does not begin with https://" .value .value .endpoint) }}
{{- end }}
{{- if not (regexMatch `^https?://([A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])(:(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}))?(/[^?#$@%[:space:]]*)?$` .endpoint) }}
{{- fail (printf "%s.endpoint is %q, expected a URL such as http://collector.observability:4317, without user, query, fragment, %% and $" .value .endpoint) }}
{{- end }}
{{- if and (eq .protocol "grpc") (regexMatch "^https?://[^/]+/+[^/]" .endpoint) }}
{{- fail (printf "%s.endpoint is %q, expected one without a path, which OTLP over gRPC does not have" .value .endpoint) }}
{{- end }}
{{- end }}
