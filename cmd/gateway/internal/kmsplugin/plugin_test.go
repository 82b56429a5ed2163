// SPDX-License-Identifier: Apache-2.0

package kmsplugin_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/blob"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/kmsplugin"
)

var secret = bytes.Repeat([]byte("s3cr3t!!"), 4)

func TestTheKeyIdIsTheSameUntilTheKeyIsRotatedAndOlderCiphertextsGoOnDecrypting(t *testing.T) {
	h := newHarness(t)
	first := h.expectHealthy()
	old := h.encrypt()
	for range 3 {
		h.later(time.Minute)
		if id := h.expectHealthy(); id != first {
			t.Errorf("without a rotation, the key id changed from %s to %s", first, id)
		}
	}
	if again := newHarness(t).expectHealthy(); again != first {
		t.Errorf("another plugin with the same key has the key id %s, want %s", again, first)
	}
	h.manager.rotate()
	h.later(time.Minute)
	second := h.expectHealthy()
	if second == first {
		t.Error("after a rotation, the key id is the same")
	}
	fresh := h.encrypt()
	if old.GetKeyId() != first || fresh.GetKeyId() != second {
		t.Errorf("Encrypt returned the key ids %s and %s, want the ids of Status, %s and %s", old.GetKeyId(), fresh.GetKeyId(), first, second)
	}
	for name, response := range map[string]*kmsapi.EncryptResponse{"before": old, "after": fresh} {
		if got, err := h.decrypt(response); err != nil || !bytes.Equal(got, secret) {
			t.Errorf("the ciphertext of %s the rotation: %q, %v", name, got, err)
		}
		if bytes.Contains(response.GetCiphertext(), secret[:8]) {
			t.Errorf("the ciphertext of %s the rotation has the plaintext", name)
		}
		if len(response.GetAnnotations()) > 0 || len(response.GetCiphertext()) > 1024 {
			t.Errorf("found %d annotations and %d bytes, expected none and at most 1024", len(response.GetAnnotations()), len(response.GetCiphertext()))
		}
	}
}

func TestKeysWithNamesThatRunTogetherHaveDifferentIds(t *testing.T) {
	seen := map[string]string{}
	for _, key := range []string{"bao/key", "ba/okey", "bao/key1", "b/ao/key"} {
		h := newHarness(t, func(o *kmsplugin.Options) { o.Key = key })
		id := h.expectHealthy()
		if other, found := seen[id]; found {
			t.Errorf("%s and %s have the same id", key, other)
		}
		seen[id] = key
	}
}

func TestADecryptRequestThatDoesNotFitItsCiphertextIsRefused(t *testing.T) {
	h := newHarness(t)
	good := h.encrypt()
	h.manager.rotate()
	h.later(time.Minute)
	rotated := h.encrypt()
	elsewhere := newHarness(t, func(o *kmsplugin.Options) { o.Key = "bao/other" }).encrypt()
	flipped := bytes.Clone(good.GetCiphertext())
	flipped[len(flipped)-1] ^= 1
	foreign, foreignID := h.wrapOfAnotherUse()
	for sentence, test := range map[string]struct {
		ciphertext  []byte
		keyID       string
		annotations map[string][]byte
		code        codes.Code
		want        string
	}{
		"the key id of another version":        {good.GetCiphertext(), rotated.GetKeyId(), nil, codes.InvalidArgument, "the ciphertext belongs to another key than key_id"},
		"no key id":                            {good.GetCiphertext(), "", nil, codes.InvalidArgument, "the ciphertext belongs to another key than key_id"},
		"a key that is not one of the plugin":  {elsewhere.GetCiphertext(), elsewhere.GetKeyId(), nil, codes.FailedPrecondition, `names the key "bao/other", which is neither`},
		"another format":                       {[]byte("vault:v1:AAAA"), good.GetKeyId(), nil, codes.InvalidArgument, "the ciphertext is not a wrapped key of a broker"},
		"nothing":                              {nil, good.GetKeyId(), nil, codes.InvalidArgument, "the ciphertext is not a wrapped key of a broker"},
		"more than the API server may store":   {make([]byte, 1025), good.GetKeyId(), nil, codes.InvalidArgument, "the ciphertext has 1025 bytes, expected at most 1024"},
		"annotations":                          {good.GetCiphertext(), good.GetKeyId(), map[string][]byte{"a.example.com": nil}, codes.InvalidArgument, "found 1 annotations, expected none"},
		"a changed ciphertext":                 {flipped, good.GetKeyId(), nil, codes.InvalidArgument, `the key "key" of the key provider "bao" does not unwrap this ciphertext`},
		"a data key of an application":         {foreign, foreignID, nil, codes.InvalidArgument, "was not made by a KMS plugin of Kubernetes"},
		"a wrapped key that says it is purged": {h.relabel(good.GetCiphertext(), "9"), h.idOf("9"), nil, codes.NotFound, `does not have the key "key", or not this version of it`},
		"a wrapped key of another version":     {h.relabel(good.GetCiphertext(), "2"), h.idOf("2"), nil, codes.InvalidArgument, "does not unwrap this ciphertext"},
	} {
		t.Run(sentence, func(t *testing.T) {
			response, err := h.client.Decrypt(t.Context(), &kmsapi.DecryptRequest{Ciphertext: test.ciphertext, Uid: "u", KeyId: test.keyID, Annotations: test.annotations})
			if status.Code(err) != test.code || !strings.Contains(status.Convert(err).Message(), test.want) || response != nil {
				t.Errorf("found %v and %v\nwant %s: %s", response, err, test.code, test.want)
			}
		})
	}
	if got, err := h.decrypt(good); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("afterwards, a good request failed: %q, %v", got, err)
	}
}

func TestAPlaintextThatIsNoKeyIsRefused(t *testing.T) {
	h := newHarness(t)
	for _, size := range []int{0, 257} {
		_, err := h.client.Encrypt(t.Context(), &kmsapi.EncryptRequest{Plaintext: make([]byte, size)})
		if want := fmt.Sprintf("found a plaintext of %d bytes, expected a key of 1 to 256 bytes", size); status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != want {
			t.Errorf("found %v, want %s", err, want)
		}
	}
}

func TestAnOldKeyUnwrapsUntilItIsNoLongerListed(t *testing.T) {
	before := newHarness(t)
	old := before.encrypt()
	withOld := func(keys ...string) func(*kmsplugin.Options) {
		return func(o *kmsplugin.Options) { o.Key, o.OldKeys, o.Keys = "bao/next", keys, before.manager }
	}
	after := newHarness(t, withOld("bao/key"))
	if got, err := after.decrypt(old); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("found %q, %v", got, err)
	}
	if fresh := after.encrypt(); fresh.GetKeyId() == old.GetKeyId() {
		t.Error("new data is wrapped with the old key")
	}
	if _, err := newHarness(t, withOld()).decrypt(old); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a key that is not listed unwraps: %v", err)
	}
}

func TestTheLogNamesTheRequestAndNeverThePlaintext(t *testing.T) {
	h := newHarness(t)
	response := h.encrypt()
	if _, err := h.decrypt(response); err != nil {
		t.Fatal(err)
	}
	h.manager.fail(fmt.Errorf("%w: https://bao.example.com: connection refused", keys.ErrUnavailable))
	if _, err := h.decrypt(response); err == nil {
		t.Fatal("a call succeeded without a key manager")
	} else if strings.Contains(err.Error(), "example.com") {
		t.Errorf("the error tells the API server's users how the key manager is reached: %v", err)
	}
	log := h.log.String()
	for _, want := range []string{`"uid":"uid-of-encrypt"`, `"uid":"uid-of-decrypt"`, response.GetKeyId(), "connection refused"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
	if strings.Contains(log, string(secret[:8])) || strings.Contains(log, "czNjcjN0") {
		t.Errorf("the log has the plaintext:\n%s", log)
	}
}

func TestAKeyOfTheAPIServerIsOverwrittenOnceItIsEncoded(t *testing.T) {
	response := &kmsapi.DecryptResponse{Plaintext: bytes.Clone(secret)}
	encoded, err := kmsplugin.Codec{}.Marshal(response)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(encoded.Materialize(), secret) {
		t.Error("the message does not have the key")
	}
	if !bytes.Equal(response.GetPlaintext(), make([]byte, len(secret))) {
		t.Error("the response still has the key")
	}
}

func TestAKeyThatCannotBeTheKeyOfAPluginIsRefused(t *testing.T) {
	for sentence, test := range map[string]struct {
		key  string
		old  []string
		want string
	}{
		"no provider":      {"cluster-secrets", nil, `found "cluster-secrets", expected the name of a key provider, a slash`},
		"a space":          {"bao/cluster secrets", nil, "expected the name of a key provider"},
		"an empty old key": {"bao/key", []string{""}, `found "", expected the name of a key provider`},
		"a key twice":      {"bao/key", []string{"bao/key"}, `found the key "bao/key" twice`},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := (&kmsplugin.Options{Key: test.key, OldKeys: test.old}).Validate()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("found %v, want %s", err, test.want)
			}
		})
	}
}

// wrapOfAnotherUse returns a data key that the same key wrapped for an application.
func (h *harness) wrapOfAnotherUse() (ciphertext []byte, keyID string) {
	h.Helper()
	key, err := h.manager.Key(h.Context(), keys.Name{ID: "bao/key", Version: "1"})
	if err != nil {
		h.Fatal(err)
	}
	header := blob.Header{Algorithm: algorithm.WrapAESGCM, Provider: "bao", KeyID: "key", KeyVersion: "1", ContextHash: blob.HashContext([]byte("tenant=a"))}
	wrapped, err := key.Wrapper().Wrap(h.Context(), header.Algorithm.String(), secret, header.Additional())
	if err != nil {
		h.Fatal(err)
	}
	if ciphertext, err = blob.Encode(header, wrapped); err != nil {
		h.Fatal(err)
	}
	return ciphertext, h.idOf("1")
}

// relabel returns a ciphertext that names another version of the key.
func (h *harness) relabel(ciphertext []byte, version string) []byte {
	h.Helper()
	header, wrapped, err := blob.Parse(ciphertext)
	if err != nil {
		h.Fatal(err)
	}
	header.KeyVersion = version
	changed, err := blob.Encode(header, wrapped)
	if err != nil {
		h.Fatal(err)
	}
	return changed
}

// idOf returns the id of a version of bao/key.
func (h *harness) idOf(version string) string {
	return kmsplugin.KeyID(blob.Header{Provider: "bao", KeyID: "key", KeyVersion: version})
}
