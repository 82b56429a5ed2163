// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/session/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
	"github.com/crypto-broker/crypto-broker-operator/broker/internal/fuzzmemory"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/blob"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// fuzzedMethods are all unary methods of all wire generations and services of this project. The seeds have the same order, so
// append new methods at the end.
var fuzzedMethods = []string{
	methodHash, methodHashData, methodHashDataV1,
	methodSign, methodSignCertificate, methodSignCertificateV1,
	methodEncrypt, methodEncryptV1, methodDecrypt, methodDecryptV1,
	methodSignData, methodSignV1, methodVerify, methodVerifyV1,
	methodListProfiles,
	"/CryptoBroker.CryptoGrpc/Benchmark", "/CryptoBroker.CryptoGrpcDev/Benchmark", "/cryptobroker.v1.CryptoDevService/Benchmark",
	"/CryptoBroker.CryptoGrpc/FakeEndpoint", "/CryptoBroker.CryptoGrpcDev/FakeEndpoint", "/cryptobroker.v1.CryptoDevService/FakeEndpoint",
	methodsOfDataKeys + "GenerateDataKey", methodsOfDataKeys + "WrapKey", methodsOfDataKeys + "UnwrapKey", methodsOfDataKeys + "UnwrapBatch",
	methodsOfDataKeys + "RewrapKey", methodsOfDataKeys + "GetPublicKey",
	methodsOfSessions + "InitSession", methodsOfSessions + "OpenRequest", methodsOfSessions + "SealReply", methodsOfSessions + "CloseSession",
	methodsOfSessions + "RekeySession",
}

const (
	methodsOfDataKeys = "/cryptobroker.v1.CryptoService/"
	methodsOfSessions = "/cryptobroker.session.v1.SessionService/"
)

// fuzzedProfiles offer each operation, so that no request ends at the profile: P
// with keys of requests, K with keys of the broker.
const fuzzedProfiles = `
- Name: P
  API:
    HashData: {HashAlg: sha3-256}
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}
    SignData: {SignAlg: ed25519}
    SignCertificate:
      SignAlg: ed25519
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 8760h}
      KeyConstraints:
        Subject: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}, ECDSA: {MinKeySize: 256, MaxKeySize: 521}, Ed25519: {MinKeySize: 256, MaxKeySize: 256}}
        Issuer: {Ed25519: {MinKeySize: 256, MaxKeySize: 256}}
      SubjectAltNames: {Rule: copy}
- Name: K
  API:
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, KeyIds: [{Id: "*"}]}
    SignData: {SignAlg: ed25519, KeyIds: [{Id: "*"}]}
    DataKeys: {WrapAlgs: [aes-gcm, aes-kw], KeySize: 256, KeyIds: [{Id: "*"}]}
    Session: {Protocols: [session-v1, session-v2, session-hpke-p256, session-hpke-x-wing], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: pair}]}
`

// fixedIssuing has a request and an issuer that are the same bytes in each
// process, as seeds have to be.
func fixedIssuing() issuing {
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Issuer"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), KeyUsage: x509.KeyUsageCertSign,
	}
	request := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "app"}, DNSNames: []string{"app.example.com"}}
	return issuing{
		csr:         string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: must(x509.CreateCertificateRequest(rand.Reader, request, edKey))})),
		key:         edKeyPEM,
		certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: must(x509.CreateCertificate(rand.Reader, ca, ca, edKey.Public(), edKey))})),
	}
}

// fuzzedSeeds are requests that succeed, one for each method.
func fuzzedSeeds() []message {
	metadata := message{}.text(metadataID, "id").bytes(metadataTrace, message{}.text(traceID, strings.Repeat("0af7", 8)).text(traceCorrelationID, "c"))
	hash := message{}.text(requestProfile, "P").text(requestInput, "abc").bytes(requestMetadata, metadata).number(requestFormat, 1)
	certificate := fixedIssuing().request("P").bytes(certMetadata, metadata).text(certSubject, "CN=other, O=Org").
		text(certPoints, "http://crl.example.com/ca.crl").number(certFormat, 1)
	key := strings.Repeat("k", 32)
	encrypt := encryption("P", raw(key), gcmNonce, "text").bytes(dataMetadata, metadata)
	decrypt := message{}.text(dataProfile, "K").bytes(dataKey, byID("cipher")).text(dataText, "text").
		bytes(dataCipherMetadata, message{}.text(cipherNonce, gcmNonce).text(cipherAAD, "aad").text(cipherTag, gcmTag))
	sign := message{}.text(signProfile, "P").bytes(signKey, one(raw(edKeyPEM))).text(signInput, "text").number(signFormat, 1)
	verify := message{}.text(signProfile, "K").bytes(signKey, one(byID("pair"))).text(signInput, "text").
		bytes(verifySignature, ed25519.Sign(edKey, []byte("text"))).number(verifyFormat, 1)
	empty := message{}.bytes(1, metadata)
	wrapped := wrappedWith("cipher")
	return []message{
		hash, hash, hash, certificate, certificate, certificate, encrypt, encrypt, decrypt, decrypt, sign, sign, verify, verify,
		message{}.number(listPageSize, 1), empty, empty, empty, empty, empty, empty,
		wrapping("cipher").bytes(wrapContext, []byte("c")).bytes(wrapMetadata, metadata), wrapping("cipher").bytes(wrapDataKey, theDataKey),
		message{}.text(requestProfile, "K").bytes(wrappedKey, wrapped), message{}.text(requestProfile, "K").bytes(batchKey, message{}.bytes(1, wrapped)),
		message{}.text(requestProfile, "K").bytes(wrappedKey, wrapped).text(rewrapKeyID, "cipher"), wrapping("pair"),
		sessionMessage(&sessionv1.InitSessionRequest{
			Profile: "K", KeyAgreement: "ECDH_P256", ClientPublicKey: strings.Repeat("A", 88), TtlSec: 1800, Nonce: "n", Timestamp: "1795435200000", ClientId: "c",
		}),
		sessionMessage(&sessionv1.OpenRequestRequest{
			Profile: "K", Method: "POST", Path: "/a", Kid: "session:" + noSession, EncAlg: "A256GCM", Iv: strings.Repeat("A", 16), Tag: strings.Repeat("A", 22) + "==",
			Nonce: "n", Timestamp: "1795435200000", Body: []byte("QUJD"),
		}),
		sessionMessage(&sessionv1.SealReplyRequest{Profile: "K", SessionId: noSession, ClientPath: "/a", Plaintext: []byte("text")}),
		sessionMessage(&sessionv1.CloseSessionRequest{Profile: "K", SessionId: noSession}),
		sessionMessage(&sessionv1.RekeySessionRequest{
			Profile: "K", Method: "POST", Path: "/a", Kid: "session:" + noSession, EncAlg: "A256GCM", Timestamp: "1795435200000", Sequence: "2.1", Body: make([]byte, 28),
		}),
	}
}

// noSession is the id of a session that does not exist.
const noSession = "S-00000000000000000000000000000000"

func sessionMessage(m proto.Message) message {
	return must(proto.MarshalOptions{Deterministic: true}.Marshal(m))
}

// The numbers of the fields of the requests for data keys, written down a second time.
const (
	wrapKeyID, wrapContext, wrapDataKey, wrapMetadata = 2, 3, 4, 5
	wrappedKey, rewrapKeyID, batchKey                 = 2, 4, 2
)

func wrapping(key string) message { return message{}.text(requestProfile, "K").text(wrapKeyID, key) }

// wrappedWith returns a key that was wrapped with the key of fuzzing. It is the same in each
// process, because AES key wrap is not randomised.
func wrappedWith(id string) []byte {
	header := blob.Header{Algorithm: algorithm.WrapAESKW, Provider: "-", KeyID: id}
	return must(blob.Encode(header, must(must(wrap.NewAES([]byte(strings.Repeat("k", 32)))).Wrap(header.Algorithm, theDataKey, nil))))
}

// FuzzMethods sends arbitrary bytes as the request of each method. The broker answers with an appropriate code, and serves the next
// request.
func FuzzMethods(f *testing.F) {
	for i, seed := range fuzzedSeeds() {
		f.Add(uint8(i), []byte(seed))
		f.Add(uint8(i), []byte(seed[:len(seed)/2]))
		f.Add(uint8(i), append([]byte(seed), 0xff))
	}
	b := startWith(f, fuzzedProfiles, nil, server.WithDevelopmentService(),
		server.WithKeys(keyDirectory(f, map[string]string{"cipher.bin": strings.Repeat("k", 32), "pair.key": edKeyPEM})))
	conn := connect(f, b.socket(""))
	fine := []codes.Code{codes.OK, codes.InvalidArgument, codes.FailedPrecondition, codes.NotFound, codes.PermissionDenied}
	f.Fuzz(func(t *testing.T, which uint8, request []byte) {
		method := fuzzedMethods[int(which)%len(fuzzedMethods)]
		before := fuzzmemory.Allocated()
		err := fuzzed(t, conn, method, request)
		measures := strings.HasSuffix(method, "/Benchmark")
		if code := status.Code(err); !slices.Contains(fine, code) && (!measures || code != codes.DeadlineExceeded) {
			t.Errorf("%s answered %v", method, err)
		}
		if took := fuzzmemory.Allocated() - before; took > fuzzmemory.Base && !measures {
			t.Errorf("%s took %d bytes for a request of %d", method, took, len(request))
		}
	})
}

// fuzzed calls a method. It cancels measurements after a short time.
func fuzzed(t *testing.T, conn *grpc.ClientConn, method string, request []byte) error {
	t.Helper()
	wait := waitLimit
	if strings.HasSuffix(method, "/Benchmark") {
		wait = 5 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	var reply []byte
	return conn.Invoke(ctx, method, request, &reply, grpc.ForceCodecV2(wire{}))
}

// TestTheFuzzerKnowsAllMethods fails if somebody adds a method but does not add it to the fuzzer.
func TestTheFuzzerKnowsAllMethods(t *testing.T) {
	b := startWith(t, fuzzedProfiles, nil, server.WithDevelopmentService())
	conn := connect(t, b.socket(""))
	known := slices.Clone(fuzzedMethods)
	for service, methods := range b.Methods() {
		if !strings.HasPrefix(service, "CryptoBroker.") && !strings.HasPrefix(service, "cryptobroker.") {
			continue // methods of gRPC itself
		}
		for _, method := range methods {
			if name := "/" + service + "/" + method; !slices.Contains(known, name) {
				t.Errorf("%s is not in fuzzedMethods", name)
			}
		}
	}
	if seeds := fuzzedSeeds(); len(seeds) != len(known) {
		t.Errorf("%d methods and %d seeds", len(known), len(seeds))
	}
	for i, seed := range fuzzedSeeds() {
		method := fuzzedMethods[i]
		if strings.HasSuffix(method, "/Benchmark") || strings.HasSuffix(method, "/DecryptData") || strings.HasSuffix(method, "/VerifyData") || i >= slices.Index(fuzzedMethods, methodsOfDataKeys+"GenerateDataKey") {
			continue // these methods take long, or have no keys here
		}
		ask(t, conn, method, seed)
	}
}
