// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// pluginProgram is the name by which kubectl finds the plugin. krew calls it crypto-broker.
const pluginProgram = "kubectl-crypto_broker"

// manifest is the manifest by which krew installs the plugin.
var manifest = template.Must(template.New("").Parse(`apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: crypto-broker
spec:
  version: {{.Version}}
  homepage: ` + home + `
  shortDescription: Show what crypto brokers of pods serve, and why
  description: |
    Shows which pods have a crypto broker, which pods miss theirs, and which
    profiles each broker serves, and why. It also restarts workloads one at a
    time, checks manifests without a cluster, checks whether the installation of
    the operator is sound, and allows profiles that are withheld.
  caveats: |
    The Crypto Broker Operator has to be installed in the cluster. Use the plugin of the
    operator's version: kubectl crypto-broker version prints both.
  platforms:
{{- range .Downloads}}
  - selector:
      matchLabels: {os: {{.OS}}, arch: {{.Arch}}}
    uri: {{printf "%q" .URI}}
    sha256: "{{.SHA256}}"
    files:
    - {from: {{.Program}}, to: "."}
    - {from: LICENSE, to: "."}
    bin: {{.Program}}
{{- end}}
`))

// download is an archive of the plugin for a platform, for the manifest.
type download struct{ OS, Arch, URI, SHA256, Program string }

// plugin builds the archives of the kubectl plugin and its manifest.
func (r *release) plugin(ctx context.Context) (err error) {
	folder, err := os.MkdirTemp("", "plugin")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	var downloads []download
	for _, p := range slices.Concat(everyday, []platform{{"windows", "amd64"}}) {
		progress("%s for %s/%s", pluginProgram, p.os, p.arch)
		binary := filepath.Join(folder, p.os+"-"+p.arch)
		if err := r.build(ctx, pluginProgram, p, "off", binary); err != nil {
			return err
		}
		d, err := r.packPlugin(p, binary)
		if err != nil {
			return err
		}
		downloads = append(downloads, d)
	}
	return r.writeManifest(downloads)
}

// packPlugin writes the archive of a platform.
func (r *release) packPlugin(p platform, binary string) (download, error) {
	name := fmt.Sprintf("%s-%s-%s-%s.tar.gz", pluginProgram, r.version, p.os, p.arch)
	d := download{OS: p.os, Arch: p.arch, URI: strings.TrimSuffix(r.url, "/") + "/" + name, Program: pluginProgram}
	if p.os == "windows" {
		d.Program += ".exe"
	}
	packed, err := r.pack(d.Program, binary)
	if err != nil {
		return d, err
	}
	sum := sha256.Sum256(packed)
	d.SHA256 = hex.EncodeToString(sum[:])
	return d, os.WriteFile(filepath.Join(r.out, name), packed, 0o644)
}

func (r *release) writeManifest(downloads []download) error {
	var text strings.Builder
	if err := manifest.Execute(&text, map[string]any{"Version": r.version, "Downloads": downloads}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "crypto-broker.yaml"), []byte(text.String()), 0o644)
}
