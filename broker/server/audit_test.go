// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/hpke"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/session/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// auditedProfiles have the same operations, and each has a different level of records.
var auditedProfiles = func() string {
	var text strings.Builder
	for name, level := range map[string]string{
		"None": "{Level: none}", "Sampled": "{Level: sampled}", "Sensitive": "{Level: sensitive}", "All": "{Level: all}",
		"Required": "{Level: all, Required: true}",
	} {
		text.WriteString("- Name: " + name + "\n  Audit: " + level + `
  API:
    HashData: {HashAlg: sha-256}
    SignData: {SignAlg: ed25519, KeyIds: [{Id: signs}]}
    DataKeys: {WrapAlgs: [aes-kw], KeySize: 256, KeyIds: [{Id: kek}]}
    SignCertificate:
      SignAlg: ecdsa
      HashAlg: sha-384
      KeyConstraints: {Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}, Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}}
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 24h}
`)
	}
	return text.String()
}()

// records is an output of audit records that can fail.
type records struct {
	mu    sync.Mutex
	text  bytes.Buffer
	fails bool
}

func (r *records) Write(lines []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails {
		return 0, errors.New("no space left on device")
	}
	return r.text.Write(lines)
}

func (r *records) fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = true
}

// startAudited starts a broker that writes records. end ends the log and returns its records, each
// as its profile, operation, code and key.
func startAudited(t testing.TB, out *records) (conn *grpc.ClientConn, end func() []string) {
	t.Helper()
	log, err := audit.New(audit.Options{
		Output: audit.Stream(out), Signer: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	b := startWith(t, auditedProfiles, nil, server.WithAudit(log), server.WithKeys(keyDirectory(t, map[string]string{
		"signs.key": edKeyPEM, "kek.bin": strings.Repeat("k", 32),
	})))
	return connect(t, b.socket("")), func() []string {
		t.Helper()
		log.Close()
		v := audit.NewVerifier(nil)
		if err := v.Read("the log", bytes.NewReader(out.text.Bytes())); err != nil {
			t.Error(err)
		}
		var all []string
		for line := range bytes.Lines(out.text.Bytes()) {
			var r struct {
				Event, Profile, Operation, Code string
				Revision                        int64 `json:"profiles.revision"`
				Keys                            []struct{ ID string }
			}
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			if r.Event != "call" && r.Event != "begin" {
				continue
			}
			if r.Profile != "" && r.Revision != servedRevision {
				t.Errorf("a record has the revision %d, expected %d", r.Revision, servedRevision)
			}
			said := []string{r.Profile, r.Operation, r.Code}
			if r.Event == "begin" {
				said[2] = "begins"
			}
			for _, key := range r.Keys {
				said = append(said, key.ID)
			}
			all = append(all, strings.Join(said, " "))
		}
		return all
	}
}

func hashing(profile string) message {
	return message{}.text(requestProfile, profile).text(requestInput, "an input that no record has")
}

func TestTheLevelOfAProfileSaysWhichCallsAreRecorded(t *testing.T) {
	for name, test := range map[string]struct {
		profile string
		want    []string
	}{
		"none has no record":               {"None", nil},
		"sampled has one call of 100":      {"Sampled", []string{"Sampled HashData OK", "Sampled SignData PERMISSION_DENIED"}},
		"sensitive has each use of a key":  {"Sensitive", []string{"Sensitive SignData OK signs", "Sensitive SignData PERMISSION_DENIED"}},
		"all has all calls":                {"All", []string{"All HashData OK", "All SignData OK signs", "All SignData PERMISSION_DENIED"}},
		"required has what the level says": {"Required", []string{"Required HashData OK", "Required SignData OK signs", "Required SignData PERMISSION_DENIED"}},
	} {
		t.Run(name, func(t *testing.T) {
			conn, end := startAudited(t, &records{})
			ask(t, conn, methodHashDataV1, hashing(test.profile))
			ask(t, conn, methodSignV1, signing(test.profile, one(byID("signs")), "an input that no record has"))
			if _, err := call(t, conn, methodSignV1, signing(test.profile, one(byID("other")), "input")); err == nil {
				t.Error("a key that the profile does not list signs")
			}
			if got := end(); !slices.Equal(got, test.want) {
				t.Errorf("the records are %q, expected %q", got, test.want)
			}
		})
	}
}

func TestACallWithoutAProfileIsRecordedIfAnyProfileRecordsCalls(t *testing.T) {
	conn, end := startAudited(t, &records{})
	if _, err := call(t, conn, methodHashDataV1, hashing("Missing")); err == nil {
		t.Error("a profile that is not there hashes")
	}
	if got, want := end(), []string{" HashData INVALID_ARGUMENT"}; !slices.Equal(got, want) {
		t.Errorf("the records are %q, expected %q", got, want)
	}
}

func TestEachWayToCallIsRecordedOnce(t *testing.T) {
	for _, profile := range []string{"All", "Required"} {
		for name, test := range map[string]struct {
			use  func(*testing.T, *grpc.ClientConn)
			want []string
		}{
			"a large call": {func(t *testing.T, conn *grpc.ClientConn) {
				ask(t, conn, methodHashDataV1, message{}.text(requestProfile, profile).text(requestInput, strings.Repeat("a", 1<<20)))
			}, []string{profile + " HashData OK"}},
			"calls of Exchange": {func(t *testing.T, conn *grpc.ClientConn) {
				e := exchange(t, conn)
				e.send(hashCall(1, profile, "input"), hashCall(2, profile, strings.Repeat("a", 1<<20)))
				for id, answer := range e.take(2) {
					if answer.code() != codes.OK {
						t.Errorf("the call %d ends with %s", id, answer.code())
					}
				}
				e.closeSend()
			}, []string{profile + " HashData OK", profile + " HashData OK"}},
			"a stream that is hashed": {func(t *testing.T, conn *grpc.ClientConn) {
				if _, err := hashStream(t, conn, startOf(message{}.text(requestProfile, profile)), chunk("input")); err != nil {
					t.Error(err)
				}
			}, []string{profile + " HashData OK"}},
			"a stream that is encrypted": {func(t *testing.T, conn *grpc.ClientConn) {
				encryptAll(t, conn, encryptStart(profile, "kek", ""), []byte("plaintext"))
			}, []string{profile + " EncryptStream begins kek", profile + " EncryptStream OK kek"}},
		} {
			t.Run(profile+", "+name, func(t *testing.T) {
				conn, end := startAudited(t, &records{})
				test.use(t, conn)
				if got := end(); !slices.Equal(got, test.want) {
					t.Errorf("the records are %q, expected %q", got, test.want)
				}
			})
		}
	}
}

func TestWithoutARequiredRecordThereIsNoReply(t *testing.T) {
	const why = "the profile requires an audit record of each call, and the record was not written; the broker's log says why"
	for name, use := range map[string]func(*testing.T, *grpc.ClientConn){
		"to a call": func(t *testing.T, conn *grpc.ClientConn) {
			refuses(t, conn, methodHashDataV1, hashing("Required"), codes.Unavailable, `HashData with profile "Required": `+why)
		},
		"to a call that uses a key": func(t *testing.T, conn *grpc.ClientConn) {
			refuses(t, conn, methodSignV1, signing("Required", one(byID("signs")), "input"), codes.Unavailable, `SignData with profile "Required": `+why)
		},
		"to a call that is refused": func(t *testing.T, conn *grpc.ClientConn) {
			refuses(t, conn, methodSignV1, signing("Required", one(byID("other")), "input"), codes.Unavailable, `SignData with profile "Required": `+why)
		},
		"to a call of Exchange": func(t *testing.T, conn *grpc.ClientConn) {
			e := exchange(t, conn)
			e.send(hashCall(1, "Required", "input"), hashCall(2, "All", "input"))
			got := e.take(2)
			if got[1].code() != codes.Unavailable || got[2].code() != codes.OK {
				t.Errorf("the calls end with %s and %s, expected Unavailable, and OK for the profile that does not require records", got[1].code(), got[2].code())
			}
			e.closeSend()
		},
		"to a stream that is hashed": func(t *testing.T, conn *grpc.ClientConn) {
			if reply, err := hashStream(t, conn, startOf(message{}.text(requestProfile, "Required")), chunk("input")); err == nil {
				t.Errorf("the stream has the reply %x", reply)
			}
		},
		"and no part of a stream that is encrypted": func(t *testing.T, conn *grpc.ClientConn) {
			output, err := cipherMessages(t, conn, methodEncryptStream, inChunks(encryptStart("Required", "kek", ""), pattern(1<<20), segmentSize)...)
			if err == nil || len(output) > 0 {
				t.Errorf("the stream has an output of %d bytes and the error %v, expected none and Unavailable", len(output), err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out records
			out.fail()
			conn, _ := startAudited(t, &out)
			use(t, conn)
			ask(t, conn, methodHashDataV1, hashing("All"))
		})
	}
}

func TestACallWithAPrivateKeyWaitsForItsRecord(t *testing.T) {
	var out records
	conn, _ := startAudited(t, &out)
	files := newIssuing(t)
	request := message{}.text(certProfile, "Required").text(certCSR, files.csr).text(certKey, files.key).text(certIssuer, files.certificate)
	ask(t, conn, methodSignCertificateV1, request)
	e := exchange(t, conn)
	e.send(callOf(1, theCertificate, request))
	if got := e.take(1)[1]; got.number != theCertificate {
		t.Errorf("the call of Exchange ends with %s %q, expected a certificate", got.code(), got.values[theText])
	}
	e.closeSend()
}

// Nobody could end such a session, because nobody would know its id.
func TestASessionWhoseRecordIsNotWrittenDoesNotBegin(t *testing.T) {
	out := records{fails: true}
	log, err := audit.New(audit.Options{
		Output: audit.Stream(&out), Signer: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	b := startWith(t, `
- Name: Shop
  Audit: {Level: sensitive, Required: true}
  API:
    Session:
      Protocols: [session-v1, session-hpke-p256]
      KeyAgreementAlg: ECDH_P256
      EncryptAlg: A256GCM
      SignAlg: ed25519
      KeyIds: [{Id: signs}]
`, nil, server.WithAudit(log), server.WithKeys(keyDirectory(t, map[string]string{"signs.key": edKeyPEM})))
	sessions := sessionv1.NewSessionServiceClient(connect(t, b.socket("")))
	for sentence, request := range map[string]*sessionv1.InitSessionRequest{
		"version 1": {
			KeyAgreement: "ECDH_P256", ClientPublicKey: base64.StdEncoding.EncodeToString(must(ecdh.P256().GenerateKey(rand.Reader)).PublicKey().Bytes()),
			TtlSec: 1800, Nonce: "n", Timestamp: strconv.FormatInt(time.Now().UnixMilli(), 10),
		},
		"a native version": {
			KeyAgreement: "HPKE_P256", ClientPublicKey: base64.StdEncoding.EncodeToString(must(hpke.DHKEM(ecdh.P256()).GenerateKey()).PublicKey().Bytes()),
		},
	} {
		request.Profile = "Shop"
		if _, err := sessions.InitSession(t.Context(), request); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "record was not written") {
			t.Errorf("%s: %v", sentence, err)
		}
	}
	awaitMetrics(t, b, "crypto_broker_sessions 0")
}

func TestABrokerWithoutRecordsRefusesCallsThatRequireThem(t *testing.T) {
	conn := connect(t, start(t, auditedProfiles).socket(""))
	refuses(t, conn, methodHashDataV1, hashing("Required"), codes.FailedPrecondition,
		`HashData with profile "Required": the profile requires an audit record of each call, which this broker does not write`)
	ask(t, conn, methodHashDataV1, hashing("All"))
}
