// SPDX-License-Identifier: Apache-2.0

//go:build interop

package kmip

import (
	"fmt"
	"net"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/test/cosmian"
)

// counting counts the messages that a session sends: each is one call of Write.
type counting struct {
	net.Conn
	messages int
}

func (c *counting) Write(p []byte) (int, error) {
	c.messages++
	return c.Conn.Write(p)
}

func TestAServerThatKeepsToTheStandardGetsOneMessageForEachKey(t *testing.T) {
	servers := cosmian.Start(t, 1)
	s, err := Dial(t.Context(), servers.Addresses[0], servers.Client(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const different = 5
	made := map[string]string{}
	for n := range different {
		name := fmt.Sprintf("key-%d", n)
		if made[name], err = s.createNamedAES(t.Context(), name, 256); err != nil {
			t.Fatal(err)
		}
	}
	sent := &counting{Conn: s.conn}
	s.conn = sent
	for name, id := range made {
		key, err := new(Provider).findIn(t.Context(), s, keys.Name{ID: name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if key.Version() != id {
			t.Errorf("found version %s of %s, want %s", key.Version(), name, id)
		}
	}
	if sent.messages != different {
		t.Errorf("%d messages were sent for %d keys", sent.messages, different)
	}
}
