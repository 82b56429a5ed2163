// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/test/conformance/wire"
)

// The broker's messages about keys that it refuses.
const (
	sayingCurve      = "keySource.single.rawKey is an ECDSA key on another curve"
	sayingRestricted = "keySource.single.rawKey is an RSA key restricted to RSASSA-PSS"
	sayingAlgorithm  = "keySource.single.rawKey has a public key of the algorithm "
	sayingSize       = "bits, expected 2048 to "
)

// smallestRSAKey is the size of the smallest RSA key that the broker accepts, in bits.
const smallestRSAKey = 2048

// verification is a vector of VerifyData.
type verification struct {
	profile            string
	key                []byte // in DER
	message, signature []byte
	format             uint64
	result             string
	// badKey reports whether an invalid vector is invalid because of its key.
	badKey bool
	// due are the expected refusals of the vector, whatever its result is.
	due []refusal
	// otherwise is the reason why the broker calls a valid signature invalid: the signature has other parameters than profiles can
	// have.
	otherwise string
}

func (v verification) run(ctx context.Context, c *wire.Client) verdict {
	valid, err := c.Verify(ctx, v.profile, v.key, v.message, v.signature, v.format)
	if len(v.due) > 0 {
		return judgeRefusal(err, v.due)
	}
	if err != nil {
		return v.judgeError(err)
	}
	switch {
	case v.otherwise != "" && valid:
		return failed("valid, expected that it is not: %s", v.otherwise)
	case v.otherwise != "" && v.result != resultInvalid:
		return refused(v.otherwise)
	case v.result == resultValid && !valid:
		return failed("not valid, expected that it is")
	case v.result == resultInvalid && valid:
		return failed("valid, expected that it is not")
	}
	return passed()
}

// judgeError judges an error that no refusal explains. The broker answers with an error if
// the bytes do not have the form of a signature.
func (v verification) judgeError(err error) verdict {
	if v.result == resultValid {
		return failed("%v", err)
	}
	if wrong, is := wrongCode(err, codes.InvalidArgument); is {
		return wrong
	}
	about := status.Convert(err).Message()
	if strings.Contains(about, ": signature ") || v.badKey && strings.Contains(about, ": keySource") {
		return passed()
	}
	return failed("refused for another reason than the signature: %v", err)
}

func (p *plan) addVerification(algorithm, hash, file string, test wycheproofTest, v verification) error {
	if test.Message == nil {
		return errors.New("found no message")
	}
	profile, due := p.profiles.signature(algorithm, hash)
	v.profile, v.due = profile, append(due, v.due...)
	v.message, v.signature, v.result = *test.Message, test.Signature, test.Result
	p.add(row{"VerifyData", profile, fromWycheproof}, test.name(file), v.run)
	return nil
}

// hashName turns Wycheproof's name of a digest into the name in profiles.
func hashName(name string) string {
	name = strings.ToLower(name)
	if suffix, shake := strings.CutPrefix(name, "shake"); shake {
		return "shake-" + suffix
	}
	return name
}

// curves are those that ECDSA keys may be on.
var curves = []string{"secp224r1", "secp256r1", "secp384r1", "secp521r1"}

func addECDSA(format uint64) set {
	return func(p *plan, file string, group wycheproofGroup, test wycheproofTest) error {
		var key struct {
			Curve string `json:"curve"`
		}
		if err := json.Unmarshal(group.PublicKey, &key); err != nil {
			return err
		}
		v := verification{key: group.PublicKeyDER, format: format}
		if !slices.Contains(curves, key.Curve) {
			v.due = []refusal{{reasonCurve, sayingCurve}}
		}
		return p.addVerification("ecdsa", hashName(group.SHA), file, test, v)
	}
}

func addRSA(p *plan, file string, group wycheproofGroup, test wycheproofTest) error {
	return p.addVerification("rsa", hashName(group.SHA), file, test, rsaVerification(group))
}

func rsaVerification(group wycheproofGroup) verification {
	v := verification{key: group.PublicKeyDER, format: wire.FormatRAW}
	if group.KeySize < smallestRSAKey {
		v.due = []refusal{{"an RSA key of less than 2048 bits", sayingSize}}
	}
	return v
}

// digestSizes are the sizes of the digests of signatures, in bytes.
var digestSizes = map[string]int{"sha-256": 32, "sha-384": 48, "sha-512": 64, "sha3-256": 32, "sha3-384": 48, "sha3-512": 64}

func addPSS(p *plan, file string, group wycheproofGroup, test wycheproofTest) error {
	hash := hashName(group.SHA)
	v := rsaVerification(group)
	switch {
	case strings.Contains(file, "_params_"):
		v.due = append(v.due, refusal{"a public key that is restricted to RSASSA-PSS", sayingRestricted})
	case hashName(group.MGFSHA) != hash:
		v.otherwise = "a mask of RSASSA-PSS by another digest than the message's"
	case group.SaltLength != digestSizes[hash]:
		v.otherwise = "a salt of RSASSA-PSS that is not as long as the digest"
		if test.Comment == fmt.Sprintf("s_len changed to %d", digestSizes[hash]) {
			// The signature is invalid with the parameters of its group, and valid with
			// the parameters of profiles.
			v.otherwise, test.Result = "", resultValid
		}
	}
	return p.addVerification("rsa-pss", hash, file, test, v)
}

func addEdDSA(p *plan, file string, group wycheproofGroup, test wycheproofTest) error {
	v := verification{key: group.PublicKeyDER, format: wire.FormatRAW}
	if strings.HasPrefix(file, "ed448_") {
		v.due = []refusal{{"an Ed448 key", sayingAlgorithm}}
	}
	return p.addVerification("ed25519", "", file, test, v)
}

func addMLDSA(p *plan, file string, group wycheproofGroup, test wycheproofTest) error {
	algorithm, err := mldsaOf(file)
	if err != nil {
		return err
	}
	var public hexBytes
	if err := json.Unmarshal(group.PublicKey, &public); err != nil {
		return err
	}
	key, err := publicKeyInfo(mldsaOIDs[algorithm], public)
	if err != nil {
		return err
	}
	v := verification{key: key, format: wire.FormatRAW, badKey: slices.Contains(test.Flags, "IncorrectPublicKeyLength")}
	if len(test.Context) > 0 {
		v.otherwise = reasonContext
	}
	return p.addVerification(algorithm, "", file, test, v)
}

// Reasons of refusals that vectors of several kinds get.
const (
	reasonCurve   = "an ECDSA key on another curve than P-224, P-256, P-384 or P-521"
	reasonContext = "a context string of ML-DSA; the protocol has none"
)

// mldsaOf returns the algorithm in the name of a file.
func mldsaOf(file string) (string, error) {
	for _, algorithm := range postQuantumSigning {
		if strings.HasPrefix(file, "mldsa_"+algorithm[len("ml-dsa-"):]+"_") {
			return algorithm, nil
		}
	}
	return "", fmt.Errorf("found no algorithm in the name of %s", file)
}
