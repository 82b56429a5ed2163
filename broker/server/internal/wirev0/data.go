// SPDX-License-Identifier: Apache-2.0

package wirev0

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

func keySource(field string, k *v0.KeySource) handlers.KeySource {
	switch k := k.GetSource().(type) {
	case *v0.KeySource_KeyId:
		return handlers.KeySource{Field: field, ByID: true, ID: k.KeyId}
	case *v0.KeySource_RawKey:
		return handlers.KeySource{Field: field, ByValue: true, Raw: k.RawKey}
	default:
		return handlers.KeySource{Field: field}
	}
}

func signKeySources(k *v0.SignKeySource) []handlers.KeySource {
	switch k := k.GetSource().(type) {
	case *v0.SignKeySource_Single:
		return []handlers.KeySource{keySource("keySource.single", k.Single)}
	case *v0.SignKeySource_ComponentKeys:
		var sources []handlers.KeySource
		for i, key := range k.ComponentKeys.GetKeys() {
			sources = append(sources, keySource(fmt.Sprintf("keySource.componentKeys.keys[%d]", i), key))
		}
		return sources
	default:
		return nil
	}
}

func signatureFormat(op profile.Operation, f *v0.SignatureFormat) (handlers.SignatureFormat, error) {
	if f == nil {
		return handlers.SignatureFormat{}, nil
	}
	if _, known := v0.SignatureFormat_name[int32(*f)]; !known {
		return handlers.SignatureFormat{}, requests.Invalid(op, "signatureFormat", "is %d, expected 0 (RAW), 1 (DER), 2 (PEM) or 3 (CMS)", *f)
	}
	return handlers.RequestedFormat(profile.SignatureFormat(*f)), nil
}

func (a adapter) encryptData(c *handlers.Call, request *v0.EncryptDataRequest) (*v0.EncryptDataResponse, error) {
	given := request.GetEncryptMetadata()
	source := keySource("keySource", request.GetKeySource())
	sealed, algorithm, err := a.Encrypt(c, request.GetProfile(), source, given.GetNonce(), request.GetPlaintext(), given.GetAad())
	if err != nil {
		return nil, err
	}
	// The reply and the messages in it are one allocation, which saves time.
	made := &struct {
		reply      v0.EncryptDataResponse
		cipher     v0.CipherMetadata
		descriptor v0.CryptoDescriptor
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

func (a adapter) decryptData(c *handlers.Call, request *v0.DecryptDataRequest) (*v0.DecryptDataResponse, error) {
	given := request.GetDecryptMetadata()
	sealed := engine.Sealed{Nonce: given.GetNonce(), Ciphertext: request.GetCiphertext(), Tag: given.GetTag()}
	plaintext, err := a.Decrypt(c, request.GetProfile(), keySource("keySource", request.GetKeySource()), sealed, given.GetAad())
	if err != nil {
		return nil, err
	}
	return &v0.DecryptDataResponse{Plaintext: plaintext}, nil
}

func (a adapter) signData(c *handlers.Call, request *v0.SignDataRequest) (*v0.SignDataResponse, error) {
	format, err := signatureFormat(c.Operation, request.SignatureFormat)
	if err != nil {
		return nil, err
	}
	signature, algorithm, err := a.Sign(c, request.GetProfile(), signKeySources(request.GetKeySource()), format, request.GetInput())
	if err != nil {
		return nil, err
	}
	return &v0.SignDataResponse{Signature: signature, Descriptor_: descriptor(c, request.GetProfile(), algorithm)}, nil
}

func (a adapter) verifyData(c *handlers.Call, request *v0.VerifyDataRequest) (*v0.VerifyDataResponse, error) {
	format, err := signatureFormat(c.Operation, request.SignatureFormat)
	if err != nil {
		return nil, err
	}
	valid, err := a.Verify(c, request.GetProfile(), signKeySources(request.GetKeySource()), format, request.GetInput(), request.GetSignature())
	if err != nil {
		return nil, err
	}
	return &v0.VerifyDataResponse{Valid: valid}, nil
}
