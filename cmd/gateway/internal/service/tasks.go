// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"

	mldsax509 "filippo.io/mldsa/x509"

	gatewayv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/gateway/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/gateway"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// DescribeKey implements the service.
func (s *Server) DescribeKey(ctx context.Context, in *gatewayv1.DescribeKeyRequest) (*gatewayv1.DescribeKeyResponse, error) {
	out := &gatewayv1.DescribeKeyResponse{}
	return out, s.serve(ctx, in.GetUse(), profile.DescribeKey, 0, func(r *request) error { return r.describe(ctx, out) })
}

func (r *request) describe(ctx context.Context, out *gatewayv1.DescribeKeyResponse) (err error) {
	if r.key.Public() != nil && r.key.Remote() && !r.key.Signs() {
		// A broker would use it as a public key, and wrap data keys that nobody could unwrap.
		return fmt.Errorf("%w: it is a key pair that does not sign, expected a key that signs, or an AES key", keys.ErrUnusable)
	}
	out.Version = r.key.Version()
	if public := r.key.Public(); public != nil {
		if out.PublicKey, err = mldsax509.MarshalPKIXPublicKey(public); err != nil {
			return fmt.Errorf("%w: %w", keys.ErrUnusable, err)
		}
		for _, certificate := range r.key.Certificates() {
			out.Certificates = append(out.Certificates, certificate.Raw)
		}
	}
	tasks := r.operation.Row().KeyTasks
	if tasks.Has(profile.SignWithKey) && r.key.Signs() {
		out.Signs = true
		_, out.TakesMessages = r.key.Signer(ctx).(crypto.MessageSigner)
	}
	if cipher := r.key.Cipher(ctx); cipher != nil && tasks.Has(profile.EncryptWithKey|profile.DecryptWithKey) {
		out.KeySize = int32(cipher.KeySize())
	}
	if wrapper := r.key.Wrapper(); wrapper != nil && tasks.Has(profile.WrapWithKey|profile.UnwrapWithKey) {
		out.WrappingAlgorithms = wrapper.Algorithms()
	}
	return nil
}

// Sign implements the service.
func (s *Server) Sign(ctx context.Context, in *gatewayv1.SignRequest) (*gatewayv1.SignResponse, error) {
	out := &gatewayv1.SignResponse{}
	return out, s.serve(ctx, in.GetUse(), profile.SignWithKey, len(in.GetDigest())+len(in.GetMessage()), func(r *request) (err error) {
		out.Signature, err = r.sign(ctx, in)
		return err
	})
}

func (r *request) sign(ctx context.Context, in *gatewayv1.SignRequest) ([]byte, error) {
	options, err := gateway.SignerOptions(in)
	if err != nil {
		return nil, err
	}
	signer := r.key.Signer(ctx)
	if signer == nil {
		return nil, fmt.Errorf("%w: it has no private key", keys.ErrUnusable)
	}
	if r.operation == profile.OpSignData && r.key.OfAuthority() {
		// The signed data could be a certificate that has not passed the checks of
		// SignCertificate.
		return nil, fmt.Errorf("%w: it belongs to a certificate authority, expected a key that signs no certificates", keys.ErrUnusable)
	}
	switch r.key.Public().(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey:
		if options.HashFunc() == 0 {
			return nil, fmt.Errorf("%w: the request has no digest, expected one for an RSA or ECDSA key", keys.ErrUnusable)
		}
	}
	messages, takesMessages := signer.(crypto.MessageSigner)
	_, hasMessage := in.GetInput().(*gatewayv1.SignRequest_Message)
	var signature []byte
	switch {
	case hasMessage != (takesMessages || options.HashFunc() == 0):
		return nil, fmt.Errorf("%w: the request has the message instead of its digest, or the digest instead of the message", keys.ErrUnusable)
	case takesMessages:
		signature, err = messages.SignMessage(rand.Reader, in.GetMessage(), options)
	case hasMessage:
		signature, err = signer.Sign(rand.Reader, in.GetMessage(), options)
	default:
		signature, err = signer.Sign(rand.Reader, in.GetDigest(), options)
	}
	if errors.Is(err, rsa.ErrMessageTooLong) {
		err = fmt.Errorf("%w: it is too small for the digest", keys.ErrUnusable)
	}
	return signature, err
}

// cipher returns the cipher of the key, or an error if it has none.
func (r *request) cipher(ctx context.Context) (engine.Cipher, error) {
	if cipher := r.key.Cipher(ctx); cipher != nil {
		return cipher, nil
	}
	return nil, fmt.Errorf("%w: it is not an AES key that encrypts", keys.ErrUnusable)
}

// Encrypt implements the service.
func (s *Server) Encrypt(ctx context.Context, in *gatewayv1.EncryptRequest) (*gatewayv1.EncryptResponse, error) {
	out := &gatewayv1.EncryptResponse{}
	return out, s.serve(ctx, in.GetUse(), profile.EncryptWithKey, len(in.GetPlaintext())+len(in.GetAdditional()), func(r *request) error {
		cipher, err := r.cipher(ctx)
		if err != nil {
			return err
		}
		out.Nonce, out.Ciphertext, out.Tag, err = cipher.SealRandom(in.GetPlaintext(), in.GetAdditional())
		if errors.Is(err, engine.ErrExhausted) {
			return fmt.Errorf("%w: %w", keys.ErrUnusable, err)
		}
		return err
	})
}

// Decrypt implements the service.
func (s *Server) Decrypt(ctx context.Context, in *gatewayv1.DecryptRequest) (*gatewayv1.DecryptResponse, error) {
	out := &gatewayv1.DecryptResponse{}
	return out, s.serve(ctx, in.GetUse(), profile.DecryptWithKey, len(in.GetCiphertext())+len(in.GetAdditional()), func(r *request) error {
		cipher, err := r.cipher(ctx)
		switch {
		case err != nil:
			return err
		case len(in.GetNonce()) != engine.NonceSize || len(in.GetTag()) < 12 || len(in.GetTag()) > engine.FullTagSize:
			return fmt.Errorf("%w: the request has a nonce of %d and a tag of %d bytes, expected %d, and 12 to %d", keys.ErrUnusable,
				len(in.GetNonce()), len(in.GetTag()), engine.NonceSize, engine.FullTagSize)
		}
		out.Plaintext, err = cipher.Open(in.GetNonce(), in.GetCiphertext(), in.GetTag(), in.GetAdditional())
		if errors.Is(err, engine.ErrAuthentication) {
			return keys.ErrInvalidCiphertext
		}
		return err
	})
}

// wrapper returns the wrapper of the key, if it has the algorithm.
func (r *request) wrapper(algorithm string) (keys.Wrapper, error) {
	if wrapper := r.key.Wrapper(); wrapper != nil && slices.Contains(wrapper.Algorithms(), algorithm) {
		return wrapper, nil
	}
	return nil, fmt.Errorf("%w: it does not wrap with %.40q", keys.ErrUnusable, algorithm)
}

// Wrap implements the service.
func (s *Server) Wrap(ctx context.Context, in *gatewayv1.WrapRequest) (*gatewayv1.WrapResponse, error) {
	defer clear(in.GetDataKey())
	out := &gatewayv1.WrapResponse{}
	return out, s.serve(ctx, in.GetUse(), profile.WrapWithKey, len(in.GetDataKey())+len(in.GetContext()), func(r *request) error {
		wrapper, err := r.wrapper(in.GetAlgorithm())
		if err == nil {
			out.Wrapped, err = wrapper.Wrap(ctx, in.GetAlgorithm(), in.GetDataKey(), in.GetContext())
		}
		return err
	})
}

// Unwrap implements the service.
func (s *Server) Unwrap(ctx context.Context, in *gatewayv1.UnwrapRequest) (*gatewayv1.UnwrapResponse, error) {
	out := &gatewayv1.UnwrapResponse{}
	return out, s.serve(ctx, in.GetUse(), profile.UnwrapWithKey, len(in.GetWrapped())+len(in.GetContext()), func(r *request) error {
		wrapper, err := r.wrapper(in.GetAlgorithm())
		if err == nil {
			out.DataKey, err = wrapper.Unwrap(ctx, in.GetAlgorithm(), in.GetWrapped(), in.GetContext())
		}
		return err
	})
}
