// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// The methods of the operations on data, and the numbers of their fields,
// written down a second time.
const (
	methodEncrypt   = "/CryptoBroker.CryptoGrpc/EncryptData"
	methodDecrypt   = "/CryptoBroker.CryptoGrpc/DecryptData"
	methodSignData  = "/CryptoBroker.CryptoGrpc/SignData"
	methodVerify    = "/CryptoBroker.CryptoGrpc/VerifyData"
	methodEncryptV1 = "/cryptobroker.v1.CryptoService/EncryptData"
	methodDecryptV1 = "/cryptobroker.v1.CryptoService/DecryptData"
	methodSignV1    = "/cryptobroker.v1.CryptoService/SignData"
	methodVerifyV1  = "/cryptobroker.v1.CryptoService/VerifyData"
)

const (
	keyID, rawKey       = 1, 2 // KeySource
	single, components  = 1, 2 // SignKeySource
	componentKey        = 1    // ComponentKeys
	cipherNonce         = 1    // EncryptMetadata and DecryptMetadata
	cipherAAD           = 2
	cipherTag           = 3
	sealedKeyID         = 1 // CipherMetadata
	sealedNonce         = 2
	sealedAAD           = 3
	sealedTag           = 4
	dataProfile         = 1 // EncryptDataRequest, DecryptDataRequest
	dataKey             = 2
	dataText            = 3
	dataCipherMetadata  = 4
	dataMetadata        = 5
	signProfile         = 1 // SignDataRequest
	signKey             = 2
	signInput           = 3
	signFormat          = 4
	signMetadata        = 5
	verifySignature     = 4 // VerifyDataRequest, the first three as SignDataRequest
	verifyFormat        = 5
	verifyMetadata      = 6
	replyDescriptor     = 4 // EncryptDataResponse
	replyCiphertext     = 1
	replyCipherMetadata = 2
)

// startWithKeys serves profiles, with the keys of a directory of these files.
func startWithKeys(t testing.TB, profiles string, files map[string]string) *broker {
	t.Helper()
	return startWith(t, profiles, nil, server.WithKeys(keyDirectory(t, files)))
}

// values is a reply or a part of a reply: its fields by their numbers. Fields other than texts, bytes and messages are varints.
type values map[protowire.Number]string

func parse(t testing.TB, reply []byte) values {
	t.Helper()
	found := values{}
	for len(reply) > 0 {
		number, kind, n := protowire.ConsumeTag(reply)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		m := protowire.ConsumeFieldValue(number, kind, reply[n:])
		if m < 0 {
			t.Fatal(protowire.ParseError(m))
		}
		value := reply[n : n+m]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		if _, twice := found[number]; twice {
			t.Fatalf("field %d is there twice", number)
		}
		found[number] = string(value)
		reply = reply[n+m:]
	}
	return found
}

// ask calls a method and decodes the reply.
func ask(t testing.TB, conn *grpc.ClientConn, method string, request message) values {
	t.Helper()
	reply, err := call(t, conn, method, request)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return parse(t, reply)
}

// refuses calls a method and checks the code and the message of the refusal.
func refuses(t testing.TB, conn *grpc.ClientConn, method string, request message, code codes.Code, want string) {
	t.Helper()
	_, err := call(t, conn, method, request)
	if got := status.Convert(err); got.Code() != code || got.Message() != want {
		t.Errorf("%s: got %s %q\nwant %s %q", method, got.Code(), got.Message(), code, want)
	}
}

func byID(id string) message  { return message{}.text(keyID, id) }
func raw(key string) message  { return message{}.text(rawKey, key) }
func one(key message) message { return message{}.bytes(single, key) }
func both(first, second message) message {
	return message{}.bytes(components, message{}.bytes(componentKey, first).bytes(componentKey, second))
}
