// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"context"
	"fmt"

	"github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/payloads"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

const symmetricUsage = kmip.CryptographicUsageEncrypt | kmip.CryptographicUsageDecrypt

// CreateAES makes an AES key of this many bits, which may be used to encrypt and decrypt. It
// returns the identifier of the key.
func (s *Session) CreateAES(ctx context.Context, bits int) (id string, err error) {
	return s.createAES(ctx, bits, symmetricUsage)
}

// CreateWrappingAES makes an AES key of this many bits, which may be used to wrap and unwrap
// other keys, and activates it.
func (s *Session) CreateWrappingAES(ctx context.Context, bits int) (id string, err error) {
	if id, err = s.createAES(ctx, bits, kmip.CryptographicUsageWrapKey|kmip.CryptographicUsageUnwrapKey); err != nil {
		return "", err
	}
	_, err = call[*payloads.ActivateResponsePayload](ctx, s, id, &payloads.ActivateRequestPayload{UniqueIdentifier: id})
	return id, err
}

func (s *Session) createAES(ctx context.Context, bits int, usage kmip.CryptographicUsageMask) (string, error) {
	request, err := s.client.Create().AES(bits, usage).Build()
	if err != nil {
		return "", fmt.Errorf("kmip: %w", err)
	}
	reply, err := call[*payloads.CreateResponsePayload](ctx, s, "", request)
	if err != nil {
		return "", err
	}
	return reply.UniqueIdentifier, nil
}

// CreateRSA makes an RSA key pair of this many bits, which may be used to sign and verify.
func (s *Session) CreateRSA(ctx context.Context, bits int) (private, public string, err error) {
	request, err := s.client.CreateKeyPair().RSA(bits, kmip.CryptographicUsageSign, kmip.CryptographicUsageVerify).Build()
	if err != nil {
		return "", "", fmt.Errorf("kmip: %w", err)
	}
	return s.createPair(ctx, request)
}

// CreateP256 makes an elliptic curve key pair on P-256, which may be used to sign and verify.
func (s *Session) CreateP256(ctx context.Context) (private, public string, err error) {
	request, err := s.client.CreateKeyPair().ECDSA(kmip.RecommendedCurveP_256, kmip.CryptographicUsageSign, kmip.CryptographicUsageVerify).Build()
	if err != nil {
		return "", "", fmt.Errorf("kmip: %w", err)
	}
	return s.createPair(ctx, request)
}

func (s *Session) createPair(ctx context.Context, request kmip.OperationPayload) (private, public string, err error) {
	reply, err := call[*payloads.CreateKeyPairResponsePayload](ctx, s, "", request)
	if err != nil {
		return "", "", err
	}
	return reply.PrivateKeyUniqueIdentifier, reply.PublicKeyUniqueIdentifier, nil
}

// Get returns the bytes of a symmetric key. Whoever called clears them after use.
func (s *Session) Get(ctx context.Context, id string) ([]byte, error) {
	reply, err := call[*payloads.GetResponsePayload](ctx, s, id, &payloads.GetRequestPayload{UniqueIdentifier: id, KeyFormatType: kmip.KeyFormatTypeRaw})
	if err != nil {
		return nil, err
	}
	key, ok := reply.Object.(*kmip.SymmetricKey)
	if !ok {
		return nil, fmt.Errorf("%w: %s is not a symmetric key", keys.ErrUnusable, id)
	}
	material, err := key.KeyMaterial()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", keys.ErrUnusable, id, err)
	}
	return material, nil
}

// GetWrapped returns a symmetric key, wrapped by another key with AES key wrap (RFC 3394).
func (s *Session) GetWrapped(ctx context.Context, id, wrapping string) ([]byte, error) {
	specification := kmip.KeyWrappingSpecification{
		WrappingMethod: kmip.WrappingMethodEncrypt,
		EncryptionKeyInformation: &kmip.EncryptionKeyInformation{
			UniqueIdentifier:        wrapping,
			CryptographicParameters: &kmip.CryptographicParameters{BlockCipherMode: kmip.BlockCipherModeNISTKeyWrap},
		},
	}
	if s.Version() != kmip.V1_0 {
		specification.EncodingOption = kmip.EncodingOptionNoEncoding
	}
	reply, err := call[*payloads.GetResponsePayload](ctx, s, id, &payloads.GetRequestPayload{
		UniqueIdentifier: id, KeyFormatType: kmip.KeyFormatTypeRaw, KeyWrappingSpecification: &specification,
	})
	if err != nil {
		return nil, err
	}
	key, ok := reply.Object.(*kmip.SymmetricKey)
	if !ok || key.KeyBlock.KeyWrappingData == nil || key.KeyBlock.KeyValue == nil {
		return nil, fmt.Errorf("%w: %s: the server did not wrap the key", keys.ErrUnusable, id)
	}
	if wrapped := key.KeyBlock.KeyValue.Wrapped; wrapped != nil {
		return *wrapped, nil
	}
	return key.KeyBlock.GetBytes() // without encoding, the wrapped bytes stand where the key would
}

// Destroy destroys a key. A key that is active is revoked first.
func (s *Session) Destroy(ctx context.Context, id string) error {
	destroy := func() error {
		_, err := call[*payloads.DestroyResponsePayload](ctx, s, id, &payloads.DestroyRequestPayload{UniqueIdentifier: id})
		return err
	}
	if destroy() == nil {
		return nil
	}
	if _, err := call[*payloads.RevokeResponsePayload](ctx, s, id, &payloads.RevokeRequestPayload{
		UniqueIdentifier: id, RevocationReason: kmip.RevocationReason{RevocationReasonCode: kmip.RevocationReasonCodeCessationOfOperation},
	}); err != nil {
		return err
	}
	return destroy()
}
