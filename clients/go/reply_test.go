// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
	v1 "github.com/crypto-broker/crypto-broker-operator/clients/go/internal/stubs/cryptobroker/v1"
)

// replying returns a client of a broker whose replies have a fault.
func replying(t *testing.T, reply proto.Message) *cryptobroker.Client {
	t.Helper()
	r, socket := &recording{reply: reply}, filepath.Join(socketDir(t), "s")
	serveServices(t, r, r, socket)
	return newClient(t, socket)
}

func TestAReplyWithoutADataKeyIsAnErrorAndNoEmptyKey(t *testing.T) {
	wrapped := cryptobroker.WrappedKey{WrappedKey: []byte("wrapped")}
	for sentence, results := range map[string][]*v1.UnwrapResult{
		"one key has neither a data key nor an error": {{DataKey: []byte("data")}, {}},
		"one key has no result":                       {{DataKey: []byte("data")}},
	} {
		t.Run(sentence, func(t *testing.T) {
			client := replying(t, &v1.UnwrapBatchResponse{Results: results})
			got, err := client.UnwrapBatch(withTimeout(t), cryptobroker.UnwrapBatchRequest{Profile: "P", Keys: []cryptobroker.WrappedKey{wrapped, wrapped}})
			if err == nil || !strings.Contains(err.Error(), "cannot be read") || got.Keys != nil {
				t.Errorf("got %+v and the error %v", got, err)
			}
		})
	}
}
