// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/crypto-broker/crypto-broker-operator/test/bench/framed"
)

// plainCall makes calls without gRPC. Each caller has a connection, since one carries
// one call at a time.
func plainCall(socket string, l *load) (call, func() error, error) {
	var clients [maxCallers]*framed.Client
	end := func() (err error) {
		for _, client := range clients {
			if client != nil {
				err = errors.Join(err, client.Close())
			}
		}
		return err
	}
	for i := range clients {
		client, err := framed.Dial(socket)
		if err != nil {
			return nil, nil, errors.Join(err, end())
		}
		clients[i] = client
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
			reply, err := client.Encrypt(l.encrypt)
			return errors.Join(err, checkLength("a ciphertext", len(reply.GetCiphertext()), len(l.encrypt.GetPlaintext())))
		}
	}, end, nil
}
