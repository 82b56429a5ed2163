{{/*
SPDX-License-Identifier: Apache-2.0
Arguments of the operator about the traces of brokers; none where there is no
endpoint. A sentence of this chart says more than the pattern of a schema.
*/}}
{{- define "crypto-broker-operator.traces" -}}
{{- with .Values.broker.traces }}
{{- if .endpoint }}
{{- if and (hasPrefix "https:" .endpoint) (not (contains "-----BEGIN CERTIFICATE-----" .caBundle)) }}
{{- fail (printf "broker.traces.caBundle has no certificate, expected PEM with the certificate authorities of %q, because the broker's image has no authorities" .endpoint) }}
{{- end }}
{{- if contains "PRIVATE KEY-----" .caBundle }}
{{- fail "broker.traces.caBundle has a private key, expected PEM with certificates alone" }}
{{- end }}
{{- if and .caBundle (not (hasPrefix "https:" .endpoint)) }}
{{- fail (printf "broker.traces.caBundle is set, expected nothing, because broker.traces.endpoint is %q, which does not begin with https://" .endpoint) }}
{{- end }}
{{- if not (regexMatch `^https?://([A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])(:(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}))?(/[^?#$@%[:space:]]*)?$` .endpoint) }}
{{- fail (printf "broker.traces.endpoint is %q, expected a URL such as http://collector.observability:4317, without user, query, fragment, %% and $" .endpoint) }}
{{- end }}
{{- if and (eq .protocol "grpc") (regexMatch "^https?://[^/]+/+[^/]" .endpoint) }}
{{- fail (printf "broker.traces.endpoint is %q, expected one without a path, which broker.traces.protocol=grpc does not have" .endpoint) }}
{{- end -}}
- {{ printf "--broker-traces-endpoint=%s" .endpoint | quote }}
{{- with .caBundle }}
- {{ printf "--broker-traces-ca-bundle=%s" . | replace "$" "$$" | quote }}
{{- end }}
- --broker-traces-protocol={{ .protocol }}
- --broker-traces-sampler={{ .sampler }}
- --broker-traces-sampler-argument={{ .samplerArgument }}
{{- end }}
{{- end }}
{{- end }}
