// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

const slowlyManagedProfiles = sha256Profile + `- Name: Ed
  API: {SignData: {SignAlg: ed25519, KeyIds: [{Id: hsm/read}, {Id: hsm/signs}]}}
- Name: AES
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: hsm/aes}]}}
- Name: Wraps
  API: {DataKeys: {WrapAlgs: [aes-gcm, rsa-oaep-sha-256], KeySize: 256, KeyIds: [{Id: hsm/signs}]}}
`

// slowManager is a key manager that answers once it is open. It returns the keys "read" and "aes", and signs with the key "signs".
type slowManager struct {
	open  chan struct{}
	asked chan struct{}
}

func newSlowManager() slowManager {
	return slowManager{make(chan struct{}), make(chan struct{}, 1000)}
}

func (m slowManager) wait(ctx context.Context) error {
	m.asked <- struct{}{}
	select {
	case <-m.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// KeyNow implements keys.Prompt.
func (m slowManager) KeyNow(name keys.Name) (*keys.Key, error) {
	if name.ID == "signs" {
		return keys.NewRemoteSigning(name.ID, edKey.Public(), m, nil)
	}
	return nil, keys.ErrWouldWait
}

// Key implements keys.Provider.
func (m slowManager) Key(ctx context.Context, name keys.Name) (*keys.Key, error) {
	if err := m.wait(ctx); err != nil {
		return nil, err
	}
	if name.ID == "aes" {
		return keys.NewAES(name.ID, []byte(strings.Repeat("k", 32)))
	}
	return keys.NewSigning(name.ID, edKey, nil)
}

// Sign implements keys.RemoteSigner.
func (m slowManager) Sign(ctx context.Context, message []byte, _ crypto.SignerOpts) ([]byte, error) {
	if err := m.wait(ctx); err != nil {
		return nil, err
	}
	return ed25519.Sign(edKey, message), nil
}

func startSlowlyManaged(t *testing.T, m slowManager) *broker {
	t.Helper()
	stack := keys.NewStack(nil)
	stack.Use(map[string]keys.Provider{"hsm": m})
	return startWith(t, slowlyManagedProfiles, nil, server.WithKeys(stack))
}

func managedSign(id string) message {
	return message{}.text(signProfile, "Ed").bytes(signKey, one(byID("hsm/"+id))).text(signInput, "abc")
}

func managedEncrypt() message {
	return message{}.text(dataProfile, "AES").bytes(dataKey, byID("hsm/aes")).text(dataText, "abc")
}

// slowHash is a hash for the workers.
func slowHash() message { return request(nil).text(2, strings.Repeat("x", 100<<10)) }

func TestCallsThatWaitForAKeyManagerDelayNoOtherCallOfTheirStream(t *testing.T) {
	m := newSlowManager()
	b := startSlowlyManaged(t, m)
	e := exchange(t, connect(t, b.socket("")))
	const each = 20 // more than there are workers
	for id := range uint64(each) {
		e.send(callOf(1000+id, theSign, managedSign("read")), callOf(2000+id, theSign, managedSign("signs")), callOf(3000+id, theEncrypt, managedEncrypt()))
	}
	for range 3 * each {
		<-m.asked // all of them wait now
	}
	e.send(callOf(1, theHash, request(nil)), callOf(2, theHash, slowHash()))
	for id, a := range e.take(2) {
		if a.number != theHash {
			t.Errorf("call %d, which needs no key: %v", id, a)
		}
	}
	close(m.open)
	for id, a := range e.take(3 * each) {
		if a.code() != codes.OK || a.number == theHash {
			t.Errorf("call %d: %v", id, a)
		}
	}
	awaitMetrics(t, b, "crypto_broker_requests_in_flight 0",
		fmt.Sprintf(`crypto_broker_requests_total{code="OK",operation="SignData",profile="Ed"} %d`, 2*each),
		fmt.Sprintf(`crypto_broker_requests_total{code="OK",operation="EncryptData",profile="AES"} %d`, each))
}

func TestCallsThatWaitForAKeyManagerDelayNoOtherUnaryCall(t *testing.T) {
	m := newSlowManager()
	b := startSlowlyManaged(t, m)
	conn := connect(t, b.socket(""))
	const each = 20
	var waiting sync.WaitGroup
	for range each {
		waiting.Go(func() { ask(t, conn, methodSignData, managedSign("read")) })
		waiting.Go(func() { ask(t, conn, methodSignData, managedSign("signs")) })
		waiting.Go(func() { ask(t, conn, methodEncrypt, managedEncrypt()) })
	}
	for range 3 * each {
		<-m.asked
	}
	ask(t, conn, methodHash, slowHash())
	close(m.open)
	waiting.Wait()
	awaitMetrics(t, b, "crypto_broker_requests_in_flight 0")
}

func TestACallThatWaitsForAKeyManagerUnwrapsKeysInMemoryOnce(t *testing.T) {
	manager := &versions{newest: 1}
	client, _ := startManaged(t, manager)
	memory, orders := wrapOnce(t, client, "Managed", "vault/memory"), wrapOnce(t, client, "Managed", "vault/orders")
	batch := []*v1.WrappedKey{{WrappedKey: memory}, {WrappedKey: memory}, {WrappedKey: orders}}
	if _, err := client.UnwrapBatch(t.Context(), &v1.UnwrapBatchRequest{Profile: "Managed", Keys: batch}); err != nil {
		t.Fatal(err)
	}
	if got := manager.unwraps.Swap(0); got != 3 {
		t.Errorf("a batch of 3 keys cost %d unwraps", got)
	}
	if _, err := client.RewrapKey(t.Context(), &v1.RewrapKeyRequest{Profile: "Managed", WrappedKey: memory, KeyId: "vault/orders"}); err != nil {
		t.Fatal(err)
	}
	if got := manager.unwraps.Load(); got != 1 {
		t.Errorf("to rewrap a key cost %d unwraps", got)
	}
}

func TestACallThatWaitsForAKeyManagerEndsWithItsStream(t *testing.T) {
	m := newSlowManager()
	b := startSlowlyManaged(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := connect(t, b.socket("")).NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, methodExchange, grpc.ForceCodecV2(wire{}))
	if err != nil {
		t.Fatal(err)
	}
	e := &exchanger{t: t, stream: stream}
	e.send(callOf(1, theSign, managedSign("signs")), callOf(2, theEncrypt, managedEncrypt()))
	<-m.asked
	<-m.asked
	e.send(message{}.number(requestGivenUp, 1))
	if a := e.take(1)[1]; a.code() != codes.Canceled {
		t.Errorf("a call that was given up: %v", a)
	}
	cancel()
	awaitMetrics(t, b, "crypto_broker_requests_in_flight 0")
}

func TestTheDeadlineOfACallHoldsForItsKeyManager(t *testing.T) {
	e := exchange(t, connect(t, startSlowlyManaged(t, newSlowManager()).socket("")))
	for id, call := range map[uint64]message{
		1: message{}.number(theID, 1).number(theTimeout, 20).bytes(theSign, managedSign("signs")),
		2: message{}.number(theID, 2).number(theTimeout, 20).bytes(theEncrypt, managedEncrypt()),
	} {
		e.send(message{}.bytes(requestCalls, call))
		if a := e.take(1)[id]; a.code() != codes.DeadlineExceeded {
			t.Errorf("call %d: %v", id, a)
		}
	}
}

func TestAKeyPairThatSignsInItsKeyManagerWrapsNoDataKeys(t *testing.T) {
	client := v1.NewCryptoServiceClient(connect(t, startSlowlyManaged(t, newSlowManager()).socket("")))
	_, err := client.WrapKey(t.Context(), &v1.WrapKeyRequest{Profile: "Wraps", KeyId: "hsm/signs", DataKey: theDataKey})
	endsWith(t, err, codes.FailedPrecondition, `the key "hsm/signs" is a key pair that stays in its key manager, which signs with it and wraps no data keys; expected an AES key`)
}

func TestAnIDOfAProviderThatIsMissingSaysSo(t *testing.T) {
	conn := connect(t, startWith(t, slowlyManagedProfiles, nil, server.WithKeys(keys.NewStack(nil))).socket(""))
	refuses(t, conn, methodEncrypt, managedEncrypt(), codes.FailedPrecondition,
		`EncryptData with profile "AES": the key "hsm/aes" cannot be found, because this broker has no key provider "hsm" and no key gateway; a pod that was created before its namespace had the first key of a key provider has to be created again`)
}

func TestOnlyWhatIsProtectedAlreadyNamesAVersion(t *testing.T) {
	conn := connect(t, startSlowlyManaged(t, newSlowManager()).socket(""))
	refuses(t, conn, methodEncrypt, message{}.text(dataProfile, "AES").bytes(dataKey, byID("hsm/aes#2")), codes.InvalidArgument,
		"EncryptData: keySource.keyId names version 2 of a key, expected only the id: new data is protected with the newest version")
	for id, key := range map[string]string{"hsm/other#2": "hsm/other", "hsm/aes#": "hsm/aes#"} {
		refuses(t, conn, methodDecryptV1, message{}.text(dataProfile, "AES").bytes(dataKey, byID(id)).
			bytes(dataCipherMetadata, message{}.text(cipherNonce, strings.Repeat("n", 12)).text(cipherTag, strings.Repeat("t", 16))), codes.PermissionDenied,
			fmt.Sprintf(`DecryptData with profile "AES": the profile does not list the key %q in KeyIds`, key))
	}
}

// refusing is a provider of which each key is refused.
type refusing struct{ err error }

func (r refusing) Key(context.Context, keys.Name) (*keys.Key, error) { return nil, r.err }

func TestTheLogSaysWhyAKeyManagerRefusesAndDoesNotRepeatItself(t *testing.T) {
	var log lockedBuffer
	stack := keys.NewStack(nil)
	stack.Use(map[string]keys.Provider{"hsm": refusing{fmt.Errorf("%w: the certificate of the client has expired", keys.ErrDenied)}})
	b := startLogged(t, slowlyManagedProfiles, nil, slog.New(slog.NewTextHandler(&log, nil)), server.WithKeys(stack))
	conn := connect(t, b.socket(""))
	const calls = 50
	for range calls {
		refuses(t, conn, methodEncrypt, managedEncrypt(), codes.PermissionDenied,
			`EncryptData with profile "AES": the key manager denies the use of the key "hsm/aes"; the broker's log says why`)
	}
	text := log.take()
	if lines := strings.Count(text, "a key of a key manager cannot be used"); lines == 0 || lines >= calls || !strings.Contains(text, "the certificate of the client has expired") {
		t.Errorf("%d lines of %d calls:\n%s", lines, calls, text)
	}
}
