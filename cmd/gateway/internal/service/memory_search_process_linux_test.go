// SPDX-License-Identifier: Apache-2.0

//go:build process

package service_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/openbao"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/test/memorysearch"
)

// A gateway keeps no data key. gRPC, TLS and net/http have a buffer for each connection, where a
// message is until later ones overwrite it. So the last data keys are not looked for. A frame before a
// message moves it to a place where later ones may not reach, which is why a few others may be found.
func TestDataKeysAreNotLeftInTheMemoryOfAGateway(t *testing.T) {
	const transit = "TRANSIT"
	if os.Getenv(asReplica) != "" {
		serveAsReplica(t, func(m *manager) {
			config := &providers.Config{Name: "bao", Type: providers.OpenBao, Endpoints: []string{os.Getenv(transit)}, OpenBao: &providers.OpenBaoSettings{Engine: "transit"}}
			opened := must[providers.Provider](t)(providers.Types{providers.OpenBao: openbao.Open}.Open(config, providers.Credentials{providers.Token: []byte("s.test")}))
			t.Cleanup(opened.Close)
			m.addKey("kek", func() (*keys.Key, error) {
				return opened.Key(context.Background(), keys.Name{ID: "kek", Use: keys.Use{Profile: "P", Operation: profile.OpUnwrapKey}})
			})
		})
		return
	}
	if os.Geteuid() != 0 {
		return // others cannot read the memory of a gateway
	}
	const count, last, few = 40, 8, 10
	url := transit + "=" + memorysearch.Transit(t)
	wraps, unwraps := startReplica(t, url), startReplica(t, url)
	algorithmName := algorithm.WrapAESGCM.String()
	wrapper := func(r *replica, operation profile.Operation) keys.Wrapper {
		client := installationAt(t, r.address, r.authority).client(t)
		var key *keys.Key
		eventually(t, "the key is there", func() (err error) {
			key, err = client.Key(t.Context(), named("kek", operation))
			return err
		})
		return key.Wrapper()
	}
	var dataKeys, wrapped [][]byte
	wrapping := wrapper(wraps, profile.OpWrapKey)
	for range count {
		dataKey := make([]byte, 32)
		_, _ = rand.Read(dataKey) // which never fails
		dataKeys = append(dataKeys, dataKey)
		wrapped = append(wrapped, must[[]byte](t)(wrapping.Wrap(t.Context(), algorithmName, bytes.Clone(dataKey), nil)))
	}
	unwrapping := wrapper(unwraps, profile.OpUnwrapKey)
	for i := range count {
		if found := must[[]byte](t)(unwrapping.Unwrap(t.Context(), algorithmName, wrapped[i], nil)); !bytes.Equal(found, dataKeys[i]) {
			t.Fatalf("data key %d is another one", i)
		}
	}
	earlier := memorysearch.Forms(dataKeys[:count-last])
	for sentence, r := range map[string]*replica{"wrapped": wraps, "unwrapped": unwraps} {
		for end := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
			locked, elsewhere := memorysearch.Search(t, r.process.Process.Pid, earlier)
			if locked == 0 && len(elsewhere) <= few {
				break
			}
			if time.Now().After(end) {
				t.Errorf("the gateway that has %s data keys has %d in locked memory, and in other memory %v", sentence, locked, elsewhere)
				break
			}
		}
	}
}
