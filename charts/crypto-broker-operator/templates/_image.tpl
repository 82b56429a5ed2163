{{/*
SPDX-License-Identifier: Apache-2.0
The reference of an image: a digest wins over a tag, and the tag is the
chart's appVersion unless a value says another.
Takes a dict of "image" (the value) and "tag" (the default).
*/}}
{{- define "crypto-broker-operator.image" -}}
{{- with .image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .image.repository }}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default $.tag }}{{ end }}
{{- end }}
