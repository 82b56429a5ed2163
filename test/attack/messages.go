// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"embed"
	"encoding/pem"
	"math/big"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// The methods that are attacked.
const (
	methodHash        = "/cryptobroker.v1.CryptoService/HashData"
	methodEncrypt     = "/cryptobroker.v1.CryptoService/EncryptData"
	methodDecrypt     = "/cryptobroker.v1.CryptoService/DecryptData"
	methodSign        = "/cryptobroker.v1.CryptoService/SignData"
	methodVerify      = "/cryptobroker.v1.CryptoService/VerifyData"
	methodCertificate = "/cryptobroker.v1.CryptoService/SignCertificate"
	methodExchange    = "/cryptobroker.stream.v1.StreamService/Exchange"
	methodHashStream  = "/cryptobroker.stream.v1.StreamService/HashStream"
	methodSealStream  = "/cryptobroker.stream.v1.StreamService/EncryptStream"
	methodOpenStream  = "/cryptobroker.stream.v1.StreamService/DecryptStream"
	methodPolicy      = "/cryptobroker.policy.v1.PolicyService/ListProfiles"
	methodHealth      = "/grpc.health.v1.Health/Check"
	methodWatch       = "/grpc.health.v1.Health/Watch"
	methodReflection  = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
	methodUnknown     = "/cryptobroker.v1.CryptoService/NoSuchMethod"
)

// unaryMethods are those with profiles.
var unaryMethods = []string{
	methodHash, methodEncrypt, methodDecrypt, methodSign, methodVerify, methodCertificate,
	"/CryptoBroker.CryptoGrpc/Hash", "/CryptoBroker.CryptoGrpc/HashData", "/CryptoBroker.CryptoGrpc/EncryptData", "/CryptoBroker.CryptoGrpc/SignData",
}

const mebibyte = 1 << 20

// must encodes a message of our own, which never fails.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func encoded(message proto.Message) []byte { return must(proto.Marshal(message)) }

// field appends a field of bytes to a message.
func field(message []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(message, number, protowire.BytesType), value)
}

func hashRequest(size int) *v1.HashDataRequest {
	return &v1.HashDataRequest{Profile: "Default", Input: make([]byte, size)}
}

// profileNamed returns the beginning of every request: the field with the profile's name.
func profileNamed(name string) []byte { return field(nil, 1, []byte(name)) }

func hashMessage(size int) []byte { return encoded(hashRequest(size)) }

func encryptRequest(size int) *v1.EncryptDataRequest {
	return &v1.EncryptDataRequest{
		Profile: "Random", KeySource: &v1.KeySource{Source: &v1.KeySource_RawKey{RawKey: make([]byte, 32)}}, Plaintext: make([]byte, size),
	}
}

func encryptMessage(size int) []byte { return encoded(encryptRequest(size)) }

//go:embed keys
var keyFiles embed.FS

func signRequest(profile string, key []byte) *v1.SignDataRequest {
	return &v1.SignDataRequest{
		Profile: profile, Input: []byte("text"),
		KeySource: &v1.SignKeySource{Source: &v1.SignKeySource_Single{Single: &v1.KeySource{Source: &v1.KeySource_RawKey{RawKey: key}}}},
	}
}

// rsaRequest returns a request for a signature with a key of the request.
func rsaRequest(bits string) *v1.SignDataRequest {
	block, _ := pem.Decode(must(keyFiles.ReadFile("keys/rsa-" + bits + ".pem")))
	return signRequest("Default", pem.EncodeToMemory(block))
}

// certificateRequest returns a request for a certificate that the broker issues.
var certificateRequest = sync.OnceValue(func() *v1.SignCertificateRequest {
	issuer := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	subject := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	csr := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "app"}}, subject))
	own := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Issuer"}, NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return &v1.SignCertificateRequest{
		Profile: "Default", Csr: text("CERTIFICATE REQUEST", csr), CaPrivateKey: text("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(issuer))),
		CaCert: text("CERTIFICATE", must(x509.CreateCertificate(rand.Reader, own, own, issuer.Public(), issuer))),
	}
})

// exchanged returns a message of Exchange with calls.
func exchanged(calls ...*streamv1.Call) []byte {
	return encoded(&streamv1.ExchangeRequest{Calls: calls})
}

func hashCall(id uint64, size int) *streamv1.Call {
	return &streamv1.Call{Id: id, Request: &streamv1.Call_HashData{HashData: hashRequest(size)}}
}

func encryptCall(id uint64, size int) *streamv1.Call {
	return &streamv1.Call{Id: id, Request: &streamv1.Call_EncryptData{EncryptData: encryptRequest(size)}}
}

func signCall(id uint64, request *v1.SignDataRequest) *streamv1.Call {
	return &streamv1.Call{Id: id, Request: &streamv1.Call_SignData{SignData: request}}
}

// hashStart is the first message of HashStream.
func hashStart() []byte {
	return encoded(&streamv1.HashStreamRequest{Part: &streamv1.HashStreamRequest_Start{Start: &streamv1.HashStreamStart{Profile: "Default"}}})
}

// hashChunk returns a further message of HashStream.
func hashChunk(size int) []byte {
	return encoded(&streamv1.HashStreamRequest{Part: &streamv1.HashStreamRequest_Chunk{Chunk: make([]byte, size)}})
}

// repeated returns a message that repeats the same bytes, at most size bytes in all.
func repeated(unit []byte, size int) []byte { return bytes.Repeat(unit, size/len(unit)) }

// emptyField is a field of bytes with nothing in it.
func emptyField(number protowire.Number) []byte { return field(nil, number, nil) }
