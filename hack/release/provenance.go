// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The names of the files that describe the others.
const (
	provenanceFile = "provenance.json"
	checksumsFile  = "SHA256SUMS"
	signatureFile  = checksumsFile + ".sig"
)

// statement is the provenance, an in-toto statement (https://in-toto.io/Statement/v1) with a predicate of SLSA 1.0
// (https://slsa.dev/provenance/v1).
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type predicate struct {
	BuildDefinition buildDefinition `json:"buildDefinition"`
	RunDetails      runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	BuildType            string            `json:"buildType"`
	ExternalParameters   map[string]string `json:"externalParameters"`
	ResolvedDependencies []resource        `json:"resolvedDependencies"`
}

type runDetails struct {
	Builder struct {
		ID string `json:"id"`
	} `json:"builder"`
}

// resource is a file, or a source.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// describe writes the provenance, the checksums of all files and, with a key, the signature of the checksums.
func (r *release) describe(ctx context.Context) error {
	toolchain, err := output(ctx, r.root, "go", "env", "GOVERSION")
	if err != nil {
		return err
	}
	files, err := digests(r.out)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(r.statement(files, toolchain), "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, provenanceFile), append(text, '\n'), 0o644); err != nil {
		return err
	}
	if files, err = digests(r.out); err != nil {
		return err
	}
	var sums strings.Builder
	for _, file := range files {
		fmt.Fprintf(&sums, "%s  %s\n", file.Digest["sha256"], file.Name)
	}
	if err := os.WriteFile(filepath.Join(r.out, checksumsFile), []byte(sums.String()), 0o644); err != nil {
		return err
	}
	if r.key == "" {
		progress("nothing is signed: there is no --key")
		return nil
	}
	signature, err := sign(r.key, []byte(sums.String()))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, signatureFile), signature, 0o644)
}

func (r *release) statement(files []resource, toolchain string) statement {
	s := statement{
		Type: "https://in-toto.io/Statement/v1", Subject: files, PredicateType: "https://slsa.dev/provenance/v1",
		Predicate: predicate{BuildDefinition: buildDefinition{
			BuildType:          home + "/blob/main/docs/releases.md#the-build",
			ExternalParameters: map[string]string{"version": r.version, "parts": strings.Join(r.parts, ",")},
			ResolvedDependencies: []resource{
				{URI: "git+" + home, Digest: map[string]string{"gitCommit": r.commit}},
				{Name: "go", URI: "https://go.dev/dl/" + toolchain},
			},
		}},
	}
	for _, each := range r.debian {
		dependencies := &s.Predicate.BuildDefinition.ResolvedDependencies
		*dependencies = append(*dependencies, resource{URI: each.purl(), Digest: map[string]string{"sha256": each.sha256}})
	}
	s.Predicate.RunDetails.Builder.ID = r.builder
	return s
}

// digests returns the files of a folder with their SHA-256, in the order of their names.
func digests(folder string) ([]resource, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []resource
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			return nil, fmt.Errorf("found %s in %s, expected regular files only", entry.Name(), folder)
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		files = append(files, resource{Name: entry.Name(), Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}})
	}
	return files, nil
}

// sign returns an ECDSA signature with SHA-256, in ASN.1 as OpenSSL reads it. It has no random number (RFC 6979), so
// that a release that is built again has the same one.
func sign(keyFile string, message []byte) ([]byte, error) {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("--key is %s, expected one block \"PRIVATE KEY\" of PEM", keyFile)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("--key is %s, expected a key in PKCS #8: %w", keyFile, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("--key is %s with a key of the type %T, expected ECDSA", keyFile, parsed)
	}
	sum := sha256.Sum256(message)
	return key.Sign(nil, sum[:], crypto.SHA256)
}
