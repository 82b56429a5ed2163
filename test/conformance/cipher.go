// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/crypto-broker/crypto-broker-operator/test/conformance/cavs"
	"github.com/crypto-broker/crypto-broker-operator/test/conformance/wire"
)

// nonceSize is the only size of nonces, in bytes, that the broker accepts.
const nonceSize = 12

// The broker's messages about a ciphertext that does not authenticate, and about nonces
// of another size.
const (
	sayingForged = "ciphertext does not authenticate with this key, nonce, aad and tag"
	reasonNonce  = "a nonce of another size than 12 bytes"
	sayingNonce  = "nonce has "
	cipherStride = 6 // one of this many of CAVS goes into a quick run
)

// aead is a vector of authenticated encryption.
type aead struct {
	key, plaintext []byte
	wire.Sealed
}

// profileFor adds the profile of a vector, and returns the refusals that are expected.
func (a aead) profileFor(p *plan) (string, []refusal) {
	profile, due := p.profiles.cipher(8*len(a.key), 8*len(a.Tag))
	if len(a.Nonce) != nonceSize {
		due = append(due, refusal{reasonNonce, sayingNonce})
	}
	return profile, due
}

func (a aead) encrypts(ctx context.Context, c *wire.Client, profile string, due []refusal) verdict {
	got, err := c.Encrypt(ctx, profile, a.key, a.Nonce, a.Additional, a.plaintext)
	switch {
	case len(due) > 0:
		return judgeRefusal(err, due)
	case err != nil:
		return failed("%v", err)
	}
	return first(
		judgeEqual("the ciphertext", got.Ciphertext, a.Ciphertext),
		judgeEqual("the tag", got.Tag, a.Tag),
		judgeEqual("the nonce", got.Nonce, a.Nonce),
	)
}

func (a aead) decrypts(ctx context.Context, c *wire.Client, profile string, due []refusal, forged bool) verdict {
	plaintext, err := c.Decrypt(ctx, profile, a.key, a.Sealed)
	switch {
	case len(due) > 0:
		return judgeRefusal(err, due)
	case forged:
		if v := judgeRefusal(err, []refusal{{"a forgery", sayingForged}}); v.failed != "" {
			return v
		}
		return passed()
	case err != nil:
		return failed("%v", err)
	}
	return judgeEqual("the plaintext", plaintext, a.plaintext)
}

func (p *plan) addCiphers(vectors *cavs.Vectors) error {
	for _, size := range []int{128, 192, 256} {
		for _, operation := range []string{"EncryptData", "DecryptData"} {
			kind := map[string]string{"EncryptData": "EncryptExtIV", "DecryptData": "Decrypt"}[operation]
			path := fmt.Sprintf("ciphers/AES/GCM/gcm%s%d.rsp", kind, size)
			records, err := vectors.Records(path)
			if err != nil {
				return err
			}
			at := row{operation, fmt.Sprintf("aes-gcm-%d", size), fromCAVS}
			for _, r := range records {
				if _, vector := r["Key"]; !vector {
					continue // the section's own lines
				}
				a, err := aeadOf(r)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				_, forged := r["FAIL"]
				profile, due := a.profileFor(p)
				name := fmt.Sprintf("%s, IVlen %s, PTlen %s, AADlen %s, Taglen %s, Count %s", path, r["IVlen"], r["PTlen"], r["AADlen"], r["Taglen"], r["Count"])
				send := encrypting(a, profile, due)
				if operation == "DecryptData" {
					send = decrypting(a, profile, due, forged)
				}
				p.addSome(cipherStride, at, name, send)
			}
		}
	}
	return nil
}

// aeadOf reads a vector and checks its sizes against the sizes of its section.
func aeadOf(r cavs.Record) (aead, error) {
	var a aead
	for field, to := range map[string]*[]byte{"Key": &a.key, "IV": &a.Nonce, "AAD": &a.Additional, "PT": &a.plaintext, "CT": &a.Ciphertext, "Tag": &a.Tag} {
		data, err := r.Bytes(field)
		if err != nil {
			return a, err
		}
		*to = data
	}
	for field, found := range map[string]int{"Keylen": len(a.key), "IVlen": len(a.Nonce), "AADlen": len(a.Additional), "PTlen": len(a.Ciphertext), "Taglen": len(a.Tag)} {
		if want, err := strconv.Atoi(r[field]); err != nil || want != 8*found {
			return a, fmt.Errorf("found %d bits where the section says %s is %q", 8*found, field, r[field])
		}
	}
	return a, nil
}

func encrypting(a aead, profile string, due []refusal) func(context.Context, *wire.Client) verdict {
	return func(ctx context.Context, c *wire.Client) verdict { return a.encrypts(ctx, c, profile, due) }
}

func decrypting(a aead, profile string, due []refusal, forged bool) func(context.Context, *wire.Client) verdict {
	return func(ctx context.Context, c *wire.Client) verdict { return a.decrypts(ctx, c, profile, due, forged) }
}
