// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/test/conformance/cavs"
	"github.com/crypto-broker/crypto-broker-operator/test/conformance/wire"
)

// SignData can be compared with vectors if key and message determine the signature: for
// RSA PKCS #1 v1.5 and Ed25519. The broker's ML-DSA is hedged, so a signature with a
// published seed has to verify with the published public key.

const fromEd25519Authors = "Ed25519 authors"

func (p *plan) addEd25519Signing(vectors *cavs.Vectors) error {
	const path = "asymmetric/Ed25519/sign.input"
	f, err := vectors.File(path)
	if err != nil {
		return err
	}
	defer f.Close()
	profile, _ := p.profiles.signature("ed25519", "")
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, cavs.MaxLine)
	line := 0
	for scanner.Scan() {
		line++
		// Seed and public key; public key; message; signature and message.
		var parts [][]byte
		for text := range strings.SplitSeq(scanner.Text(), ":") {
			part, err := hex.DecodeString(text)
			if err != nil {
				return fmt.Errorf("%s, line %d: %w", path, line, err)
			}
			parts = append(parts, part)
		}
		if len(parts) < 4 || len(parts[0]) != 64 || len(parts[1]) != 32 || len(parts[3]) < 64 {
			return fmt.Errorf("%s, line %d: found no vector of Ed25519", path, line)
		}
		message, signature := parts[2], parts[3][:64]
		private, err := privateKeyInfo(ed25519OID, octetString(parts[0][:32]))
		if err != nil {
			return err
		}
		public, err := publicKeyInfo(ed25519OID, parts[1])
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s, line %d", path, line)
		p.addSome(4, row{"SignData", profile, fromEd25519Authors}, name, signing(profile, private, message, signature, nil))
		v := verification{profile: profile, key: public, message: message, signature: signature, format: wire.FormatRAW, result: resultValid}
		p.addSome(4, row{"VerifyData", profile, fromEd25519Authors}, name, v.run)
	}
	return scanner.Err()
}

// signing sends a vector whose signature is deterministic.
func signing(profile string, key, message, signature []byte, due []refusal) func(context.Context, *wire.Client) verdict {
	return func(ctx context.Context, c *wire.Client) verdict {
		got, err := c.Sign(ctx, profile, key, message, wire.FormatRAW)
		switch {
		case len(due) > 0:
			return judgeRefusal(err, due)
		case err != nil:
			return failed("%v", err)
		}
		return judgeEqual("the signature", got, signature)
	}
}

func addRSASigning(p *plan, file string, group wycheproofGroup, test wycheproofTest) error {
	if test.Message == nil {
		return errors.New("found no message")
	}
	if test.Result == resultInvalid {
		return errors.New("found an invalid test, expected such that can be signed")
	}
	profile, due := p.profiles.signature("rsa", hashName(group.SHA))
	due = append(due, rsaVerification(group).due...)
	p.add(row{"SignData", profile, fromWycheproof}, test.name(file),
		signing(profile, group.PrivateKeyPKCS8, *test.Message, test.Signature, due))
	return nil
}

func addMLDSASigning(p *plan, file string, group wycheproofGroup, test wycheproofTest) error {
	algorithm, err := mldsaOf(file)
	if err != nil {
		return err
	}
	at := row{"SignData", algorithm, fromWycheproof}
	switch {
	case len(test.Context) > 0:
		p.leave(at, reasonContext)
		return nil
	case test.Message == nil:
		p.leave(at, "a digest (mu) in place of a message; the protocol has none")
		return nil
	}
	var public hexBytes
	if len(group.PublicKey) > 0 {
		if err := json.Unmarshal(group.PublicKey, &public); err != nil {
			return err
		}
	}
	profile, _ := p.profiles.signature(algorithm, "")
	private := []byte(group.PrivateKeyPKCS8)
	if len(private) == 0 {
		if private, err = privateKeyInfo(mldsaOIDs[algorithm], implicit0(group.PrivateSeed)); err != nil {
			return err
		}
	}
	if test.Result == resultInvalid {
		p.add(at, test.name(file), signing(profile, private, *test.Message, nil, []refusal{{"a seed of ML-DSA of another size than 32 bytes", sayingSeed}}))
		return nil
	}
	key, err := publicKeyInfo(mldsaOIDs[algorithm], public)
	if err != nil {
		return err
	}
	p.add(at, test.name(file), func(ctx context.Context, c *wire.Client) verdict {
		signature, err := c.Sign(ctx, profile, private, *test.Message, wire.FormatRAW)
		if err != nil {
			return failed("%v", err)
		}
		valid, err := c.Verify(ctx, profile, key, *test.Message, signature, wire.FormatRAW)
		switch {
		case err != nil:
			return failed("verifying what was signed: %v", err)
		case !valid:
			return failed("what was signed with the seed is not valid under the public key")
		}
		return passed()
	})
	return nil
}

// sayingSeed is in the broker's message about a key of ML-DSA that is no seed.
const sayingSeed = "is an ML-DSA key that is not in the seed form of RFC 9881"

func addMLDSASigningWithoutSeed(p *plan, file string, group wycheproofGroup, test wycheproofTest) error {
	algorithm, err := mldsaOf(file)
	if err != nil {
		return err
	}
	at := row{"SignData", algorithm, fromWycheproof}
	if test.Message == nil {
		p.leave(at, "a digest (mu) in place of a message; the protocol has none")
		return nil
	}
	var expanded hexBytes
	if err := json.Unmarshal(group.PrivateKey, &expanded); err != nil {
		return err
	}
	private, err := privateKeyInfo(mldsaOIDs[algorithm], octetString(expanded))
	if err != nil {
		return err
	}
	profile, _ := p.profiles.signature(algorithm, "")
	p.add(at, test.name(file), signing(profile, private, *test.Message, nil,
		[]refusal{{"a private key of ML-DSA that is not its seed", sayingSeed}}))
	return nil
}
