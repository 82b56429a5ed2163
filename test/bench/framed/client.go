// SPDX-License-Identifier: Apache-2.0

package framed

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/test/bench/operations"
)

// Client is a connection to Serve, for one caller.
type Client struct{ connection *connection }

// Dial connects.
func Dial(socket string) (*Client, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(context.Background(), "unix", socket)
	if err != nil {
		return nil, err
	}
	return &Client{newConnection(conn)}, nil
}

// Close closes the connection.
func (c *Client) Close() error { return c.connection.Close() }

func (c *Client) call(kind byte, request []byte) ([]byte, error) {
	if err := c.connection.send(kind, request); err != nil {
		return nil, err
	}
	got, reply, err := c.connection.receive()
	switch {
	case err != nil:
		return nil, err
	case got == failed:
		return nil, errors.New(string(reply))
	case got != kind:
		return nil, fmt.Errorf("a reply of the kind %d, expected %d", got, kind)
	}
	return reply, nil
}

// Digest returns a digest, which is valid until the next call.
func (c *Client) Digest(request *v1.HashDataRequest) ([]byte, error) {
	switch request.GetProfile() {
	case operations.Default:
		return c.call(digestDefault, request.GetInput())
	case operations.SHA256:
		return c.call(digestSHA256, request.GetInput())
	}
	return nil, fmt.Errorf("there is no digest of the profile %q", request.GetProfile())
}

// Certificate has a certificate issued.
func (c *Client) Certificate(request *v1.SignCertificateRequest) (*v1.SignCertificateResponse, error) {
	reply := new(v1.SignCertificateResponse)
	return reply, c.exchange(certificate, request, reply)
}

// Encrypt has data encrypted.
func (c *Client) Encrypt(request *v1.EncryptDataRequest) (*v1.EncryptDataResponse, error) {
	reply := new(v1.EncryptDataResponse)
	return reply, c.exchange(encryption, request, reply)
}

func (c *Client) exchange(kind byte, request, reply proto.Message) error {
	body, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	if body, err = c.call(kind, body); err != nil {
		return err
	}
	return proto.Unmarshal(body, reply)
}
