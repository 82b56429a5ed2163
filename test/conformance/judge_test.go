// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/hex"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/test/conformance/wire"
)

// answer is what a fake broker says to every call.
type answer struct {
	reply wire.Message
	err   error
}

// answering runs a broker that gives one answer, right or wrong.
func answering(t *testing.T, a answer) *wire.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(wire.Codec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var request []byte
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		if a.err != nil {
			return a.err
		}
		return stream.SendMsg(a.reply)
	}))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	c, err := wire.Connect(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func failing(code codes.Code, message string) answer {
	return answer{err: status.Error(code, message)}
}

var (
	digest    = []byte{1, 2, 3, 4}
	gcm       = aead{make([]byte, 16), []byte("plain"), wire.Sealed{Nonce: make([]byte, 12), Ciphertext: []byte("ciphe"), Tag: make([]byte, 16)}}
	shortTag  = []refusal{{"a short tag", sayingUnserved}}
	verifying = verification{profile: "p", result: resultValid}
	forging   = verification{profile: "p", result: resultInvalid}
	salted    = verification{profile: "p", result: resultValid, otherwise: "another salt"}
)

func hashing(due []refusal) func(context.Context, *wire.Client) verdict {
	return func(ctx context.Context, c *wire.Client) verdict { return judgeHash(ctx, c, "p", due, nil, digest) }
}

func TestAnAnswerIs(t *testing.T) {
	digests := wire.Message{}.Text(4, hex.EncodeToString(digest)).Bytes(3, digest)
	valid, notValid := answer{reply: wire.Message{}.Number(1, 1)}, answer{reply: wire.Message{}}
	encrypted := func(ciphertext, tag, nonce []byte) answer {
		return answer{reply: wire.Message{}.Bytes(1, ciphertext).Bytes(2, wire.Message{}.Bytes(2, nonce).Bytes(4, tag))}
	}
	for sentence, test := range map[string]struct {
		run    func(context.Context, *wire.Client) verdict
		answer answer
		want   string // passed, refused, or what the failure says
	}{
		"right where both forms of the digest are":                {hashing(nil), answer{reply: digests}, "passed"},
		"wrong where the digest as text is":                       {hashing(nil), answer{reply: wire.Message{}.Text(4, "01020305").Bytes(3, digest)}, "expected 01020304"},
		"wrong where the raw digest is":                           {hashing(nil), answer{reply: wire.Message{}.Text(4, "01020304").Bytes(3, digest[:3])}, "expected 01020304"},
		"wrong where there is no digest":                          {hashing(nil), answer{}, "the digest is "},
		"wrong where a good message is refused":                   {hashing(nil), failing(codes.InvalidArgument, "no"), "InvalidArgument"},
		"refused where it should be":                              {hashing(shortTag), failing(codes.FailedPrecondition, sayingUnserved+": line 3"), "refused"},
		"wrong where it is not refused":                           {hashing(shortTag), answer{reply: digests}, "was not refused"},
		"wrong where it is refused with another code":             {hashing(shortTag), failing(codes.Unavailable, sayingUnserved), "code Unavailable"},
		"wrong where it is refused for another reason":            {hashing(shortTag), failing(codes.FailedPrecondition, "too long"), "another reason"},
		"right where ciphertext and tag are":                      {encrypting(gcm, "p", nil), encrypted(gcm.Ciphertext, gcm.Tag, gcm.Nonce), "passed"},
		"wrong where the ciphertext is":                           {encrypting(gcm, "p", nil), encrypted([]byte("cipha"), gcm.Tag, gcm.Nonce), "the ciphertext is"},
		"wrong where the tag is":                                  {encrypting(gcm, "p", nil), encrypted(gcm.Ciphertext, gcm.Tag[1:], gcm.Nonce), "the tag is"},
		"wrong where the nonce is another":                        {encrypting(gcm, "p", nil), encrypted(gcm.Ciphertext, gcm.Tag, []byte("another nonce")), "the nonce is"},
		"right where the plaintext is":                            {decrypting(gcm, "p", nil, false), answer{reply: wire.Message{}.Bytes(1, gcm.plaintext)}, "passed"},
		"wrong where the plaintext is":                            {decrypting(gcm, "p", nil, false), answer{reply: wire.Message{}.Bytes(1, []byte("plaid"))}, "the plaintext is"},
		"wrong where a forgery is decrypted":                      {decrypting(gcm, "p", nil, true), answer{reply: wire.Message{}.Bytes(1, gcm.plaintext)}, "was not refused"},
		"right where a forgery does not authenticate":             {decrypting(gcm, "p", nil, true), failing(codes.InvalidArgument, "DecryptData: "+sayingForged), "passed"},
		"wrong where a forgery is an internal error":              {decrypting(gcm, "p", nil, true), failing(codes.Internal, sayingForged), "code Internal"},
		"right where a good signature is valid":                   {verifying.run, valid, "passed"},
		"wrong where a good signature is not":                     {verifying.run, notValid, "expected that it is"},
		"wrong where a good signature is refused":                 {verifying.run, failing(codes.InvalidArgument, "VerifyData: signature is none"), "signature is none"},
		"wrong where a forged signature is valid":                 {forging.run, valid, "expected that it is not"},
		"right where a forged signature is not":                   {forging.run, notValid, "passed"},
		"right where a forged signature is called none":           {forging.run, failing(codes.InvalidArgument, `VerifyData with profile "p": signature is none`), "passed"},
		"wrong where a forged signature is a missing key":         {forging.run, failing(codes.InvalidArgument, `VerifyData with profile "p": keySource.single is none`), "another reason"},
		"wrong where a forged signature is a panic":               {forging.run, failing(codes.Internal, `VerifyData with profile "p": signature is none`), "code Internal"},
		"refused where other parameters are not valid":            {salted.run, notValid, "refused"},
		"wrong where other parameters are taken":                  {salted.run, valid, "another salt"},
		"wrong where the broker signs something else":             {signing("p", nil, nil, digest, nil), answer{reply: wire.Message{}.Bytes(1, []byte("4321"))}, "the signature is"},
		"right where the broker signs as published":               {signing("p", nil, nil, digest, nil), answer{reply: wire.Message{}.Bytes(1, digest)}, "passed"},
		"wrong where a bad key signs":                             {signing("p", nil, nil, nil, shortTag), answer{reply: wire.Message{}.Bytes(1, digest)}, "was not refused"},
		"wrong where the reply is no wire.Message of the service": {verifying.run, answer{reply: wire.Message{0xff}}, "EOF"},
	} {
		t.Run(sentence, func(t *testing.T) {
			v := test.run(t.Context(), answering(t, test.answer))
			got := "passed"
			switch {
			case v.failed != "":
				got = v.failed
			case v.refused != "":
				got = "refused"
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
