// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"net"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"

	"github.com/ovh/kmip-go"
)

func TestTheVersionOfAServerIsForgottenOnceItDoesNotAnswer(t *testing.T) {
	listening, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listening.Addr().String()
	if err := listening.Close(); err != nil {
		t.Fatal(err)
	}
	client, err := tlsprovider.New(tlsprovider.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m := &Manager{client: client, servers: map[string]server{address: {version: kmip.V1_4}, "other:5696": {version: kmip.V1_2}}}
	if _, err := m.dial(t.Context(), address); err == nil {
		t.Fatal("a server that is not there was reached")
	}
	if _, known := m.servers[address]; known || len(m.servers) != 1 {
		t.Errorf("known are %v, want the other server alone", m.servers)
	}
}
