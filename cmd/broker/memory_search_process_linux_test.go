// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/test/memorysearch"
)

// Others than root cannot read the memory of a broker, which is what another test shows.
//
// One broker wraps data keys and another one unwraps them, because what gRPC has received in a
// request stays in its buffers. gRPC and net/http have a buffer for each connection, too, where a
// message is until later ones overwrite it. So the last data keys are not looked for. A frame
// before a reply moves it to a place where later replies may not reach, which is why a few others
// may be found.
func TestDataKeysAreNotLeftInMemoryOnceTheyAreForgotten(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	const wrapping = "- Name: P\n  API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: bao/kek}]}}\n"
	at := newPlace(t, "")
	at.write(wrapping)
	dir := filepath.Join(filepath.Dir(at.profiles), "providers")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "bao"), 0o700), os.WriteFile(filepath.Join(dir, "bao", "token"), []byte("s.test"), 0o600),
		os.WriteFile(filepath.Join(dir, "Providers.yaml"), []byte("Providers: [{Name: bao, Type: openbao, Endpoints: ['"+memorysearch.Transit(t)+"'], OpenBao: {Engine: transit}}]"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const count, last, few = 24, 8, 6
	var dataKeys, wrapped [][]byte
	wraps := start(t, at.args("--key-providers-dir", dir)...)
	wraps.listening()
	client := v1.NewCryptoServiceClient(connect(t, at.socket("")))
	for range count {
		dataKey := make([]byte, 32)
		_, _ = rand.Read(dataKey) // which never fails
		reply, err := client.WrapKey(t.Context(), &v1.WrapKeyRequest{Profile: "P", KeyId: "bao/kek", DataKey: dataKey})
		if err != nil {
			t.Fatal(err)
		}
		dataKeys, wrapped = append(dataKeys, dataKey), append(wrapped, reply.GetWrappedKey())
	}
	wraps.stop()

	broker := start(t, at.args("--key-providers-dir", dir, "--log-level=debug")...)
	address := broker.listening()
	client = v1.NewCryptoServiceClient(connect(t, at.socket("")))
	for i := range count {
		reply, err := client.UnwrapKey(t.Context(), &v1.UnwrapKeyRequest{Profile: "P", WrappedKey: wrapped[i]})
		if err != nil || !bytes.Equal(reply.GetDataKey(), dataKeys[i]) {
			t.Fatalf("data key %d: %v", i, err)
		}
	}
	pid, earlier := broker.cmd.Process.Pid, dataKeys[:count-last]
	if kept, elsewhere := memorysearch.Search(t, pid, earlier); kept != count-last || len(elsewhere) > few {
		t.Errorf("%d of %d data keys that are kept are in locked memory, and in other memory are %v", kept, count-last, elsewhere)
	}
	at.write(wrapping + "- Name: Q\n  API: {HashData: {HashAlg: sha-256}}\n")
	for end := time.Now().Add(waitLimit); ; <-time.After(20 * time.Millisecond) {
		kept, elsewhere := memorysearch.Search(t, pid, memorysearch.Forms(earlier))
		if kept == 0 && len(elsewhere) <= few {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after the profiles have changed, %d data keys are in locked memory, and in other memory are %v", kept, elsewhere)
		}
	}
	_, metrics := get(t, address, "/metrics")
	said := fmt.Sprint(broker.log()) + metrics
	for i, dataKey := range dataKeys {
		for _, form := range []string{string(dataKey), base64.StdEncoding.EncodeToString(dataKey), hex.EncodeToString(dataKey)} {
			if strings.Contains(said, form) {
				t.Errorf("data key %d is in the log or in the metrics", i)
			}
		}
	}
}
