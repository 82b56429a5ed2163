// SPDX-License-Identifier: Apache-2.0

package kmsplugin_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2"
	"k8s.io/kms/pkg/service"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// The API server's side of the test is its own code: the client of the socket, the key that it makes, the envelope around a Secret,
// and the checks of the plugin's answers.
func TestTheAPIServersOwnClientEncryptsAndDecryptsSecrets(t *testing.T) {
	h := newHarness(t)
	// The time is the API server's default of 3 seconds, with a margin for a busy machine.
	plugin, err := kmsv2.NewGRPCService(t.Context(), "unix://"+h.socket, "crypto-broker", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	state := apiServerState(t, plugin)
	toStorage := kmsv2.NewEnvelopeTransformer(plugin, "crypto-broker", func() (kmsv2.State, error) { return state, nil }, "server-1")
	where := value.DefaultContext("/registry/secrets/default/one")
	before, err := toStorage.TransformToStorage(t.Context(), []byte("hunter2"), where)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(before, []byte("hunter2")) {
		t.Error("the Secret is in storage in the clear")
	}

	h.manager.rotate()
	h.later(time.Minute)
	was := state.EncryptedObjectKeyID
	if state = apiServerState(t, plugin); state.EncryptedObjectKeyID == was {
		t.Error("after a rotation, the API server has the same key id")
	}
	after, err := toStorage.TransformToStorage(t.Context(), []byte("hunter2"), where)
	if err != nil {
		t.Fatal(err)
	}

	// Another API server has unwrapped nothing yet, as after a restart.
	restarted := kmsv2.NewEnvelopeTransformer(plugin, "crypto-broker", func() (kmsv2.State, error) { return state, nil }, "server-2")
	for stored, wantStale := range map[string]bool{string(before): true, string(after): false} {
		plaintext, stale, err := restarted.TransformFromStorage(t.Context(), []byte(stored), where)
		if err != nil || string(plaintext) != "hunter2" || stale != wantStale {
			t.Errorf("found %q, stale %t, %v; want stale %t", plaintext, stale, err, wantStale)
		}
	}
	if _, _, err := restarted.TransformFromStorage(t.Context(), before, value.DefaultContext("/registry/secrets/default/two")); err == nil {
		t.Error("a Secret was read under the name of another one")
	}

	h.manager.fail(keys.ErrUnavailable)
	if plaintext, _, err := restarted.TransformFromStorage(t.Context(), before, where); err != nil || string(plaintext) != "hunter2" {
		t.Errorf("the key provider is away, and what the API server has unwrapped before is not readable: %q, %v", plaintext, err)
	}
	cold := kmsv2.NewEnvelopeTransformer(plugin, "crypto-broker", func() (kmsv2.State, error) { return state, nil }, "server-3")
	if _, _, err := cold.TransformFromStorage(t.Context(), before, where); err == nil || !strings.Contains(err.Error(), `the key provider "bao" does not answer`) {
		t.Errorf("found %v", err)
	}
	h.manager.fail(nil)
	if plaintext, _, err := cold.TransformFromStorage(t.Context(), before, where); err != nil || string(plaintext) != "hunter2" {
		t.Errorf("the key provider is back: %q, %v", plaintext, err)
	}
}

func TestTheAPIServersOwnClientConnectsAgainAfterARestartOfThePlugin(t *testing.T) {
	h := newHarness(t)
	plugin, err := kmsv2.NewGRPCService(t.Context(), "unix://"+h.socket, "crypto-broker", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	before := apiServerState(t, plugin)
	h.stop()
	h.start()
	if after := apiServerState(t, plugin); after.EncryptedObjectKeyID != before.EncryptedObjectKeyID {
		t.Errorf("the key id changed from %s to %s", before.EncryptedObjectKeyID, after.EncryptedObjectKeyID)
	}
}

// apiServerState polls the plugin as the API server does.
func apiServerState(t *testing.T, plugin service.Service) kmsv2.State {
	t.Helper()
	status, err := plugin.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status.Version != kmsv2.KMSAPIVersionv2 || status.Healthz != "ok" {
		t.Fatalf("found the status %+v", status)
	}
	if _, err := kmsv2.ValidateKeyID(status.KeyID); err != nil {
		t.Fatal(err)
	}
	transformer, object, cacheKey, err := kmsv2.GenerateTransformer(t.Context(), "uid", plugin, true)
	if err != nil {
		t.Fatal(err)
	}
	if object.GetKeyID() != status.KeyID {
		t.Fatalf("Encrypt has the key id %s, and Status %s", object.GetKeyID(), status.KeyID)
	}
	return kmsv2.State{
		Transformer: transformer, EncryptedObjectKeyID: object.GetKeyID(), EncryptedObjectEncryptedDEKSource: object.GetEncryptedDEKSource(),
		EncryptedObjectAnnotations: object.GetAnnotations(), EncryptedObjectEncryptedDEKSourceType: object.GetEncryptedDEKSourceType(),
		UID: "uid", ExpirationTimestamp: time.Now().Add(time.Hour), CacheKey: cacheKey, KMSProviderName: "crypto-broker",
	}
}
