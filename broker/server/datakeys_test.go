// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/blob"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

const dataKeyProfiles = `
- Name: Wrap
  API: {DataKeys: {WrapAlgs: [aes-gcm, aes-kwp, rsa-oaep-sha-256, hpke-p-256], KeySize: 256, KeyIds: [{Id: kek}, {Id: pair}, {Id: curve}, {Id: public}, {Id: signs}, {Id: gone}]}}
- Name: Other
  API: {DataKeys: {WrapAlgs: [aes-kw], KeySize: 128, Context: none, KeyIds: [{Id: other}, {Id: curve}]}}
- Name: Bare
  API: {DataKeys: {WrapAlgs: [aes-kw], KeySize: 128, KeyIds: [{Id: other}]}}
- Name: Tenants
  API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, Context: required, KeyIds: [{Id: kek}]}}
- Name: Move
  API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: kek}, {Id: other}]}}
`

var wrappingRSA = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })

var theDataKey = bytes.Repeat([]byte{7}, 32)

func startWrapping(t *testing.T) v1.CryptoServiceClient {
	t.Helper()
	b := startWithKeys(t, dataKeyProfiles, map[string]string{
		"kek.bin": strings.Repeat("k", 32), "other.bin": strings.Repeat("o", 16), "signs.key": edKeyPEM,
		"pair.key": keyPEM(wrappingRSA()), "curve.key": keyPEM(ecKey), "public.pub": publicPEM(wrappingRSA()),
	})
	return v1.NewCryptoServiceClient(connect(t, b.socket("")))
}

func TestAGeneratedDataKeyComesBackWhenItIsUnwrapped(t *testing.T) {
	client := startWrapping(t)
	for key, algorithm := range map[string]string{"kek": "aes-gcm", "pair": "rsa-oaep-sha-256", "curve": "hpke-p-256"} {
		t.Run(key, func(t *testing.T) {
			made, err := client.GenerateDataKey(t.Context(), &v1.GenerateDataKeyRequest{Profile: "Wrap", KeyId: key, Context: []byte("tenant a")})
			if err != nil {
				t.Fatal(err)
			}
			if got := made.GetDescriptor_().GetAlgorithm(); got != algorithm || len(made.GetDataKey()) != 32 {
				t.Errorf("a key of %d bytes, wrapped with %s, expected 32 and %s", len(made.GetDataKey()), got, algorithm)
			}
			got, err := client.UnwrapKey(t.Context(), &v1.UnwrapKeyRequest{Profile: "Wrap", WrappedKey: made.GetWrappedKey(), Context: []byte("tenant a")})
			if err != nil || !bytes.Equal(got.GetDataKey(), made.GetDataKey()) {
				t.Errorf("unwrapped to another key: %v", err)
			}
			_, err = client.UnwrapKey(t.Context(), &v1.UnwrapKeyRequest{Profile: "Wrap", WrappedKey: made.GetWrappedKey(), Context: []byte("tenant b")})
			endsWith(t, err, codes.InvalidArgument, "wrappedKey belongs to another context, expected the context that it was wrapped with")
		})
	}
}

func TestADataKeyCanStayInTheBroker(t *testing.T) {
	client := startWrapping(t)
	made, err := client.GenerateDataKey(t.Context(), &v1.GenerateDataKeyRequest{Profile: "Wrap", KeyId: "kek", WithoutDataKey: true})
	if err != nil || len(made.GetDataKey()) != 0 || len(made.GetWrappedKey()) == 0 {
		t.Errorf("got a key of %d bytes and a wrapped one of %d: %v", len(made.GetDataKey()), len(made.GetWrappedKey()), err)
	}
}

func TestAWrappedKeyIsWrappedAgainWithAnotherKey(t *testing.T) {
	client := startWrapping(t)
	wrapped := wrapOnce(t, client, "Wrap", "kek")
	moved, err := client.RewrapKey(t.Context(), &v1.RewrapKeyRequest{Profile: "Move", WrappedKey: wrapped, KeyId: "other"})
	if err != nil || moved.GetUnchanged() {
		t.Fatalf("unchanged %t: %v", moved.GetUnchanged(), err)
	}
	if header, _, err := blob.Parse(moved.GetWrappedKey()); err != nil || header.KeyID != "other" {
		t.Errorf("the new header is %+v: %v", header, err)
	}
	got, err := client.UnwrapKey(t.Context(), &v1.UnwrapKeyRequest{Profile: "Move", WrappedKey: moved.GetWrappedKey()})
	if err != nil || !bytes.Equal(got.GetDataKey(), theDataKey) {
		t.Errorf("unwrapped to another key: %v", err)
	}
	same, err := client.RewrapKey(t.Context(), &v1.RewrapKeyRequest{Profile: "Move", WrappedKey: moved.GetWrappedKey()})
	if err != nil || !same.GetUnchanged() || !bytes.Equal(same.GetWrappedKey(), moved.GetWrappedKey()) {
		t.Errorf("a key under the newest version: unchanged %t: %v", same.GetUnchanged(), err)
	}
}

func TestABatchHasItsResultsInOrderWhateverFails(t *testing.T) {
	client := startWrapping(t)
	good := wrapOnce(t, client, "Wrap", "kek")
	forged := slices.Clone(good)
	forged[len(forged)-1] ^= 1
	other := wrapWith(t, client, &v1.WrapKeyRequest{Profile: "Other", KeyId: "other", DataKey: theDataKey})
	reply, err := client.UnwrapBatch(t.Context(), &v1.UnwrapBatchRequest{Profile: "Wrap", Keys: []*v1.WrappedKey{
		{WrappedKey: good}, {WrappedKey: forged}, {WrappedKey: other}, {WrappedKey: []byte("nothing")}, {WrappedKey: good},
	}})
	if err != nil {
		t.Fatal(err)
	}
	const of = `UnwrapKey with profile "Wrap": `
	want := []*v1.UnwrapResult{
		{DataKey: theDataKey},
		{Code: int32(codes.InvalidArgument), Message: of + "keys[1].wrappedKey does not authenticate with its key and context"},
		{Code: int32(codes.PermissionDenied), Message: of + `the profile does not list the key "other" in KeyIds`},
		{Code: int32(codes.InvalidArgument), Message: of + "keys[3].wrappedKey is not a wrapped key of a broker"},
		{DataKey: theDataKey},
	}
	if !proto.Equal(reply, &v1.UnwrapBatchResponse{Results: want}) {
		t.Errorf("got %v\nwant %v", reply.GetResults(), want)
	}
	_, err = client.UnwrapBatch(t.Context(), &v1.UnwrapBatchRequest{Profile: "Wrap", Keys: make([]*v1.WrappedKey, 33)})
	if want := "UnwrapKey (called as UnwrapBatch): keys has 33 elements, expected 1 to 32"; status.Convert(err).Message() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestRefusalsOfDataKeysSayWhatWasExpected(t *testing.T) {
	client := startWrapping(t)
	ofKek, ofPublic := wrapOnce(t, client, "Wrap", "kek"), wrapOnce(t, client, "Wrap", "public")
	kwp := blobOf(t, algorithm.WrapAESKWP, "kek", "", nil)
	unwrap := func(profile string, wrapped []byte, context string) error {
		_, err := client.UnwrapKey(t.Context(), &v1.UnwrapKeyRequest{Profile: profile, WrappedKey: wrapped, Context: []byte(context)})
		return err
	}
	wrapKey := func(profile, key string, size int, context string) error {
		_, err := client.WrapKey(t.Context(), &v1.WrapKeyRequest{Profile: profile, KeyId: key, DataKey: make([]byte, size), Context: []byte(context)})
		return err
	}
	for sentence, test := range map[string]struct {
		err  error
		code codes.Code
		want string
	}{
		"a key that the profile does not list":      {unwrap("Other", ofKek, ""), codes.PermissionDenied, `the profile does not list the key "kek" in KeyIds`},
		"a new key for a key that it does not list": {wrapKey("Other", "kek", 32, ""), codes.PermissionDenied, `the profile does not list the key "kek" in KeyIds`},
		"an algorithm that it does not list":        {unwrap("Move", kwp, ""), codes.InvalidArgument, "wrappedKey was wrapped with aes-kwp, expected one of the WrapAlgs of the profile: aes-gcm"},
		"no context where one is required":          {wrapKey("Tenants", "kek", 32, ""), codes.InvalidArgument, "context is empty, expected a context, because Context of the profile is required"},
		"a context where none is allowed":           {wrapKey("Other", "other", 32, "a"), codes.InvalidArgument, "context is not empty, expected no context, because Context of the profile is none"},
		"a large context":                           {wrapKey("Wrap", "kek", 32, strings.Repeat("x", 4097)), codes.InvalidArgument, "context has 4097 bytes, expected at most 4096"},
		"a short data key":                          {wrapKey("Wrap", "kek", 15, ""), codes.InvalidArgument, "dataKey has 15 bytes, expected 16 to 8192"},
		"a data key that AES key wrap cannot wrap":  {wrapKey("Other", "other", 17, ""), codes.InvalidArgument, "found a key of 17 bytes, expected a multiple of 8 for aes-kw; aes-kwp wraps keys of other sizes"},
		"a data key that RSA cannot wrap":           {wrapKey("Wrap", "pair", 400, ""), codes.InvalidArgument, "found a key of 400 bytes, expected at most 190 for rsa-oaep-sha-256 with an RSA key of 2048 bits"},
		"a key that does not wrap":                  {wrapKey("Wrap", "signs", 32, ""), codes.FailedPrecondition, `the key "signs" does not wrap data keys, expected an AES key, an RSA key from 2048 bits, or a key on P-256, P-384 or P-521`},
		"a key whose kind has no algorithm":         {wrapKey("Other", "curve", 16, ""), codes.FailedPrecondition, `the key "curve" wraps with hpke-p-256, expected a key for the WrapAlgs of the profile: aes-kw`},
		"a context for a key that binds none":       {wrapKey("Bare", "other", 16, "a"), codes.InvalidArgument, "context is not empty, expected none, because aes-kw cannot bind a data key to a context"},
		"a key without private key":                 {unwrap("Wrap", ofPublic, ""), codes.FailedPrecondition, `the key "public" has no private key, so it can only wrap`},
		"a key that there is not":                   {wrapKey("Wrap", "gone", 32, ""), codes.NotFound, `there is no key "gone"`},
		"a version that there is not":               {unwrap("Wrap", blobOf(t, algorithm.WrapAESGCM, "kek", "7", nil), ""), codes.NotFound, `there is no key "kek", or it has no version "7"`},
		"a header that was changed":                 {unwrap("Wrap", bytes.Replace(ofKek, []byte("kek"), []byte("pair"), 1), ""), codes.InvalidArgument, "wrappedKey ends before the wrapped key, expected more bytes"},
	} {
		t.Run(sentence, func(t *testing.T) { endsWith(t, test.err, test.code, test.want) })
	}
}

// Anybody who has a wrapped key must not learn from an error or from its time which part is wrong.
func TestWhateverIsWrongInsideAWrappedKeyTheErrorIsTheSame(t *testing.T) {
	client := startWrapping(t)
	for _, key := range []string{"kek", "pair", "curve"} {
		wrapped := wrapOnce(t, client, "Wrap", key)
		header, secret, err := blob.Parse(wrapped)
		if err != nil {
			t.Fatal(err)
		}
		for sentence, changed := range map[string][]byte{
			"its first byte": flipped(secret, 0), "its last byte": flipped(secret, len(secret)-1),
			"its end is cut": secret[:len(secret)-1], "almost nothing is left": secret[:1], "more follows": append(slices.Clone(secret), 0),
		} {
			forged, err := blob.Encode(header, changed)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.UnwrapKey(t.Context(), &v1.UnwrapKeyRequest{Profile: "Wrap", WrappedKey: forged})
			if got := status.Convert(err); got.Code() != codes.InvalidArgument || got.Message() != `UnwrapKey with profile "Wrap": wrappedKey does not authenticate with its key and context` {
				t.Errorf("%s, %s: %v", key, sentence, err)
			}
		}
	}
}

func TestAPublicKeyIsThatOfTheKeyPair(t *testing.T) {
	client := startWrapping(t)
	reply, err := client.GetPublicKey(t.Context(), &v1.GetPublicKeyRequest{Profile: "Wrap", KeyId: "pair"})
	if err != nil {
		t.Fatal(err)
	}
	want := publicDER(wrappingRSA())
	if block, _ := pem.Decode([]byte(reply.GetPem())); !bytes.Equal(reply.GetDer(), want) || block == nil || block.Type != "PUBLIC KEY" || !bytes.Equal(block.Bytes, want) {
		t.Errorf("got %x and %s, want %x", reply.GetDer(), reply.GetPem(), want)
	}
	_, err = client.GetPublicKey(t.Context(), &v1.GetPublicKeyRequest{Profile: "Wrap", KeyId: "kek"})
	if want := `GetPublicKey with profile "Wrap": the key "kek" is an AES key, expected a key pair`; status.Convert(err).Message() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// versions is a key manager whose only key has versions and wraps there. It counts and delays
// what it does.
type versions struct {
	newest  int
	unwraps atomic.Int64
	hold    chan struct{} // each operation waits for it unless it is nil
	// now is the number of unwraps with the key "memory" that run, and most is the maximum so far.
	now, most atomic.Int64
}

func (m *versions) Key(_ context.Context, name keys.Name) (*keys.Key, error) {
	version := name.Version
	if version == "" {
		version = fmt.Sprint(m.newest)
	}
	material, err := wrap.NewAES([]byte(fmt.Sprintf("%032s", version)))
	if err == nil && name.ID == "memory" {
		return keys.NewWrapping(name.ID, inMemory{&managed{m, material}, &m.now, &m.most}), nil
	}
	if err != nil || name.ID != "orders" || version > fmt.Sprint(m.newest) {
		return nil, keys.ErrNotFound
	}
	return keys.NewWrapping(name.ID, &managed{m, material}).WithVersion(version), nil
}

func (m *versions) KeyNow(name keys.Name) (*keys.Key, error) {
	return m.Key(context.Background(), name)
}

// inMemory unwraps in the memory of the broker, and records how many unwraps run at once.
type inMemory struct {
	*managed
	now, most *atomic.Int64
}

func (inMemory) WrapsLocally() {}

func (w inMemory) Unwrap(ctx context.Context, name string, wrapped, context []byte) ([]byte, error) {
	now := w.now.Add(1)
	defer w.now.Add(-1)
	for most := w.most.Load(); now > most && !w.most.CompareAndSwap(most, now); most = w.most.Load() {
	}
	<-time.After(10 * time.Millisecond)
	return w.managed.Unwrap(ctx, name, wrapped, context)
}

// managed wraps with one version.
type managed struct {
	manager *versions
	key     *wrap.AES
}

func (*managed) Algorithms() []string { return []string{"aes-gcm"} }

func (w *managed) Wrap(_ context.Context, _ string, dataKey, context []byte) ([]byte, error) {
	return w.key.Wrap(algorithm.WrapAESGCM, dataKey, context)
}

func (w *managed) Unwrap(ctx context.Context, _ string, wrapped, context []byte) ([]byte, error) {
	w.manager.unwraps.Add(1)
	if w.manager.hold != nil {
		select {
		case <-w.manager.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	dataKey, err := w.key.Unwrap(algorithm.WrapAESGCM, wrapped, context)
	if err != nil {
		return nil, keys.ErrInvalidCiphertext
	}
	return dataKey, nil
}

const managedProfiles = `
- Name: Managed
  API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: vault/orders}, {Id: vault/memory}]}}
- Name: Beside
  API: {HashData: {HashAlg: sha-256}, SignData: {SignAlg: ed25519}}
`

func startManaged(t *testing.T, m *versions) (v1.CryptoServiceClient, *broker) {
	t.Helper()
	stack := keys.NewStack(nil)
	stack.Use(map[string]keys.Provider{"vault": m})
	b := startWith(t, managedProfiles, nil, server.WithKeys(stack))
	return v1.NewCryptoServiceClient(connect(t, b.socket(""))), b
}

func TestAnOldVersionUnwrapsAndTheNewestWraps(t *testing.T) {
	manager := &versions{newest: 1}
	client, b := startManaged(t, manager)
	old := wrapOnce(t, client, "Managed", "vault/orders")
	manager.newest = 2
	got, err := client.UnwrapKey(t.Context(), &v1.UnwrapKeyRequest{Profile: "Managed", WrappedKey: old})
	if err != nil || !bytes.Equal(got.GetDataKey(), theDataKey) {
		t.Fatalf("a key under an old version: %v", err)
	}
	next, err := client.RewrapKey(t.Context(), &v1.RewrapKeyRequest{Profile: "Managed", WrappedKey: old})
	if err != nil || next.GetUnchanged() {
		t.Fatalf("unchanged %t: %v", next.GetUnchanged(), err)
	}
	for version, wrapped := range map[string][]byte{"1": old, "2": next.GetWrappedKey()} {
		if header, _, err := blob.Parse(wrapped); err != nil || header.Provider != "vault" || header.KeyID != "orders" || header.KeyVersion != version {
			t.Errorf("the header is %+v, expected version %s: %v", header, version, err)
		}
	}
	batch := []*v1.WrappedKey{{WrappedKey: old}, {WrappedKey: next.GetWrappedKey()}}
	if _, err := client.UnwrapBatch(t.Context(), &v1.UnwrapBatchRequest{Profile: "Managed", Keys: batch}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`crypto_broker_key_version_reads_total{key="vault/orders",version="1"} 2`,
		`crypto_broker_key_version_reads_total{key="vault/orders",version="2"} 1`,
	} {
		if !strings.Contains(b.metricsText(t), line+"\n") {
			t.Errorf("the metrics have no line %s", line)
		}
	}
}

func TestUnwrapsThatWaitForAKeyManagerHoldNoWorker(t *testing.T) {
	manager := &versions{newest: 1, hold: make(chan struct{})}
	client, b := startManaged(t, manager)
	wrapped := wrapOnce(t, client, "Managed", "vault/orders")
	var waiting sync.WaitGroup
	for range 8 {
		waiting.Go(func() {
			keys := []*v1.WrappedKey{{WrappedKey: wrapped}, {WrappedKey: wrapped}}
			reply, err := client.UnwrapBatch(t.Context(), &v1.UnwrapBatchRequest{Profile: "Managed", Keys: keys})
			if err != nil || len(reply.GetResults()) != 2 || !bytes.Equal(reply.GetResults()[1].GetDataKey(), theDataKey) {
				t.Errorf("after the wait: %v, %v", reply, err)
			}
		})
	}
	for deadline := time.Now().Add(waitLimit); manager.unwraps.Load() < 1; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("no call waits")
		}
	}
	// Signatures need a worker each.
	beside := connect(t, b.socket(""))
	for range 20 {
		ask(t, beside, methodSignV1, signing("Beside", one(raw(edKeyPEM)), "input"))
	}
	close(manager.hold)
	waiting.Wait()
}

func TestKeysInMemoryUnwrapInTheirTurnBesideAKeyOfAKeyManager(t *testing.T) {
	const processors = 2
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
	manager := &versions{newest: 1}
	client, _ := startManaged(t, manager)
	batch := []*v1.WrappedKey{{WrappedKey: wrapOnce(t, client, "Managed", "vault/orders")}}
	for range 16 {
		batch = append(batch, &v1.WrappedKey{WrappedKey: wrapOnce(t, client, "Managed", "vault/memory")})
	}
	reply, err := client.UnwrapBatch(t.Context(), &v1.UnwrapBatchRequest{Profile: "Managed", Keys: batch})
	if err != nil {
		t.Fatal(err)
	}
	for i, result := range reply.GetResults() {
		if !bytes.Equal(result.GetDataKey(), theDataKey) {
			t.Errorf("key %d: %v", i, result)
		}
	}
	if most := manager.most.Load(); most > processors {
		t.Errorf("%d keys in memory unwrapped at once, want at most one for each of %d workers", most, processors)
	}
}

func TestIdenticalUnwrapsAtOnceAreOneForTheKeyManager(t *testing.T) {
	manager := &versions{newest: 1, hold: make(chan struct{})}
	client, b := startManaged(t, manager)
	wrapped := wrapOnce(t, client, "Managed", "vault/orders")
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { unwrapsTo(t, client, wrapped, "") })
	}
	// One call asks the key manager, and at least one other call waits for the result.
	for deadline := time.Now().Add(waitLimit); !strings.Contains(b.metricsText(t), `crypto_broker_data_key_unwraps_total{result="coalesced"} 99`); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("the calls do not wait:\n%s", b.metricsText(t))
		}
	}
	close(manager.hold)
	all.Wait()
	unwrapsTo(t, client, wrapped, "")
	if got := manager.unwraps.Load(); got != 1 {
		t.Errorf("the key manager unwrapped %d times, want once", got)
	}
	awaitMetrics(t, b, `crypto_broker_data_key_unwraps_total{result="hit"} 1`, `crypto_broker_data_key_unwraps_total{result="miss"} 1`, `crypto_broker_data_keys 1`)
}

// Each of these calls differs in one thing from a call whose data key is kept.
func TestADataKeyIsKeptForThisCallerProfileContextAndWrappedKeyAlone(t *testing.T) {
	manager := &versions{newest: 1}
	stack := keys.NewStack(nil)
	stack.Use(map[string]keys.Provider{"vault": manager})
	b := startWith(t, managedProfiles, []string{"web", "worker"}, server.WithKeys(stack))
	web, worker := v1.NewCryptoServiceClient(connect(t, b.socket("web"))), v1.NewCryptoServiceClient(connect(t, b.socket("worker")))
	wrapped := wrapWith(t, web, &v1.WrapKeyRequest{Profile: "Managed", KeyId: "vault/orders", DataKey: theDataKey, Context: []byte("a")})
	asked := func(sentence string, want int64) {
		t.Helper()
		if got := manager.unwraps.Swap(0); got != want {
			t.Errorf("%s: the key manager was asked %d times, want %d", sentence, got, want)
		}
	}
	unwrapsTo(t, web, wrapped, "a")
	asked("the first call", 1)
	unwrapsTo(t, web, wrapped, "a")
	asked("the same call again", 0)
	unwrapsTo(t, worker, wrapped, "a")
	asked("another caller", 1)
	_, err := web.UnwrapKey(t.Context(), &v1.UnwrapKeyRequest{Profile: "Managed", WrappedKey: flipped(wrapped, len(wrapped)-1), Context: []byte("a")})
	endsWith(t, err, codes.InvalidArgument, "wrappedKey does not authenticate with its key and context")
	asked("a forged key with the same nonce", 1)
	_, err = web.UnwrapKey(t.Context(), &v1.UnwrapKeyRequest{Profile: "Managed", WrappedKey: wrapped, Context: []byte("b")})
	endsWith(t, err, codes.InvalidArgument, "wrappedKey belongs to another context, expected the context that it was wrapped with")
	asked("another context", 0)
	b.use(t, managedProfiles+"- Name: More\n  API: {HashData: {HashAlg: sha-256}}\n")
	unwrapsTo(t, web, wrapped, "a")
	asked("after a change of the profiles", 1)
	stack.Use(map[string]keys.Provider{"vault": manager})
	unwrapsTo(t, web, wrapped, "a")
	asked("after a change of the providers", 1)
	b.use(t, strings.ReplaceAll(managedProfiles, "vault/orders", "vault/other"))
	_, err = web.UnwrapKey(t.Context(), &v1.UnwrapKeyRequest{Profile: "Managed", WrappedKey: wrapped, Context: []byte("a")})
	endsWith(t, err, codes.PermissionDenied, `the profile does not list the key "vault/orders" in KeyIds`)
	asked("a profile that does not list the key any more", 0)
}

func unwrapsTo(t *testing.T, client v1.CryptoServiceClient, wrapped []byte, context string) {
	t.Helper()
	got, err := client.UnwrapKey(t.Context(), &v1.UnwrapKeyRequest{Profile: "Managed", WrappedKey: wrapped, Context: []byte(context)})
	if err != nil || !bytes.Equal(got.GetDataKey(), theDataKey) {
		t.Errorf("unwrapped to another key: %v", err)
	}
}

func wrapOnce(t *testing.T, client v1.CryptoServiceClient, profile, key string) []byte {
	t.Helper()
	return wrapWith(t, client, &v1.WrapKeyRequest{Profile: profile, KeyId: key, DataKey: theDataKey})
}

func wrapWith(t *testing.T, client v1.CryptoServiceClient, request *v1.WrapKeyRequest) []byte {
	t.Helper()
	reply, err := client.WrapKey(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return reply.GetWrappedKey()
}

// blobOf returns a key that was wrapped with the AES key of kkkk….
func blobOf(t *testing.T, with algorithm.Wrapping, id, version string, context []byte) []byte {
	t.Helper()
	key, err := wrap.NewAES(bytes.Repeat([]byte("k"), 2*aes.BlockSize))
	if err != nil {
		t.Fatal(err)
	}
	header := blob.Header{Algorithm: with, Provider: "-", KeyID: id, KeyVersion: version, ContextHash: blob.HashContext(context)}
	wrapped, err := key.Wrap(with, theDataKey, header.Additional())
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := blob.Encode(header, wrapped)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func flipped(data []byte, i int) []byte {
	changed := slices.Clone(data)
	changed[i] ^= 1
	return changed
}

// endsWith checks the code of an error, and the end of its sentence.
func endsWith(t *testing.T, err error, code codes.Code, want string) {
	t.Helper()
	if got := status.Convert(err); got.Code() != code || !strings.HasSuffix(got.Message(), want) {
		t.Errorf("got %s %q\nwant %s %q", got.Code(), got.Message(), code, want)
	}
}
