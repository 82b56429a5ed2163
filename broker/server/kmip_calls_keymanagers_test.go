// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers || interop

package server_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
	"github.com/crypto-broker/crypto-broker-operator/test/keymanagers"
)

// unwrapping is a broker that unwraps data keys.
type unwrapping struct {
	t      *testing.T
	client v1.CryptoServiceClient
}

// unwrap unwraps data keys in turn, by this many callers at once, and checks the results.
func (u unwrapping) unwrap(callers, calls int, made []*v1.GenerateDataKeyResponse) {
	u.t.Helper()
	var all sync.WaitGroup
	var next atomic.Int64
	for range callers {
		all.Go(func() {
			for n := next.Add(1); n <= int64(calls) && !u.t.Failed(); n = next.Add(1) {
				of := made[n%int64(len(made))]
				got, err := u.client.UnwrapKey(u.t.Context(), &v1.UnwrapKeyRequest{Profile: "P", WrappedKey: of.GetWrappedKey()})
				if err != nil || !bytes.Equal(got.GetDataKey(), of.GetDataKey()) {
					u.t.Errorf("unwrapped to another key: %v", err)
				}
			}
		})
	}
	all.Wait()
}

// The requests are counted by a proxy before the key manager.
func TestUnwrapsCostAKMIPKeyManagerOneRequestForEachKey(t *testing.T) {
	const different, calls, callers, atOnce = 30, 300, 10, 100 // "make bench-keys" has more
	keymanagers.EachKMIP(t, func(t *testing.T, product keymanagers.KMIP) {
		servers := product.Start(t, 1)
		var ids []string
		for n := range different + 1 {
			ids = append(ids, fmt.Sprintf("{Id: hsm/key-%d}", n))
		}
		profiles := fmt.Sprintf("[{Name: P, API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [%s]}}}]", strings.Join(ids, ", "))
		start := func(address string) unwrapping {
			stack, _ := followKMIP(t, servers, "1m", address)
			return unwrapping{t, v1.NewCryptoServiceClient(connect(t, startWith(t, profiles, nil, server.WithKeys(stack)).socket("")))}
		}
		_, provider := followKMIP(t, servers, "1m", servers.Addresses[0])
		wrapping := start(servers.Addresses[0])
		var made []*v1.GenerateDataKeyResponse
		for n := range different + 1 {
			id := fmt.Sprintf("key-%d", n)
			if err := provider.CreateAES(t.Context(), id, 256); err != nil {
				t.Fatal(err)
			}
			dataKey, err := wrapping.client.GenerateDataKey(t.Context(), &v1.GenerateDataKeyRequest{Profile: "P", KeyId: "hsm/" + id})
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, dataKey)
		}
		address, counts := servers.Counted(t)
		other := start(address) // a new provider, which knows nothing about the keys
		other.unwrap(callers, calls, made[:different])
		sum, of := counts.Take()
		t.Logf("%d unwraps over %d keys: %s", calls, different, of)
		if keyRequests := requestsForKeys(of); keyRequests != different {
			t.Errorf("%d unwraps over %d keys cost %d requests for keys and %d in all, want %d: %s", calls, different, keyRequests, sum, different, of)
		}
		other.unwrap(atOnce, atOnce, made[different:])
		if _, of = counts.Take(); requestsForKeys(of) != 1 {
			t.Errorf("%d identical unwraps at once cost these requests, want one: %s", atOnce, of)
		}
	})
}

// requestsForKeys returns how many of the counted requests are for keys. The others ask for the protocol
// versions, once for each server.
func requestsForKeys(counted string) int {
	sum := 0
	for kind := range strings.SplitSeq(counted, ", ") {
		var n int
		var operations string
		if _, err := fmt.Sscanf(kind, "%d %s", &n, &operations); err == nil && operations != "DiscoverVersions" {
			sum += n
		}
	}
	return sum
}

func TestStreamsAreEncryptedUnderAKeyOfAKMIPKeyManager(t *testing.T) {
	keymanagers.EachKMIP(t, func(t *testing.T, product keymanagers.KMIP) {
		servers := product.Start(t, 1)
		stack, provider := followKMIP(t, servers, "1m", servers.Addresses...)
		if err := provider.CreateAES(t.Context(), "aes", 256); err != nil {
			t.Fatal(err)
		}
		const profiles = `[{Name: P, API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: hsm/aes}]}}}]`
		start := func() *broker { return startWith(t, profiles, nil, server.WithKeys(stack)) }
		plaintext := pattern(3*segmentSize + 17)
		encrypted := encryptAll(t, connect(t, start().socket("")), encryptStart("P", "hsm/aes", "tenant a"), plaintext)
		if err := provider.Rotate(t.Context(), "aes"); err != nil {
			t.Fatal(err)
		}
		conn := connect(t, start().socket("")) // another broker decrypts, and the stream names the version that encrypted
		decrypt := func(context string, encrypted []byte) ([]byte, error) {
			return cipherMessages(t, conn, methodDecryptStream, inChunks(decryptStart("P", context), encrypted, segmentSize)...)
		}
		if got, err := decrypt("tenant a", encrypted); err != nil || !bytes.Equal(got, plaintext) {
			t.Errorf("decrypted to %d bytes, %v, want the plaintext", len(got), err)
		}
		if got, err := decrypt("tenant b", encrypted); err == nil || len(got) > 0 {
			t.Errorf("with another context, decrypted to %d bytes, %v, want a refusal", len(got), err)
		}
	})
}
