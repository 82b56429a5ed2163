// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"fmt"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"go.yaml.in/yaml/v3"
)

// Document is the content of a profile file before it is checked. It has the fields of the
// file. A file that is a list of profiles becomes a Document that has only Profiles.
type Document struct {
	// FormatVersion is the version of the format that the file needs. [Marshal] writes it
	// only if the document has a field that released brokers do not know. If it is absent,
	// it is 0, the released format.
	FormatVersion int       `yaml:"FormatVersion,omitempty"`
	Settings      *Settings `yaml:"Settings,omitempty"`
	KMS           *KMS      `yaml:"KMS,omitempty"`
	Profiles      []Profile `yaml:"Profiles"`
}

// Profile is a policy with a name: the operations that it offers, with their algorithms, keys and
// limits.
type Profile struct {
	// Name is unique in its file, where a profile with Rollout and one without may share a
	// name. It has at most MaxNameLength bytes. Upper and lower case matter.
	Name        string         `yaml:"Name"`
	Settings    *Settings      `yaml:"Settings,omitempty"`
	KMS         *KMS           `yaml:"KMS,omitempty"`
	API         API            `yaml:"API"`
	Callers     *callers.Lists `yaml:"Callers,omitempty"`
	Audit       *Audit         `yaml:"Audit,omitempty"`
	Deprecation *Deprecation   `yaml:"Deprecation,omitempty"`
	// Rollout is nil for a profile that all brokers serve.
	Rollout *Rollout `yaml:"Rollout,omitempty"`
}

// Settings chooses the implementation of the primitives.
type Settings struct {
	// CryptoLibrary is "native" or empty. Both mean the Go standard library.
	CryptoLibrary string `yaml:"CryptoLibrary,omitempty"`
}

// KMS names an external key manager and how to reach it.
type KMS struct {
	Client string `yaml:"Client,omitempty"`
	// Config is a string, the name of a file with the settings, as in released profile files,
	// or a map[string]any with the settings themselves.
	Config yamlfile.TextOrMap `yaml:"Config,omitempty"`
	// Cache is a bool, whether keys are kept, as in released profile files, or a
	// map[string]any with settings.
	Cache yamlfile.BoolOrMap `yaml:"Cache,omitempty"`
}

// settingsFile returns the name of the file with the settings, as released profile files name it.
// It reports false if the key manager is another one than OpenBao, or has settings of another
// form.
func (k *KMS) settingsFile() (file string, cached, ok bool) {
	if k == nil || k.Client != "openbao" {
		return "", false, false
	}
	file, _ = k.Config.(string)
	cached, isBool := k.Cache.(bool)
	return file, cached, file != "" && (isBool || k.Cache == nil)
}

// empty reports whether no key manager is named.
func (k *KMS) empty() bool {
	return k.Client == "" && (k.Config == nil || k.Config == "") && (k.Cache == nil || k.Cache == false)
}

// managerOf returns the key manager of a profile, or else the key manager of the file. It returns
// nil if there is none, or if it has no values.
func managerOf(p *Profile, doc *Document) *KMS {
	for _, k := range []*KMS{p.KMS, doc.KMS} {
		if k != nil {
			if k.empty() {
				return nil
			}
			return k
		}
	}
	return nil
}

// rules returns the key manager for the rules of keys, without its file of settings. It is nil for
// nil.
func (k *KMS) rules() *keyrules.Manager {
	if k == nil {
		return nil
	}
	return &keyrules.Manager{Client: k.Client}
}

// rulesWithFile is rules for an operation that takes keys from the key manager, if its settings are in
// a file.
func (k *KMS) rulesWithFile() *keyrules.Manager {
	manager := k.rules()
	if file, cached, ok := k.settingsFile(); ok {
		manager.File, manager.Cached = file, cached
	}
	return manager
}

// Deprecation announces the end of a profile.
type Deprecation struct {
	ReplacedBy      string `yaml:"ReplacedBy,omitempty"`
	DeprecatedSince string `yaml:"DeprecatedSince,omitempty"`
	RemoveAfter     string `yaml:"RemoveAfter,omitempty"`
	Reason          string `yaml:"Reason,omitempty"`
}

const (
	// FileName is the name of the profile file in its directory.
	FileName = "Profiles.yaml"

	// MaxNameLength is the longest profile name, in bytes.
	MaxNameLength = 64

	// MaxFileSize is the largest profile file, in bytes. It is the limit of a ConfigMap as
	// well.
	MaxFileSize = yamlfile.MaxFileSize

	// newestFormatVersion is the newest version of the profile format that this
	// package reads. Version 0 is the released format. Version 1 adds KeyIds,
	// Callers, SubjectAltNames, CRLDistributionPoints, AllowSHA1Requests,
	// ShortTagLength, Audit, NonceStrategy "random" and the signature algorithms
	// rsa-pss, ed25519 and ml-dsa. Version 2 adds Rollout.
	newestFormatVersion = 2

	// maxTextLength is the longest free text, in bytes (Deprecation, KMS Client).
	maxTextLength = 1024
)

// Digest identifies a set by the bytes of its file: "sha256:" and 64
// lower-case hexadecimal digits.
func Digest(data []byte) string { return signed.Digest(data) }

// Problem is one thing that is wrong with a profile file.
type Problem = yamlfile.Problem

// Problems lists everything that is wrong with a file, sorted by position.
type Problems = yamlfile.Problems

// Parse reads a profile file of either form. It reports all violations of the format at once:
// unknown and repeated keys, values of the wrong type, more than one document, a file above
// MaxFileSize. It does not check what the values mean, which [Compile] does. The document has all
// values that could be read. It is nil if the root of the file could not be read.
//
// file is the name of the file in problems.
func Parse(file string, data []byte) (*Document, Problems) {
	r := yamlfile.NewReport(file)
	doc := parse(r, data)
	return doc, r.Finish()
}

func parse(r *yamlfile.Report, data []byte) *Document {
	doc := &Document{}
	if !yamlfile.Read(r, data, doc) {
		return nil
	}
	return doc
}

// Nearest returns the allowed value for which found is most likely a misspelling, or the
// empty string if no value is near.
func Nearest(found string, allowed []string) string { return yamlfile.Nearest(found, allowed) }

// Marshal writes a document in the oldest form that can express it. That is the list of
// profiles, which every released broker reads. If the document has settings for the whole
// file, or a field that released brokers do not know, it is the map with the FormatVersion
// that it needs. A released broker does not read the map at all, so it never overlooks a
// restriction.
//
// The same document always gives the same bytes. [Parse] of the bytes gives the document
// again, with the FormatVersion that it needs.
func Marshal(doc *Document) ([]byte, error) {
	version := 0
	for i := range doc.Profiles {
		version = max(version, doc.Profiles[i].FormatVersion())
	}
	var out bytes.Buffer
	if version == 0 && doc.Settings == nil && doc.KMS == nil {
		if len(doc.Profiles) == 0 {
			return []byte("[]\n"), nil
		}
		for i := range doc.Profiles {
			if err := encode(&out, doc.Profiles[i:i+1]); err != nil {
				return nil, err
			}
		}
		return out.Bytes(), nil
	}
	first := min(1, len(doc.Profiles))
	root := Document{FormatVersion: version, Settings: doc.Settings, KMS: doc.KMS, Profiles: doc.Profiles[:first]}
	if first == 0 {
		root.Profiles = []Profile{} // not null
	}
	if err := encode(&out, &root); err != nil {
		return nil, err
	}
	var entry bytes.Buffer
	for i := first; i < len(doc.Profiles); i++ {
		entry.Reset()
		if err := encode(&entry, &Document{Profiles: doc.Profiles[i : i+1]}); err != nil {
			return nil, err
		}
		out.Write(bytes.TrimPrefix(entry.Bytes(), []byte("Profiles:\n")))
	}
	return out.Bytes(), nil
}

// encode appends a part of a document. [Marshal] encodes each profile alone, because the encoder keeps
// every event of a document until its end, which is many times what it writes.
func encode(out *bytes.Buffer, part any) error {
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	err := encoder.Encode(part)
	if err == nil {
		err = encoder.Close()
	}
	if err != nil {
		return fmt.Errorf("render profiles: %w", err)
	}
	return nil
}

// maxEmpty is the largest size in bytes of a file without profiles. The operator writes three
// bytes. A file that a person has written may have settings.
const maxEmpty = 256

// Empty reports whether a file is valid and has no profiles. A broker that starts with such a
// file waits, as it does without a file. If a broker already serves profiles, the file takes all
// of them out of service. Empty reports false for files above 256 bytes, so it is always fast.
func Empty(data []byte) bool {
	if len(data) > maxEmpty {
		return false
	}
	document, problems := Parse(FileName, data)
	return document != nil && len(problems) == 0 && len(document.Profiles) == 0
}
