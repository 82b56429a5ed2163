// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

const (
	// pluginName is the name in krew: kubectl krew install crypto-broker.
	pluginName = "crypto-broker"
	// programName is the name by which kubectl finds the plugin.
	programName = "kubectl-crypto_broker"
)

// archive is what users download for a platform.
type archive struct {
	platform     platform
	name, sha256 string
}

// pack writes the archive of a platform into a folder. The same content gives the same
// archive.
func pack(folder string, p platform, version string, binary, license []byte) (archive, error) {
	var content bytes.Buffer
	compressed := gzip.NewWriter(&content)
	files := tar.NewWriter(compressed)
	for _, file := range []struct {
		name    string
		mode    int64
		content []byte
	}{{p.binary(), 0o755, binary}, {"LICENSE", 0o644, license}} {
		if err := files.WriteHeader(&tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(file.content))}); err != nil {
			return archive{}, err
		}
		if _, err := files.Write(file.content); err != nil {
			return archive{}, err
		}
	}
	if err := files.Close(); err != nil {
		return archive{}, err
	}
	if err := compressed.Close(); err != nil {
		return archive{}, err
	}
	sum := sha256.Sum256(content.Bytes())
	a := archive{p, fmt.Sprintf("%s-%s-%s-%s.tar.gz", programName, version, p.os, p.arch), hex.EncodeToString(sum[:])}
	return a, os.WriteFile(filepath.Join(folder, a.name), content.Bytes(), 0o644)
}

// plugin is the manifest of a plugin, krew.googlecontainertools.github.com/v1alpha2.
type plugin struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name string `json:"name"`
}

type spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Caveats          string     `json:"caveats"`
	Platforms        []download `json:"platforms"`
}

// download is what krew installs on the platforms that the selector matches.
type download struct {
	Selector selector `json:"selector"`
	URI      string   `json:"uri"`
	SHA256   string   `json:"sha256"`
	Files    []file   `json:"files"`
	Bin      string   `json:"bin"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// file is a file that krew copies out of the archive.
type file struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// manifest returns the manifest of a release.
func manifest(version, url string, archives []archive) ([]byte, error) {
	p := plugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: metadata{pluginName},
		Spec: spec{
			Version:          version,
			Homepage:         "https://github.com/crypto-broker/crypto-broker-operator",
			ShortDescription: "Show what crypto brokers of pods serve, and why",
			Description: `Shows which pods have a crypto broker, which pods miss theirs, and which
profiles each broker serves, and why. It also restarts workloads one at a
time, checks manifests without a cluster, checks whether the installation of
the operator is sound, and allows profiles that are withheld.
`,
			Caveats: "The Crypto Broker Operator has to be installed in the cluster. Use the plugin of the\noperator's version: kubectl crypto-broker version prints both.\n",
		},
	}
	for _, a := range archives {
		p.Spec.Platforms = append(p.Spec.Platforms, download{
			Selector: selector{map[string]string{"os": a.platform.os, "arch": a.platform.arch}},
			URI:      url + "/" + a.name, SHA256: a.sha256,
			Files: []file{{a.platform.binary(), "."}, {"LICENSE", "."}},
			Bin:   a.platform.binary(),
		})
	}
	return yaml.Marshal(p)
}
