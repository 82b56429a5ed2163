// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/gateway"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func must[T any](t testing.TB) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// local gives the manager a key pair that signs.
func local(t testing.TB, m *manager, id string, signer crypto.Signer) {
	m.addKey(id, func() (*keys.Key, error) { return keys.NewSigning(id, signer, nil) })
}

// secret gives the manager an AES key.
func secret(t testing.TB, m *manager, id string, raw []byte) {
	cipher := must[*engine.AESGCM](t)(engine.NewAESGCM(raw))
	m.addKey(id, func() (*keys.Key, error) { return keys.NewSymmetric(id, cipher).WithVersion("7"), nil })
}

// byMessage is a key manager that signs messages and takes no digests.
type byMessage struct{ key ed25519.PrivateKey }

func (b byMessage) Sign(context.Context, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("takes messages")
}

func (b byMessage) SignMessage(_ context.Context, message []byte, _ crypto.SignerOpts) ([]byte, error) {
	return ed25519.Sign(b.key, message), nil
}

func TestSignaturesOfTheGatewayVerifyWithTheDescribedKey(t *testing.T) {
	i := install(t)
	rsaKey := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	local(t, i.manager, "rsa", rsaKey)
	local(t, i.manager, "ecdsa", must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))
	local(t, i.manager, "ed25519", edKey)
	i.manager.addKey("message", func() (*keys.Key, error) {
		return keys.NewRemoteSigning("message", edKey.Public(), byMessage{edKey}, nil)
	})
	client := i.client(t)
	for sentence, test := range map[string]struct {
		id, algorithm string
		hash          crypto.Hash
	}{
		"RSA with PKCS #1":                  {"rsa", "rsa", crypto.SHA384},
		"RSA with PSS":                      {"rsa", "rsa-pss", crypto.SHA256},
		"ECDSA":                             {"ecdsa", "ecdsa", crypto.SHA256},
		"Ed25519, which takes no digest":    {"ed25519", "ed25519", 0},
		"a key manager that takes messages": {"message", "ed25519", 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			signature, ok := algorithm.FindSignature(test.algorithm)
			if !ok {
				t.Fatalf("there is no algorithm %q", test.algorithm)
			}
			key := must[*keys.Key](t)(client.Key(t.Context(), named(test.id, profile.OpSignData)))
			if !key.Remote() || !key.Signs() {
				t.Fatalf("remote %t, signs %t: the private key has to stay in the gateway", key.Remote(), key.Signs())
			}
			input := []byte("receipt")
			toSign := input
			if test.hash != 0 {
				h := test.hash.New()
				h.Write(input)
				toSign = h.Sum(nil)
			}
			signer, options := key.Signer(t.Context()), signature.SignerOptions(test.hash)
			var made []byte
			if messages, ok := signer.(crypto.MessageSigner); ok {
				made = must[[]byte](t)(messages.SignMessage(nil, input, options))
			} else {
				made = must[[]byte](t)(signer.Sign(nil, toSign, options))
			}
			verifying := must[*keys.Key](t)(client.Key(t.Context(), named(test.id, profile.OpVerifyData)))
			if verifying.Signs() {
				t.Error("the key for VerifyData signs")
			}
			if !signature.Verify(verifying.Public(), test.hash, toSign, made) {
				t.Error("the signature does not verify")
			}
		})
	}
}

func TestWhatTheGatewayEncryptsHasTheKeyOfTheManager(t *testing.T) {
	i := install(t)
	raw := bytes.Repeat([]byte{0x42}, 32)
	secret(t, i.manager, "orders", raw)
	client := i.client(t)
	key := must[*keys.Key](t)(client.Key(t.Context(), named("orders", profile.OpEncryptData)))
	if key.Version() != "7" {
		t.Errorf("the version is %q, want 7", key.Version())
	}
	nonce, ciphertext, tag, err := key.Cipher(t.Context()).SealRandom([]byte("plaintext of an order"), []byte("context"))
	if err != nil {
		t.Fatal(err)
	}
	judge := must[*engine.AESGCM](t)(engine.NewAESGCM(raw))
	if plaintext, err := judge.Open(nonce, ciphertext, tag, []byte("context")); err != nil || string(plaintext) != "plaintext of an order" {
		t.Errorf("the key itself decrypts %q, error %v", plaintext, err)
	}
	opened := must[*keys.Key](t)(client.Key(t.Context(), named("orders", profile.OpDecryptData))).Cipher(t.Context())
	if plaintext, err := opened.Open(nonce, ciphertext, tag[:12], []byte("context")); err != nil || string(plaintext) != "plaintext of an order" {
		t.Errorf("the gateway decrypts %q with a short tag, error %v", plaintext, err)
	}
	if _, err := opened.Open(nonce, ciphertext, tag, []byte("another")); !errors.Is(err, engine.ErrAuthentication) {
		t.Errorf("another context: %v, want ErrAuthentication", err)
	}
	var input *engine.InputError
	if _, _, _, err := key.Cipher(t.Context()).SealRandom(make([]byte, gateway.MaxInputSize+1), nil); !errors.As(err, &input) {
		t.Errorf("an input that is too large: %v, want an error for the client", err)
	}
	for _, leaked := range []string{"plaintext of an order", string(raw), "token-of-web"} {
		if strings.Contains(i.log.String(), leaked) {
			t.Errorf("the log has %q", leaked)
		}
	}
}

func TestErrorsOfKeyManagersArriveAsWhatTheyAre(t *testing.T) {
	i := install(t)
	client := i.client(t)
	for sentence, want := range map[string]error{
		"a key that does not exist":        keys.ErrNotFound,
		"a key that cannot be used":        keys.ErrUnusable,
		"a manager that denies":            keys.ErrDenied,
		"a manager that cannot be reached": keys.ErrUnavailable,
		"a manager that throttles":         keys.ErrThrottled,
	} {
		t.Run(sentence, func(t *testing.T) {
			asked := i.manager.asked.Load()
			i.manager.addKey("bad", func() (*keys.Key, error) { return nil, errors.Join(want, errors.New("at 192.0.2.7")) })
			_, err := client.Key(t.Context(), named("bad", profile.OpSignData))
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			if strings.Contains(err.Error(), "192.0.2.7") {
				t.Errorf("the broker learns what only the operator of the gateway may know: %v", err)
			}
			if n := i.manager.asked.Load() - asked; n != 1 {
				t.Errorf("the manager was asked %d times, want once: only the gateway's connections are tried again", n)
			}
		})
	}
	if !strings.Contains(i.log.String(), "192.0.2.7") {
		t.Error("the log of the gateway does not have the error of the key manager")
	}
}

func TestAPublicKeyIsUsedOnWhileTheGatewayIsAwayAndTheRestIsUnavailable(t *testing.T) {
	i := install(t)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	local(t, i.manager, "receipts", private)
	client := i.client(t)
	verify, sign := named("receipts", profile.OpVerifyData), named("receipts", profile.OpSignData)
	signing := must[*keys.Key](t)(client.Key(t.Context(), sign))
	must[*keys.Key](t)(client.Key(t.Context(), verify))
	i.stop(i.server)
	if key, err := client.KeyNow(verify); err != nil || key.Remote() {
		t.Errorf("the public key that was described: %v", err)
	}
	if _, err := signing.Signer(t.Context()).Sign(nil, []byte("m"), crypto.Hash(0)); !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("a signature: %v, want ErrUnavailable", err)
	}
	if _, err := client.Key(t.Context(), named("other", profile.OpVerifyData)); !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("another key: %v, want ErrUnavailable", err)
	}
	i.serve(t, i.address)
	eventually(t, "the gateway is back", func() error {
		_, err := signing.Signer(t.Context()).Sign(nil, []byte("m"), crypto.Hash(0))
		return err
	})
}

// eventually waits until a call succeeds. After a failure, gRPC waits before it connects again.
func eventually(t *testing.T, condition string, call func() error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		err := call()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v", condition, err)
		}
	}
}

func TestACallSurvivesTheEndOfAReplica(t *testing.T) {
	i := install(t)
	raw := sha256.Sum256([]byte("key"))
	secret(t, i.manager, "orders", raw[:])
	client := i.client(t)
	cipher := must[*keys.Key](t)(client.Key(t.Context(), named("orders", profile.OpEncryptData))).Cipher(t.Context())
	for range 3 {
		// The next replica runs before the previous one has ended, as behind a Service.
		i.stop(i.server)
		i.serve(t, i.address)
		if _, _, _, err := cipher.SealRandom([]byte("m"), nil); err != nil {
			t.Errorf("the first call after the end of a replica: %v", err)
		}
	}
}

func TestTheFilesOfABrokerAreReadAgain(t *testing.T) {
	i := install(t)
	raw := sha256.Sum256([]byte("key"))
	secret(t, i.manager, "orders", raw[:])
	write(t, i.token, "stolen")
	client := i.client(t)
	if _, err := client.Key(t.Context(), named("orders", profile.OpEncryptData)); !errors.Is(err, keys.ErrDenied) {
		t.Errorf("a bad token: %v, want ErrDenied", err)
	}
	write(t, i.token, "token-of-web")
	if _, err := client.Key(t.Context(), named("orders", profile.OpEncryptData)); err != nil {
		t.Errorf("the token is valid now: %v", err)
	}

	write(t, i.authorities, newAuthority(t).pem)
	other := i.client(t)
	if _, err := other.Key(t.Context(), named("orders", profile.OpEncryptData)); !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("a gateway of another authority: %v, want ErrUnavailable", err)
	}
	write(t, i.authorities, i.authority.pem)
	eventually(t, "the authorities are valid now", func() error {
		_, err := other.Key(t.Context(), named("orders", profile.OpEncryptData))
		return err
	})
}

func TestADataKeyIsWrappedInTheGatewayAndOnlyForItsOperation(t *testing.T) {
	i := install(t)
	kek := must[*keys.Key](t)(keys.NewAES("orders", bytes.Repeat([]byte{0x42}, 32)))
	i.manager.addKey("orders", func() (*keys.Key, error) { return kek.WithVersion("7"), nil })
	client := i.client(t)
	algorithmName := algorithm.WrapAESGCM.String()
	dataKey := bytes.Repeat([]byte{0x17}, 32)
	wrapping := must[*keys.Key](t)(client.Key(t.Context(), named("orders", profile.OpGenerateDataKey)))
	if !wrapping.Remote() || wrapping.Version() != "7" || wrapping.Cipher(t.Context()) != nil {
		t.Errorf("remote %t, version %q, cipher %v: want a key that only wraps, in the gateway", wrapping.Remote(), wrapping.Version(), wrapping.Cipher(t.Context()))
	}
	wrapped := must[[]byte](t)(wrapping.Wrapper().Wrap(t.Context(), algorithmName, bytes.Clone(dataKey), []byte("context")))
	if judged := must[[]byte](t)(kek.Wrapper().Unwrap(t.Context(), algorithmName, wrapped, []byte("context"))); !bytes.Equal(judged, dataKey) {
		t.Error("the key itself unwraps another data key")
	}
	unwrapping := must[*keys.Key](t)(client.Key(t.Context(), named("orders", profile.OpUnwrapKey))).Wrapper()
	if unwrapped := must[[]byte](t)(unwrapping.Unwrap(t.Context(), algorithmName, wrapped, []byte("context"))); !bytes.Equal(unwrapped, dataKey) {
		t.Error("the gateway unwraps another data key")
	}
	if _, err := unwrapping.Unwrap(t.Context(), algorithmName, wrapped, []byte("another")); !errors.Is(err, keys.ErrInvalidCiphertext) {
		t.Errorf("another context: %v, want ErrInvalidCiphertext", err)
	}
	if _, err := unwrapping.Unwrap(t.Context(), "rot13", wrapped, []byte("context")); !errors.Is(err, keys.ErrUnusable) {
		t.Errorf("an unknown algorithm: %v, want ErrUnusable", err)
	}
	if _, err := wrapping.Wrapper().Unwrap(t.Context(), algorithmName, wrapped, []byte("context")); !errors.Is(err, keys.ErrDenied) {
		t.Errorf("to unwrap for GenerateDataKey: %v, want ErrDenied", err)
	}
	if strings.Contains(i.log.String(), string(dataKey)) {
		t.Error("the log has the data key")
	}
}
