// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func TestTheDigestOfPartsIsThatOfTheWhole(t *testing.T) {
	input := bytes.Repeat([]byte("Every part counts. "), 10_000)
	for _, algorithm := range algorithm.Digests(algorithm.ForData) {
		t.Run(algorithm, func(t *testing.T) {
			set, problems := profile.Compile(profile.FileName, []byte("- Name: P\n  API: {HashData: {HashAlg: "+algorithm+"}}\n"))
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			p, _ := set.Lookup("P")
			for _, size := range []int{1, 63, 64, 137, 65_536, len(input)} {
				d := engine.NewDigest(p.Hash())
				for rest := input; len(rest) > 0; {
					n := min(size, len(rest))
					d.Add(rest[:n])
					rest = rest[n:]
				}
				if got, want := d.Append(nil), engine.AppendDigest(nil, p.Hash(), input); !bytes.Equal(got, want) {
					t.Errorf("in parts of %d bytes: got %x, want %x", size, got, want)
				}
			}
		})
	}
}
