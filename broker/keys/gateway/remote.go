// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto"
	"fmt"

	gatewayv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/gateway/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// remote is one use of a key at the gateway.
type remote struct {
	*Client
	use *gatewayv1.KeyUse
}

type signer struct{ remote }

// Sign implements keys.RemoteSigner.
func (s signer) Sign(ctx context.Context, digest []byte, options crypto.SignerOpts) ([]byte, error) {
	request := &gatewayv1.SignRequest{Use: s.use, Input: &gatewayv1.SignRequest_Digest{Digest: digest}}
	if options.HashFunc() == 0 {
		request.Input = &gatewayv1.SignRequest_Message{Message: digest}
	}
	return s.sign(ctx, request, len(digest), options)
}

func (s signer) sign(ctx context.Context, request *gatewayv1.SignRequest, size int, options crypto.SignerOpts) ([]byte, error) {
	if err := checkSize("data", size, "sign its digest with an algorithm that takes one"); err != nil {
		return nil, err
	}
	if err := setOptions(request, options); err != nil {
		return nil, err
	}
	response, err := call(ctx, s.Client, s.use, s.gateway.Sign, request)
	return response.GetSignature(), err
}

type messageSigner struct{ signer }

// SignMessage implements keys.RemoteMessageSigner.
func (s messageSigner) SignMessage(ctx context.Context, message []byte, options crypto.SignerOpts) ([]byte, error) {
	request := &gatewayv1.SignRequest{Use: s.use, Input: &gatewayv1.SignRequest_Message{Message: message}}
	return s.sign(ctx, request, len(message), options)
}

type aead struct {
	remote
	size int
}

// KeySize implements keys.RemoteCipher.
func (a aead) KeySize() int { return a.size }

const adviceToWrap = "encrypt it with a data key"

// SealRandom implements keys.RemoteCipher.
func (a aead) SealRandom(ctx context.Context, plaintext, additional []byte) (nonce, ciphertext, tag []byte, err error) {
	if err := checkSize("plaintext", len(plaintext)+len(additional), adviceToWrap); err != nil {
		return nil, nil, nil, err
	}
	r, err := call(ctx, a.Client, a.use, a.gateway.Encrypt, &gatewayv1.EncryptRequest{Use: a.use, Plaintext: plaintext, Additional: additional})
	if err == nil && (len(r.GetNonce()) != engine.NonceSize || len(r.GetTag()) != engine.FullTagSize || len(r.GetCiphertext()) != len(plaintext)) {
		err = keys.ErrUnusable
	}
	return r.GetNonce(), r.GetCiphertext(), r.GetTag(), err
}

// Open implements keys.RemoteCipher.
func (a aead) Open(ctx context.Context, nonce, ciphertext, tag, additional []byte) ([]byte, error) {
	if err := checkSize("ciphertext", len(ciphertext)+len(additional), adviceToWrap); err != nil {
		return nil, err
	}
	r, err := call(ctx, a.Client, a.use, a.gateway.Decrypt, &gatewayv1.DecryptRequest{Use: a.use, Nonce: nonce, Ciphertext: ciphertext, Tag: tag, Additional: additional})
	return r.GetPlaintext(), err
}

type wrapper struct {
	remote
	algorithms []string
}

// Algorithms implements keys.Wrapper.
func (w wrapper) Algorithms() []string { return w.algorithms }

// Wrap implements keys.Wrapper.
func (w wrapper) Wrap(ctx context.Context, algorithm string, dataKey, wrapContext []byte) ([]byte, error) {
	if err := checkSize("context", len(dataKey)+len(wrapContext), "use a shorter context"); err != nil {
		return nil, err
	}
	r, err := call(ctx, w.Client, w.use, w.gateway.Wrap, &gatewayv1.WrapRequest{Use: w.use, Algorithm: algorithm, DataKey: dataKey, Context: wrapContext})
	return r.GetWrapped(), err
}

// Unwrap implements keys.Wrapper.
func (w wrapper) Unwrap(ctx context.Context, algorithm string, wrapped, wrapContext []byte) ([]byte, error) {
	if err := checkSize("context", len(wrapped)+len(wrapContext), "use a shorter context"); err != nil {
		return nil, err
	}
	r, err := call(ctx, w.Client, w.use, w.gateway.Unwrap, &gatewayv1.UnwrapRequest{Use: w.use, Algorithm: algorithm, Wrapped: wrapped, Context: wrapContext})
	return r.GetDataKey(), err
}

// checkSize refuses an input that is too large for the gateway.
func checkSize(field string, size int, advice string) error {
	if size <= MaxInputSize {
		return nil
	}
	return &engine.InputError{Field: field, Problem: fmt.Sprintf("has %d bytes, expected at most the %d that a key gateway takes; %s", size, MaxInputSize, advice)}
}
