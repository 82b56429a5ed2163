// SPDX-License-Identifier: Apache-2.0

package wirev1

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

func keySource(field string, k *v1.KeySource) handlers.KeySource {
	switch k := k.GetSource().(type) {
	case *v1.KeySource_KeyId:
		return handlers.KeySource{Field: field, ByID: true, ID: k.KeyId}
	case *v1.KeySource_RawKey:
		return handlers.KeySource{Field: field, ByValue: true, Raw: k.RawKey}
	default:
		return handlers.KeySource{Field: field}
	}
}

func signKeySources(k *v1.SignKeySource) []handlers.KeySource {
	switch k := k.GetSource().(type) {
	case *v1.SignKeySource_Single:
		return []handlers.KeySource{keySource("keySource.single", k.Single)}
	case *v1.SignKeySource_ComponentKeys:
		var sources []handlers.KeySource
		for i, key := range k.ComponentKeys.GetKeys() {
			sources = append(sources, keySource(fmt.Sprintf("keySource.componentKeys.keys[%d]", i), key))
		}
		return sources
	default:
		return nil
	}
}

func signatureFormat(op profile.Operation, f v1.SignatureFormat) (handlers.SignatureFormat, error) {
	if f == v1.SignatureFormat_SIGNATURE_FORMAT_UNSPECIFIED {
		return handlers.SignatureFormat{}, nil
	}
	if _, known := v1.SignatureFormat_name[int32(f)]; !known {
		return handlers.SignatureFormat{}, requests.Invalid(op, "signatureFormat", "is %d, expected 0 (the format of the profile), 1 (RAW), 2 (DER), 3 (PEM) or 4 (CMS)", f)
	}
	return handlers.RequestedFormat(profile.SignatureFormat(f - v1.SignatureFormat_SIGNATURE_FORMAT_RAW)), nil
}

// EncryptData serves the method of the same name.
func (a Adapter) EncryptData(c *handlers.Call, request *v1.EncryptDataRequest) (*v1.EncryptDataResponse, error) {
	given := request.GetEncryptMetadata()
	source := keySource("keySource", request.GetKeySource())
	sealed, algorithm, err := a.Encrypt(c, request.GetProfile(), source, given.GetNonce(), request.GetPlaintext(), given.GetAad())
	if err != nil {
		return nil, err
	}
	// The reply and the messages in it are one allocation, which saves time.
	made := &struct {
		reply      v1.EncryptDataResponse
		cipher     v1.CipherMetadata
		descriptor v1.CryptoDescriptor
	}{}
	made.reply.Ciphertext, made.cipher.Nonce, made.cipher.Tag = sealed.Ciphertext, sealed.Nonce, sealed.Tag
	made.descriptor.Profile, made.descriptor.Operation, made.descriptor.Algorithm = request.GetProfile(), c.Operation.String(), algorithm
	made.reply.CipherMetadata, made.reply.Descriptor_ = &made.cipher, &made.descriptor
	if given != nil {
		made.cipher.Aad = given.Aad
	}
	if source.ByID {
		made.cipher.KeyId = proto.String(c.KeyID)
	}
	return &made.reply, nil
}

// DecryptData serves the method of the same name.
func (a Adapter) DecryptData(c *handlers.Call, request *v1.DecryptDataRequest) (*v1.DecryptDataResponse, error) {
	given := request.GetDecryptMetadata()
	sealed := engine.Sealed{Nonce: given.GetNonce(), Ciphertext: request.GetCiphertext(), Tag: given.GetTag()}
	plaintext, err := a.Decrypt(c, request.GetProfile(), keySource("keySource", request.GetKeySource()), sealed, given.GetAad())
	if err != nil {
		return nil, err
	}
	return &v1.DecryptDataResponse{Plaintext: plaintext}, nil
}

// SignData serves the method of the same name.
func (a Adapter) SignData(c *handlers.Call, request *v1.SignDataRequest) (*v1.SignDataResponse, error) {
	format, err := signatureFormat(c.Operation, request.GetSignatureFormat())
	if err != nil {
		return nil, err
	}
	signature, algorithm, err := a.Sign(c, request.GetProfile(), signKeySources(request.GetKeySource()), format, request.GetInput())
	if err != nil {
		return nil, err
	}
	return &v1.SignDataResponse{Signature: signature, Descriptor_: Descriptor(c, request.GetProfile(), algorithm)}, nil
}

// VerifyData serves the method of the same name.
func (a Adapter) VerifyData(c *handlers.Call, request *v1.VerifyDataRequest) (*v1.VerifyDataResponse, error) {
	format, err := signatureFormat(c.Operation, request.GetSignatureFormat())
	if err != nil {
		return nil, err
	}
	valid, err := a.Verify(c, request.GetProfile(), signKeySources(request.GetKeySource()), format, request.GetInput(), request.GetSignature())
	if err != nil {
		return nil, err
	}
	return &v1.VerifyDataResponse{Valid: valid}, nil
}
