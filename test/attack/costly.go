// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// largeCalls is the maximum number of calls of 1 MiB that are made at one moment, a little less
// than one caller of two may have.
const largeCalls = 500

// costlyCalls are allowed calls that take much processor time or memory.
func costlyCalls() []attack {
	all := []attack{
		{
			name: "rsa-8192", about: "64 callers of SignData with a key of RSA-8192 in the request", tested: true,
			run: repeating(1, 64, methodSign, rsaMessage("8192")),
		},
		{
			name: "rsa-4096", about: "64 callers of SignData with a key of RSA-4096 in the request",
			run: repeating(1, 64, methodSign, rsaMessage("4096")),
		},
		{
			name: "rsa-8192-connections", about: "the same with RSA-8192 by 64 connections",
			run: repeating(64, 64, methodSign, rsaMessage("8192")),
		},
		{
			name: "rsa-8192-exchange", about: "16 streams of Exchange with 256 calls of SignData with RSA-8192 each",
			run: signExchange,
		},
		{
			name: "certificates", about: "64 callers of SignCertificate",
			run: repeating(1, 64, methodCertificate, func() []byte { return encoded(certificateRequest()) }),
		},
		{
			name: "certificates-garbage", about: "64 callers of SignCertificate whose PEM is 64 KiB of one block after another",
			run: repeating(1, 64, methodCertificate, func() []byte {
				request := proto.CloneOf(certificateRequest())
				request.Csr = strings.Repeat("-----BEGIN X-----\n-----END X-----\n", 1900)
				request.CaCert = request.GetCsr()
				return encoded(request)
			}),
		},
		{
			name: "hash-1m", about: "64 callers of HashData with 1 MiB", tested: true, polite: true,
			run: repeating(1, 64, methodHash, func() []byte { return hashMessage(mebibyte) }),
		},
		{
			name: "encrypt-1m", about: "64 callers of EncryptData with 1 MiB", polite: true,
			run: repeating(1, 64, methodEncrypt, func() []byte { return encryptMessage(mebibyte) }),
		},
		{
			name: "encrypt-1m-connections", about: "64 callers of EncryptData with 1 MiB, each by a connection of its own", tested: true, polite: true,
			run: repeating(64, 64, methodEncrypt, func() []byte { return encryptMessage(mebibyte) }),
		},
		{
			name: "health-3m", about: "64 callers of Health/Check with whole messages of 3.9 MB",
			run: repeating(8, 64, methodHealth, func() []byte { return field(nil, unknownField, make([]byte, halfSentSize)) }),
		},
	}
	for _, connections := range []int{1, 16, 256, 500} {
		all = append(all, attack{
			name: fmt.Sprintf("large-at-once-%d", connections), about: fmt.Sprintf("%d hashes of 1 MiB at one moment over %d connections, once", largeCalls, connections),
			polite: true, least: time.Minute,
			run: func(ctx context.Context, t *target) error { return atOnce(ctx, t, connections) },
		})
	}
	return all
}

// rsaMessage returns a function that returns a request to sign with a key of RSA.
func rsaMessage(bits string) func() []byte {
	return func() []byte { return encoded(rsaRequest(bits)) }
}

// atOnce makes calls of 1 MiB at one moment, and ends when all are answered.
func atOnce(ctx context.Context, t *target, connections int) error {
	conns, err := clients(ctx, t, connections)
	if err != nil {
		return err
	}
	message := hashMessage(mebibyte)
	together(ctx, t, largeCalls, func(i int) error {
		_ = invoke(ctx, t, conns[i%connections], methodHash, message) // it is counted
		return nil
	})
	return nil
}

// signExchange keeps streams full of calls that take long.
func signExchange(ctx context.Context, t *target) error {
	const streams, each = 16, 256
	conns, err := clients(ctx, t, streams)
	if err != nil {
		return err
	}
	request := rsaRequest("8192")
	return persistently(ctx, t, streams, func(ctx context.Context, i int) error {
		stream, err := conns[i].NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, methodExchange, grpc.ForceCodecV2(plain{}), grpc.WaitForReady(true))
		if err != nil {
			return err
		}
		go func() {
			var reply []byte
			for stream.RecvMsg(&reply) == nil {
				t.tally.count("messages of replies", 1)
			}
		}()
		for id := uint64(0); ; id += each {
			for next := id; next < id+each; next++ {
				if err := stream.SendMsg(exchanged(signCall(next, request))); err != nil {
					return err
				}
			}
		}
	})
}
