// SPDX-License-Identifier: Apache-2.0

package kmsplugin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/kmsplugin"
)

func TestManyPollsCostTheKeyManagerOneRoundTrip(t *testing.T) {
	h := newHarness(t)
	h.expectHealthy()
	once := h.manager.counted()
	var polls sync.WaitGroup
	for range 50 {
		polls.Go(func() { h.status() })
	}
	polls.Wait()
	if n := h.manager.counted(); n != once {
		t.Errorf("50 polls made %d requests more", n-once)
	}
	h.later(time.Minute)
	h.expectHealthy()
	if n := h.manager.counted(); n != 2*once {
		t.Errorf("after a minute, there were %d requests, want a round trip of %d more", n, once)
	}
}

func TestAKeyThatCannotBeUsedIsSaidInOneSentenceAndRecoversWithoutARestart(t *testing.T) {
	for sentence, test := range map[string]struct {
		err  error
		code codes.Code
		want string
	}{
		"the provider is away":     {keys.ErrUnavailable, codes.Unavailable, `the key provider "bao" does not answer`},
		"too many requests":        {keys.ErrThrottled, codes.Unavailable, `the key provider "bao" refuses requests because there are too many`},
		"the key is denied":        {keys.ErrDenied, codes.PermissionDenied, `the key provider "bao" denies the use of the key "key"`},
		"the key is destroyed":     {keys.ErrNotFound, codes.NotFound, `the key provider "bao" does not have the key "key", or not this version of it`},
		"the key is disabled":      {keys.ErrUnusable, codes.FailedPrecondition, `the key "key" of the key provider "bao" cannot be used; the log of the KMS plugin says why`},
		"the provider is unknown":  {&keys.NoProviderError{Provider: "bao"}, codes.FailedPrecondition, `the key provider "bao" is not in the directory of key providers, or could not be opened`},
		"something else is broken": {errors.New("disk"), codes.FailedPrecondition, `the key "key" of the key provider "bao" cannot be used; the log of the KMS plugin says why`},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHarness(t)
			before := h.expectHealthy()
			wrapped := h.encrypt()
			h.manager.fail(fmt.Errorf("%w: of the test", test.err))
			h.later(time.Minute)
			if found := h.status(); found.GetHealthz() != test.want || found.GetKeyId() != "" || found.GetVersion() != "v2" {
				t.Errorf("found the status %v, want %q without a key id", found, test.want)
			}
			if found := h.plugin.Ready(); found != test.want {
				t.Errorf("the plugin is ready, or says %q, want %q", found, test.want)
			}
			if healthy, known := h.plugin.Healthy(); healthy || !known {
				t.Errorf("found healthy %t, known %t", healthy, known)
			}
			_, err := h.client.Encrypt(t.Context(), &kmsapi.EncryptRequest{Plaintext: secret})
			expectError(t, "Encrypt", err, test.code, test.want)
			_, err = h.decrypt(wrapped)
			expectError(t, "Decrypt", err, test.code, test.want)
			h.manager.fail(nil)
			h.later(2 * time.Second)
			if after := h.expectHealthy(); after != before {
				t.Errorf("the key id changed from %s to %s", before, after)
			}
			if _, err := h.decrypt(wrapped); err != nil {
				t.Errorf("the key is back, and Decrypt fails: %v", err)
			}
		})
	}
}

func expectError(t *testing.T, method string, err error, code codes.Code, sentence string) {
	t.Helper()
	if status.Code(err) != code || status.Convert(err).Message() != sentence {
		t.Errorf("%s: found %v, want %s: %s", method, err, code, sentence)
	}
}

func TestAFailedCallMakesTheNextStatusAskTheKeyManager(t *testing.T) {
	h := newHarness(t)
	h.expectHealthy()
	wrapped := h.encrypt()
	h.manager.fail(keys.ErrUnavailable)
	if _, err := h.decrypt(wrapped); status.Code(err) != codes.Unavailable {
		t.Fatalf("found %v", err)
	}
	if found := h.status().GetHealthz(); found == "ok" {
		t.Error("the status is what it was before the call")
	}
}

// The bound is many times the time after which the API server gives up.
func TestAKeyManagerThatHangsFailsCallsBeforeTheAPIServerGivesUp(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	wrapped := h.encrypt()
	h.manager.hangs(make(chan struct{}))
	h.later(time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const want = `the key provider "bao" does not answer`
	var calls sync.WaitGroup
	calls.Go(func() {
		_, err := h.client.Encrypt(ctx, &kmsapi.EncryptRequest{Plaintext: secret})
		expectError(t, "Encrypt", err, codes.Unavailable, want)
	})
	calls.Go(func() {
		_, err := h.client.Decrypt(ctx, &kmsapi.DecryptRequest{Ciphertext: wrapped.GetCiphertext(), KeyId: wrapped.GetKeyId()})
		expectError(t, "Decrypt", err, codes.Unavailable, want)
	})
	calls.Go(func() {
		if found, err := h.client.Status(ctx, &kmsapi.StatusRequest{}); err != nil || found.GetHealthz() != want {
			t.Errorf("Status: found %v, %v", found, err)
		}
	})
	calls.Wait()
}

func TestAPluginWhoseKeyManagerHungAsksAgain(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.manager.hangs(make(chan struct{}))
	if found := h.status().GetHealthz(); found == "ok" {
		t.Fatal("the key manager does not hang")
	}
	h.manager.hangs(nil) // new requests are answered, but earlier ones still wait
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for h.status().GetHealthz() != "ok" {
		if ctx.Err() != nil {
			t.Fatal("the plugin waits for a request that hangs, and asks no more")
		}
		h.later(time.Minute)
	}
}

func TestAChangeOfTheKeyProvidersIsSeenAtOnce(t *testing.T) {
	h := newHarness(t)
	before := h.expectHealthy()
	h.manager.rotate()
	if id := h.expectHealthy(); id != before {
		t.Fatal("the status is not cached, so the test says nothing")
	}
	h.plugin.Forget()
	if id := h.expectHealthy(); id == before {
		t.Error("the plugin still has the key of the provider before")
	}
}

func TestAKeyThatDoesNotWrapAsThePluginNeedsItIsSaid(t *testing.T) {
	h := newHarness(t, func(o *kmsplugin.Options) { o.Keys = onlyEncrypts{} })
	if found := h.status().GetHealthz(); !strings.Contains(found, "cannot be used") {
		t.Errorf("found %q", found)
	}
	if log := h.log.String(); !strings.Contains(log, "it does not wrap with aes-gcm, expected an AES key") {
		t.Errorf("the log does not say why:\n%s", log)
	}
}

// onlyEncrypts is a provider whose keys wrap nothing.
type onlyEncrypts struct{}

func (onlyEncrypts) Key(context.Context, keys.Name) (*keys.Key, error) {
	return keys.NewSymmetric("key", nil), nil
}

func TestADefectEndsOneCallAndNotThePlugin(t *testing.T) {
	h := newHarness(t, func(o *kmsplugin.Options) { o.Keys = broken{} })
	if found := h.status().GetHealthz(); !strings.Contains(found, "cannot be used") {
		t.Errorf("found %q", found)
	}
	wrapped := newHarness(t).encrypt()
	if _, err := h.decrypt(wrapped); status.Code(err) != codes.Internal {
		t.Errorf("found %v", err)
	}
	if log := h.log.String(); strings.Contains(log, "quotes a key") {
		t.Errorf("the log has the text of the panic:\n%s", log)
	}
}

// broken is a provider that panics.
type broken struct{}

func (broken) Key(context.Context, keys.Name) (*keys.Key, error) { panic("it quotes a key") }
