// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
)

const (
	// FileName is the name of the file in the directory of providers.
	FileName = "Providers.yaml"
	// maxFileSize and maxProviders bound the file. A provider has at most maxCredentials files,
	// each of at most maxCredential bytes.
	maxFileSize    = 256 << 10
	maxProviders   = 64
	maxCredentials = 256
	maxCredential  = 64 << 10
)

// unknownField is the YAML library's error about an unknown field. It names the Go type.
var unknownField = regexp.MustCompile(`field (\S+) not found in type \S+`)

// document is the root of the file.
type document struct {
	Providers []Config `yaml:"Providers"`
}

// Parse reads a file of providers. It reports everything that is wrong with it at once.
func Parse(data []byte) ([]Config, error) {
	if len(data) > maxFileSize {
		return nil, fmt.Errorf("has more than %d bytes", maxFileSize)
	}
	var root document
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&root); err != nil {
		return nil, errors.New("is not a file of key providers: " + unknownField.ReplaceAllString(err.Error(), "found the unknown field $1"))
	}
	var more any
	if decoder.Decode(&more) == nil {
		return nil, errors.New("has more than one document, expected one")
	}
	if n := len(root.Providers); n > maxProviders {
		return nil, fmt.Errorf("has %d providers, expected at most %d", n, maxProviders)
	}
	var problems []error
	seen := map[string]bool{}
	for i := range root.Providers {
		c := &root.Providers[i]
		for _, problem := range c.Check() {
			problems = append(problems, fmt.Errorf("Providers[%d].%w", i, problem))
		}
		if seen[c.Name] {
			problems = append(problems, fmt.Errorf("Providers[%d].Name is %q, which an earlier provider has", i, c.Name))
		}
		seen[c.Name] = true
	}
	return root.Providers, errors.Join(problems...)
}

// source is a provider as the directory has it.
type source struct {
	config      Config
	credentials Credentials
	digest      [sha256.Size]byte
}

// read reads the directory. A file that does not exist has no providers.
func read(dir string) ([]source, error) {
	data, _, err := regularfile.Read(filepath.Join(dir, FileName), maxFileSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	configs, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s %w", FileName, err)
	}
	sources := make([]source, 0, len(configs))
	for _, config := range configs {
		config.ActsAsProgram = true // the directory is of the one who runs the program
		s := source{config: config}
		if s.credentials, err = ReadCredentials(filepath.Join(dir, config.Name)); err != nil {
			return nil, err
		}
		if s.digest, err = s.fingerprint(); err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	slices.SortFunc(sources, func(a, b source) int { return cmp.Compare(a.config.Name, b.config.Name) })
	return sources, nil
}

// fingerprint returns a digest that changes with the configuration and the credentials.
func (s *source) fingerprint() (sum [sha256.Size]byte, err error) {
	config, err := yaml.Marshal(&s.config)
	if err != nil {
		return sum, err
	}
	digest := sha256.New()
	digest.Write(config)
	for _, name := range slices.Sorted(maps.Keys(s.credentials)) {
		fmt.Fprintf(digest, "\x00%s\x00%d\x00", name, len(s.credentials[name]))
		digest.Write(s.credentials[name])
	}
	return [sha256.Size]byte(digest.Sum(nil)), nil
}

// ReadCredentials reads all files of a directory. A directory that does not exist has none.
func ReadCredentials(dir string) (Credentials, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Credentials{}, nil
	}
	if err != nil {
		return nil, err
	}
	credentials := Credentials{}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") {
			continue // a link of a kubelet, or a copy of an editor
		}
		if len(credentials) == maxCredentials {
			return nil, fmt.Errorf("%s has more than %d files, expected fewer", dir, maxCredentials)
		}
		data, _, err := regularfile.Read(filepath.Join(dir, name), maxCredential)
		switch {
		case err != nil:
			credentials.Forget()
			return nil, err
		case len(data) > maxCredential:
			credentials.Forget()
			return nil, fmt.Errorf("%s has more than %d bytes", filepath.Join(dir, name), maxCredential)
		}
		credentials[name] = data
	}
	return credentials, nil
}

// Forget overwrites the credentials.
func (c Credentials) Forget() {
	for _, value := range c {
		clear(value)
	}
}
