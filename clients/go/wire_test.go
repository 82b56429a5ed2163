// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
	sessionv1 "github.com/crypto-broker/crypto-broker-operator/clients/go/internal/stubs/cryptobroker/session/v1"
	streamv1 "github.com/crypto-broker/crypto-broker-operator/clients/go/internal/stubs/cryptobroker/stream/v1"
	v1 "github.com/crypto-broker/crypto-broker-operator/clients/go/internal/stubs/cryptobroker/v1"
)

// traced has a value in every field.
var traced = cryptobroker.TraceContext{
	TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "b7ad6b7169203331", Flags: "01", State: "vendor=1", CorrelationID: "order 4711",
}

var tracedMetadata = &v1.Metadata{TraceContext: &v1.TraceContext{
	TraceId: "0af7651916cd43dd8448eb211c80319c", SpanId: "b7ad6b7169203331", TraceFlags: "01", TraceState: "vendor=1", CorrelationId: "order 4711",
}}

// warnedMetadata is metadata of replies, with fields that the client does not know.
func warnedMetadata() *v1.Metadata {
	m := proto.CloneOf(tracedMetadata)
	m.Id = "request"
	m.Deprecation = &v1.DeprecationWarning{
		Profile: "P", ReplacedBy: proto.String("Q"), DeprecatedSince: proto.String("then"), RemoveAfter: proto.String("soon"), Reason: proto.String("old"),
	}
	m.ProtoReflect().SetUnknown([]byte{0x95, 0x06, 1, 2, 3, 4})
	return m
}

var wantWarning = cryptobroker.Deprecation{Profile: "P", ReplacedBy: "Q", Since: "then", RemoveAfter: "soon", Reason: "old"}

var descriptor = &v1.CryptoDescriptor{Profile: "P", Operation: "O", Algorithm: "the algorithm"}

// recording is a broker that stores each request and returns the reply of the test.
type recording struct {
	v1.UnimplementedCryptoServiceServer
	sessionv1.UnimplementedSessionServiceServer
	streamv1.UnimplementedStreamServiceServer
	request, reply proto.Message
	onStream       bool
}

func take[Reply proto.Message](r *recording, request proto.Message) (Reply, error) {
	r.request = request
	return r.reply.(Reply), nil
}

func (r *recording) HashData(_ context.Context, q *v1.HashDataRequest) (*v1.HashDataResponse, error) {
	return take[*v1.HashDataResponse](r, q)
}

func (r *recording) SignCertificate(_ context.Context, q *v1.SignCertificateRequest) (*v1.SignCertificateResponse, error) {
	return take[*v1.SignCertificateResponse](r, q)
}

func (r *recording) EncryptData(_ context.Context, q *v1.EncryptDataRequest) (*v1.EncryptDataResponse, error) {
	return take[*v1.EncryptDataResponse](r, q)
}

func (r *recording) DecryptData(_ context.Context, q *v1.DecryptDataRequest) (*v1.DecryptDataResponse, error) {
	return take[*v1.DecryptDataResponse](r, q)
}

func (r *recording) SignData(_ context.Context, q *v1.SignDataRequest) (*v1.SignDataResponse, error) {
	return take[*v1.SignDataResponse](r, q)
}

func (r *recording) VerifyData(_ context.Context, q *v1.VerifyDataRequest) (*v1.VerifyDataResponse, error) {
	return take[*v1.VerifyDataResponse](r, q)
}

func (r *recording) GenerateDataKey(_ context.Context, q *v1.GenerateDataKeyRequest) (*v1.GenerateDataKeyResponse, error) {
	return take[*v1.GenerateDataKeyResponse](r, q)
}

func (r *recording) WrapKey(_ context.Context, q *v1.WrapKeyRequest) (*v1.WrapKeyResponse, error) {
	return take[*v1.WrapKeyResponse](r, q)
}

func (r *recording) UnwrapKey(_ context.Context, q *v1.UnwrapKeyRequest) (*v1.UnwrapKeyResponse, error) {
	return take[*v1.UnwrapKeyResponse](r, q)
}

func (r *recording) UnwrapBatch(_ context.Context, q *v1.UnwrapBatchRequest) (*v1.UnwrapBatchResponse, error) {
	return take[*v1.UnwrapBatchResponse](r, q)
}

func (r *recording) RewrapKey(_ context.Context, q *v1.RewrapKeyRequest) (*v1.RewrapKeyResponse, error) {
	return take[*v1.RewrapKeyResponse](r, q)
}

func (r *recording) GetPublicKey(_ context.Context, q *v1.GetPublicKeyRequest) (*v1.GetPublicKeyResponse, error) {
	return take[*v1.GetPublicKeyResponse](r, q)
}

func (r *recording) HashStream(stream grpc.ClientStreamingServer[streamv1.HashStreamRequest, streamv1.HashStreamResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	r.request = first.GetStart()
	for err == nil {
		_, err = stream.Recv()
	}
	return stream.SendAndClose(r.reply.(*streamv1.HashStreamResponse))
}

func (r *recording) EncryptStream(stream grpc.BidiStreamingServer[streamv1.EncryptStreamRequest, streamv1.EncryptStreamResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	r.request = first.GetStart()
	for err == nil {
		_, err = stream.Recv()
	}
	chunk := &streamv1.EncryptStreamResponse{Part: &streamv1.EncryptStreamResponse_Chunk{Chunk: []byte("encrypted")}}
	end := &streamv1.EncryptStreamResponse{Part: &streamv1.EncryptStreamResponse_End{End: r.reply.(*streamv1.StreamEnd)}}
	return errors.Join(stream.Send(chunk), stream.Send(&streamv1.EncryptStreamResponse{}), stream.Send(end))
}

func (r *recording) DecryptStream(stream grpc.BidiStreamingServer[streamv1.DecryptStreamRequest, streamv1.DecryptStreamResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	r.request = first.GetStart()
	for err == nil {
		_, err = stream.Recv()
	}
	chunk := &streamv1.DecryptStreamResponse{Part: &streamv1.DecryptStreamResponse_Chunk{Chunk: []byte("decrypted")}}
	end := &streamv1.DecryptStreamResponse{Part: &streamv1.DecryptStreamResponse_End{End: r.reply.(*streamv1.StreamEnd)}}
	return errors.Join(stream.Send(chunk), stream.Send(end))
}

// streamed is the result of a stream, and its output.
type streamed struct {
	cryptobroker.StreamResult
	output string
}

// Exchange finds the request of a call by reflection: it is the field with the same number as the field of the reply.
func (r *recording) Exchange(stream exchangeStream) error {
	if !r.onStream {
		return r.UnimplementedStreamServiceServer.Exchange(stream)
	}
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, call := range message.GetCalls() {
			reflected := call.ProtoReflect()
			field := reflected.WhichOneof(reflected.Descriptor().Oneofs().ByName("request"))
			r.request = reflected.Get(field).Message().Interface()
			reply := &streamv1.Reply{Id: call.GetId()}
			into := reply.ProtoReflect()
			to := into.Descriptor().Fields().ByName(field.Name())
			wire, err := proto.Marshal(r.reply)
			if err != nil {
				return err
			}
			if err := proto.Unmarshal(wire, into.Mutable(to).Message().Interface()); err != nil {
				return err
			}
			if err := stream.Send(&streamv1.ExchangeResponse{Replies: []*streamv1.Reply{reply}}); err != nil {
				return err
			}
		}
	}
}

func single(key *v1.KeySource) *v1.SignKeySource {
	return &v1.SignKeySource{Source: &v1.SignKeySource_Single{Single: key}}
}

func byID(id string) *v1.KeySource {
	return &v1.KeySource{Source: &v1.KeySource_KeyId{KeyId: id}}
}

func byValue(key string) *v1.KeySource {
	return &v1.KeySource{Source: &v1.KeySource_RawKey{RawKey: []byte(key)}}
}

// wireCase is a call with what the broker gets and replies.
type wireCase struct {
	reply proto.Message
	want  proto.Message // the request
	call  func(context.Context, *cryptobroker.Client) (any, error)
	got   any // the result
}

// TestTheWireIsWhatTheDescriptionsSay tests every field of every message: the generated stubs read what the client writes, and the
// client reads what the stubs write.
func TestTheWireIsWhatTheDescriptionsSay(t *testing.T) {
	warning, wrapped := wantWarning, cryptobroker.WrappedKey{WrappedKey: []byte("wrapped"), Context: []byte("context")}
	cases := map[string]wireCase{
		"HashData": {
			&v1.HashDataResponse{HashValue: &v1.HashDataResponse_HashValueRaw{HashValueRaw: []byte("digest")}, Descriptor_: descriptor, Metadata: warnedMetadata()},
			&v1.HashDataRequest{Profile: "P", Input: []byte("input"), OutputFormat: v1.HashOutputFormat_HASH_OUTPUT_FORMAT_RAW, Metadata: tracedMetadata},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.HashData(ctx, cryptobroker.HashDataRequest{Profile: "P", Input: []byte("input")})
			},
			cryptobroker.HashDataResult{Digest: []byte("digest"), Algorithm: "the algorithm", Deprecation: &warning},
		},
		"HashStream": {
			&streamv1.HashStreamResponse{HashValue: &streamv1.HashStreamResponse_HashValueRaw{HashValueRaw: []byte("digest")}, Descriptor_: descriptor, Metadata: warnedMetadata()},
			&streamv1.HashStreamStart{Profile: "P", OutputFormat: v1.HashOutputFormat_HASH_OUTPUT_FORMAT_RAW, Metadata: tracedMetadata},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.HashReader(ctx, "P", bytes.NewReader(make([]byte, 300_000)))
			},
			cryptobroker.HashDataResult{Digest: []byte("digest"), Algorithm: "the algorithm", Deprecation: &warning},
		},
		"EncryptStream": {
			&streamv1.StreamEnd{Descriptor_: descriptor, Metadata: warnedMetadata()},
			&streamv1.EncryptStreamStart{Profile: "P", KeyId: "k", Context: []byte("c"), Metadata: tracedMetadata},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				var output bytes.Buffer
				result, err := c.EncryptStream(ctx, &output, bytes.NewReader(make([]byte, 300_000)), cryptobroker.EncryptStreamRequest{Profile: "P", KeyID: "k", Context: []byte("c")})
				return streamed{result, output.String()}, err
			},
			streamed{cryptobroker.StreamResult{Algorithm: "the algorithm", Deprecation: &warning}, "encrypted"},
		},
		"DecryptStream": {
			&streamv1.StreamEnd{Descriptor_: descriptor, Metadata: warnedMetadata()},
			&streamv1.DecryptStreamStart{Profile: "P", Context: []byte("c"), Metadata: tracedMetadata},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				var output bytes.Buffer
				result, err := c.DecryptStream(ctx, &output, bytes.NewReader(make([]byte, 300_000)), cryptobroker.DecryptStreamRequest{Profile: "P", Context: []byte("c")})
				return streamed{result, output.String()}, err
			},
			streamed{cryptobroker.StreamResult{Algorithm: "the algorithm", Deprecation: &warning}, "decrypted"},
		},
		"SignCertificate": {
			&v1.SignCertificateResponse{SignedCertificate: &v1.SignCertificateResponse_Der{Der: []byte("der")}, Descriptor_: descriptor, Metadata: warnedMetadata()},
			&v1.SignCertificateRequest{
				Profile: "P", Csr: "csr", CaPrivateKey: "key", CaCert: "ca", ValidNotBefore: proto.Uint64(1000), ValidNotAfter: proto.Uint64(2000),
				Subject: proto.String("CN=a"), CrlDistributionPoints: []string{"http://a", "http://b"}, OutputFormat: v1.SignOutputFormat_SIGN_OUTPUT_FORMAT_DER, Metadata: tracedMetadata,
			},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.SignCertificate(ctx, cryptobroker.SignCertificateRequest{
					Profile: "P", CSR: []byte("csr"), CAPrivateKey: []byte("key"), CACertificate: []byte("ca"), NotBefore: time.Unix(1000, 0), NotAfter: time.Unix(2000, 0),
					Subject: "CN=a", CRLDistributionPoints: []string{"http://a", "http://b"},
				})
			},
			cryptobroker.SignCertificateResult{Certificate: []byte("der"), Algorithm: "the algorithm", Deprecation: &warning},
		},
		"EncryptData": {
			&v1.EncryptDataResponse{
				Ciphertext: []byte("cipher"), Descriptor_: descriptor, Metadata: warnedMetadata(),
				CipherMetadata: &v1.CipherMetadata{KeyId: proto.String("k#2"), Nonce: []byte("nonce"), Aad: []byte("aad"), Tag: []byte("tag")},
			},
			&v1.EncryptDataRequest{Profile: "P", KeySource: byID("k"), Plaintext: []byte("plain"), EncryptMetadata: &v1.EncryptMetadata{Nonce: []byte("nonce"), Aad: []byte("aad")}, Metadata: tracedMetadata},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.EncryptData(ctx, cryptobroker.EncryptDataRequest{Profile: "P", Key: cryptobroker.KeyID("k"), Plaintext: []byte("plain"), Nonce: []byte("nonce"), AdditionalData: []byte("aad")})
			},
			cryptobroker.EncryptDataResult{Ciphertext: []byte("cipher"), Nonce: []byte("nonce"), Tag: []byte("tag"), KeyID: "k#2", Algorithm: "the algorithm", Deprecation: &warning},
		},
		"DecryptData": {
			&v1.DecryptDataResponse{Plaintext: []byte("plain"), Metadata: warnedMetadata()},
			&v1.DecryptDataRequest{
				Profile: "P", KeySource: byValue("raw"), Ciphertext: []byte("cipher"), Metadata: tracedMetadata,
				DecryptMetadata: &v1.DecryptMetadata{Nonce: []byte("nonce"), Aad: []byte("aad"), Tag: []byte("tag")},
			},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.DecryptData(ctx, cryptobroker.DecryptDataRequest{
					Profile: "P", Key: cryptobroker.RawKey([]byte("raw")), Ciphertext: []byte("cipher"), Nonce: []byte("nonce"), Tag: []byte("tag"), AdditionalData: []byte("aad"),
				})
			},
			cryptobroker.DecryptDataResult{Plaintext: []byte("plain"), Deprecation: &warning},
		},
		"SignData": {
			&v1.SignDataResponse{Signature: []byte("signature"), Descriptor_: descriptor, Metadata: warnedMetadata()},
			&v1.SignDataRequest{Profile: "P", KeySource: single(byID("k")), Input: []byte("input"), SignatureFormat: v1.SignatureFormat_SIGNATURE_FORMAT_CMS, Metadata: tracedMetadata},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.SignData(ctx, cryptobroker.SignDataRequest{Profile: "P", Key: cryptobroker.KeyID("k"), Input: []byte("input"), Format: cryptobroker.SignatureFormatCMS})
			},
			cryptobroker.SignDataResult{Signature: []byte("signature"), Algorithm: "the algorithm", Deprecation: &warning},
		},
		"VerifyData by the keys of a hybrid": {
			&v1.VerifyDataResponse{Valid: true, Metadata: warnedMetadata()},
			&v1.VerifyDataRequest{
				Profile: "P", Input: []byte("input"), Signature: []byte("signature"), SignatureFormat: v1.SignatureFormat_SIGNATURE_FORMAT_DER, Metadata: tracedMetadata,
				KeySource: &v1.SignKeySource{Source: &v1.SignKeySource_ComponentKeys{ComponentKeys: &v1.ComponentKeys{Keys: []*v1.KeySource{byID("k"), byValue("raw")}}}},
			},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.VerifyData(ctx, cryptobroker.VerifyDataRequest{
					Profile: "P", Key: cryptobroker.KeyID("k"), PostQuantumKey: cryptobroker.RawKey([]byte("raw")), Input: []byte("input"), Signature: []byte("signature"), Format: cryptobroker.SignatureFormatDER,
				})
			},
			cryptobroker.VerifyDataResult{Valid: true, Deprecation: &warning},
		},
		"GenerateDataKey": {
			&v1.GenerateDataKeyResponse{DataKey: []byte("data"), WrappedKey: []byte("wrapped"), Descriptor_: descriptor, Metadata: warnedMetadata()},
			&v1.GenerateDataKeyRequest{Profile: "P", KeyId: "k", Context: []byte("context"), WithoutDataKey: true, Metadata: tracedMetadata},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.GenerateDataKey(ctx, cryptobroker.GenerateDataKeyRequest{Profile: "P", KeyID: "k", Context: []byte("context"), WithoutDataKey: true})
			},
			cryptobroker.GenerateDataKeyResult{DataKey: []byte("data"), WrappedKey: []byte("wrapped"), Algorithm: "the algorithm", Deprecation: &warning},
		},
		"WrapKey": {
			&v1.WrapKeyResponse{WrappedKey: []byte("wrapped"), Descriptor_: descriptor, Metadata: warnedMetadata()},
			&v1.WrapKeyRequest{Profile: "P", KeyId: "k", Context: []byte("context"), DataKey: []byte("data"), Metadata: tracedMetadata},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.WrapKey(ctx, cryptobroker.WrapKeyRequest{Profile: "P", KeyID: "k", Context: []byte("context"), DataKey: []byte("data")})
			},
			cryptobroker.WrapKeyResult{WrappedKey: []byte("wrapped"), Algorithm: "the algorithm", Deprecation: &warning},
		},
		"UnwrapKey": {
			&v1.UnwrapKeyResponse{DataKey: []byte("data"), Descriptor_: descriptor, Metadata: warnedMetadata()},
			&v1.UnwrapKeyRequest{Profile: "P", WrappedKey: []byte("wrapped"), Context: []byte("context"), Metadata: tracedMetadata},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.UnwrapKey(ctx, cryptobroker.UnwrapKeyRequest{Profile: "P", WrappedKey: wrapped})
			},
			cryptobroker.UnwrapKeyResult{DataKey: []byte("data"), Algorithm: "the algorithm", Deprecation: &warning},
		},
		"UnwrapBatch": {
			&v1.UnwrapBatchResponse{Results: []*v1.UnwrapResult{{DataKey: []byte("data")}, {Code: 5, Message: "no such key"}}, Metadata: warnedMetadata()},
			&v1.UnwrapBatchRequest{Profile: "P", Keys: []*v1.WrappedKey{{WrappedKey: []byte("wrapped"), Context: []byte("context")}, {}}, Metadata: tracedMetadata},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				result, err := c.UnwrapBatch(ctx, cryptobroker.UnwrapBatchRequest{Profile: "P", Keys: []cryptobroker.WrappedKey{wrapped, {}}})
				if err == nil && !errors.Is(result.Keys[1].Err, cryptobroker.ErrNotFound) {
					err = fmt.Errorf("the error of the second key is %w", result.Keys[1].Err)
				}
				return result, err
			},
			cryptobroker.UnwrapBatchResult{Keys: []cryptobroker.UnwrappedKey{
				{DataKey: []byte("data")}, {Err: &cryptobroker.Error{Code: cryptobroker.CodeNotFound, Operation: "UnwrapBatch", Profile: "P", Message: "no such key"}},
			}, Deprecation: &warning},
		},
		"RewrapKey": {
			&v1.RewrapKeyResponse{WrappedKey: []byte("again"), Unchanged: true, Descriptor_: descriptor, Metadata: warnedMetadata()},
			&v1.RewrapKeyRequest{Profile: "P", WrappedKey: []byte("wrapped"), Context: []byte("context"), KeyId: "k", Metadata: tracedMetadata},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.RewrapKey(ctx, cryptobroker.RewrapKeyRequest{Profile: "P", WrappedKey: wrapped, KeyID: "k"})
			},
			cryptobroker.RewrapKeyResult{WrappedKey: []byte("again"), Unchanged: true, Algorithm: "the algorithm", Deprecation: &warning},
		},
		"GetPublicKey": {
			&v1.GetPublicKeyResponse{Der: []byte("der"), Pem: "pem", Version: "7", Metadata: warnedMetadata()},
			&v1.GetPublicKeyRequest{Profile: "P", KeyId: "k", Metadata: tracedMetadata},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.GetPublicKey(ctx, cryptobroker.GetPublicKeyRequest{Profile: "P", KeyID: "k"})
			},
			cryptobroker.GetPublicKeyResult{DER: []byte("der"), PEM: []byte("pem"), Version: "7", Deprecation: &warning},
		},
	}
	maps.Copy(cases, sessionCases())
	for name, c := range cases {
		for way, onStream := range map[string]bool{"over the stream": true, "as a call of gRPC": false} {
			t.Run(name+" "+way, func(t *testing.T) {
				r := &recording{reply: c.reply, onStream: onStream}
				socket := filepath.Join(socketDir(t), "s")
				serveServices(t, r, r, socket)
				client := newClient(t, socket, cryptobroker.WithTraceContext(func(context.Context) cryptobroker.TraceContext { return traced }))
				got, err := c.call(withTimeout(t), client)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, c.got) {
					t.Errorf("the result is %+v, want %+v", got, c.got)
				}
				if !proto.Equal(r.request, c.want) {
					t.Errorf("the request is\n%v\nwant\n%v", r.request, c.want)
				}
			})
		}
	}
}
