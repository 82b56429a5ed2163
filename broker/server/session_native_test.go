// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/hpke"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/session/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

const nativeProfiles = `
- Name: Shop
  API: {Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: pair}]}}
- Name: Lost
  API: {Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: lost}]}}
- Name: Other
  API: {Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: pair}]}}
- Name: Secret
  API: {Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: cipher}]}}
- Name: Pinned
  API: {Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: pair, SPKISHA256: "0000000000000000000000000000000000000000000000000000000000000001"}]}}
- Name: Old
  API: {Session: {Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}}
`

func startNative(t *testing.T) (*broker, sessionv1.SessionServiceClient) {
	t.Helper()
	files := map[string]string{"cipher.bin": strings.Repeat("k", 32), "pair.key": edKeyPEM}
	b := startWith(t, nativeProfiles, nil, server.WithKeys(keyDirectory(t, files)))
	return b, sessionv1.NewSessionServiceClient(connect(t, b.socket("")))
}

func TestTheKeyOfTheProfileSignsANativeSession(t *testing.T) {
	b, sessions := startNative(t)
	kem := hpke.DHKEM(ecdh.P256())
	own := must(kem.GenerateKey())
	public := base64.StdEncoding.EncodeToString(own.PublicKey().Bytes())
	begun, err := sessions.InitSession(t.Context(), &sessionv1.InitSessionRequest{Profile: "Shop", KeyAgreement: "HPKE_P256", ClientPublicKey: public, TtlSec: 600})
	if err != nil {
		t.Fatal(err)
	}
	context := strings.Join([]string{"session-hpke-p256", "Shop", "A256GCM", begun.GetSessionId(), "600", public}, "\n")
	signature := must(base64.StdEncoding.DecodeString(begun.GetSignature()))
	if begun.GetSignatureAlgorithm() != "ed25519" || !ed25519.Verify(edKey.Public().(ed25519.PublicKey), []byte(context+"\n"+begun.GetServerPublicKey()+"\ned25519"), signature) {
		t.Fatalf("the signature is not valid: %v", begun)
	}
	recipient := must(hpke.NewRecipient(must(base64.StdEncoding.DecodeString(begun.GetServerPublicKey())), own, hpke.HKDFSHA256(), hpke.ExportOnly(), []byte(context)))
	secret := must(recipient.Export("secret", 32))
	derive := func(label string) []byte {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(label + "\x01"))
		return mac.Sum(nil)
	}
	kid, now := "session:"+begun.GetSessionId(), strconv.FormatInt(time.Now().UnixMilli(), 10)
	seal := func(sequence string) []byte {
		gcm := must(cipher.NewGCMWithRandomNonce(must(aes.NewCipher(derive("request")))))
		return gcm.Seal(nil, nil, nil, []byte("POST|/a|"+now+"|"+sequence+"|"+kid))
	}
	request := &sessionv1.OpenRequestRequest{Profile: "Shop", Method: "POST", Path: "/a", Kid: kid, EncAlg: "A256GCM", Timestamp: now, Sequence: "1.1", Body: seal("1.1")}
	if _, err := sessions.OpenRequest(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	secret = derive("rekey")
	rekey := &sessionv1.RekeySessionRequest{Profile: "Shop", Method: "POST", Path: "/a", Kid: kid, EncAlg: "A256GCM", Timestamp: now, Sequence: "2.1", Body: seal("2.1")}
	if got, err := sessions.RekeySession(t.Context(), rekey); err != nil || got.GetSequence() != "2.1" || got.GetSessionId() != begun.GetSessionId() {
		t.Fatalf("%v, %v", got, err)
	}
	if _, err := sessions.RekeySession(t.Context(), rekey); status.Code(err) != codes.InvalidArgument {
		t.Errorf("the same again: %v", err)
	}
	if _, err := sessions.SealReply(t.Context(), &sessionv1.SealReplyRequest{Profile: "Shop", SessionId: begun.GetSessionId(), ClientPath: "/a", Sequence: "1.1"}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a reply to a request from before: %v", err)
	}
	awaitMetrics(t, b, "crypto_broker_sessions 1", `crypto_broker_requests_total{code="OK",operation="RekeySession",profile="Shop"} 1`)
}

// The request does not name the key, so its client can change nothing.
func TestWhatIsWrongWithTheKeyThatSignsSessionsIsAFailedPrecondition(t *testing.T) {
	b, sessions := startNative(t)
	public := base64.StdEncoding.EncodeToString(must(hpke.DHKEM(ecdh.P256()).GenerateKey()).PublicKey().Bytes())
	for name, want := range map[string]string{
		"Lost":   `there is no key "lost"`,
		"Other":  "is an Ed25519 key, expected an ECDSA key for ecdsa",
		"Secret": "names an AES key, expected a key pair",
		"Pinned": `the key "pair" is not the key that the profile pins by SPKISHA256`,
	} {
		_, err := sessions.InitSession(t.Context(), &sessionv1.InitSessionRequest{Profile: name, KeyAgreement: "HPKE_P256", ClientPublicKey: public})
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sessions.InitSession(t.Context(), &sessionv1.InitSessionRequest{Profile: "Old", KeyAgreement: "HPKE_P256", ClientPublicKey: public}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a profile without the version: %v", err)
	}
	awaitMetrics(t, b, "crypto_broker_sessions 0")
}
