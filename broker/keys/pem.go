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
	"slices"
	"strings"

	mldsax509 "filippo.io/mldsa/x509"

	"github.com/crypto-broker/crypto-broker-operator/broker/pemtext"
)

// maxPrivateKeySize is the largest DER of a private key in bytes. There is a limit because the
// check of an RSA key takes longer the larger the key is. An RSA key of 16384 bits, the largest
// that a profile can allow, has 9 KiB.
const maxPrivateKeySize = 16 << 10

// Labels of PEM blocks.
const (
	labelPKCS1     = "RSA PRIVATE KEY"
	labelSEC1      = "EC PRIVATE KEY"
	labelPKCS8     = "PRIVATE KEY"
	labelEncrypted = "ENCRYPTED PRIVATE KEY"
	// labelParameters is the label of a PEM block that OpenSSL writes before the key.
	labelParameters = "EC PARAMETERS"
)

// ParsePrivateKey reads the first private key of a PEM text: PKCS #1, SEC 1 or PKCS #8, with
// RSA, ECDSA on a NIST curve, Ed25519 or ML-DSA. It does not read what follows the key.
//
// An error is the end of a sentence that begins with the name of what was parsed. It says what
// was found and what was expected, and has no part of the key. ParsePrivateKey overwrites its
// copies of the key when it returns. The caller overwrites the text.
//
// An RSA key of more than largestRSA bits is refused before it takes much processor time.
func ParsePrivateKey(text []byte, largestRSA int) (crypto.Signer, error) {
	block, rest := pem.Decode(pemtext.WithoutMark(text))
	for block != nil && block.Type == labelParameters {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, errors.New("has no complete PEM block, expected a private key in PEM")
	}
	defer clear(block.Bytes)
	switch {
	case block.Type == labelEncrypted, strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
		return nil, errors.New("is encrypted, expected an unencrypted private key, because the broker has no passphrase")
	case len(block.Bytes) > maxPrivateKeySize:
		return nil, fmt.Errorf("has a PEM block of %d bytes, expected at most %d, more than an RSA key of 16384 bits has", len(block.Bytes), maxPrivateKeySize)
	case block.Type != labelPKCS1 && block.Type != labelSEC1 && block.Type != labelPKCS8:
		return nil, fmt.Errorf("has a PEM block %s, expected \"PRIVATE KEY\", \"EC PRIVATE KEY\" or \"RSA PRIVATE KEY\"", quoteLabel(block.Type))
	}
	return parsePrivateDER(block.Bytes, largestRSA, fmt.Sprintf("has a PEM block %s whose content", quoteLabel(block.Type)))
}

// parsePrivateDER reads a private key in PKCS #8, PKCS #1 or SEC 1. what begins the error for any
// other content.
func parsePrivateDER(der []byte, largestRSA int, what string) (crypto.Signer, error) {
	if err := checkPrivateRSASize(der, largestRSA); err != nil {
		return nil, err
	}
	// All forms are tried, whatever the PEM label says: a wrong label is a common mistake,
	// and no key is valid in two of the forms.
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

	// mldsaKeyOIDs is the beginning of the object identifiers of ML-DSA-44 to ML-DSA-87.
	// Their last number is 17 to 19.
	mldsaKeyOIDs = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 3}

	nistCurves = []asn1.ObjectIdentifier{{1, 3, 132, 0, 33}, {1, 2, 840, 10045, 3, 1, 7}, {1, 3, 132, 0, 34}, {1, 3, 132, 0, 35}}
)

// Errors of private and of public keys.
var (
	errDamaged         = errors.New("is damaged: its parts do not fit together")
	errRestrictedToPSS = errors.New("is an RSA key restricted to RSASSA-PSS, expected the ordinary kind (rsaEncryption); a profile chooses PSS by SignAlg rsa-pss")
)

// shortOID returns the first 64 bytes of an object identifier as text, for a message.
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

// explainPrivateKey returns why no parser accepts a private key. The errors of the parsers are
// not clear enough, because each parser knows only its own form.
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
	// Both are copies of the key, even if only a part could be decoded.
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
			// If the parameters do not name a curve, curve stays empty, which is unknown.
			_, _ = asn1.Unmarshal(pkcs8.Algorithm.Parameters.FullBytes, &curve)
		case algorithm.Equal(rsaKeyOID), algorithm.Equal(ed25519KeyOID):
			return errDamaged
		default:
			return fmt.Errorf("has a key of the algorithm %s, expected RSA, ECDSA or Ed25519", shortOID(algorithm))
		}
	case decodesAs(der, &sec1):
		curve = sec1.Curve
	case decodesAs(der, new([]asn1.RawValue)):
		return fmt.Errorf("%s is DER, but not a private key of PKCS #8, PKCS #1 or SEC 1", what)
	default:
		return fmt.Errorf("%s is damaged or cut: its %d bytes are not complete DER, expected a private key of PKCS #8, PKCS #1 or SEC 1", what, len(der))
	}
	return explainCurve(curve)
}

// explainCurve returns why no parser accepts an ECDSA key on a curve.
func explainCurve(curve asn1.ObjectIdentifier) error {
	if slices.ContainsFunc(nistCurves, curve.Equal) {
		return errDamaged
	}
	return errors.New("is an ECDSA key on another curve, expected P-224, P-256, P-384 or P-521 by name")
}

// explainPublicKey returns why the parser does not accept the DER of a public key. It returns
// nil if der is not a SubjectPublicKeyInfo.
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
		// If the parameters do not name a curve, curve stays empty, which is unknown.
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
