// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers || interop

package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmip"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
	"github.com/crypto-broker/crypto-broker-operator/test/keymanagers"
	"github.com/crypto-broker/crypto-broker-operator/test/kmipserver"
)

// followKMIP returns a stack with the provider hsm at these addresses of the servers, as a directory of
// providers has it.
func followKMIP(t *testing.T, servers *kmipserver.Servers, cacheTime string, addresses ...string) (*keys.Stack, *kmip.Provider) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, content []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		for _, err := range []error{os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, path := range map[string]string{
		providers.ClientCertificate: servers.Certificate, providers.ClientKey: servers.Key, providers.Authorities: servers.Authority,
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write("hsm/"+name, data)
	}
	write(providers.FileName, fmt.Appendf(nil, "Providers:\n- {Name: hsm, Type: kmip, Endpoints: ['%s'], CacheTime: %s, Connections: {ConnectTimeout: 2s, RequestTimeout: 5s}}\n",
		strings.Join(addresses, "', '"), cacheTime))
	stack := keys.NewStack(nil)
	var provider *kmip.Provider
	followed, err := providers.Follow(t.Context(), dir, providers.Types{providers.KMIP: kmip.Open}, func(all map[string]keys.Provider) {
		if hsm, ok := all["hsm"].(*kmip.Provider); ok {
			provider = hsm
		}
		stack.Use(all)
	}, func(event providers.Event) {
		if event.Err != nil || len(event.Problems) > 0 {
			t.Errorf("key providers: %+v", event)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(followed.Wait)
	return stack, provider
}

// managedDecrypt returns the request that decrypts a reply, with the key that the reply names.
func managedDecrypt(t *testing.T, reply values) message {
	t.Helper()
	sealed := parse(t, []byte(reply[replyCipherMetadata]))
	return message{}.text(dataProfile, "AES").bytes(dataKey, byID(sealed[sealedKeyID])).text(dataText, reply[replyCiphertext]).
		bytes(dataCipherMetadata, message{}.text(cipherNonce, sealed[sealedNonce]).text(cipherTag, sealed[sealedTag]))
}

// eventually waits until an encryption ends with a code.
func eventually(t *testing.T, conn *grpc.ClientConn, want codes.Code) {
	t.Helper()
	for end := time.Now().Add(waitLimit); ; <-time.After(50 * time.Millisecond) {
		_, err := call(t, conn, methodEncrypt, managedEncrypt())
		if status.Code(err) == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("an encryption ends with %v, want %s", err, want)
		}
	}
}

func TestABrokerEncryptsUnderAKeyOfAKMIPKeyManager(t *testing.T) {
	keymanagers.EachKMIP(t, func(t *testing.T, product keymanagers.KMIP) {
		servers := product.Start(t, 2)
		stack, provider := followKMIP(t, servers, "1s", servers.Addresses...)
		if err := provider.CreateAES(t.Context(), "aes", 256); err != nil {
			t.Fatal(err)
		}
		b := startWith(t, slowlyManagedProfiles, nil, server.WithKeys(stack))
		conn := connect(t, b.socket(""))
		refuses(t, conn, methodSignData, managedSign("read"), codes.NotFound, `SignData with profile "Ed": there is no key "hsm/read"`)
		old := managedDecrypt(t, ask(t, conn, methodEncrypt, managedEncrypt()))
		decrypts := func() {
			t.Helper()
			if got := ask(t, conn, methodDecryptV1, old); got[1] != "abc" {
				t.Errorf("decrypted to %q", got)
			}
		}
		decrypts()
		<-time.After(1100 * time.Millisecond) // the dates of KMIP have seconds
		if err := provider.Rotate(t.Context(), "aes"); err != nil {
			t.Fatal(err)
		}
		sealed := ask(t, conn, methodEncrypt, managedEncrypt())
		if before, now := parse(t, []byte(old)), parse(t, []byte(managedDecrypt(t, sealed))); before[dataKey] == now[dataKey] {
			t.Errorf("new data names the old version: %q", now[dataKey])
		}
		decrypts()

		// One of two servers ends: no call is lost, even when the key is read again.
		servers.Kill(t, 0)
		for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
			ask(t, conn, methodEncrypt, managedEncrypt())
		}
		// Both servers are away: the key stays usable for CacheTime. Then its calls are refused, and other calls still succeed.
		servers.Kill(t, 1)
		eventually(t, conn, codes.Unavailable)
		ask(t, conn, methodHash, request(nil))
		// The servers are back.
		servers.Restart(t, 0)
		servers.Restart(t, 1)
		eventually(t, conn, codes.OK)
		decrypts()
	})
}
