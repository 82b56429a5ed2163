// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"testing"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func TestBytesThatAreNoMessageAreRefusedWithAPlainSentence(t *testing.T) {
	for want, wire := range map[string][]byte{
		"HashData: the request is not a cryptobroker.v1.HashDataRequest: cannot parse invalid wire-format data": {0xff, 0xff},
		"HashData: the request is not a cryptobroker.v1.HashDataRequest: string field contains invalid UTF-8":   {0x0a, 1, 0xff},
	} {
		request := &v1.HashDataRequest{}
		err := Unreadable(profile.OpHashData, request, proto.Unmarshal(wire, request))
		if got := status.Convert(err).Message(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
