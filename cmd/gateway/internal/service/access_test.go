// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	gatewayv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/gateway/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/gateway"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// uncheckedClient returns a client of the protocol without the checks of the broker.
func (i *installation) uncheckedClient(t *testing.T) gatewayv1.KeyGatewayServiceClient {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(i.authority.cert)
	connection, err := grpc.NewClient(i.address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() }) // the cleanup closes it once
	return gatewayv1.NewKeyGatewayServiceClient(connection)
}

func callContext(t *testing.T, d time.Duration, tokens ...string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	for _, token := range tokens {
		ctx = metadata.AppendToOutgoingContext(ctx, gateway.TokenHeader, token)
	}
	return ctx
}

func TestNoKeyIsLookedForBeforeItsUseIsAllowed(t *testing.T) {
	i := install(t)
	raw := sha256.Sum256([]byte("key"))
	secret(t, i.manager, "orders", raw[:])
	client := i.uncheckedClient(t)
	const good = "Bearer token-of-web"
	use := func(change func(*gatewayv1.KeyUse)) *gatewayv1.KeyUse {
		u := &gatewayv1.KeyUse{Profile: "P", Operation: "EncryptData", KeyId: "kms/orders"}
		if change != nil {
			change(u)
		}
		return u
	}
	for sentence, test := range map[string]struct {
		tokens []string
		use    *gatewayv1.KeyUse
		broken bool
		code   codes.Code
		want   string
	}{
		"no token":                            {nil, use(nil), false, codes.Unauthenticated, "has 0 tokens"},
		"two tokens":                          {[]string{good, good}, use(nil), false, codes.Unauthenticated, "has 2 tokens"},
		"another scheme":                      {[]string{"Basic token-of-web"}, use(nil), false, codes.Unauthenticated, `expected "Bearer "`},
		"an unknown token":                    {[]string{"Bearer stolen"}, use(nil), false, codes.Unauthenticated, "does not belong to a running pod"},
		"another profile":                     {[]string{good}, use(func(u *gatewayv1.KeyUse) { u.Profile = "Q" }), false, codes.PermissionDenied, "does not list the key"},
		"another key":                         {[]string{good}, use(func(u *gatewayv1.KeyUse) { u.KeyId = "kms/forbidden" }), false, codes.PermissionDenied, "does not list the key"},
		"a key without provider":              {[]string{good}, use(func(u *gatewayv1.KeyUse) { u.KeyId = "orders" }), false, codes.PermissionDenied, "expected <provider>/<id>"},
		"another task than the operation has": {[]string{good}, use(func(u *gatewayv1.KeyUse) { u.Operation = "DecryptData" }), false, codes.PermissionDenied, "does not need this use"},
		"an operation without keys":           {[]string{good}, use(func(u *gatewayv1.KeyUse) { u.Operation = "HashData" }), false, codes.PermissionDenied, "has no keys"},
		"an unknown operation":                {[]string{good}, use(func(u *gatewayv1.KeyUse) { u.Operation = "Everything" }), false, codes.PermissionDenied, "has no keys"},
		"a long version":                      {[]string{good}, use(func(u *gatewayv1.KeyUse) { u.Version = strings.Repeat("1", 65) }), false, codes.PermissionDenied, "at most 64"},
		"nothing":                             {[]string{good}, nil, false, codes.PermissionDenied, "has no keys"},
		"a policy that is not known now":      {[]string{good}, use(nil), true, codes.Unavailable, "cannot decide now"},
	} {
		t.Run(sentence, func(t *testing.T) {
			i.access.broken.Store(test.broken)
			_, err := client.Encrypt(callContext(t, 10*time.Second, test.tokens...), &gatewayv1.EncryptRequest{Use: test.use, Plaintext: []byte("m")})
			if got := status.Convert(err); got.Code() != test.code || !strings.Contains(got.Message(), test.want) {
				t.Errorf("got %s %q, want %s and %q", got.Code(), got.Message(), test.code, test.want)
			}
		})
	}
	if n := i.manager.asked.Load(); n != 0 {
		t.Errorf("the key manager was asked %d times", n)
	}
	i.access.broken.Store(false)
	if _, err := client.Encrypt(callContext(t, 10*time.Second, good), &gatewayv1.EncryptRequest{Use: use(nil), Plaintext: []byte("m")}); err != nil {
		t.Errorf("an allowed use: %v", err)
	}
}

func TestAKeyIsLookedForInTheNamespaceOfThePodAndForTheAllowedUse(t *testing.T) {
	i := install(t)
	raw := sha256.Sum256([]byte("key"))
	secret(t, i.manager, "orders", raw[:])
	name := keys.Name{ID: "kms/orders", Version: "7", Use: keys.Use{Profile: "P", Operation: profile.OpDecryptData}}
	for token, test := range map[string]struct {
		want asked
		code codes.Code
	}{
		"web":      {asked{"shop", name}, codes.OK},
		"stranger": {asked{"elsewhere", name}, codes.FailedPrecondition},
	} {
		before := i.manager.asked.Load()
		_, err := i.uncheckedClient(t).DescribeKey(callContext(t, 10*time.Second, "Bearer token-of-"+token), &gatewayv1.DescribeKeyRequest{
			Use: &gatewayv1.KeyUse{Profile: "P", Operation: "DecryptData", KeyId: "kms/orders", Version: "7"},
		})
		if found := i.last.Load(); status.Code(err) != test.code || *found != test.want {
			t.Errorf("the pod %s: %v after asking for %+v, want %s and %+v", token, err, *found, test.code, test.want)
		}
		if n := i.manager.asked.Load() - before; test.code != codes.OK && n != 0 {
			t.Errorf("the pod %s asked the key manager of another namespace", token)
		}
	}
}

func TestAKeyOfOneProfileIsNotRememberedForAnother(t *testing.T) {
	i := install(t)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	local(t, i.manager, "receipts", private)
	client := i.client(t)
	name := named("receipts", profile.OpVerifyData)
	must[*keys.Key](t)(client.Key(t.Context(), name))
	name.Use.Profile = "Q"
	if _, err := client.KeyNow(name); err == nil {
		t.Error("the profile Q got the key that the gateway described for P")
	}
	if _, err := client.Key(t.Context(), name); err == nil {
		t.Error("the profile Q got the key")
	}
}

func TestAGatewayBoundsWhatStrangersTake(t *testing.T) {
	i := install(t)
	client := i.uncheckedClient(t)
	for sentence, test := range map[string]struct {
		ctx  context.Context
		size int
		code codes.Code
	}{
		"a call without a deadline":   {t.Context(), 1, codes.FailedPrecondition},
		"a call with a long deadline": {callContext(t, time.Hour), 1, codes.FailedPrecondition},
		"a large message":             {callContext(t, 20*time.Second), gateway.MaxMessageSize + 1, codes.ResourceExhausted},
		"a large input":               {callContext(t, 20*time.Second), gateway.MaxInputSize + 1, codes.FailedPrecondition},
		"a large header":              {callContext(t, 20*time.Second, strings.Repeat("x", 64<<10)), 1, codes.Internal},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := client.Encrypt(test.ctx, &gatewayv1.EncryptRequest{Plaintext: make([]byte, test.size)})
			if status.Code(err) != test.code {
				t.Errorf("got %v, want %s", err, test.code)
			}
		})
	}
	for deadline := time.Now().Add(20 * time.Second); i.server.Load().Calls > 0; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d calls still count after their end", i.server.Load().Calls)
		}
	}
}

func TestAPodHasAShareOfTheRequests(t *testing.T) {
	i := install(t)
	release := make(chan struct{})
	began := make(chan struct{}, 64)
	i.manager.addKey("slow", func() (*keys.Key, error) { return nil, keys.ErrNotFound })
	i.access.wait = func(pod string) {
		if pod == "web" {
			began <- struct{}{}
			<-release
		}
	}
	ask := func(token string) codes.Code {
		_, err := i.uncheckedClient(t).DescribeKey(callContext(t, 25*time.Second, "Bearer token-of-"+token), &gatewayv1.DescribeKeyRequest{
			Use: &gatewayv1.KeyUse{Profile: "P", Operation: "EncryptData", KeyId: "kms/slow"},
		})
		return status.Code(err)
	}
	done := make(chan codes.Code, 64)
	for range 64 {
		go func() { done <- ask("web") }()
	}
	for range 64 {
		<-began
	}
	if code := ask("web"); code != codes.ResourceExhausted {
		t.Errorf("the 65th request of a pod: %s, want RESOURCE_EXHAUSTED", code)
	}
	if code := ask("other"); code != codes.NotFound {
		t.Errorf("a request of another pod: %s, want NOT_FOUND from the key manager", code)
	}
	close(release)
	for range 64 {
		if code := <-done; code != codes.NotFound {
			t.Errorf("a request within the share: %s", code)
		}
	}
}
