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

// Client makes calls for one caller.
type Client struct {
	// roundTrip sends a request and returns the reply to it.
	roundTrip func(kind byte, request []byte) (got byte, reply []byte, err error)
}

// Dial returns clients for a number of callers, each with its own connection to Serve. The
// returned function closes them.
func Dial(socket string, callers int) ([]*Client, func() error, error) {
	var conns []*connection
	end := func() (err error) {
		for _, c := range conns {
			err = errors.Join(err, c.Close())
		}
		return err
	}
	var clients []*Client
	for range callers {
		conn, err := (&net.Dialer{}).DialContext(context.Background(), "unix", socket)
		if err != nil {
			return nil, nil, errors.Join(err, end())
		}
		c := newConnection(conn)
		conns, clients = append(conns, c), append(clients, &Client{c.roundTrip})
	}
	return clients, end, nil
}

func (c *connection) roundTrip(kind byte, request []byte) (got byte, reply []byte, err error) {
	if err := c.send(kind, request); err != nil {
		return 0, nil, err
	}
	return c.receive()
}

func (c *Client) call(kind byte, request []byte) ([]byte, error) {
	got, reply, err := c.roundTrip(kind, request)
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

// Certificate asks for a certificate and returns it.
func (c *Client) Certificate(request *v1.SignCertificateRequest) (*v1.SignCertificateResponse, error) {
	body, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	if body, err = c.call(certificate, body); err != nil {
		return nil, err
	}
	reply := new(v1.SignCertificateResponse)
	return reply, proto.Unmarshal(body, reply)
}

// Encrypt returns a ciphertext and its tag, which are valid until the next call.
func (c *Client) Encrypt(request *v1.EncryptDataRequest) ([]byte, error) {
	key, nonce := request.GetKeySource().GetRawKey(), request.GetEncryptMetadata().GetNonce()
	if len(key) != keySize || len(nonce) != nonceSize {
		return nil, fmt.Errorf("a key of %d bytes and a nonce of %d, expected %d and %d", len(key), len(nonce), keySize, nonceSize)
	}
	body := make([]byte, 0, keySize+nonceSize+len(request.GetPlaintext()))
	return c.call(encryption, append(append(append(body, key...), nonce...), request.GetPlaintext()...))
}
