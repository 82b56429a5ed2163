// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/fuzzmemory"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// FuzzExchange sends arbitrary bytes as a message. The broker answers or ends the
// stream with INVALID_ARGUMENT, and serves the next stream.
func FuzzExchange(f *testing.F) {
	for _, seed := range []message{
		{},
		{0xff},
		hashCall(1, "P", "abc"),
		batch(hashCall(1, "P", "abc"), hashCall(1, "P", "abc"), callOf(2, 99, message{})),
		hashCall(1, "P", "abc")[:9],
		callOf(1, theSign, message{}.text(signProfile, "Own").bytes(signKey, one(raw(edKeyPEM))).text(signInput, "abc")),
		callOf(2, theEncrypt, message{}.text(dataProfile, "AES").bytes(dataKey, raw(strings.Repeat("k", 32))).text(dataText, "abc")),
		callOf(3, theCertificate, message{}.text(1, "P").text(2, "no CSR")),
		callOf(4, theVerify, message{}.text(signProfile, "Ed")),
		callOf(5, theDecrypt, message{}.text(dataProfile, "AES")),
		message{}.bytes(requestCalls, message{}.bytes(theHash, request(nil)).number(theTimeout, 1<<40).number(theID, 1<<63)),
		append(callOf(7, theSign, message{}.text(signProfile, "Ed")), message{}.number(requestGivenUp, 7).bytes(requestGivenUp, []byte{7, 0x80})...),
		callOf(6, theHash, message{}.text(requestProfile, "P").bytes(requestMetadata, message{}.text(metadataID, "\x80"))),
	} {
		f.Add([]byte(seed))
	}
	b := start(f, exchangeProfiles)
	conn := connect(f, b.socket(""))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := fuzzmemory.Allocated()
		e := exchange(t, conn)
		e.send(data)
		e.closeSend()
		got, err := e.ends()
		if code := status.Code(err); code != codes.OK && code != codes.InvalidArgument {
			t.Errorf("the stream ended with %v", err)
		}
		if took := fuzzmemory.Allocated() - before; took > fuzzmemory.Base+fuzzmemory.PerByte*uint64(len(data)) { // the message may have many calls
			t.Errorf("the stream took %d bytes for a message of %d", took, len(data))
		}
		for id, a := range got {
			if code := a.code(); code == codes.Internal || code == codes.Unknown {
				t.Errorf("call %d: %s %q", id, code, a.values[theText])
			}
		}
	})
}

// FuzzHashStream does the same with a message of HashStream.
func FuzzHashStream(f *testing.F) {
	for _, seed := range []message{
		{},
		{0xff},
		startOf(message{}.text(requestProfile, "P")),
		startOf(message{}.text(requestProfile, "P").number(requestFormat, 9)),
		startOf(message{}.text(requestProfile, "\x80")),
		startOf(message{0x0a, 0x7f}),
		chunk("abc"),
		startOf(message{}.text(requestProfile, "P")).text(partChunk, "abc"),
	} {
		f.Add([]byte(seed))
	}
	b := start(f, exchangeProfiles)
	conn := connect(f, b.socket(""))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := fuzzmemory.Allocated()
		if _, err := hashStream(t, conn, data, chunk("abc")); err != nil && status.Code(err) != codes.InvalidArgument {
			t.Errorf("the stream ended with %v", err)
		}
		if took := fuzzmemory.Allocated() - before; took > fuzzmemory.Base {
			t.Errorf("the stream took %d bytes for a message of %d", took, len(data))
		}
	})
}

// FuzzCipherStreams does the same with a start and a chunk of EncryptStream and DecryptStream.
func FuzzCipherStreams(f *testing.F) {
	start := message{}.text(requestProfile, "K").text(wrapKeyID, "cipher").text(startContext, "c")
	whole := encryptedStream("cipher", []byte("plaintext"))
	for _, chunk := range [][]byte{nil, []byte("CBS"), []byte("CBS\x02\x00\x01"), whole, whole[:len(whole)-1], whole[:40], append(whole, 0)} {
		for _, decrypts := range []bool{false, true} {
			f.Add(decrypts, []byte(startOf(start)), chunk)
			f.Add(decrypts, []byte(startOf(message{}.text(requestProfile, "K").text(wrapKeyID, "cipher"))), chunk)
		}
	}
	f.Add(true, []byte{0xff}, []byte("abc"))
	b := startWith(f, fuzzedProfiles, nil, server.WithKeys(keyDirectory(f, map[string]string{"cipher.bin": strings.Repeat("k", 32), "pair.key": edKeyPEM})))
	conn := connect(f, b.socket(""))
	fine := []codes.Code{codes.OK, codes.InvalidArgument, codes.FailedPrecondition, codes.NotFound, codes.PermissionDenied}
	f.Fuzz(func(t *testing.T, decrypts bool, start, chunk []byte) {
		method := methodEncryptStream
		if decrypts {
			method = methodDecryptStream
		}
		before := fuzzmemory.Allocated()
		_, err := cipherMessages(t, conn, method, start, message{}.bytes(partChunk, chunk))
		if !slices.Contains(fine, status.Code(err)) {
			t.Errorf("%s ended with %v", method, err)
		}
		if took := fuzzmemory.Allocated() - before; took > fuzzmemory.Base+fuzzmemory.PerByte*uint64(len(chunk)) {
			t.Errorf("%s took %d bytes for %d", method, took, len(start)+len(chunk))
		}
	})
}
