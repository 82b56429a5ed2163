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

// CheckRSASize refuses an RSA public key of more than largest bits, because operations with
// larger keys take longer. Parsing the key takes little time. The error is the end of a sentence,
// as the errors of parsers are.
func CheckRSASize(public crypto.PublicKey, largest int) error {
	if key, ok := public.(*rsa.PublicKey); ok && key.N.BitLen() > largest {
		return rsaTooLarge(key.N.BitLen(), largest)
	}
	return nil
}

func rsaTooLarge(found, largest int) error {
	return fmt.Errorf("is an RSA key of %d bits, expected at most %d", found, largest)
}

// checkPrivateRSASize refuses the DER of an RSA private key of more than largest bits. The parser
// checks and prepares a key before its size is known, which takes a long time for large keys. So
// checkPrivateRSASize reads only the numbers in the DER. It returns nil for other keys.
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

// checkNumbers refuses a modulus of more than largest bits, and other numbers of the key that
// are larger than the modulus. The modulus is the first number.
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

// bitLength returns the length of a number in bits without leading zeros.
func bitLength(number []byte) int {
	for i, b := range number {
		if b != 0 {
			return 8*(len(number)-i-1) + bits.Len8(b)
		}
	}
	return 0
}
