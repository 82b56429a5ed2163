// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func keySourceV0(field string, k *v0.KeySource) keySource {
	switch k := k.GetSource().(type) {
	case *v0.KeySource_KeyId:
		return keySource{field: field, byID: true, id: k.KeyId}
	case *v0.KeySource_RawKey:
		return keySource{field: field, byValue: true, raw: k.RawKey}
	default:
		return keySource{field: field}
	}
}

func signKeySourceV0(k *v0.SignKeySource) []keySource {
	switch k := k.GetSource().(type) {
	case *v0.SignKeySource_Single:
		return []keySource{keySourceV0("keySource.single", k.Single)}
	case *v0.SignKeySource_ComponentKeys:
		var sources []keySource
		for i, key := range k.ComponentKeys.GetKeys() {
			sources = append(sources, keySourceV0(fmt.Sprintf("keySource.componentKeys.keys[%d]", i), key))
		}
		return sources
	default:
		return nil
	}
}

func signatureFormatV0(op engine.Operation, f *v0.SignatureFormat) (signatureFormat, error) {
	if f == nil {
		return signatureFormat{}, nil
	}
	if _, known := v0.SignatureFormat_name[int32(*f)]; !known {
		return signatureFormat{}, invalid(op, "signatureFormat", "is %d, expected 0 (RAW), 1 (DER), 2 (PEM) or 3 (CMS)", *f)
	}
	return signatureFormat{profile.SignatureFormat(*f), true}, nil
}

func (s *Server) encryptDataV0(c *call, request *v0.EncryptDataRequest) (*v0.EncryptDataResponse, error) {
	if err := checkMetadata(c.op, request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
		return nil, err
	}
	given := request.GetEncryptMetadata()
	source := keySourceV0("keySource", request.GetKeySource())
	sealed, algorithm, err := s.encryptData(c, request.GetProfile(), source, given.GetNonce(), request.GetPlaintext(), given.GetAad())
	if err != nil {
		return nil, err
	}
	// One allocation for all of it.
	made := &struct {
		reply      v0.EncryptDataResponse
		cipher     v0.CipherMetadata
		descriptor v0.CryptoDescriptor
	}{}
	made.reply.Ciphertext, made.cipher.Nonce, made.cipher.Tag = sealed.Ciphertext, sealed.Nonce, sealed.Tag
	made.descriptor.Profile, made.descriptor.Operation, made.descriptor.Algorithm = request.GetProfile(), c.op.String(), algorithm
	made.reply.CipherMetadata, made.reply.Descriptor_ = &made.cipher, &made.descriptor
	if given != nil {
		made.cipher.Aad = given.Aad
	}
	if source.byID {
		made.cipher.KeyId = proto.String(source.id)
	}
	return &made.reply, nil
}

func (s *Server) decryptDataV0(c *call, request *v0.DecryptDataRequest) (*v0.DecryptDataResponse, error) {
	if err := checkMetadata(c.op, request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
		return nil, err
	}
	given := request.GetDecryptMetadata()
	sealed := engine.Sealed{Nonce: given.GetNonce(), Ciphertext: request.GetCiphertext(), Tag: given.GetTag()}
	plaintext, err := s.decryptData(c, request.GetProfile(), keySourceV0("keySource", request.GetKeySource()), sealed, given.GetAad())
	if err != nil {
		return nil, err
	}
	return &v0.DecryptDataResponse{Plaintext: plaintext}, nil
}

func (s *Server) signDataV0(c *call, request *v0.SignDataRequest) (*v0.SignDataResponse, error) {
	if err := checkMetadata(c.op, request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
		return nil, err
	}
	format, err := signatureFormatV0(c.op, request.SignatureFormat)
	if err != nil {
		return nil, err
	}
	signature, algorithm, err := s.signData(c, request.GetProfile(), signKeySourceV0(request.GetKeySource()), format, request.GetInput())
	if err != nil {
		return nil, err
	}
	return &v0.SignDataResponse{
		Signature: signature,
		Descriptor_: &v0.CryptoDescriptor{
			Profile: request.GetProfile(), Operation: c.op.String(), Algorithm: algorithm,
		},
	}, nil
}

func (s *Server) verifyDataV0(c *call, request *v0.VerifyDataRequest) (*v0.VerifyDataResponse, error) {
	if err := checkMetadata(c.op, request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
		return nil, err
	}
	format, err := signatureFormatV0(c.op, request.SignatureFormat)
	if err != nil {
		return nil, err
	}
	valid, err := s.verifyData(c, request.GetProfile(), signKeySourceV0(request.GetKeySource()), format, request.GetInput(), request.GetSignature())
	if err != nil {
		return nil, err
	}
	return &v0.VerifyDataResponse{Valid: valid}, nil
}
