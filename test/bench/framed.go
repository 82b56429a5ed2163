// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/crypto-broker/crypto-broker-operator/test/bench/framed"
)

// framedCall makes calls without gRPC: each caller on its own connection, or all on one.
func framedCall(socket string, l *load, dial func(string, int) ([]*framed.Client, func() error, error)) (call, func() error, error) {
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
