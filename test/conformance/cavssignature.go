// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/test/conformance/cavs"
	"github.com/crypto-broker/crypto-broker-operator/test/conformance/wire"
)

// curve is a curve of NIST's vectors of ECDSA.
type curve struct {
	oid    asn1.ObjectIdentifier
	size   int  // of a coordinate, and of r and s, in bytes
	served bool // by the broker
}

var cavsCurves = map[string]curve{
	"P-192": {asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 1}, 24, false},
	"P-224": {asn1.ObjectIdentifier{1, 3, 132, 0, 33}, 28, true},
	"P-256": {asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7}, 32, true},
	"P-384": {asn1.ObjectIdentifier{1, 3, 132, 0, 34}, 48, true},
	"P-521": {asn1.ObjectIdentifier{1, 3, 132, 0, 35}, 66, true},
	"K-163": {asn1.ObjectIdentifier{1, 3, 132, 0, 1}, 21, false},
	"B-163": {asn1.ObjectIdentifier{1, 3, 132, 0, 15}, 21, false},
	"K-233": {asn1.ObjectIdentifier{1, 3, 132, 0, 26}, 30, false},
	"B-233": {asn1.ObjectIdentifier{1, 3, 132, 0, 27}, 30, false},
	"K-283": {asn1.ObjectIdentifier{1, 3, 132, 0, 16}, 36, false},
	"B-283": {asn1.ObjectIdentifier{1, 3, 132, 0, 17}, 36, false},
	"K-409": {asn1.ObjectIdentifier{1, 3, 132, 0, 36}, 52, false},
	"B-409": {asn1.ObjectIdentifier{1, 3, 132, 0, 37}, 52, false},
	"K-571": {asn1.ObjectIdentifier{1, 3, 132, 0, 38}, 72, false},
	"B-571": {asn1.ObjectIdentifier{1, 3, 132, 0, 39}, 72, false},
}

// addSignatures adds NIST's vectors of ECDSA and RSA PKCS #1 v1.5.
func (p *plan) addSignatures(vectors *cavs.Vectors) error {
	return errors.Join(p.addCAVSECDSA(vectors), p.addCAVSRSA(vectors))
}

func (p *plan) addCAVSECDSA(vectors *cavs.Vectors) error {
	const path = "asymmetric/ECDSA/FIPS_186-3/SigVer.rsp"
	records, err := vectors.Records(path)
	if err != nil {
		return err
	}
	for i, r := range records {
		if _, vector := r["Result"]; !vector {
			continue // the section's own lines
		}
		section := ""
		for field := range r {
			if strings.Contains(field, ",SHA-") {
				section = field
			}
		}
		name, digest, _ := strings.Cut(section, ",")
		on, known := cavsCurves[name]
		if !known {
			return fmt.Errorf("%s: found the section %q, expected a curve and a digest", path, section)
		}
		v := verification{format: wire.FormatRAW, badKey: strings.Contains(r["Result"], "Q changed")}
		var coordinates [4][]byte
		for i, field := range []string{"Qx", "Qy", "R", "S"} {
			number, ok := new(big.Int).SetString(r[field], 16)
			if !ok || number.BitLen() > 8*on.size {
				return fmt.Errorf("%s: found no number of %d bytes in %s", path, on.size, field)
			}
			coordinates[i] = number.FillBytes(make([]byte, on.size))
		}
		if v.key, err = publicKeyInfoWith(ecdsaOID, on.oid, slices.Concat([]byte{4}, coordinates[0], coordinates[1])); err != nil {
			return err
		}
		v.signature = slices.Concat(coordinates[2], coordinates[3])
		if !on.served {
			v.due = []refusal{{reasonCurve, sayingCurve}}
		}
		if err := p.addCAVSVerification("ecdsa", digest, fmt.Sprintf("%s, %s, vector %d", path, section, i), r, v); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func (p *plan) addCAVSRSA(vectors *cavs.Vectors) error {
	const path = "asymmetric/RSA/FIPS_186-2/SigVer15_186-3.rsp"
	records, err := vectors.Records(path)
	if err != nil {
		return err
	}
	modulus := new(big.Int)
	for i, r := range records {
		if n, given := r["n"]; given {
			if _, ok := modulus.SetString(n, 16); !ok {
				return fmt.Errorf("%s: found no number in n", path)
			}
		}
		if _, vector := r["Result"]; !vector {
			continue // the section's own lines
		}
		exponent, ok := new(big.Int).SetString(r["e"], 16)
		if !ok {
			return fmt.Errorf("%s: found no number in e", path)
		}
		inner, err := asn1.Marshal(struct{ N, E *big.Int }{modulus, exponent})
		if err != nil {
			return err
		}
		v := rsaVerification(wycheproofGroup{KeySize: modulus.BitLen()})
		if v.key, err = publicKeyInfoWith(rsaOID, asn1.NullRawValue, inner); err != nil {
			return err
		}
		if v.signature, err = r.Bytes("S"); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		digest := "sha-" + strings.TrimPrefix(r["SHAAlg"], "SHA")
		if err := p.addCAVSVerification("rsa", digest, fmt.Sprintf("%s, %d bits, vector %d", path, modulus.BitLen(), i), r, v); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func (p *plan) addCAVSVerification(algorithm, digest, name string, r cavs.Record, v verification) (err error) {
	profile, due := p.profiles.signature(algorithm, hashName(digest))
	v.profile, v.due = profile, append(due, v.due...)
	if v.message, err = r.Bytes("Msg"); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(r["Result"], "P"):
		v.result = resultValid
	case strings.HasPrefix(r["Result"], "F"):
		v.result = resultInvalid
	default:
		return fmt.Errorf("found the result %q, expected P or F", r["Result"])
	}
	p.add(row{"VerifyData", profile, fromCAVS}, name, v.run)
	return nil
}

func cavsSource() source {
	return source{cavs.Package, cavs.Version, "NIST CAVS for SHA-2, SHA-3, SHAKE, AES-GCM, ECDSA and RSA PKCS #1 v1.5; the authors' vectors of Ed25519"}
}
