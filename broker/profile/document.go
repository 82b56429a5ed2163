// SPDX-License-Identifier: Apache-2.0

package profile

import "github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"

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

// Profile is one named policy: which operations it offers and with what.
type Profile struct {
	// Name is unique in its file, where a profile with Rollout and one without may share a
	// name. It has at most MaxNameLength bytes. Upper and lower case matter.
	Name        string       `yaml:"Name"`
	Settings    *Settings    `yaml:"Settings,omitempty"`
	KMS         *KMS         `yaml:"KMS,omitempty"`
	API         API          `yaml:"API"`
	Callers     *Callers     `yaml:"Callers,omitempty"`
	Audit       *Audit       `yaml:"Audit,omitempty"`
	Deprecation *Deprecation `yaml:"Deprecation,omitempty"`
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

// Deprecation announces the end of a profile.
type Deprecation struct {
	ReplacedBy      string `yaml:"ReplacedBy,omitempty"`
	DeprecatedSince string `yaml:"DeprecatedSince,omitempty"`
	RemoveAfter     string `yaml:"RemoveAfter,omitempty"`
	Reason          string `yaml:"Reason,omitempty"`
}
