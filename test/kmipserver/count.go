// SPDX-License-Identifier: Apache-2.0

package kmipserver

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/ttlv"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// Counted returns the address of a proxy before the first server, and what counts the requests that
// it passes, by their operations. The proxy ends TLS on both sides, with the certificates of the
// server and the client. It ends with the test.
func (s *Servers) Counted(t testing.TB) (address string, counts *measurement.Calls) {
	t.Helper()
	certificate, err := tls.LoadX509KeyPair(s.File("server.crt"), s.File("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	toServer := s.TLS(t)
	listener, err := tls.Listen("tcp", net.JoinHostPort(s.Host, "0"), &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: toServer.RootCAs, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // ends the loop below
	counts = new(measurement.Calls)
	server := s.Addresses[0]
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go pass(client, server, toServer, counts)
		}
	}()
	return listener.Addr().String(), counts
}

// pass passes the messages of one connection until either side closes it. A client whose server does
// not answer is closed.
func pass(client net.Conn, address string, config *tls.Config, counts *measurement.Calls) {
	defer func() { _ = client.Close() }()
	server, err := tls.Dial("tcp", address, config)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(client, server) // until either side closes
		_ = client.Close()
	}()
	countRequests(client, server, counts)
}

// countRequests copies messages and counts them by their operations, until either side closes its
// connection. A message that is not of KMIP is counted as such, and is the last one.
func countRequests(from io.Reader, to io.Writer, counts *measurement.Calls) {
	for {
		message := make([]byte, 8) // tag, type and length
		if _, err := io.ReadFull(from, message); err != nil {
			return
		}
		size := binary.BigEndian.Uint32(message[4:])
		if size > 1<<20 {
			counts.Add(fmt.Sprintf("message of %d bytes", size))
			return
		}
		message = append(message, make([]byte, size)...)
		if _, err := io.ReadFull(from, message[8:]); err != nil {
			return
		}
		var request kmip.RequestMessage
		if err := ttlv.UnmarshalTTLV(message, &request); err != nil {
			counts.Add("message that is not valid: " + err.Error())
			return
		}
		operations := make([]string, 0, len(request.BatchItem))
		for _, item := range request.BatchItem {
			operations = append(operations, ttlv.EnumStr(item.Operation))
		}
		counts.Add(strings.Join(operations, " + "))
		if _, err := to.Write(message); err != nil {
			return
		}
	}
}
