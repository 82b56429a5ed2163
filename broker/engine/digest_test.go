// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// The messages of NIST's "Cryptographic Standards and Guidelines: Examples with
// Intermediate Values": one and two blocks for SHA-2, no bits and 1600 bits for
// SHA-3 and SHAKE.
var (
	oneBlock  = []byte("abc")
	twoBlocks = []byte("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu")
	noBits    = []byte{}
	bits1600  = bytes.Repeat([]byte{0xa3}, 200)
)

// knownAnswers are the digests of those examples; digests of SHAKE are cut to the
// sizes that brokers return.
var knownAnswers = []struct {
	algorithm string
	message   []byte
	want      string
}{
	{"sha-256", oneBlock, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	{"sha-256", twoBlocks, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
	{"sha-384", oneBlock, "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"},
	{"sha-384", twoBlocks, "09330c33f71147e83d192fc782cd1b4753111b173b3b05d22fa08086e3b0f712fcc7c71a557e2db966c3e9fa91746039"},
	{"sha-512", oneBlock, "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"},
	{"sha-512", twoBlocks, "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909"},
	{"sha-512/256", oneBlock, "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"},
	{"sha-512/256", twoBlocks, "3928e184fb8690f840da3988121d31be65cb9d3ef83ee6146feac861e19b563a"},
	{"sha3-256", noBits, "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a"},
	{"sha3-256", bits1600, "79f38adec5c20307a98ef76e8324afbfd46cfd81b22e3973c65fa1bd9de31787"},
	{"sha3-384", noBits, "0c63a75b845e4f7d01107d852e4c2485c51a50aaaa94fc61995e71bbee983a2ac3713831264adb47fb6bd1e058d5f004"},
	{"sha3-384", bits1600, "1881de2ca7e41ef95dc4732b8f5f002b189cc1e42b74168ed1732649ce1dbcdd76197a31fd55ee989f2d7050dd473e8f"},
	{"sha3-512", noBits, "a69f73cca23a9ac5c8b567dc185a756e97c982164fe25859e0d1dcc1475c80a615b2123af1f5f94c11e3e9402c3ac558f500199d95b6d3e301758586281dcd26"},
	{"sha3-512", bits1600, "e76dfad22084a8b1467fcf2ffa58361bec7628edf5f3fdc0e4805dc48caeeca81b7c13c30adf52a3659584739a2df46be589c51ca1a4a8416df6545a1ce8ba00"},
	{"shake-128", noBits, "7f9c2ba4e88f827d616045507605853e"},
	{"shake-128", bits1600, "131ab8d2b594946b9c81333f9bb6e0ce"},
	{"shake-256", noBits, "46b9dd2b0ba88d13233b3feb743eeb243fcd52ea62b81b82b50c27646ed5762f"},
	{"shake-256", bits1600, "cd8a920ed141aa0407a22d59288652e9d9f1a7ee0c1e7c1ca699424da84a904d"},
}

// policy compiles a profile that hashes with the algorithm.
func policy(t testing.TB, algorithm string) *profile.HashPolicy {
	t.Helper()
	set, problems := profile.Compile(profile.FileName, []byte("- Name: P\n  API: {HashData: {HashAlg: "+algorithm+"}}\n"))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	p, _ := set.Lookup("P")
	return p.Hash()
}

func TestDigestsAreThoseOfThePublishedExamples(t *testing.T) {
	covered := map[string]bool{}
	for _, answer := range knownAnswers {
		covered[answer.algorithm] = true
		got := engine.AppendDigest(nil, policy(t, answer.algorithm), answer.message)
		if hex.EncodeToString(got) != answer.want {
			t.Errorf("%s of %d bytes: got %x, want %s", answer.algorithm, len(answer.message), got, answer.want)
		}
	}
	for _, algorithm := range algorithm.Digests(algorithm.ForData) {
		if !covered[algorithm] {
			t.Errorf("no example for %s", algorithm)
		}
	}
}

func TestADigestIsAppendedToWhatIsThere(t *testing.T) {
	got := engine.AppendDigest([]byte("before "), policy(t, "sha-256"), oneBlock)
	if !strings.HasPrefix(string(got), "before ") || len(got) != len("before ")+32 {
		t.Errorf("got %q", got)
	}
}

func TestADigestAllocatesNothing(t *testing.T) {
	for _, algorithm := range algorithm.Digests(algorithm.ForData) {
		p := policy(t, algorithm)
		buffer := make([]byte, 0, engine.MaxDigestSize)
		if n := testing.AllocsPerRun(100, func() { engine.AppendDigest(buffer, p, bits1600) }); n > 0 {
			t.Errorf("%s: %v allocations, want none", algorithm, n)
		}
	}
}
