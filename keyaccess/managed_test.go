// SPDX-License-Identifier: Apache-2.0

package keyaccess_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // the format of OpenTDF's clients
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/datakeycache"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/request"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
)

// manager is a key manager that counts its requests, and that fails or waits on demand.
type manager struct {
	asked   atomic.Int64
	changes atomic.Uint64
	fails   atomic.Pointer[error]
	broken  atomic.Bool
	// begun gets a value for each request, and each request waits for release, unless they are nil.
	begun, release chan struct{}
}

func (m *manager) generation() uint64 {
	if m == nil {
		return 0
	}
	return m.changes.Load()
}

func privateKey[K any](t testing.TB, algorithm wrapping.Algorithm) K {
	t.Helper()
	block, _ := pem.Decode([]byte(privateKeys()[algorithm]))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key.(K)
}

// addTo adds two keys of the manager to the keys of a service. Tests wrap for the same keys, with other ids.
func (m *manager) addTo(t testing.TB, all map[string]wrapping.Key) {
	t.Helper()
	for id, name := range map[string]string{"managed-rsa": "manager/rsa", "managed-ec": "manager/ec"} {
		key, err := wrapping.Manage(t.Context(), finder{t, m}, keys.Name{ID: name})
		if err != nil {
			t.Fatal(err)
		}
		all[id] = key
	}
}

// finder finds the keys of a manager.
type finder struct {
	t testing.TB
	*manager
}

func (f finder) Key(_ context.Context, name keys.Name) (*keys.Key, error) {
	if name.ID == "manager/ec" {
		private := privateKey[*ecdsa.PrivateKey](f.t, wrapping.P256)
		key, err := keys.NewOpening(name.ID, private.Public())
		return key.WithExchanger(exchanging{f.manager, private}), err
	}
	private := privateKey[*rsa.PrivateKey](f.t, wrapping.RSA2048)
	key, err := keys.NewOpening(name.ID, private.Public())
	return key.WithDecrypter(decrypting{f.manager, private}), err
}

// begin counts a request, and waits or fails on demand.
func (m *manager) begin(ctx context.Context) error {
	m.asked.Add(1)
	if m.begun != nil {
		m.begun <- struct{}{}
		select {
		case <-m.release:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if m.broken.Load() {
		panic("a secret")
	}
	if failure := m.fails.Load(); failure != nil {
		return *failure
	}
	return nil
}

type decrypting struct {
	*manager
	private *rsa.PrivateKey
}

func (d decrypting) DecryptOAEP(ctx context.Context, _ crypto.Hash, ciphertext []byte) ([]byte, error) {
	if err := d.begin(ctx); err != nil {
		return nil, err
	}
	plaintext, err := rsa.DecryptOAEP(sha1.New(), nil, d.private, ciphertext, nil) //nolint:gosec // as above
	if err != nil {
		return nil, keys.ErrInvalidCiphertext
	}
	return plaintext, nil
}

type exchanging struct {
	*manager
	private *ecdsa.PrivateKey
}

func (e exchanging) ECDH(ctx context.Context, other *ecdh.PublicKey) ([]byte, error) {
	if err := e.begin(ctx); err != nil {
		return nil, err
	}
	private, err := e.private.ECDH()
	if err != nil {
		return nil, err
	}
	return private.ECDH(other)
}

// managedObject is wrap for a key of the manager.
func managedObject(t testing.TB, algorithm wrapping.Algorithm, dataKey []byte, body string) *kas.KeyAccess {
	t.Helper()
	object := wrap(t, algorithm, dataKey, body)
	object.Kid = map[wrapping.Algorithm]string{wrapping.RSA2048: "managed-rsa", wrapping.P256: "managed-ec"}[algorithm]
	return object
}

func newCache(t testing.TB) *datakeycache.Cache {
	t.Helper()
	c := datakeycache.New(func(error) {}) // whether memory is locked is not tested here
	t.Cleanup(c.Close)
	return c
}

// revised is an authorizer whose policies change.
type revised struct {
	tdfpolicy.Authorizer
	revision atomic.Uint64
}

func (r *revised) Revision() uint64 { return r.revision.Load() }

// asks sends an object, and returns its result.
func (x *service) asks(t testing.TB, client wrapping.Key, body string, object *kas.KeyAccess) (*kas.KeyAccessRewrapResult, []byte) {
	t.Helper()
	response, err := x.rewrap(t, x.sign(ask(t, client, body, object)))
	if err != nil {
		t.Fatal(err)
	}
	result := response.GetResponses()[0].GetResults()[0]
	if result.GetStatus() != "permit" {
		return result, nil
	}
	return result, opened(t, client, response, result.GetKasWrappedKey())
}

func TestADataKeyIsTakenFromTheCacheOnlyForTheSameRequest(t *testing.T) {
	for _, algorithm := range []wrapping.Algorithm{wrapping.RSA2048, wrapping.P256} {
		t.Run(string(algorithm), func(t *testing.T) {
			m := &manager{}
			authorizer := &revised{Authorizer: &tdfpolicy.Rules{AllowAllAuthenticated: true}}
			x := start(t, setting{manager: m, dataKeys: newCache(t), authorizer: authorizer})
			client, dataKey, body := parseKey(t, privateKeys()[wrapping.P256]), newDataKey(), policyBody(plainPolicy)
			object := managedObject(t, algorithm, dataKey, body)
			released := func(what string, calls int64, body string, object *kas.KeyAccess) {
				t.Helper()
				before := m.asked.Load()
				if result, found := x.asks(t, client, body, object); !bytes.Equal(found, dataKey) {
					t.Errorf("%s: found %v, expected the data key", what, result)
				}
				if found := m.asked.Load() - before; found != calls {
					t.Errorf("%s: found %d requests to the key manager, expected %d", what, found, calls)
				}
			}
			refused := func(what, body string, object *kas.KeyAccess) {
				t.Helper()
				for range 2 { // a failure is not cached either
					before := m.asked.Load()
					if result, _ := x.asks(t, client, body, object); result.GetError() != badRequest {
						t.Errorf("%s: found %v, expected %q", what, result, badRequest)
					}
					if found := m.asked.Load() - before; found != 1 {
						t.Errorf("%s: found %d requests to the key manager, expected 1", what, found)
					}
				}
			}
			released("the first time", 1, body, object)
			released("again", 0, body, object)

			// A forged wrapped key with the same beginning, which other services confuse with the real one.
			forged := managedObject(t, algorithm, dataKey, body)
			forged.WrappedKey, forged.EphemeralPublicKey = bytes.Clone(object.GetWrappedKey()), object.GetEphemeralPublicKey()
			forged.WrappedKey[len(forged.WrappedKey)-1] ^= 1
			refused("a forged wrapped key with the same beginning", body, forged)

			// The wrapped key of somebody else's file, under a policy that permits more. Its binding is wrong.
			other := policyBody(`{"uuid":"2","body":{"dataAttributes":[],"dissem":[]}}`)
			refused("the wrapped key under another policy", other, object)
			unbound := managedObject(t, algorithm, dataKey, body)
			unbound.WrappedKey, unbound.EphemeralPublicKey = object.GetWrappedKey(), object.GetEphemeralPublicKey()
			unbound.PolicyBinding.Hash = bind(newDataKey(), body, true)
			refused("the wrapped key with another binding", body, unbound)

			// The data key was bound to another policy as well.
			rebound := managedObject(t, algorithm, dataKey, other)
			rebound.WrappedKey, rebound.EphemeralPublicKey = object.GetWrappedKey(), object.GetEphemeralPublicKey()
			released("another policy that is bound", 1, other, rebound)

			// Another caller, who is not given what alice has asked for.
			alice := x.token
			x.token = x.issuer.Token(x.issuer.Claims("bob", x.prover.Key))
			released("another caller", 1, body, object)
			x.token = alice
			released("the first caller again", 0, body, object)

			authorizer.revision.Add(1)
			released("after a change of the policies", 1, body, object)
			m.changes.Add(1)
			released("after a change of the key providers", 1, body, object)
			released("again after the changes", 0, body, object)
		})
	}
}

func TestWhoMayNotHaveADataKeyGetsNoneFromTheCache(t *testing.T) {
	m, kept := &manager{}, newCache(t)
	x := start(t, setting{manager: m, dataKeys: kept, authorizer: denying{}})
	client, body := parseKey(t, privateKeys()[wrapping.P256]), policyBody(plainPolicy)
	object := managedObject(t, wrapping.RSA2048, newDataKey(), body)
	for range 2 {
		if result, _ := x.asks(t, client, body, object); result.GetError() != forbidden {
			t.Errorf("found %v, expected %q", result, forbidden)
		}
	}
	if stats := kept.Stats(); stats != (datakeycache.Stats{}) || m.asked.Load() != 2 {
		t.Errorf("found %+v and %d requests to the key manager, expected an unused cache and 2", stats, m.asked.Load())
	}
}

func TestWhoGivesUpDoesNotFailOthersThatAskForTheSame(t *testing.T) {
	m, kept := &manager{begun: make(chan struct{}, 10), release: make(chan struct{})}, newCache(t)
	x := start(t, setting{manager: m, dataKeys: kept})
	client, dataKey, body := parseKey(t, privateKeys()[wrapping.P256]), newDataKey(), policyBody(plainPolicy)
	signed := x.sign(ask(t, client, body, managedObject(t, wrapping.RSA2048, dataKey, body)))
	call := func(ctx context.Context) (*kas.RewrapResponse, error) {
		in := connect.NewRequest(&kas.RewrapRequest{SignedRequestToken: signed})
		x.credentials(in.Header(), procedure)
		out, err := connect.NewClient[kas.RewrapRequest, kas.RewrapResponse](x.Client(), x.URL+procedure).CallUnary(ctx, in)
		if err != nil {
			return nil, err
		}
		return out.Msg, nil
	}
	leading, giveUp := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := call(leading); connect.CodeOf(err) != connect.CodeCanceled {
			t.Errorf("the first one: found %v, expected that it gave up", err)
		}
	})
	<-m.begun
	const followers = 4
	for range followers {
		all.Go(func() {
			response, err := call(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if found := opened(t, client, response, response.GetResponses()[0].GetResults()[0].GetKasWrappedKey()); !bytes.Equal(found, dataKey) {
				t.Error("found another data key")
			}
		})
	}
	for kept.Stats().Coalesced < followers && t.Context().Err() == nil {
		runtime.Gosched()
	}
	giveUp()
	close(m.release)
	all.Wait()
	if found := m.asked.Load(); found != 1 {
		t.Errorf("found %d requests to the key manager, expected 1", found)
	}
}

func TestFailuresOfAKeyManagerSayNothingAboutDataKeys(t *testing.T) {
	m := &manager{}
	x := start(t, setting{manager: m, dataKeys: newCache(t)})
	client, dataKey, body := parseKey(t, privateKeys()[wrapping.P256]), newDataKey(), policyBody(plainPolicy)
	good := func() *kas.KeyAccess { return managedObject(t, wrapping.RSA2048, dataKey, body) }
	forged, unbound := good(), good()
	forged.WrappedKey[7] ^= 1
	unbound.PolicyBinding.Hash = bind(newDataKey(), body, true)
	const away = "rpc error: code = Unavailable desc = a key manager of this service does not answer"
	for name, c := range map[string]struct {
		failure error
		text    string
	}{
		"it does not answer":        {fmt.Errorf("%w: no route", keys.ErrUnavailable), away},
		"it has too many requests":  {keys.ErrThrottled, away},
		"it denies the use":         {keys.ErrDenied, badRequest},
		"it cannot use the key":     {keys.ErrUnusable, badRequest},
		"it does not know the data": {keys.ErrInvalidCiphertext, badRequest},
	} {
		t.Run(name, func(t *testing.T) {
			m.fails.Store(&c.failure)
			defer m.fails.Store(nil)
			for what, object := range map[string]*kas.KeyAccess{"a good wrapped key": good(), "a forged one": forged, "one with another binding": unbound} {
				if result, _ := x.asks(t, client, body, object); result.GetError() != c.text {
					t.Errorf("%s: found %v, expected %q", what, result, c.text)
				}
			}
		})
	}
	// Without a key id, the key in memory is tried as well. Whether it unwraps makes no difference to the text.
	failure := keys.ErrUnavailable
	m.fails.Store(&failure)
	forged.Kid, unbound.Kid = "", ""
	for what, object := range map[string]*kas.KeyAccess{"a forged one": forged, "one with another binding": unbound} {
		if result, _ := x.asks(t, client, body, object); result.GetError() != away {
			t.Errorf("%s without a key id: found %v, expected %q", what, result, away)
		}
	}
	nameless := good()
	nameless.Kid = ""
	if result, found := x.asks(t, client, body, nameless); !bytes.Equal(found, dataKey) {
		t.Errorf("a good one without a key id: found %v, expected that the key in memory unwraps it", result)
	}
}

func TestADefectOfAKeyProviderFailsOneDataKey(t *testing.T) {
	m, log := &manager{}, &written{}
	x := start(t, setting{manager: m, dataKeys: newCache(t), log: log})
	client, dataKey, body := parseKey(t, privateKeys()[wrapping.P256]), newDataKey(), policyBody(plainPolicy)
	object := managedObject(t, wrapping.RSA2048, dataKey, body)
	m.broken.Store(true)
	if result, _ := x.asks(t, client, body, object); result.GetError() != badRequest {
		t.Errorf("found %v, expected %q", result, badRequest)
	}
	m.broken.Store(false)
	if result, found := x.asks(t, client, body, object); !bytes.Equal(found, dataKey) {
		t.Errorf("found %v after the defect, expected the data key", result)
	}
	if text := log.String(); !strings.Contains(text, "because of a defect") || strings.Contains(text, "a secret") {
		t.Errorf("found the log %s, expected the defect without its text", text)
	}
}

func TestDataKeysOfOneRequestAreUnwrappedAtOneTime(t *testing.T) {
	const objects = 4
	m := &manager{begun: make(chan struct{}, objects), release: make(chan struct{})}
	x := start(t, setting{manager: m, dataKeys: newCache(t), limits: request.Limits{Objects: objects, Policy: 4096}})
	client, body := parseKey(t, privateKeys()[wrapping.RSA2048]), policyBody(plainPolicy)
	var all []*kas.KeyAccess
	var expected [][]byte
	for range objects {
		dataKey := newDataKey()
		expected = append(expected, dataKey)
		all = append(all, managedObject(t, wrapping.P256, dataKey, body))
	}
	go func() {
		for range objects { // the key manager receives all requests before it answers one
			<-m.begun
		}
		close(m.release)
	}()
	response, err := x.rewrap(t, x.sign(ask(t, client, body, all...)))
	if err != nil {
		t.Fatal(err)
	}
	for i, result := range response.GetResponses()[0].GetResults() {
		if !bytes.Equal(opened(t, client, response, result.GetKasWrappedKey()), expected[i]) {
			t.Errorf("found another data key at place %d", i)
		}
	}
}

// BenchmarkAKeptDataKey releases a data key that is kept. Its time is the service's alone: token, proof and signature, decisions, the
// cache, and wrapping to the client's RSA key.
func BenchmarkAKeptDataKey(b *testing.B) {
	m := &manager{}
	x := start(b, setting{manager: m, dataKeys: newCache(b)})
	client, body := parseKey(b, privateKeys()[wrapping.RSA2048]), policyBody(plainPolicy)
	signed := x.sign(ask(b, client, body, managedObject(b, wrapping.RSA2048, newDataKey(), body)))
	text := `{"signedRequestToken":"` + signed + `"}`
	requests := make([]*http.Request, b.N)
	for i := range requests {
		requests[i] = httptest.NewRequest(http.MethodPost, x.URL+procedure, strings.NewReader(text))
		requests[i].Header.Set("Content-Type", "application/json")
		x.credentials(requests[i].Header, procedure)
	}
	handler := *x.handler.Load()
	b.ResetTimer()
	for _, request := range requests {
		reply := httptest.NewRecorder()
		if handler.ServeHTTP(reply, request); reply.Code != http.StatusOK {
			b.Fatalf("status %d: %s", reply.Code, reply.Body)
		}
	}
	b.StopTimer()
	if found := m.asked.Load(); found != 1 {
		b.Errorf("found %d requests to the key manager, expected 1", found)
	}
}
