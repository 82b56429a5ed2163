{{/*
SPDX-License-Identifier: Apache-2.0
A quantity as it was written. A number of a values file is a float here, and a
large one would be printed with an exponent.
*/}}
{{- define "crypto-broker-operator.quantity" -}}
{{- if kindIs "float64" . }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{/*
The number of bytes of a quantity of memory, a decimal number.
*/}}
{{- define "crypto-broker-operator.bytes" -}}
{{- $quantity := include "crypto-broker-operator.quantity" . }}
{{- $factors := dict "" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 }}
{{- mulf (regexFind "^[0-9.]+" $quantity | float64) (get $factors (regexFind "[a-zA-Z]*$" $quantity)) }}
{{- end }}

{{/*
A memory limit of the broker, as a quantity. A limit that is too small for a broker is
refused, as the operator and its webhook refuse it.
*/}}
{{- define "crypto-broker-operator.brokerMemoryLimit" -}}
{{- $limit := include "crypto-broker-operator.quantity" .Values.broker.resources.limits.memory }}
{{- $bytes := include "crypto-broker-operator.bytes" .Values.broker.resources.limits.memory | float64 }}
{{- if and (gt $bytes 0.0) (lt $bytes 33554432.0) }}
{{- fail (printf "broker.resources.limits.memory is %s, expected at least 32Mi, or 0 for no limit: an idle broker takes half of that, and requests take more" $limit) }}
{{- end }}
{{- $limit }}
{{- end }}
