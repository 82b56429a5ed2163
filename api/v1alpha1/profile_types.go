// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// ProfileSpec is one policy: the operations that it offers, and their rules. It
// has the fields of a profile in a profile file, in camelCase.
type ProfileSpec struct {
	// profileName is the name by which applications ask for the profile, at most
	// 64 bytes. Upper and lower case matter. If it is absent, metadata.name is
	// the name. It is for names that cannot be names of objects.
	// Example: FIPS-140-3-256bit.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[^\s\p{C}]([^\p{C}]*[^\s\p{C}])?$`
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 64",message="a profile name has at most 64 bytes"
	ProfileName string `json:"profileName,omitempty"`

	// settings chooses the implementation of the primitives. It can be left out.
	// Example: {cryptoLibrary: native}.
	// +optional
	Settings *Settings `json:"settings,omitempty"`

	// kms names an external key manager and how to reach it. Brokers in pods
	// refuse keys by id then. To use keys of a key manager, make a KeyProvider
	// and name its keys in keyIds.
	// Example: {client: pkcs11, config: {slot: 1}, cache: {ttl: 10s}}.
	// +optional
	KMS *KMS `json:"kms,omitempty"`

	// api has one entry for each operation that the profile offers, and at
	// least one. Brokers refuse calls of other operations.
	// Example: {hashData: {hashAlg: sha3-512}}.
	// +required
	API Operations `json:"api"`

	// callers restricts who may use the profile. If it is absent, every container
	// of a pod with a broker may. The caller has to be in each list that callers
	// has.
	// Example: {containers: [web]}.
	// +optional
	Callers *Callers `json:"callers,omitempty"`

	// audit says which calls the brokers record. If it is absent, they record none.
	// Example: {level: sensitive, required: true}.
	// +optional
	Audit *Audit `json:"audit,omitempty"`

	// deprecation announces the end of the profile. Each reply has the warning.
	// Nothing else changes.
	// Example: {replacedBy: orders-2027, removeAfter: "2027-12-31"}.
	// +optional
	Deprecation *Deprecation `json:"deprecation,omitempty"`

	// rollout brings changes of the profile to some pods first. If it is absent,
	// a change reaches all pods at once.
	// Example: {steps: [{setWeight: 10, pause: {duration: 10m}}]}.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`
}

// Settings chooses the implementation of the primitives.
type Settings struct {
	// cryptoLibrary is the implementation. The default, native, is the standard
	// library of Go.
	// +optional
	// +kubebuilder:validation:Enum=native
	CryptoLibrary string `json:"cryptoLibrary,omitempty"`
}

// KMS names an external key manager and how to reach it. It must not have
// credentials, because every reader of the profile sees it.
type KMS struct {
	// client names the kind of key manager.
	// Example: pkcs11.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Client string `json:"client"`

	// config is the configuration of the client, as the client defines it.
	// Example: {slot: 1, label: orders}.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Config map[string]apiextensionsv1.JSON `json:"config,omitempty"`

	// cache configures how long keys are kept, as the client defines it.
	// Example: {ttl: 10s}.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Cache map[string]apiextensionsv1.JSON `json:"cache,omitempty"`
}

// Operations has one entry for each operation that the profile offers.
// +kubebuilder:validation:XValidation:rule="has(self.hashData) || has(self.signCertificate) || has(self.encryptData) || has(self.signData) || has(self.dataKeys) || has(self.session)",message="a profile offers at least one operation: hashData, signCertificate, encryptData, signData, dataKeys or session"
type Operations struct {
	// hashData offers the operation HashData: the digest of data.
	// Example: {hashAlg: sha3-512}.
	// +optional
	HashData *HashData `json:"hashData,omitempty"`

	// signCertificate offers the operation SignCertificate: a certificate for
	// a signing request.
	// Example, certificates of a year for clients of TLS:
	// {signAlg: ecdsa, hashAlg: sha-384,
	// validity: {validNotBeforeOffset: -1h, validNotAfterOffset: 8760h},
	// keyConstraints: {subject: {ecdsa: {minKeySize: 256, maxKeySize: 384}},
	// issuer: {ecdsa: {minKeySize: 384, maxKeySize: 521}}},
	// keyUsage: [digitalSignature], extendedKeyUsage: [clientAuth]}.
	// +optional
	SignCertificate *SignCertificate `json:"signCertificate,omitempty"`

	// encryptData offers the operations EncryptData and DecryptData.
	// Example: {encryptAlg: aes-gcm, keySize: 256, nonceStrategy: random}.
	// +optional
	EncryptData *EncryptData `json:"encryptData,omitempty"`

	// signData offers the operations SignData and VerifyData.
	// Example: {signAlg: ecdsa, hashAlg: sha-384, signatureFormat: DER,
	// keyConstraints: {issuer: {ecdsa: {minKeySize: 384, maxKeySize: 384}}}}.
	// +optional
	SignData *SignData `json:"signData,omitempty"`

	// dataKeys offers the operations GenerateDataKey, WrapKey, UnwrapKey,
	// UnwrapBatch, RewrapKey, GetPublicKey, EncryptStream and DecryptStream.
	// Example: {wrapAlgs: [aes-gcm], keySize: 256, keyIds: [{id: orders-kek}]}.
	// +optional
	DataKeys *DataKeys `json:"dataKeys,omitempty"`

	// session offers the operations InitSession, OpenRequest, SealReply,
	// CloseSession and RekeySession: encrypted sessions of clients of an
	// application.
	// Example: {protocols: [session-v1], keyAgreementAlg: ECDH_P256,
	// encryptAlg: A256GCM}.
	// +optional
	Session *Session `json:"session,omitempty"`
}

// DataKeys is the policy of the operations on data keys.
// +kubebuilder:validation:XValidation:rule="!has(self.context) || self.context != 'required' || !self.wrapAlgs.exists(a, a in ['aes-kw', 'aes-kwp'])",message="aes-kw and aes-kwp cannot bind a data key to a context: leave them out, or choose another context than required"
type DataKeys struct {
	// wrapAlgs are the algorithms that wrap data keys. A key wraps with the
	// first one that it has, and unwraps with all of them. For AES keys: aes-kw,
	// aes-kwp (RFC 3394, RFC 5649) and aes-gcm. For RSA keys: rsa-oaep-sha-1,
	// rsa-oaep-sha-256, rsa-oaep-sha-384 and rsa-oaep-sha-512. For others, HPKE
	// (RFC 9180): hpke-p-256, hpke-p-384, hpke-p-521, hpke-ml-kem-768,
	// hpke-ml-kem-1024 and hpke-mlkem768-x25519.
	// Example: [aes-gcm].
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Enum=aes-kw;aes-kwp;aes-gcm;rsa-oaep-sha-1;rsa-oaep-sha-256;rsa-oaep-sha-384;rsa-oaep-sha-512;hpke-p-256;hpke-p-384;hpke-p-521;hpke-ml-kem-768;hpke-ml-kem-1024;hpke-mlkem768-x25519
	WrapAlgs []string `json:"wrapAlgs"`

	// keySize is the size of generated data keys in bits.
	// +required
	// +kubebuilder:validation:Enum=128;192;256
	KeySize int32 `json:"keySize"`

	// context says whether data keys are bound to a context, such as the name
	// of a tenant, which has to be given again to unwrap them. If it is absent,
	// it is optional.
	// +optional
	// +kubebuilder:validation:Enum=required;optional;none
	Context string `json:"context,omitempty"`

	// keyIds are the keys of the broker that wrap and unwrap. The id * alone
	// stands for every key.
	// Example: [{id: orders-kek}].
	// +required
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="size(self) == 1 || !self.exists(k, k.id == '*')",message="the id * stands for every key of the broker, expected no other id in the list"
	KeyIDs []KeyID `json:"keyIds"`
}

// HashData is the policy of the operation HashData.
type HashData struct {
	// hashAlg is the digest algorithm of FIPS 180-4 or FIPS 202: sha-256,
	// sha-384, sha-512, sha-512/256, sha3-256, sha3-384, sha3-512, shake-128
	// (16 bytes) or shake-256 (32 bytes).
	// Example: sha3-512.
	// +required
	// +kubebuilder:validation:Enum=sha-256;sha-384;sha-512;sha-512/256;sha3-256;sha3-384;sha3-512;shake-128;shake-256
	HashAlg string `json:"hashAlg"`
}

// EncryptData is the policy of the operations EncryptData and DecryptData.
type EncryptData struct {
	// encryptAlg is the algorithm: aes-gcm, AES in Galois/Counter Mode (NIST
	// SP 800-38D).
	// +required
	// +kubebuilder:validation:Enum=aes-gcm
	EncryptAlg string `json:"encryptAlg"`

	// keySize is the size of the key in bits. A key of another size is refused.
	// +required
	// +kubebuilder:validation:Enum=128;192;256
	KeySize int32 `json:"keySize"`

	// nonceStrategy says who makes the nonce. With user-provided it is in the
	// request, and the application must never use a nonce twice with a key. With
	// random the broker makes it, and refuses a request that has a nonce.
	// +required
	// +kubebuilder:validation:Enum=user-provided;random
	NonceStrategy string `json:"nonceStrategy"`

	// tagLength is 96, 104, 112, 120 or 128 and has no effect, as in released
	// brokers: the authentication tag has 128 bits, unless shortTagLength asks
	// for fewer.
	// Example: 128.
	// +optional
	// +kubebuilder:default=128
	// +kubebuilder:validation:Minimum=96
	// +kubebuilder:validation:Maximum=128
	// +kubebuilder:validation:MultipleOf=8
	TagLength int32 `json:"tagLength,omitempty"`

	// shortTagLength is the length of a short authentication tag in bits: 96,
	// 104, 112 or 120. If it is absent, tags have 128 bits. Brokers decrypt only
	// data whose tag has this length.
	// Example: 96.
	// +optional
	// +kubebuilder:validation:Enum=96;104;112;120
	ShortTagLength int32 `json:"shortTagLength,omitempty"`

	// keyIds are the keys of the broker that requests may name. The id * alone
	// stands for every key. If keyIds is absent, requests bring their own keys.
	// Example: [{id: orders-2026}].
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="size(self) == 1 || !self.exists(k, k.id == '*')",message="the id * stands for every key of the broker, expected no other id in the list"
	KeyIDs []KeyID `json:"keyIds,omitempty"`
}

// SignData is the policy of the operations SignData and VerifyData.
// +kubebuilder:validation:XValidation:rule="(has(self.signingMode) && self.signingMode == 'hybrid') == self.signAlg.contains('+')",message="two algorithms joined by + are for signingMode hybrid, and hybrid needs two, such as ecdsa+ml-dsa-65"
// +kubebuilder:validation:XValidation:rule="(has(self.signingMode) && self.signingMode == 'post-quantum') == self.signAlg.startsWith('ml-dsa-')",message="signAlg ml-dsa-44, ml-dsa-65 and ml-dsa-87 are for signingMode post-quantum, and post-quantum needs one of them"
// +kubebuilder:validation:XValidation:rule="(self.signAlg.startsWith('rsa') || self.signAlg.startsWith('ecdsa')) == has(self.hashAlg)",message="hashAlg is required with rsa, rsa-pss and ecdsa, and not allowed with ed25519 and ml-dsa, which have their own"
// +kubebuilder:validation:XValidation:rule="!has(self.signatureFormat) || self.signatureFormat != 'CMS' || (self.signAlg in ['rsa', 'ecdsa'] && has(self.hashAlg) && self.hashAlg.startsWith('sha-'))",message="signatureFormat CMS needs signAlg rsa or ecdsa with a hashAlg of sha-256, sha-384 or sha-512"
type SignData struct {
	// signingMode is legacy for a classical algorithm, post-quantum for an
	// algorithm of FIPS 204, and hybrid for one of each. The default is legacy.
	// +optional
	// +kubebuilder:validation:Enum=legacy;hybrid;post-quantum
	SigningMode string `json:"signingMode,omitempty"`

	// signAlg is the signature algorithm: rsa (PKCS #1 v1.5), rsa-pss, ecdsa
	// or ed25519; with signingMode post-quantum ml-dsa-44, ml-dsa-65 or
	// ml-dsa-87 (FIPS 204); with hybrid one of each.
	// Example: ecdsa, or for signingMode hybrid ecdsa+ml-dsa-65.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^((rsa|rsa-pss|ecdsa|ed25519)([+]ml-dsa-(44|65|87))?|ml-dsa-(44|65|87))$')",message="expected rsa, rsa-pss, ecdsa or ed25519; with signingMode post-quantum ml-dsa-44, ml-dsa-65 or ml-dsa-87; with hybrid one of each, such as ecdsa+ml-dsa-65"
	SignAlg string `json:"signAlg"`

	// hashAlg is the digest algorithm of the signature: sha-256, sha-384, sha-512,
	// sha3-256, sha3-384 or sha3-512. It is required with rsa, rsa-pss and ecdsa.
	// It is not allowed with ed25519 and ml-dsa.
	// +optional
	// +kubebuilder:validation:Enum=sha-256;sha-384;sha-512;sha3-256;sha3-384;sha3-512
	HashAlg string `json:"hashAlg,omitempty"`

	// signatureFormat is the format of signatures. If it is absent, the request
	// chooses the format.
	// +optional
	// +kubebuilder:validation:Enum=RAW;DER;PEM;CMS
	SignatureFormat string `json:"signatureFormat,omitempty"`

	// keyConstraints limits the keys that may be used.
	// Example: {issuer: {ecdsa: {minKeySize: 256, maxKeySize: 521}}}.
	// +optional
	KeyConstraints *DataKeyConstraints `json:"keyConstraints,omitempty"`

	// keyIds are the keys of the broker that requests may name. The id * alone
	// stands for every key. If keyIds is absent, requests bring their own keys.
	// Example: [{id: orders-2026}].
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="size(self) == 1 || !self.exists(k, k.id == '*')",message="the id * stands for every key of the broker, expected no other id in the list"
	KeyIDs []KeyID `json:"keyIds,omitempty"`
}

// KeyID allows one key of the broker by its id.
// +kubebuilder:validation:XValidation:rule="self.id != '*' || !has(self.spkiSHA256)",message="the id * stands for every key of the broker, expected no spkiSHA256 with it"
type KeyID struct {
	// id is the id of the key: printable ASCII without spaces. In encryptData,
	// signData and dataKeys, * stands for every key.
	// Example: orders-2026.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[!-~]+$`
	ID string `json:"id"`

	// spkiSHA256 pins the key: the SHA-256 of its DER SubjectPublicKeyInfo in
	// lower-case hexadecimal. A key of this id with another public key is
	// refused.
	// Example: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, as
	// openssl pkey -pubin -in key.pem -outform DER | sha256sum prints it.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SPKISHA256 string `json:"spkiSHA256,omitempty"`
}

// Callers restricts who may use a profile. The caller has to be in each list.
// +kubebuilder:validation:XValidation:rule="has(self.containers) || has(self.uids) || has(self.gids)",message="callers restricts nothing: give containers, uids or gids, or leave callers out"
type Callers struct {
	// containers are names of containers of the pod.
	// Example: [web, worker].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Containers []string `json:"containers,omitempty"`

	// uids are numeric user ids. The effective user id of the calling process has
	// to be among them.
	// Example: [1000].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=4294967294
	UIDs []int64 `json:"uids,omitempty"`

	// gids are numeric group ids. The effective group id of the calling process
	// has to be among them.
	// Example: [1000].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=4294967294
	GIDs []int64 `json:"gids,omitempty"`
}

// Audit says which calls are recorded.
// +kubebuilder:validation:XValidation:rule="!has(self.required) || !self.required || self.level != 'none'",message="required needs a level other than none: with none there is no record to write"
type Audit struct {
	// level is none, sampled (one of 100 calls), sensitive (calls that use
	// a key) or all. Calls that fail are recorded on each level but none.
	// +required
	// +kubebuilder:validation:Enum=none;sampled;sensitive;all
	Level string `json:"level"`

	// required refuses a call whose record cannot be written. If it is false,
	// such a record is lost, and the next one says so.
	// Example: true.
	// +optional
	Required bool `json:"required,omitempty"`
}

// Deprecation announces the end of a profile.
type Deprecation struct {
	// replacedBy is the name of the profile to use instead.
	// Example: orders-2027.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ReplacedBy string `json:"replacedBy,omitempty"`

	// deprecatedSince is since when the profile should not be used any more.
	// Example: "2026-01-31".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	DeprecatedSince string `json:"deprecatedSince,omitempty"`

	// removeAfter is the time after which the profile may be removed.
	// Example: "2027-01-31".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	RemoveAfter string `json:"removeAfter,omitempty"`

	// reason says why the profile ends, in a sentence for owners of applications.
	// Example: Keys of 2048 bits are no longer enough.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}
