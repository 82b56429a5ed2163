// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha3"
	"encoding/binary"
	"fmt"

	"github.com/cloudflare/circl/sign"
	"github.com/cloudflare/circl/sign/mldsa/mldsa44"
	"github.com/cloudflare/circl/sign/mldsa/mldsa65"
	"github.com/cloudflare/circl/sign/mldsa/mldsa87"

	"github.com/crypto-broker/crypto-broker-operator/test/conformance/wire"
)

// fromCIRCL is an implementation of ML-DSA and HPKE that is independent of the broker's. Signatures
// of ML-DSA are random, so vectors cannot show whether the broker's signatures are valid.
const fromCIRCL = "CIRCL"

const circlModule = "github.com/cloudflare/circl"

func circlSource() source {
	return source{
		circlModule, moduleVersion(circlModule),
		"another implementation of ML-DSA: it verifies what the broker signed, and the broker what it signed, and a changed signature; of HPKE and ML-KEM: it unwraps what the broker wrapped, and the broker what it wrapped",
	}
}

// circlKeys is the number of keys and messages for each parameter set.
const circlKeys = 100

func (p *plan) addMLDSAOfOthers() error {
	for algorithm, scheme := range map[string]sign.Scheme{
		"ml-dsa-44": mldsa44.Scheme(), "ml-dsa-65": mldsa65.Scheme(), "ml-dsa-87": mldsa87.Scheme(),
	} {
		profile, _ := p.profiles.signature(algorithm, "")
		for i := range circlKeys {
			v, err := newCrossCheck(algorithm, profile, scheme, uint64(i))
			if err != nil {
				return err
			}
			name := fmt.Sprintf("%s, key %d", algorithm, i)
			p.addSome(5, row{"SignData", algorithm, fromCIRCL}, name, v.brokerSigns)
			p.addSome(5, row{"VerifyData", algorithm, fromCIRCL}, name, v.brokerVerifies)
		}
	}
	return nil
}

// crossCheck is a key that both implementations derive from one seed, and a message.
type crossCheck struct {
	profile     string
	scheme      sign.Scheme
	key         sign.PrivateKey
	public      sign.PublicKey
	private, pk []byte // in DER
	message     []byte
}

// newCrossCheck returns the check of a number. It is the same in each run.
func newCrossCheck(algorithm, profile string, scheme sign.Scheme, number uint64) (*crossCheck, error) {
	stream := sha3.NewSHAKE256()
	_, _ = stream.Write(binary.BigEndian.AppendUint64([]byte(algorithm), number)) // it never fails
	seed, message := make([]byte, scheme.SeedSize()), make([]byte, 97*number)
	_, _ = stream.Read(seed)
	_, _ = stream.Read(message)
	c := &crossCheck{profile: profile, scheme: scheme, message: message}
	c.public, c.key = scheme.DeriveKey(seed)
	public, err := c.public.MarshalBinary()
	if err != nil {
		return nil, err
	}
	if c.pk, err = publicKeyInfo(mldsaOIDs[algorithm], public); err != nil {
		return nil, err
	}
	c.private, err = privateKeyInfo(mldsaOIDs[algorithm], implicit0(seed))
	return c, err
}

// brokerSigns lets the other implementation verify a signature of the broker.
func (c *crossCheck) brokerSigns(ctx context.Context, to *wire.Client) verdict {
	signature, err := to.Sign(ctx, c.profile, c.private, c.message, wire.FormatRAW)
	switch {
	case err != nil:
		return failed("%v", err)
	case !c.scheme.Verify(c.public, c.message, signature, nil):
		return failed("CIRCL calls the signature of the broker not valid")
	}
	return passed()
}

// brokerVerifies lets the broker verify a signature of the other implementation, and the
// same signature with one bit changed.
func (c *crossCheck) brokerVerifies(ctx context.Context, to *wire.Client) verdict {
	signature := c.scheme.Sign(c.key, c.message, nil)
	good, err := to.Verify(ctx, c.profile, c.pk, c.message, signature, wire.FormatRAW)
	if err != nil || !good {
		return failed("the broker does not call CIRCL's signature valid: %t, %v", good, err)
	}
	signature[len(c.message)%len(signature)] ^= 1
	if forged, err := to.Verify(ctx, c.profile, c.pk, c.message, signature, wire.FormatRAW); err != nil || forged {
		return failed("the broker does not call a changed signature not valid: %t, %v", forged, err)
	}
	return passed()
}
