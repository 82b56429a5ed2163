// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
)

const deprecatedProfile = `
- Name: P
  API:
    HashData: {HashAlg: sha-256}
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}
    SignData: {SignAlg: ed25519}
  Deprecation: {ReplacedBy: Q, DeprecatedSince: "2026-01-01", Reason: Too short.}
- Name: Q
  API: {HashData: {HashAlg: sha-512}}
- Name: R
  API: {HashData: {HashAlg: sha-512}}
  Deprecation: {}
`

func TestADeprecatedProfileWarnsClientsThatKnowOfIt(t *testing.T) {
	warning := string(message{}.text(1, "P").text(2, "Q").text(3, "2026-01-01").text(5, "Too short."))
	conn := connect(t, start(t, deprecatedProfile).socket(""))
	nonce := strings.Repeat("n", 12)
	sealed := ask(t, conn, methodEncrypt, encryption("P", raw(gcmKey), nonce, "plain"))
	tag := parse(t, []byte(sealed[replyCipherMetadata]))[sealedTag]
	decryption := message{}.text(dataProfile, "P").bytes(dataKey, raw(gcmKey)).text(dataText, sealed[replyCiphertext]).
		bytes(dataCipherMetadata, message{}.text(cipherNonce, nonce).text(cipherTag, tag))
	signature := string(ed25519.Sign(edKey, []byte("input")))
	for method, c := range map[string]struct {
		request                 message
		sentNumber, replyNumber protowire.Number
	}{
		methodHashData:   {request(nil), requestMetadata, 3},
		methodHashDataV1: {request(nil), requestMetadata, 1},
		methodEncrypt:    {encryption("P", raw(gcmKey), nonce, "plain"), dataMetadata, 3},
		methodEncryptV1:  {encryption("P", raw(gcmKey), nonce, "plain"), dataMetadata, 3},
		methodDecrypt:    {decryption, dataMetadata, 2},
		methodDecryptV1:  {decryption, dataMetadata, 2},
		methodSignData:   {signing("P", one(raw(edKeyPEM)), "input"), signMetadata, 3},
		methodSignV1:     {signing("P", one(raw(edKeyPEM)), "input"), signMetadata, 3},
		methodVerify:     {verification("P", one(raw(edKeyPEM)), "input", signature), verifyMetadata, 2},
		methodVerifyV1:   {verification("P", one(raw(edKeyPEM)), "input", signature), verifyMetadata, 2},
	} {
		t.Run(method, func(t *testing.T) {
			trace := message{}.text(traceID, "0af7651916cd43dd8448eb211c80319c")
			for name, metadata := range map[string]message{
				"no metadata":          nil,
				"metadata":             message{}.text(metadataID, "id").bytes(metadataTrace, trace).text(77, "later"),
				"a warning of its own": message{}.bytes(2, message{}.text(1, "forged")).text(metadataID, "id"),
			} {
				sent := c.request
				if metadata != nil {
					sent = append(message{}, sent...).bytes(c.sentNumber, metadata)
				}
				want := values{2: warning}
				for number, value := range parse(t, metadata) {
					if number != 2 {
						want[number] = value
					}
				}
				got := parse(t, []byte(ask(t, conn, method, sent)[c.replyNumber]))
				for number := protowire.Number(1); number < 100; number++ {
					if got[number] != want[number] {
						t.Errorf("%s: field %d of the metadata is %q, want %q", name, number, got[number], want[number])
					}
				}
			}
		})
	}
}

func TestTheFirstClientsGetNoWarning(t *testing.T) {
	conn := connect(t, start(t, deprecatedProfile).socket(""))
	metadata := message{}.text(metadataID, "id").text(metadataCreatedAt, "2025-03-01T10:00:00Z")
	if got := ask(t, conn, methodHash, request(metadata)); got[3] != string(metadata) {
		t.Errorf("metadata %q, want %q", got[3], metadata)
	}
	if got := ask(t, conn, methodHash, request(nil)); len(got) != 2 {
		t.Errorf("without metadata: %q", got)
	}
}

func TestAProfileThatOnlySaysItIsDeprecatedWarnsToo(t *testing.T) {
	conn := connect(t, start(t, deprecatedProfile).socket(""))
	got := ask(t, conn, methodHashData, message{}.text(requestProfile, "R"))
	if want := string(message{}.bytes(2, message{}.text(1, "R"))); got[3] != want {
		t.Errorf("metadata %q, want %q", got[3], want)
	}
	if got := ask(t, conn, methodHashData, message{}.text(requestProfile, "Q")); got[3] != "" {
		t.Errorf("a profile that is not deprecated: %q", got[3])
	}
}

func TestWhoStillUsesADeprecatedProfileIsCounted(t *testing.T) {
	b := start(t, deprecatedProfile+"- Name: Apps\n  API: {HashData: {HashAlg: sha-256}}\n  Callers: {Containers: [app]}\n  Deprecation: {ReplacedBy: P}\n", "app", "side")
	for caller, calls := range map[string]int{"app": 2, "side": 1} {
		conn := connect(t, b.socket(caller))
		for range calls {
			ask(t, conn, methodHash, request(nil))
		}
		ask(t, conn, methodHashData, message{}.text(requestProfile, "Q"))
	}
	refuses(t, connect(t, b.socket("side")), methodHashData, message{}.text(requestProfile, "Apps"), codes.PermissionDenied,
		fmt.Sprintf(`HashData with profile "Apps": the profile does not allow container "side", user %d, group %d`, uid, gid))
	text := b.metricsText(t)
	for _, line := range []string{
		`crypto_broker_deprecated_requests_total{container="app",profile="P"} 2`,
		`crypto_broker_deprecated_requests_total{container="side",profile="P"} 1`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if strings.Contains(text, `crypto_broker_deprecated_requests_total{container="app",profile="Q"}`) {
		t.Error("a profile that is not deprecated is counted")
	}
	if strings.Contains(text, `crypto_broker_deprecated_requests_total{container="side",profile="Apps"}`) {
		t.Error("a caller that may not use the profile is counted")
	}
}
