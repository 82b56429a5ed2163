// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// SignCertificate is the policy of the operation SignCertificate.
// +kubebuilder:validation:XValidation:rule="self.signAlg == 'ed25519' ? !has(self.hashAlg) : has(self.hashAlg)",message="hashAlg is required, except for signAlg ed25519, which has its own digest"
type SignCertificate struct {
	// signAlg is the algorithm of the issuer's signature: rsa (PKCS #1 v1.5),
	// rsa-pss, ecdsa or ed25519.
	// +required
	// +kubebuilder:validation:Enum=rsa;rsa-pss;ecdsa;ed25519
	SignAlg string `json:"signAlg"`

	// hashAlg is the digest algorithm of the issuer's signature. It is required,
	// except with signAlg ed25519, which does not allow it.
	// +optional
	// +kubebuilder:validation:Enum=sha-256;sha-384;sha-512
	HashAlg string `json:"hashAlg,omitempty"`

	// skiHashAlg is the digest algorithm of the subject key identifier, which
	// names a key and protects nothing: sha-1, sha-256, sha-384, sha-512,
	// sha3-256, sha3-384 or sha3-512. The default is sha-1, as in RFC 5280.
	// Longer digests are cut to 160 bits, as in RFC 7093.
	// +optional
	// +kubebuilder:validation:Enum=sha-1;sha-256;sha-384;sha-512;sha3-256;sha3-384;sha3-512
	SKIHashAlg string `json:"skiHashAlg,omitempty"`

	// validity bounds the period of a certificate. Brokers refuse a request for
	// a period outside of it, and never shorten the period.
	// Example: {validNotBeforeOffset: -1h, validNotAfterOffset: 8760h}.
	// +required
	Validity Validity `json:"validity"`

	// keyConstraints limits the keys of subjects and issuers. Keys of other
	// algorithms are refused.
	// Example: {subject: {rsa: {minKeySize: 3072, maxKeySize: 4096}},
	// issuer: {rsa: {minKeySize: 4096, maxKeySize: 4096}}}.
	// +required
	KeyConstraints CertificateKeyConstraints `json:"keyConstraints"`

	// keyUsage is the extension KeyUsage (RFC 5280, section 4.2.1.3), any of
	// digitalSignature, contentCommitment, nonRepudiation, keyEncipherment,
	// dataEncipherment, keyAgreement, keyCertSign, cRLSign, encipherOnly and
	// decipherOnly.
	// Example: [digitalSignature, keyEncipherment].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:Enum=digitalSignature;contentCommitment;nonRepudiation;keyEncipherment;dataEncipherment;keyAgreement;keyCertSign;cRLSign;encipherOnly;decipherOnly
	KeyUsage []string `json:"keyUsage,omitempty"`

	// extendedKeyUsage is the extension ExtendedKeyUsage (RFC 5280, section
	// 4.2.1.12), any of serverAuth, clientAuth, codeSigning, emailProtection,
	// timeStamping and OCSPSigning.
	// Example: [clientAuth].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=6
	// +kubebuilder:validation:items:Enum=serverAuth;clientAuth;codeSigning;emailProtection;timeStamping;OCSPSigning
	ExtendedKeyUsage []string `json:"extendedKeyUsage,omitempty"`

	// basicConstraints is the extension BasicConstraints (RFC 5280, section
	// 4.2.1.9). If it is absent, no certificate is for a certificate authority.
	// Example: {ca: true, pathLenConstraint: 0}.
	// +optional
	BasicConstraints *BasicConstraints `json:"basicConstraints,omitempty"`

	// subjectAltNames says what happens to the alternative names that a
	// request asks for. If it is absent, the rule is deny.
	// Example: {rule: patterns, dns: ["*.shop.example.com"]}.
	// +optional
	SubjectAltNames *SubjectAltNames `json:"subjectAltNames,omitempty"`

	// crlDistributionPoints says which CRL distribution points a request may
	// ask for. If it is absent, the rule is any.
	// Example: {rule: patterns, uri: ["http://crl.example.com/*"]}.
	// +optional
	CRLDistributionPoints *CRLDistributionPoints `json:"crlDistributionPoints,omitempty"`

	// allowSHA1Requests accepts certificate requests that are signed with
	// SHA-1, which are refused otherwise. Requests with MD5 are always refused.
	// Example: true.
	// +optional
	AllowSHA1Requests bool `json:"allowSHA1Requests,omitempty"`

	// keyIds are the keys of issuers with which the broker signs. If it is
	// absent, requests bring the issuer's key.
	// Example: [{id: issuer-2026}].
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.id == '*')",message="the id * stands for every key of the broker, expected the id of the issuer's key"
	KeyIDs []KeyID `json:"keyIds,omitempty"`
}

// Validity bounds the period of a certificate relative to the time of signing.
// The rules of its fields refuse values that are not durations.
//
// +kubebuilder:validation:XValidation:rule="!self.validNotBeforeOffset.matches('^[-+]?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') || !self.validNotAfterOffset.matches('^[-+]?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') || duration(self.validNotBeforeOffset) < duration(self.validNotAfterOffset)",message="validNotBeforeOffset must be earlier than validNotAfterOffset"
// +kubebuilder:validation:XValidation:rule="!self.validNotAfterOffset.matches('^[-+]?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') || duration(self.validNotAfterOffset) > duration('0s')",message="validNotAfterOffset must be later than the time of signing, or every certificate would be expired"
type Validity struct {
	// validNotBeforeOffset is the earliest begin, as a duration in h, m and s.
	// Example: -1h, an hour before the time of signing.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-+]?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$')",message="expected a duration in h, m and s such as -1h, 720h or 8760h; there are no days and no years"
	ValidNotBeforeOffset string `json:"validNotBeforeOffset"`

	// validNotAfterOffset is the latest end, as a duration in h, m and s.
	// Example: 8760h, a year after the time of signing.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-+]?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$')",message="expected a duration in h, m and s such as -1h, 720h or 8760h; there are no days and no years"
	ValidNotAfterOffset string `json:"validNotAfterOffset"`
}

// CertificateKeyConstraints limits the keys of a certificate.
type CertificateKeyConstraints struct {
	// subject limits the key that the certificate is for.
	// Example: {ecdsa: {minKeySize: 256, maxKeySize: 521}}.
	// +required
	Subject KeyAlgorithms `json:"subject"`

	// issuer limits the key that signs the certificate.
	// Example: {ecdsa: {minKeySize: 384, maxKeySize: 521}}.
	// +required
	Issuer KeyAlgorithms `json:"issuer"`
}

// DataKeyConstraints limits the keys that sign data.
// +kubebuilder:validation:MinProperties=1
type DataKeyConstraints struct {
	// subject limits the key that verifies.
	// Example: {ecdsa: {minKeySize: 256, maxKeySize: 521}}.
	// +optional
	Subject *KeyAlgorithms `json:"subject,omitempty"`

	// issuer limits the key that signs.
	// Example: {ecdsa: {minKeySize: 384, maxKeySize: 521}}.
	// +optional
	Issuer *KeyAlgorithms `json:"issuer,omitempty"`
}

// KeyAlgorithms lists the algorithms that a key may have, and their sizes. Keys
// of other algorithms are refused.
// +kubebuilder:validation:XValidation:rule="has(self.rsa) || has(self.ecdsa) || has(self.ed25519)",message="no key would be allowed: give at least one of rsa, ecdsa and ed25519"
type KeyAlgorithms struct {
	// rsa allows RSA keys with a modulus of these sizes.
	// Example: {minKeySize: 3072, maxKeySize: 8192}.
	// +optional
	RSA *RSAKeySize `json:"rsa,omitempty"`

	// ecdsa allows keys on the NIST curves of these sizes (256 is P-256).
	// Example: {minKeySize: 256, maxKeySize: 521}.
	// +optional
	ECDSA *ECDSAKeySize `json:"ecdsa,omitempty"`

	// ed25519 allows Ed25519 keys, which have one size.
	// Example: {}.
	// +optional
	Ed25519 *Ed25519KeySize `json:"ed25519,omitempty"`
}

// RSAKeySize is an inclusive range of sizes of RSA keys in bits.
// +kubebuilder:validation:XValidation:rule="self.minKeySize <= self.maxKeySize",message="minKeySize must not be greater than maxKeySize"
type RSAKeySize struct {
	// minKeySize is the smallest size allowed, in bits.
	// Example: 3072.
	// +required
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=16384
	MinKeySize int32 `json:"minKeySize"`

	// maxKeySize is the greatest size allowed, in bits.
	// Example: 8192.
	// +required
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=16384
	MaxKeySize int32 `json:"maxKeySize"`
}

// ECDSAKeySize is an inclusive range of sizes of ECDSA keys in bits.
// +kubebuilder:validation:XValidation:rule="self.minKeySize <= self.maxKeySize",message="minKeySize must not be greater than maxKeySize"
type ECDSAKeySize struct {
	// minKeySize is the smallest size allowed, in bits.
	// Example: 256, the curve P-256.
	// +required
	// +kubebuilder:validation:Minimum=224
	// +kubebuilder:validation:Maximum=521
	MinKeySize int32 `json:"minKeySize"`

	// maxKeySize is the greatest size allowed, in bits.
	// Example: 521, the curve P-521.
	// +required
	// +kubebuilder:validation:Minimum=224
	// +kubebuilder:validation:Maximum=521
	MaxKeySize int32 `json:"maxKeySize"`
}

// Ed25519KeySize is the size of Ed25519 keys in bits.
type Ed25519KeySize struct {
	// minKeySize is the smallest size allowed, in bits: 256.
	// +optional
	// +kubebuilder:default=256
	// +kubebuilder:validation:Enum=256
	MinKeySize int32 `json:"minKeySize,omitempty"`

	// maxKeySize is the greatest size allowed, in bits: 256.
	// +optional
	// +kubebuilder:default=256
	// +kubebuilder:validation:Enum=256
	MaxKeySize int32 `json:"maxKeySize,omitempty"`
}

// BasicConstraints is the extension of RFC 5280, section 4.2.1.9.
// +kubebuilder:validation:XValidation:rule="!has(self.pathLenConstraint) || (has(self.ca) && self.ca)",message="pathLenConstraint is only allowed with ca: true"
type BasicConstraints struct {
	// ca makes certificates that may issue certificates.
	// Example: true.
	// +optional
	CA bool `json:"ca,omitempty"`

	// pathLenConstraint is the maximum number of certificate authorities that may
	// follow. If it is absent, any number may follow. Example: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=255
	PathLenConstraint *int32 `json:"pathLenConstraint,omitempty"`
}

// SubjectAltNames says what happens to the alternative names that a request
// asks for.
// +kubebuilder:validation:XValidation:rule="self.rule == 'patterns' || !(has(self.dns) || has(self.ip) || has(self.uri) || has(self.email))",message="dns, ip, uri and email are only allowed with rule patterns"
// +kubebuilder:validation:XValidation:rule="self.rule != 'patterns' || has(self.dns) || has(self.ip) || has(self.uri) || has(self.email)",message="rule patterns needs at least one of dns, ip, uri and email"
// +kubebuilder:validation:XValidation:rule="self.rule != 'deny' || !has(self.required) || !self.required",message="required is only allowed with rule copy or patterns"
type SubjectAltNames struct {
	// rule is deny (certificates have no alternative names), copy (they have the
	// names of the request) or patterns (every name of the request has to match
	// a pattern of its kind; in the subject, emailAddress and a common name that
	// is a host, an IP address or a mail address have to match as well).
	// +required
	// +kubebuilder:validation:Enum=deny;copy;patterns
	Rule string `json:"rule"`

	// required refuses requests without alternative names.
	// Example: true.
	// +optional
	Required bool `json:"required,omitempty"`

	// dns are patterns of DNS names. A leading * stands for one label.
	// Example: ["*.shop.example.com"].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	DNS []string `json:"dns,omitempty"`

	// ip are addresses or networks in CIDR notation.
	// Example: ["10.0.0.0/8"].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	IP []string `json:"ip,omitempty"`

	// uri are patterns of URIs.
	// Example: ["spiffe://example.com/*"].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	URI []string `json:"uri,omitempty"`

	// email are patterns of mail addresses.
	// Example: ["*@example.com"].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=320
	Email []string `json:"email,omitempty"`
}

// CRLDistributionPoints says which CRL distribution points a request may ask
// for.
// +kubebuilder:validation:XValidation:rule="self.rule == 'patterns' || !has(self.uri)",message="uri is only allowed with rule patterns"
// +kubebuilder:validation:XValidation:rule="self.rule != 'patterns' || has(self.uri)",message="rule patterns needs uri"
type CRLDistributionPoints struct {
	// rule is any, deny (a request with distribution points is refused) or
	// patterns (every distribution point has to match a pattern).
	// +required
	// +kubebuilder:validation:Enum=any;deny;patterns
	Rule string `json:"rule"`

	// uri are patterns of URLs with http or https, in the form of the patterns
	// of subjectAltNames.
	// Example: ["http://crl.example.com/*"].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	URI []string `json:"uri,omitempty"`
}
