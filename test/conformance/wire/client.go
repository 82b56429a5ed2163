// SPDX-License-Identifier: Apache-2.0

// Package wire sends the requests of the conformance tests to a broker. It encodes the
// messages with its own field numbers, not with the broker's stubs, so that a wrong number
// in the stubs does not stay unnoticed.
package wire

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// The methods to which vectors are sent.
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
	FormatRAW = 1
	FormatDER = 2
)

// callLimit is far longer than a call takes. It is reached only if something fails.
const callLimit = time.Minute

// Message is an encoded message, which is built field by field.
type Message []byte

// Bytes returns the message with one more field of bytes, or with a nested message.
func (m Message) Bytes(number protowire.Number, value []byte) Message {
	return protowire.AppendBytes(protowire.AppendTag(m, number, protowire.BytesType), value)
}

// Text returns the message with one more field of text.
func (m Message) Text(number protowire.Number, value string) Message {
	return m.Bytes(number, []byte(value))
}

// Number returns the message with one more number.
func (m Message) Number(number protowire.Number, value uint64) Message {
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

// Client calls a broker. It is safe for concurrent use.
type Client struct{ conn *grpc.ClientConn }

// Connect returns a client of the broker at a socket.
func Connect(socket string) (*Client, error) {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to the broker at %s: %w", socket, err)
	}
	return &Client{conn}, nil
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Codec is a codec of gRPC for messages that are encoded already.
type Codec struct{}

// Name implements encoding.CodecV2.
func (Codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2. v is a [Message].
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(Message))}, nil
}

// Unmarshal implements encoding.CodecV2. v is a *[]byte.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func (c *Client) call(ctx context.Context, method string, request Message) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var data []byte
	if err := c.conn.Invoke(ctx, method, request, &data, grpc.ForceCodecV2(Codec{}), grpc.WaitForReady(true)); err != nil {
		return reply{}, err
	}
	return parseReply(data)
}

// Hash returns the digest from both wire generations: as text and as octets.
func (c *Client) Hash(ctx context.Context, profile string, input []byte) (hexadecimal string, raw []byte, err error) {
	request := Message{}.Text(1, profile).Bytes(2, input)
	r, err := c.call(ctx, methodHashHex, request)
	if err != nil {
		return "", nil, err
	}
	hexadecimal = string(r.bytes[4])
	raw, err = c.HashRaw(ctx, profile, input)
	return hexadecimal, raw, err
}

// HashRaw returns the digest of version 1 of the wire contract, as octets.
func (c *Client) HashRaw(ctx context.Context, profile string, input []byte) ([]byte, error) {
	const outputRaw = 2
	r, err := c.call(ctx, methodHashRaw, Message{}.Text(1, profile).Bytes(2, input).Number(4, outputRaw))
	return r.bytes[3], err
}

// Sealed is the output of an encryption, and the input of a decryption.
type Sealed struct{ Nonce, Additional, Ciphertext, Tag []byte }

func rawKey(key []byte) Message { return Message{}.Bytes(2, key) }

// Encrypt encrypts with a key of the request.
func (c *Client) Encrypt(ctx context.Context, profile string, key, nonce, additional, plaintext []byte) (Sealed, error) {
	r, err := c.call(ctx, methodEncrypt, Message{}.Text(1, profile).Bytes(2, rawKey(key)).Bytes(3, plaintext).
		Bytes(4, Message{}.Bytes(1, nonce).Bytes(2, additional)))
	if err != nil {
		return Sealed{}, err
	}
	m, err := parseReply(r.bytes[2])
	return Sealed{m.bytes[2], m.bytes[3], r.bytes[1], m.bytes[4]}, err
}

// Decrypt decrypts with a key of the request.
func (c *Client) Decrypt(ctx context.Context, profile string, key []byte, s Sealed) (plaintext []byte, err error) {
	r, err := c.call(ctx, methodDecrypt, Message{}.Text(1, profile).Bytes(2, rawKey(key)).Bytes(3, s.Ciphertext).
		Bytes(4, Message{}.Bytes(1, s.Nonce).Bytes(2, s.Additional).Bytes(3, s.Tag)))
	return r.bytes[1], err
}

// Sign signs with a key of the request. format is one of the formats above.
func (c *Client) Sign(ctx context.Context, profile string, key, input []byte, format uint64) (signature []byte, err error) {
	r, err := c.call(ctx, methodSign, Message{}.Text(1, profile).Bytes(2, Message{}.Bytes(1, rawKey(key))).Bytes(3, input).Number(4, format))
	return r.bytes[1], err
}

// Verify reports whether a signature is valid. format is one of the formats above.
func (c *Client) Verify(ctx context.Context, profile string, key, input, signature []byte, format uint64) (valid bool, err error) {
	r, err := c.call(ctx, methodVerify, Message{}.Text(1, profile).Bytes(2, Message{}.Bytes(1, rawKey(key))).
		Bytes(3, input).Bytes(4, signature).Number(5, format))
	return r.numbers[1] == 1, err
}

// CertificateRequest has the fields of a request for a certificate, with PEM texts.
type CertificateRequest struct {
	CSR, CAKey, CACertificate, Subject string
	CRLDistributionPoints              []string
}

// Certificate returns a certificate in DER.
func (c *Client) Certificate(ctx context.Context, profile string, q CertificateRequest) ([]byte, error) {
	m := Message{}.Text(1, profile).Text(2, q.CSR).Text(3, q.CAKey).Text(4, q.CACertificate)
	if q.Subject != "" {
		m = m.Text(8, q.Subject)
	}
	for _, point := range q.CRLDistributionPoints {
		m = m.Text(9, point)
	}
	r, err := c.call(ctx, methodCertificate, m)
	return r.bytes[3], err
}
