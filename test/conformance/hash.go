// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/crypto-broker/crypto-broker-operator/test/conformance/cavs"
	"github.com/crypto-broker/crypto-broker-operator/test/conformance/wire"
)

// hashFiles are the beginnings of the names of NIST's files.
var hashFiles = []struct{ path, algorithm string }{
	{"SHA1/SHA1", "sha-1"},
	{"SHA2/SHA224", "sha-224"},
	{"SHA2/SHA256", "sha-256"},
	{"SHA2/SHA384", "sha-384"},
	{"SHA2/SHA512", "sha-512"},
	{"SHA2/SHA512_224", "sha-512/224"},
	{"SHA2/SHA512_256", "sha-512/256"},
	{"SHA3/SHA3_224", "sha3-224"},
	{"SHA3/SHA3_256", "sha3-256"},
	{"SHA3/SHA3_384", "sha3-384"},
	{"SHA3/SHA3_512", "sha3-512"},
	{"SHAKE/SHAKE128", "shake-128"},
	{"SHAKE/SHAKE256", "shake-256"},
}

const fromCAVS = "NIST CAVS"

func (p *plan) addHashes(vectors *cavs.Vectors) error {
	for _, file := range hashFiles {
		profile, due := p.profiles.hash(file.algorithm)
		at := row{"HashData", file.algorithm, fromCAVS}
		for _, kind := range []string{"ShortMsg", "LongMsg"} {
			path := "hashes/" + file.path + kind + ".rsp"
			records, err := vectors.Records(path)
			if err != nil {
				return err
			}
			for _, r := range records {
				if _, vector := r["Msg"]; !vector {
					continue // the section's own lines
				}
				message, digest, err := hashed(r)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				p.add(at, fmt.Sprintf("%s, Len %s", path, r["Len"]), func(ctx context.Context, c *wire.Client) verdict {
					return judgeHash(ctx, c, profile, due, message, digest)
				})
			}
		}
		var err error
		if shake := slices.Contains([]string{"shake-128", "shake-256"}, file.algorithm); shake {
			err = p.addOtherLengths(vectors, file.path, file.algorithm)
		} else {
			err = p.addMonteCarlo(vectors, file.path, file.algorithm)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hashed returns the message and the digest of a vector.
func hashed(r cavs.Record) (message, digest []byte, err error) {
	if message, err = r.Bytes("Msg"); err != nil {
		return nil, nil, err
	}
	if length, given := r["Len"]; given {
		bits, err := strconv.Atoi(length)
		if err != nil || bits%8 != 0 || bits/8 > len(message) {
			return nil, nil, fmt.Errorf("found the length %q of a message of %d bytes, expected bits of whole bytes", length, len(message))
		}
		message = message[:bits/8] // NIST writes the empty message as 00
	}
	field := "MD"
	if _, extendable := r["Output"]; extendable {
		field = "Output"
	}
	digest, err = r.Bytes(field)
	return message, digest, err
}

func judgeHash(ctx context.Context, c *wire.Client, profile string, due []refusal, message, digest []byte) verdict {
	hexadecimal, raw, err := c.Hash(ctx, profile, message)
	switch {
	case len(due) > 0:
		return judgeRefusal(err, due)
	case err != nil:
		return failed("%v", err)
	case hexadecimal != hex.EncodeToString(digest):
		return failed("the digest is %s, expected %x", hexadecimal, digest)
	}
	return judgeEqual("the digest", raw, digest)
}

// addOtherLengths adds vectors of SHAKE with other lengths than profiles have. Outputs of
// different lengths begin with the same bytes, and only these are compared.
func (p *plan) addOtherLengths(vectors *cavs.Vectors, file, algorithm string) error {
	profile, _ := p.profiles.hash(algorithm)
	at := row{"HashData", algorithm + ", common part", fromCAVS}
	path := "hashes/" + file + "VariableOut.rsp"
	records, err := vectors.Records(path)
	if err != nil {
		return err
	}
	for _, r := range records {
		if _, vector := r["Output"]; !vector {
			continue // the section's own lines
		}
		message, output, err := hashed(r)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		p.addSome(4, at, path+", COUNT "+r["COUNT"], func(ctx context.Context, c *wire.Client) verdict {
			raw, err := c.HashRaw(ctx, profile, message)
			if err != nil {
				return failed("%v", err)
			}
			if len(raw) == 0 {
				return failed("the digest is empty")
			}
			n := min(len(raw), len(output))
			return judgeEqual("the beginning of the digest", raw[:n], output[:n])
		})
	}
	at = row{"HashData", algorithm, fromCAVS}
	records, err = vectors.Records("hashes/" + file + "Monte.rsp")
	if err != nil {
		return err
	}
	for _, r := range records {
		if _, vector := r["Output"]; vector {
			p.leave(at, "Monte Carlo of an extendable output: each step asks for another length, and profiles fix it")
		}
	}
	return nil
}

// chainLength is the number of consecutive digests that a Monte Carlo vector needs.
const chainLength = 1000

// addMonteCarlo adds NIST's chains of digests. Each chain begins with the last digest of
// the chain before. These digests are published, so the chains can run in parallel.
func (p *plan) addMonteCarlo(vectors *cavs.Vectors, file, algorithm string) error {
	profile, due := p.profiles.hash(algorithm)
	at := row{"HashData", algorithm + ", Monte Carlo", fromCAVS}
	path := "hashes/" + file + "Monte.rsp"
	records, err := vectors.Records(path)
	if err != nil {
		return err
	}
	var seed []byte
	chain := sha2Chain
	if file[:4] == "SHA3" {
		chain = sha3Chain
	}
	for _, r := range records {
		if _, first := r["Seed"]; first {
			if seed, err = r.Bytes("Seed"); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if _, vector := r["MD"]; !vector {
			continue // the section's own lines
		}
		begin := seed
		end, err := r.Bytes("MD")
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		p.addSome(50, at, path+", COUNT "+r["COUNT"], func(ctx context.Context, c *wire.Client) verdict {
			digest, err := chain(ctx, c, profile, begin)
			switch {
			case len(due) > 0:
				return judgeRefusal(err, due)
			case err != nil:
				return failed("%v", err)
			}
			return judgeEqual("the last digest", digest, end)
		})
		seed = end
	}
	return nil
}

// sha2Chain is the Monte Carlo test of SHA-1 and SHA-2 (SHAVS, section 6.4):
// each message is the three digests before it.
func sha2Chain(ctx context.Context, c *wire.Client, profile string, seed []byte) ([]byte, error) {
	a, b, last := seed, seed, seed
	for range chainLength {
		digest, err := c.HashRaw(ctx, profile, bytes.Join([][]byte{a, b, last}, nil))
		if err != nil {
			return nil, err
		}
		a, b, last = b, last, digest
	}
	return last, nil
}

// sha3Chain is the Monte Carlo test of SHA-3 (SHA3VS, section 6.2.3): each
// message is the digest before it.
func sha3Chain(ctx context.Context, c *wire.Client, profile string, seed []byte) ([]byte, error) {
	last := seed
	for range chainLength {
		digest, err := c.HashRaw(ctx, profile, last)
		if err != nil {
			return nil, err
		}
		last = digest
	}
	return last, nil
}
