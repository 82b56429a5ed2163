// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// The methods to which vectors are sent. The functions below encode their messages; the
// field numbers are nowhere else in this module.
const (
	methodHashHex     = "/CryptoBroker.CryptoGrpc/HashData"
	methodHashRaw     = "/cryptobroker.v1.CryptoService/HashData"
	methodCertificate = "/cryptobroker.v1.CryptoService/SignCertificate"
	methodEncrypt     = "/cryptobroker.v1.CryptoService/EncryptData"
	methodDecrypt     = "/cryptobroker.v1.CryptoService/DecryptData"
	methodSign        = "/cryptobroker.v1.CryptoService/SignData"
	methodVerify      = "/cryptobroker.v1.CryptoService/VerifyData"

	methodEncryptStream = "/cryptobroker.stream.v1.StreamService/EncryptStream"
	methodDecryptStream = "/cryptobroker.stream.v1.StreamService/DecryptStream"
)

// Signature formats of cryptobroker.v1.
const (
	formatRAW = 1
	formatDER = 2
)

// callLimit is far longer than a call takes. It is reached only if something fails.
const callLimit = time.Minute

// message builds a message field by field.
type message []byte

func (m message) bytes(number protowire.Number, value []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, number, protowire.BytesType), value)
}

func (m message) text(number protowire.Number, value string) message {
	return m.bytes(number, []byte(value))
}

func (m message) number(number protowire.Number, value uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, number, protowire.VarintType), value)
}

// reply is a decoded message: the last value of each field.
type reply struct {
	bytes   map[protowire.Number][]byte
	numbers map[protowire.Number]uint64
}

func parseReply(data []byte) (reply, error) {
	r := reply{map[protowire.Number][]byte{}, map[protowire.Number]uint64{}}
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return r, protowire.ParseError(n)
		}
		data = data[n:]
		switch kind {
		case protowire.BytesType:
			r.bytes[number], n = protowire.ConsumeBytes(data)
		case protowire.VarintType:
			r.numbers[number], n = protowire.ConsumeVarint(data)
		default:
			return r, fmt.Errorf("field %d has wire type %d, which no field of these replies has", number, kind)
		}
		if n < 0 {
			return r, protowire.ParseError(n)
		}
		data = data[n:]
	}
	return r, nil
}

// client calls the broker. It is safe for concurrent use.
type client struct{ conn *grpc.ClientConn }

func connect(socket string) (*client, error) {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to the broker at %s: %w", socket, err)
	}
	return &client{conn}, nil
}

func (c *client) close() error { return c.conn.Close() }

// rawBytes is a codec for messages that are bytes already.
type rawBytes struct{}

func (rawBytes) Name() string { return "proto" }

func (rawBytes) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(message))}, nil
}

func (rawBytes) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func (c *client) call(ctx context.Context, method string, request message) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var data []byte
	if err := c.conn.Invoke(ctx, method, request, &data, grpc.ForceCodecV2(rawBytes{}), grpc.WaitForReady(true)); err != nil {
		return reply{}, err
	}
	return parseReply(data)
}

// newStream begins a call with many requests and replies.
func (c *client) newStream(ctx context.Context, method string) (grpc.ClientStream, error) {
	both := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	return c.conn.NewStream(ctx, both, method, grpc.ForceCodecV2(rawBytes{}), grpc.WaitForReady(true))
}

// hash returns the digest from both wire generations: as text and as octets.
func (c *client) hash(ctx context.Context, profile string, input []byte) (hexadecimal string, raw []byte, err error) {
	request := message{}.text(1, profile).bytes(2, input)
	r, err := c.call(ctx, methodHashHex, request)
	if err != nil {
		return "", nil, err
	}
	hexadecimal = string(r.bytes[4])
	raw, err = c.hashRaw(ctx, profile, input)
	return hexadecimal, raw, err
}

func (c *client) hashRaw(ctx context.Context, profile string, input []byte) ([]byte, error) {
	const outputRaw = 2
	r, err := c.call(ctx, methodHashRaw, message{}.text(1, profile).bytes(2, input).number(4, outputRaw))
	return r.bytes[3], err
}

// sealed is the output of an encryption, and the input of a decryption.
type sealed struct{ nonce, additional, ciphertext, tag []byte }

func rawKey(key []byte) message { return message{}.bytes(2, key) }

func (c *client) encrypt(ctx context.Context, profile string, key, nonce, additional, plaintext []byte) (sealed, error) {
	r, err := c.call(ctx, methodEncrypt, message{}.text(1, profile).bytes(2, rawKey(key)).bytes(3, plaintext).
		bytes(4, message{}.bytes(1, nonce).bytes(2, additional)))
	if err != nil {
		return sealed{}, err
	}
	m, err := parseReply(r.bytes[2])
	return sealed{m.bytes[2], m.bytes[3], r.bytes[1], m.bytes[4]}, err
}

func (c *client) decrypt(ctx context.Context, profile string, key []byte, s sealed) (plaintext []byte, err error) {
	r, err := c.call(ctx, methodDecrypt, message{}.text(1, profile).bytes(2, rawKey(key)).bytes(3, s.ciphertext).
		bytes(4, message{}.bytes(1, s.nonce).bytes(2, s.additional).bytes(3, s.tag)))
	return r.bytes[1], err
}

func (c *client) sign(ctx context.Context, profile string, key, input []byte, format uint64) (signature []byte, err error) {
	r, err := c.call(ctx, methodSign, message{}.text(1, profile).bytes(2, message{}.bytes(1, rawKey(key))).bytes(3, input).number(4, format))
	return r.bytes[1], err
}

func (c *client) verify(ctx context.Context, profile string, key, input, signature []byte, format uint64) (valid bool, err error) {
	r, err := c.call(ctx, methodVerify, message{}.text(1, profile).bytes(2, message{}.bytes(1, rawKey(key))).
		bytes(3, input).bytes(4, signature).number(5, format))
	return r.numbers[1] == 1, err
}

// certificateRequest has the fields of the request, with PEM texts.
type certificateRequest struct {
	csr, caKey, caCertificate, subject string
	crlDistributionPoints              []string
}

// certificate returns a certificate in DER.
func (c *client) certificate(ctx context.Context, profile string, q certificateRequest) ([]byte, error) {
	m := message{}.text(1, profile).text(2, q.csr).text(3, q.caKey).text(4, q.caCertificate)
	if q.subject != "" {
		m = m.text(8, q.subject)
	}
	for _, point := range q.crlDistributionPoints {
		m = m.text(9, point)
	}
	r, err := c.call(ctx, methodCertificate, m)
	return r.bytes[3], err
}
