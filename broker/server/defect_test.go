// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// defectiveKeys is a key manager with a defect: it panics with a secret in the text.
type defectiveKeys struct{}

func (defectiveKeys) Key(_ context.Context, name keys.Name) (*keys.Key, error) {
	panic("cannot open " + name.ID + " with the password s3cret")
}

// lockedBuffer is a log that is written and read at one time.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}

// TestADefectFailsOneCallOfASocketAndTheBrokerGoesOn makes a handler panic in each way in which the broker runs handlers. A panic
// that is not recovered would end the process of this test.
func TestADefectFailsOneCallOfASocketAndTheBrokerGoesOn(t *testing.T) {
	const profiles = sha256Profile + `
- Name: Ed
  API: {SignData: {SignAlg: ed25519, KeyIds: [{Id: "*"}]}}
- Name: AES
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: "*"}]}}
`
	const vault = "vault-key"
	log := &lockedBuffer{}
	b := startLogged(t, profiles, nil, slog.New(slog.NewTextHandler(log, nil)), server.WithKeys(defectiveKeys{}))
	b.Sabotage("Broken")
	conn := connect(t, b.socket(""))
	hash := message{}.text(requestProfile, "Broken").text(requestInput, "abc")
	sign := message{}.text(signProfile, "Ed").bytes(signKey, one(byID(vault))).text(signInput, "text")
	encrypt := message{}.text(dataProfile, "AES").bytes(dataKey, byID(vault)).text(dataText, "text")
	unary := func(method string, request message) func(t *testing.T) error {
		return func(t *testing.T) error {
			_, err := call(t, conn, method, request)
			return err
		}
	}
	exchanged := func(call message) func(t *testing.T) error {
		return func(t *testing.T) error {
			e := exchange(t, conn)
			e.send(call, hashCall(2, "P", "abc"))
			got := e.take(2)
			if got[2].code() != codes.OK {
				t.Errorf("another call of the stream got %s", got[2].code())
			}
			e.closeSend()
			if _, err := e.ends(); err != nil {
				t.Errorf("the stream ended with %v", err)
			}
			return status.Error(got[1].code(), got[1].values[theText])
		}
	}
	for sentence, test := range map[string]struct {
		operation string
		call      func(t *testing.T) error
	}{
		"a hash":                            {"HashData", unary(methodHashDataV1, hash)},
		"a hash of the first releases":      {"HashData", unary(methodHash, hash)},
		"a signature":                       {"SignData", unary(methodSignV1, sign)},
		"an encryption":                     {"EncryptData", unary(methodEncryptV1, encrypt)},
		"a call of Exchange served at once": {"HashData", exchanged(callOf(1, theHash, hash))},
		"a call of Exchange by a worker":    {"SignData", exchanged(callOf(1, theSign, sign))},
		"a stream of chunks": {"HashData", func(t *testing.T) error {
			_, err := hashStream(t, conn, startOf(message{}.text(requestProfile, "Broken")))
			return err
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := test.call(t)
			if got := status.Convert(err); got.Code() != codes.Internal || !strings.HasSuffix(got.Message(), ": failed because of a defect in the broker, whose log has the details") {
				t.Errorf("the caller got %v, expected INTERNAL without details", err)
			}
			logged := log.take()
			if !strings.Contains(logged, "level=ERROR") || !strings.Contains(logged, "a request failed because of a defect in the broker") || !strings.Contains(logged, "stack=") {
				t.Errorf("logged %q, expected an error with the stack", logged)
			}
			if strings.Contains(logged, "s3cret") {
				t.Errorf("the log quotes what the defect said: %q", logged)
			}
			ask(t, conn, methodHashDataV1, message{}.text(requestProfile, "P").text(requestInput, "abc")) // the same connection goes on
		})
	}
	// Four of the calls name a profile that is counted as P, one as Ed, and one as AES.
	awaitMetrics(t, b,
		`crypto_broker_requests_total{code="Internal",operation="EncryptData",profile="AES"} 1`,
		`crypto_broker_requests_total{code="Internal",operation="SignData",profile="Ed"} 2`,
		`crypto_broker_requests_total{code="Internal",operation="HashData",profile="P"} 4`,
		"crypto_broker_requests_in_flight 0")
}
