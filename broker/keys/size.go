// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"crypto"
	"crypto/rsa"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/bits"
)

// CheckRSASize refuses a public key of RSA that is larger than some bits, since
// what is done with it takes the longer the larger it is. Like the errors of
// parsers, its own continues a sentence. To read such a key takes no time to
// speak of.
func CheckRSASize(public crypto.PublicKey, largest int) error {
	if key, ok := public.(*rsa.PublicKey); ok && key.N.BitLen() > largest {
		return rsaTooLarge(key.N.BitLen(), largest)
	}
	return nil
}

func rsaTooLarge(found, largest int) error {
	return fmt.Errorf("is an RSA key of %d bits, expected at most %d", found, largest)
}

// checkPrivateRSASize refuses the DER of a private key of RSA that is larger than
// some bits. To parse one checks and prepares it, which takes long before the size
// is known, so that this looks at the numbers in the DER alone. What is no such
// key is left to the parsers.
func checkPrivateRSASize(der []byte, largest int) error {
	var outer struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.RawValue
	}
	if _, err := asn1.Unmarshal(der, &outer); err == nil && outer.Algorithm.Algorithm.Equal(rsaKeyOID) {
		der = outer.Key.Bytes
	}
	// RFC 8017, appendix A.1.2. The values are parts of the DER, not copies.
	var numbers []asn1.RawValue
	_, err := asn1.Unmarshal(der, &numbers)
	if isKey := err == nil && len(numbers) >= 2 && isInteger(numbers[1]); isKey {
		return checkNumbers(numbers[1:], largest)
	}
	return nil
}

// checkNumbers judges the modulus of a key, which is the first number, and those that
// follow: none of them is larger.
func checkNumbers(numbers []asn1.RawValue, largest int) error {
	modulus := bitLength(numbers[0].Bytes)
	if modulus > largest {
		return rsaTooLarge(modulus, largest)
	}
	for _, number := range numbers[1:] {
		if isInteger(number) && bitLength(number.Bytes) > modulus {
			return errDamaged
		}
	}
	return nil
}

func isInteger(value asn1.RawValue) bool {
	return value.Class == asn1.ClassUniversal && value.Tag == asn1.TagInteger
}

// bitLength is the length of a number without the zeros that it begins with.
func bitLength(number []byte) int {
	for i, b := range number {
		if b != 0 {
			return 8*(len(number)-i-1) + bits.Len8(b)
		}
	}
	return 0
}
