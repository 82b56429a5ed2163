// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Session is the policy of encrypted sessions.
type Session struct {
	// protocols are the versions of the protocol that clients may speak:
	// session-v1 authenticates method and path of requests, session-v2 does not.
	// session-hpke-p256 and session-hpke-x-wing agree on keys with HPKE (RFC
	// 9180), and the key of keyIDs signs the broker's share. Example:
	// [session-hpke-p256].
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Enum=session-v1;session-v2;session-hpke-p256;session-hpke-x-wing
	Protocols []string `json:"protocols"`

	// keyAgreementAlg is the key agreement of session-v1 and session-v2:
	// ECDH_P256, ECDH on P-256 with HKDF-SHA256 (NIST SP 800-56A, RFC 5869).
	// +optional
	// +kubebuilder:validation:Enum=ECDH_P256
	KeyAgreementAlg string `json:"keyAgreementAlg,omitempty"`

	// encryptAlg is the cipher: A256GCM, AES-256 in Galois/Counter Mode with
	// random IVs (NIST SP 800-38D).
	// +required
	// +kubebuilder:validation:Enum=A256GCM
	EncryptAlg string `json:"encryptAlg"`

	// signAlg is the algorithm with which the broker signs its share of the key
	// agreement in session-hpke-p256 and session-hpke-x-wing: rsa (PKCS #1
	// v1.5), rsa-pss, ecdsa, ed25519, ml-dsa-44, ml-dsa-65 or ml-dsa-87.
	// Example: ecdsa.
	// +optional
	// +kubebuilder:validation:Enum=rsa;ecdsa;rsa-pss;ed25519;ml-dsa-44;ml-dsa-65;ml-dsa-87
	SignAlg string `json:"signAlg,omitempty"`

	// hashAlg is the digest of the signature with rsa, rsa-pss and ecdsa: sha-256,
	// sha-384, sha-512, sha3-256, sha3-384 or sha3-512.
	// Example: sha-256.
	// +optional
	// +kubebuilder:validation:Enum=sha-256;sha-384;sha-512;sha3-256;sha3-384;sha3-512
	HashAlg string `json:"hashAlg,omitempty"`

	// keyIds is the key of the broker that signs its share of the key agreement.
	// Example: [{id: shop-sessions}].
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	KeyIDs []KeyID `json:"keyIds,omitempty"`

	// minLifetime is the lifetime of sessions whose clients ask for a
	// shorter one: 1m to 1h. The default is 5m.
	// Example: 5m.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(s|m|h))+$')",message="expected a duration in h, m and s such as 90s or 5m"
	MinLifetime string `json:"minLifetime,omitempty"`

	// maxLifetime is the lifetime of sessions whose clients ask for a
	// longer one: 1m to 1h. The default is 1h.
	// Example: 30m.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(s|m|h))+$')",message="expected a duration in h, m and s such as 90s or 5m"
	MaxLifetime string `json:"maxLifetime,omitempty"`

	// clockWindow is how far the time of a request may be from the
	// broker's, in both directions: 1s to 5m. The default is 5m.
	// Example: 30s.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(s|m|h))+$')",message="expected a duration in h, m and s such as 90s or 5m"
	ClockWindow string `json:"clockWindow,omitempty"`

	// maxMessages is the maximum number of requests that a session may open, and
	// of replies that it may seal. The default is 1048576. Example: 100000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1073741824
	MaxMessages int32 `json:"maxMessages,omitempty"`

	// store is where sessions are kept. In memory, which is the default, they end
	// with the broker. In redis, all brokers with the same settings for Redis
	// have them.
	// +optional
	// +kubebuilder:validation:Enum=memory;redis
	Store string `json:"store,omitempty"`
}
