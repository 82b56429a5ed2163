// SPDX-License-Identifier: Apache-2.0

package profile

// The values that fields of a profile may have, in their canonical spelling.
// Names of algorithms, modes and formats are accepted in any case, as released
// brokers do; names of certificate extensions are exact, because they are
// identifiers of RFC 5280.
var (
	cryptoLibraries = []string{"native"}

	// SHA-1 is acceptable as an identifier of a key, where nothing rests on its
	// collision resistance (RFC 5280, section 4.2.1.2; RFC 7093 for the others).
	skiHashAlgorithms = []string{"sha-1", "sha-256", "sha-384", "sha-512", "sha3-256", "sha3-384", "sha3-512"}

	certificateHashAlgorithms = []string{"sha-256", "sha-384", "sha-512"}
	certificateSignAlgorithms = []string{"rsa", "ecdsa", "rsa-pss", "ed25519"}

	dataHashAlgorithms        = []string{"sha-256", "sha-384", "sha-512", "sha3-256", "sha3-384", "sha3-512"}
	classicalSignAlgorithms   = []string{"rsa", "ecdsa", "rsa-pss", "ed25519"}
	postQuantumSignAlgorithms = []string{"ml-dsa-44", "ml-dsa-65", "ml-dsa-87"}
	signingModes              = []string{signingLegacy, signingHybrid, signingPostQuantum}
	signatureFormats          = []string{"RAW", "DER", "PEM", "CMS"}

	keyAlgorithms = []string{"RSA", "ECDSA", "Ed25519"}

	keyUsages = []string{
		"digitalSignature", "contentCommitment", "nonRepudiation", "keyEncipherment", "dataEncipherment",
		"keyAgreement", "keyCertSign", "cRLSign", "encipherOnly", "decipherOnly",
	}
	extendedKeyUsages = []string{
		"serverAuth", "clientAuth", "codeSigning", "emailProtection", "timeStamping", "OCSPSigning",
	}

	subjectAltNameRules    = []string{"deny", "copy", "patterns"}
	distributionPointRules = []string{"any", "deny", "patterns"}

	encryptAlgorithms = []string{"aes-gcm"}
	encryptKeySizes   = []int{128, 192, 256}
	nonceStrategies   = []string{"user-provided", "random"}
	// The tag lengths of AES-GCM in bits that SP 800-38D allows without reserve.
	tagLengths      = []int{96, 104, 112, 120, wholeTagLength}
	shortTagLengths = tagLengths[:len(tagLengths)-1]

	auditLevels = []string{"none", "sampled", "sensitive", "all"}
)

const (
	signingLegacy      = "legacy"
	signingHybrid      = "hybrid"
	signingPostQuantum = "post-quantum"
)
