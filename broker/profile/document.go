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

// API holds one entry for each operation the profile offers. An operation
// that is absent is refused at the call.
type API struct {
	HashData        *HashData        `yaml:"HashData,omitempty"`
	SignCertificate *SignCertificate `yaml:"SignCertificate,omitempty"`
	EncryptData     *EncryptData     `yaml:"EncryptData,omitempty"`
	SignData        *SignData        `yaml:"SignData,omitempty"`
}

// HashData is the policy of the HashData operation.
type HashData struct {
	// HashAlg is one of the names of HashAlgorithms, in any case.
	HashAlg string `yaml:"HashAlg"`
}

// SignCertificate is the policy of the SignCertificate operation.
type SignCertificate struct {
	SignAlg          string            `yaml:"SignAlg"`
	HashAlg          string            `yaml:"HashAlg,omitempty"`
	SKIHashAlg       string            `yaml:"SKIHashAlg,omitempty"`
	Validity         Validity          `yaml:"Validity"`
	KeyConstraints   KeyConstraints    `yaml:"KeyConstraints"`
	KeyUsage         []string          `yaml:"KeyUsage,omitempty"`
	ExtendedKeyUsage []string          `yaml:"ExtendedKeyUsage,omitempty"`
	BasicConstraints *BasicConstraints `yaml:"BasicConstraints,omitempty"`
	SubjectAltNames  *SubjectAltNames  `yaml:"SubjectAltNames,omitempty"`
	// CRLDistributionPoints restricts those of requests; absent, as with the rule
	// "any".
	CRLDistributionPoints *CRLDistributionPoints `yaml:"CRLDistributionPoints,omitempty"`
	// AllowSHA1Requests accepts certificate requests that are signed with SHA-1.
	AllowSHA1Requests bool    `yaml:"AllowSHA1Requests,omitempty"`
	KeyIDs            []KeyID `yaml:"KeyIds,omitempty"`
}

// Validity bounds a certificate's lifetime relative to the time of signing,
// as Go durations ("-1h", "8760h").
type Validity struct {
	ValidNotBeforeOffset string `yaml:"ValidNotBeforeOffset"`
	ValidNotAfterOffset  string `yaml:"ValidNotAfterOffset"`
}

// KeyConstraints limits key algorithms and sizes; an algorithm that is not
// listed is refused.
type KeyConstraints struct {
	Subject map[string]KeySize `yaml:"Subject,omitempty"`
	Issuer  map[string]KeySize `yaml:"Issuer,omitempty"`
}

// KeySize is an inclusive range in bits.
type KeySize struct {
	MinKeySize int `yaml:"MinKeySize"`
	MaxKeySize int `yaml:"MaxKeySize"`
}

// BasicConstraints is the extension of RFC 5280, section 4.2.1.9.
type BasicConstraints struct {
	CA bool `yaml:"CA,omitempty"`
	// PathLenConstraint is only valid with CA.
	PathLenConstraint *int `yaml:"PathLenConstraint,omitempty"`
}

// SubjectAltNames says what happens to the alternative names a request asks for,
// and with the rule "patterns" which names its subject may have.
type SubjectAltNames struct {
	// Rule is "deny" (as when the field is absent), "copy" or "patterns".
	Rule string `yaml:"Rule"`
	// Required refuses requests without alternative names.
	Required bool `yaml:"Required,omitempty"`

	DNS   []string `yaml:"DNS,omitempty"`
	IP    []string `yaml:"IP,omitempty"`
	URI   []string `yaml:"URI,omitempty"`
	Email []string `yaml:"Email,omitempty"`
}

// CRLDistributionPoints says which CRL distribution points a request may ask for.
type CRLDistributionPoints struct {
	// Rule is "any" (as when the field is absent), "deny" or "patterns".
	Rule string   `yaml:"Rule"`
	URI  []string `yaml:"URI,omitempty"`
}

// EncryptData is the policy of EncryptData and DecryptData.
type EncryptData struct {
	EncryptAlg string `yaml:"EncryptAlg"`
	// KeySize is in bits.
	KeySize int `yaml:"KeySize"`
	// NonceStrategy is "user-provided" or "random".
	NonceStrategy string `yaml:"NonceStrategy,omitempty"`
	// TagLength is in bits and has no effect, as in released brokers.
	TagLength int `yaml:"TagLength,omitempty"`
	// ShortTagLength is the length of a tag that is cut, in bits. Absent, the tag
	// is whole.
	ShortTagLength int     `yaml:"ShortTagLength,omitempty"`
	KeyIDs         []KeyID `yaml:"KeyIds,omitempty"`
}

// SignData is the policy of SignData and VerifyData.
type SignData struct {
	// SigningMode is "legacy", "hybrid" or "post-quantum".
	SigningMode     string         `yaml:"SigningMode,omitempty"`
	SignAlg         string         `yaml:"SignAlg"`
	HashAlg         string         `yaml:"HashAlg,omitempty"`
	SignatureFormat string         `yaml:"SignatureFormat,omitempty"`
	KeyConstraints  KeyConstraints `yaml:"KeyConstraints,omitempty"`
	KeyIDs          []KeyID        `yaml:"KeyIds,omitempty"`
}

// AnyKeyID is the id that stands for every key of the broker, alone in its list
// and not in SignCertificate.
const AnyKeyID = "*"

// KeyID allows one key of the broker by its id, or every one by AnyKeyID, and may
// pin it to a public key.
type KeyID struct {
	ID string `yaml:"Id"`
	// SPKISHA256 is the SHA-256 of the DER SubjectPublicKeyInfo, in hex.
	SPKISHA256 string `yaml:"SPKISHA256,omitempty"`
}

// Callers restricts who may use the profile; a list that is empty does not
// restrict.
type Callers struct {
	Containers []string `yaml:"Containers,omitempty"`
	UIDs       []int64  `yaml:"UIDs,omitempty"`
	GIDs       []int64  `yaml:"GIDs,omitempty"`
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
