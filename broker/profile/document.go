// SPDX-License-Identifier: Apache-2.0

package profile

// Document is what a profile file says, before any of it is checked. Field
// names and nesting are those of the file; a file in form A is a bare list of
// profiles and becomes a Document with only Profiles set.
type Document struct {
	// FormatVersion says which version of the field table the file needs. It
	// is only written when a field that released brokers do not know is used;
	// absent means 0, the released format.
	FormatVersion int       `yaml:"FormatVersion,omitempty"`
	Settings      *Settings `yaml:"Settings,omitempty"`
	KMS           *KMS      `yaml:"KMS,omitempty"`
	Profiles      []Profile `yaml:"Profiles"`
}

// Profile is one named policy: which operations it offers and with what.
type Profile struct {
	// Name is matched exactly, is unique in its file and at most
	// MaxNameLength bytes long.
	Name        string       `yaml:"Name"`
	Settings    *Settings    `yaml:"Settings,omitempty"`
	KMS         *KMS         `yaml:"KMS,omitempty"`
	API         API          `yaml:"API"`
	Callers     *Callers     `yaml:"Callers,omitempty"`
	Audit       *Audit       `yaml:"Audit,omitempty"`
	Deprecation *Deprecation `yaml:"Deprecation,omitempty"`
}

// Settings chooses the implementation of the primitives.
type Settings struct {
	// CryptoLibrary is "native", the Go standard library; empty means native.
	CryptoLibrary string `yaml:"CryptoLibrary,omitempty"`
}

// KMS names an external key manager and how to reach it.
type KMS struct {
	Client string         `yaml:"Client,omitempty"`
	Config map[string]any `yaml:"Config,omitempty"`
	Cache  map[string]any `yaml:"Cache,omitempty"`
}

// Audit says which calls are recorded.
type Audit struct {
	// Level is "none", "sampled", "sensitive" or "all".
	Level string `yaml:"Level"`
	// Required refuses a call whose record cannot be written.
	Required bool `yaml:"Required,omitempty"`
}

// Deprecation announces the end of a profile.
type Deprecation struct {
	ReplacedBy      string `yaml:"ReplacedBy,omitempty"`
	DeprecatedSince string `yaml:"DeprecatedSince,omitempty"`
	RemoveAfter     string `yaml:"RemoveAfter,omitempty"`
	Reason          string `yaml:"Reason,omitempty"`
}
