// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/crypto-broker/crypto-broker-operator/test/bench/framed"
)

// framedDial connects a number of callers to a socket. The returned function closes what
// it has opened.
type framedDial func(socket string, callers int) ([]*framed.Client, func() error, error)

// framedDials are the ways with the protocol of package framed: each caller on its own
// connection, all on one connection, or all on one stream of gRPC.
var framedDials = map[string]framedDial{
	plain:       framed.Dial,
	multiplexed: framed.DialShared,
	streamed: func(socket string, callers int) ([]*framed.Client, func() error, error) {
		conn, err := dial(socket)
		if err != nil {
			return nil, nil, err
		}
		return framed.DialStream(conn, callers)
	},
}

// framedCall makes calls with the protocol of package framed.
func framedCall(socket string, l *load, dial framedDial) (call, func() error, error) {
	clients, end, err := dial(socket, maxCallers)
	if err != nil {
		return nil, nil, err
	}
	return func(_ context.Context, caller int) error {
		client := clients[caller]
		switch {
		case l.hash != nil:
			digest, err := client.Digest(l.hash)
			return errors.Join(err, l.checkDigest(digest))
		case l.certificate != nil:
			reply, err := client.Certificate(l.certificate)
			return errors.Join(err, checkLength("a certificate", len(reply.GetDer()), 200))
		default:
			ciphertext, err := client.Encrypt(l.encrypt)
			return errors.Join(err, checkLength("a ciphertext", len(ciphertext), len(l.encrypt.GetPlaintext())))
		}
	}, end, nil
}
