// SPDX-License-Identifier: Apache-2.0

package wirev1

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

func TestAKeyThatWasUsedIsOverwrittenInACopyOfItsOwn(t *testing.T) {
	key := bytes.Repeat([]byte("k"), requests.MaxAESKeySize)
	wire, err := proto.Marshal(&v1.EncryptDataRequest{
		Profile: "P", KeySource: &v1.KeySource{Source: &v1.KeySource_RawKey{RawKey: key}}, Plaintext: []byte("text"),
	})
	if err != nil {
		t.Fatal(err)
	}
	before := bytes.Clone(wire)
	var request v1.EncryptDataRequest
	if err := requests.Unmarshal(wire, &request); err != nil {
		t.Fatal(err)
	}
	keySource("", request.GetKeySource()).Forget()
	if key := request.GetKeySource().GetRawKey(); !bytes.Equal(key, make([]byte, requests.MaxAESKeySize)) {
		t.Errorf("the key is %q", key)
	}
	if !bytes.Equal(wire, before) {
		t.Error("the bytes of the request have changed, which belong to gRPC")
	}
}
