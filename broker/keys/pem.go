// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	mldsax509 "filippo.io/mldsa/x509"
)

// maxPrivateKeySize bounds the DER of a private key, in bytes: checking an RSA
// key takes the longer the larger it is. A key of 16384 bits, the largest that
// a profile can allow, has 9 KiB.
const maxPrivateKeySize = 16 << 10

// The labels of PEM blocks that matter here.
const (
	labelPKCS1     = "RSA PRIVATE KEY"
	labelSEC1      = "EC PRIVATE KEY"
	labelPKCS8     = "PRIVATE KEY"
	labelEncrypted = "ENCRYPTED PRIVATE KEY"
	// labelParameters is what OpenSSL writes before the key itself.
	labelParameters = "EC PARAMETERS"
)

// ParsePrivateKey reads the first private key of a PEM text: PKCS #1, SEC 1 or
// PKCS #8, with RSA, ECDSA on a NIST curve, Ed25519 or ML-DSA. What follows the
// key is not looked at.
//
// An error continues a sentence that begins with the name of what was parsed:
// what was found and what was expected. It holds nothing of the key. What this
// function itself had of the key is overwritten when it returns; the text is the
// caller's to overwrite.
//
// An RSA key of more than largestRSA bits is refused before anything is done with
// it that takes time.
func ParsePrivateKey(text []byte, largestRSA int) (crypto.Signer, error) {
	block, rest := pem.Decode(text)
	for block != nil && block.Type == labelParameters {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, errors.New("has no complete PEM block, expected a private key in PEM")
	}
	defer clear(block.Bytes)
	switch {
	case block.Type == labelEncrypted, strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
		return nil, errors.New("is encrypted, expected a private key that is not: the broker has no passphrase to open it with")
	case len(block.Bytes) > maxPrivateKeySize:
		return nil, fmt.Errorf("has a PEM block of %d bytes, expected at most %d, more than an RSA key of 16384 bits has", len(block.Bytes), maxPrivateKeySize)
	case block.Type != labelPKCS1 && block.Type != labelSEC1 && block.Type != labelPKCS8:
		return nil, fmt.Errorf("has a PEM block %s, expected \"PRIVATE KEY\", \"EC PRIVATE KEY\" or \"RSA PRIVATE KEY\"", quoteLabel(block.Type))
	}
	return parsePrivateDER(block.Bytes, largestRSA, fmt.Sprintf("has a PEM block %s whose content", quoteLabel(block.Type)))
}

// parsePrivateDER reads a private key in any of the three forms. what begins the
// sentence about content that has none of them.
func parsePrivateDER(der []byte, largestRSA int, what string) (crypto.Signer, error) {
	if err := checkPrivateRSASize(der, largestRSA); err != nil {
		return nil, err
	}
	// A label that belongs to another of the three forms is a common mistake
	// that never mattered: the forms cannot be taken for each other.
	for _, parse := range []func([]byte) (any, error){mldsax509.ParsePKCS8PrivateKey, parsePKCS1, parseSEC1} {
		key, err := parse(der)
		if err != nil {
			continue
		}
		signer, ok := key.(crypto.Signer)
		if !ok {
			return nil, errors.New("is a key for key agreement, expected one that signs: RSA, ECDSA or Ed25519")
		}
		return signer, nil
	}
	return nil, explainPrivateKey(der, what)
}

func parsePKCS1(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) }
func parseSEC1(der []byte) (any, error)  { return x509.ParseECPrivateKey(der) }

// quoteLabel quotes the label of a PEM block for a message.
func quoteLabel(text string) string {
	const longest = 32
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return fmt.Sprintf("%q", text)
}

var (
	rsaKeyOID     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}
	rsaPSSKeyOID  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 10}
	ecdsaKeyOID   = asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}
	ed25519KeyOID = asn1.ObjectIdentifier{1, 3, 101, 112}

	// mldsaKeyOIDs is the arc of ML-DSA-44 to ML-DSA-87, whose last number is 17 to 19.
	mldsaKeyOIDs = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 3}

	nistCurves = []asn1.ObjectIdentifier{{1, 3, 132, 0, 33}, {1, 2, 840, 10045, 3, 1, 7}, {1, 3, 132, 0, 34}, {1, 3, 132, 0, 35}}
)

// What keys of either kind are refused for.
var (
	errDamaged         = errors.New("is damaged: its parts do not fit together")
	errRestrictedToPSS = errors.New("is an RSA key restricted to RSASSA-PSS, expected the ordinary kind (rsaEncryption); a profile chooses PSS by SignAlg rsa-pss")
)

// shortOID writes an object identifier for a message, which has to stay short
// whatever a key claims to be.
func shortOID(oid asn1.ObjectIdentifier) string {
	const longest = 64
	text := oid.String()
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return text
}

func isMLDSAKeyOID(oid asn1.ObjectIdentifier) bool {
	last := len(mldsaKeyOIDs)
	return len(oid) == last+1 && oid[:last].Equal(mldsaKeyOIDs) && oid[last] >= 17 && oid[last] <= 19
}

// explainPrivateKey tells why no parser takes a private key. The parsers' own words are
// for programmers, and each knows only its own form.
func explainPrivateKey(der []byte, what string) error {
	var pkcs8 struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       []byte
	}
	var sec1 struct {
		Version int
		Key     []byte
		Curve   asn1.ObjectIdentifier `asn1:"optional,explicit,tag:0"`
		Public  asn1.BitString        `asn1:"optional,explicit,tag:1"`
	}
	// These are copies, even where only a part could be decoded.
	defer func() {
		clear(pkcs8.Key)
		clear(sec1.Key)
	}()
	curve := asn1.ObjectIdentifier{}
	switch {
	case decodesAs(der, &pkcs8):
		switch algorithm := pkcs8.Algorithm.Algorithm; {
		case algorithm.Equal(rsaPSSKeyOID):
			return errRestrictedToPSS
		case algorithm.Equal(ecdsaKeyOID):
			// What are no parameters of a named curve is on an unknown one.
			_, _ = asn1.Unmarshal(pkcs8.Algorithm.Parameters.FullBytes, &curve)
		case algorithm.Equal(rsaKeyOID), algorithm.Equal(ed25519KeyOID):
			return errDamaged
		default:
			return fmt.Errorf("has a key of the algorithm %s, expected RSA, ECDSA or Ed25519", shortOID(algorithm))
		}
	case decodesAs(der, &sec1):
		curve = sec1.Curve
	case decodesAs(der, new([]asn1.RawValue)):
		return fmt.Errorf("%s is DER, but no private key of PKCS #8, PKCS #1 or SEC 1", what)
	default:
		return fmt.Errorf("%s is damaged or cut: its %d bytes are no complete DER, expected a private key of PKCS #8, PKCS #1 or SEC 1", what, len(der))
	}
	return explainCurve(curve)
}

// explainCurve tells why a key with the parameters of a named curve is not taken.
func explainCurve(curve asn1.ObjectIdentifier) error {
	for _, known := range nistCurves {
		if curve.Equal(known) {
			return errDamaged
		}
	}
	return errors.New("is an ECDSA key on another curve, expected P-224, P-256, P-384 or P-521 by name")
}

// explainPublicKey tells why the DER of a public key is not taken, or returns nil
// where it is no SubjectPublicKeyInfo at all.
func explainPublicKey(der []byte) error {
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}
	if !decodesAs(der, &info) {
		return nil
	}
	switch algorithm := info.Algorithm.Algorithm; {
	case algorithm.Equal(rsaPSSKeyOID):
		return errRestrictedToPSS
	case algorithm.Equal(ecdsaKeyOID):
		curve := asn1.ObjectIdentifier{}
		// What are no parameters of a named curve is on an unknown one.
		_, _ = asn1.Unmarshal(info.Algorithm.Parameters.FullBytes, &curve)
		return explainCurve(curve)
	case algorithm.Equal(rsaKeyOID), algorithm.Equal(ed25519KeyOID), isMLDSAKeyOID(algorithm):
		return errDamaged
	default:
		return fmt.Errorf("has a public key of the algorithm %s, expected RSA, ECDSA, Ed25519 or ML-DSA", shortOID(algorithm))
	}
}

func decodesAs(der []byte, into any) bool {
	rest, err := asn1.Unmarshal(der, into)
	return err == nil && len(rest) == 0
}
