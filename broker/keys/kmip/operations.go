// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"context"
	"fmt"

	"github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/payloads"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

const wrappingUsage = kmip.CryptographicUsageWrapKey | kmip.CryptographicUsageUnwrapKey

const symmetricUsage = kmip.CryptographicUsageEncrypt | kmip.CryptographicUsageDecrypt

// CreateAES makes an AES key of this many bits, which may be used to encrypt and decrypt. It
// returns the identifier of the key.
func (s *Session) CreateAES(ctx context.Context, bits int) (id string, err error) {
	return s.createAES(ctx, "", bits, symmetricUsage)
}

// CreateWrappingAES makes an AES key of this many bits, which may be used to wrap and unwrap
// other keys, and activates it.
func (s *Session) CreateWrappingAES(ctx context.Context, bits int) (id string, err error) {
	if id, err = s.createAES(ctx, "", bits, wrappingUsage); err != nil {
		return "", err
	}
	return id, s.activate(ctx, id)
}

// createNamedAES makes an AES key of this many bits with an attribute Name, which may be used to
// encrypt, decrypt, wrap and unwrap, and activates it.
func (s *Session) createNamedAES(ctx context.Context, name string, bits int) (id string, err error) {
	if id, err = s.createAES(ctx, name, bits, symmetricUsage|wrappingUsage); err != nil {
		return "", err
	}
	return id, s.activate(ctx, id)
}

func attribute(name kmip.AttributeName, value any) kmip.Attribute {
	return kmip.Attribute{AttributeName: name, AttributeValue: value}
}

func nameAttribute(name string) kmip.Attribute {
	return attribute(kmip.AttributeNameName, kmip.Name{NameValue: name, NameType: kmip.NameTypeUninterpretedTextString})
}

// activate puts a key into the state Active.
func (s *Session) activate(ctx context.Context, id string) error {
	_, err := call[*payloads.ActivateResponsePayload](ctx, s, id, &payloads.ActivateRequestPayload{UniqueIdentifier: id})
	return err
}

func (s *Session) createAES(ctx context.Context, name string, bits int, usage kmip.CryptographicUsageMask) (string, error) {
	attributes := []kmip.Attribute{
		attribute(kmip.AttributeNameCryptographicAlgorithm, kmip.CryptographicAlgorithmAES),
		attribute(kmip.AttributeNameCryptographicLength, int32(bits)), //nolint:gosec // the server checks the size of the key
		attribute(kmip.AttributeNameCryptographicUsageMask, usage),
	}
	if name != "" {
		attributes = append(attributes, nameAttribute(name))
	}
	reply, err := call[*payloads.CreateResponsePayload](ctx, s, "", &payloads.CreateRequestPayload{
		ObjectType: kmip.ObjectTypeSymmetricKey, TemplateAttribute: kmip.TemplateAttribute{Attribute: attributes},
	})
	if err != nil {
		return "", err
	}
	return reply.UniqueIdentifier, nil
}

// CreateRSA makes an RSA key pair of this many bits, which may be used to sign and verify.
func (s *Session) CreateRSA(ctx context.Context, bits int) (private, public string, err error) {
	return s.createPair(ctx, attribute(kmip.AttributeNameCryptographicAlgorithm, kmip.CryptographicAlgorithmRSA),
		attribute(kmip.AttributeNameCryptographicLength, int32(bits))) //nolint:gosec // the server checks the size of the key
}

// CreateP256 makes an elliptic curve key pair on P-256, which may be used to sign and verify.
func (s *Session) CreateP256(ctx context.Context) (private, public string, err error) {
	curve := kmip.RecommendedCurveP_256
	return s.createPair(ctx, attribute(kmip.AttributeNameCryptographicAlgorithm, kmip.CryptographicAlgorithmECDSA),
		attribute(kmip.AttributeNameCryptographicLength, curve.Bitlen()),
		attribute(kmip.AttributeNameCryptographicDomainParameters, kmip.CryptographicDomainParameters{RecommendedCurve: curve}))
}

// createPair makes a key pair with these attributes.
func (s *Session) createPair(ctx context.Context, common ...kmip.Attribute) (private, public string, err error) {
	usage := func(mask kmip.CryptographicUsageMask) *kmip.TemplateAttribute {
		return &kmip.TemplateAttribute{Attribute: []kmip.Attribute{attribute(kmip.AttributeNameCryptographicUsageMask, mask)}}
	}
	reply, err := call[*payloads.CreateKeyPairResponsePayload](ctx, s, "", &payloads.CreateKeyPairRequestPayload{
		CommonTemplateAttribute:     &kmip.TemplateAttribute{Attribute: common},
		PrivateKeyTemplateAttribute: usage(kmip.CryptographicUsageSign),
		PublicKeyTemplateAttribute:  usage(kmip.CryptographicUsageVerify),
	})
	if err != nil {
		return "", "", err
	}
	return reply.PrivateKeyUniqueIdentifier, reply.PublicKeyUniqueIdentifier, nil
}

// Get returns the bytes of a symmetric key. The caller clears them after use.
func (s *Session) Get(ctx context.Context, id string) ([]byte, error) {
	items, err := s.batch(ctx, id, getRaw(id))
	if err != nil {
		return nil, err
	}
	return s.materialOf(id, &items[0])
}

// getRaw is the request for the bytes of a symmetric key. Without an identifier, it is for the
// key that was found before in the same message.
func getRaw(id string) *payloads.GetRequestPayload {
	return &payloads.GetRequestPayload{UniqueIdentifier: id, KeyFormatType: kmip.KeyFormatTypeRaw}
}

// materialOf returns the bytes of a symmetric key from a reply. The caller clears them after use.
func (s *Session) materialOf(id string, item *kmip.ResponseBatchItem) (material []byte, err error) {
	reply, err := replyOf[*payloads.GetResponsePayload](s, "Get "+id, item)
	if err != nil {
		return nil, err
	}
	key, ok := reply.Object.(*kmip.SymmetricKey)
	if !ok {
		forget(reply.Object)
		return nil, fmt.Errorf("%w: %s is not a symmetric key", keys.ErrUnusable, id)
	}
	err = guarded(func() (err error) {
		material, err = key.KeyMaterial()
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", keys.ErrUnusable, id, err)
	case id == "" || reply.UniqueIdentifier != id:
		clear(material)
		return nil, fmt.Errorf("%w: Get %s at %s: found another key", keys.ErrUnavailable, id, s.address)
	}
	return material, nil
}

// forget clears the bytes of an object that is not needed.
func forget(object kmip.Object) {
	var block *kmip.KeyBlock
	switch object := object.(type) {
	case *kmip.PrivateKey:
		block = &object.KeyBlock
	case *kmip.SecretData:
		block = &object.KeyBlock
	case *kmip.SplitKey:
		block = &object.KeyBlock
	case *kmip.PGPKey:
		block = &object.KeyBlock
	case *kmip.OpaqueObject:
		clear(object.OpaqueDataValue)
	}
	if block != nil && block.KeyValue != nil && block.KeyValue.Plain != nil && block.KeyValue.Plain.KeyMaterial.Bytes != nil {
		clear(*block.KeyValue.Plain.KeyMaterial.Bytes)
	}
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
		UniqueIdentifier: id, KeyWrappingSpecification: &specification, // some servers wrap a key in its own format only
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
