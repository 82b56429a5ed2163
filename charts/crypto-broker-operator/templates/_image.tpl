{{/*
SPDX-License-Identifier: Apache-2.0
The reference of an image: a digest wins over a tag, and the tag is the
chart's appVersion unless a value says another. The image with OpenSSL has -openssl
behind the name of the other one.
Takes a dict of "image" (the value), "tag" (the default) and, for a program with
TLS by OpenSSL, "tlsProvider" (the value).
*/}}
{{- define "crypto-broker-operator.image" -}}
{{- with .image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .image.repository }}
{{- if eq (.tlsProvider | default "go") "openssl" }}-openssl{{ end }}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default $.tag }}{{ end }}
{{- end }}
