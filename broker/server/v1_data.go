// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func keySourceV1(field string, k *v1.KeySource) keySource {
	switch k := k.GetSource().(type) {
	case *v1.KeySource_KeyId:
		return keySource{field: field, byID: true, id: k.KeyId}
	case *v1.KeySource_RawKey:
		return keySource{field: field, byValue: true, raw: k.RawKey}
	default:
		return keySource{field: field}
	}
}

func signKeySourceV1(k *v1.SignKeySource) []keySource {
	switch k := k.GetSource().(type) {
	case *v1.SignKeySource_Single:
		return []keySource{keySourceV1("keySource.single", k.Single)}
	case *v1.SignKeySource_ComponentKeys:
		var sources []keySource
		for i, key := range k.ComponentKeys.GetKeys() {
			sources = append(sources, keySourceV1(fmt.Sprintf("keySource.componentKeys.keys[%d]", i), key))
		}
		return sources
	default:
		return nil
	}
}

func signatureFormatV1(op engine.Operation, f v1.SignatureFormat) (signatureFormat, error) {
	if f == v1.SignatureFormat_SIGNATURE_FORMAT_UNSPECIFIED {
		return signatureFormat{}, nil
	}
	if _, known := v1.SignatureFormat_name[int32(f)]; !known {
		return signatureFormat{}, invalid(op, "signatureFormat", "is %d, expected 0 (that of the profile), 1 (RAW), 2 (DER), 3 (PEM) or 4 (CMS)", f)
	}
	return signatureFormat{profile.SignatureFormat(f - v1.SignatureFormat_SIGNATURE_FORMAT_RAW), true}, nil
}

func (s *Server) encryptDataV1(c *call, request *v1.EncryptDataRequest) (*v1.EncryptDataResponse, error) {
	if err := checkMetadata(c.op, request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
		return nil, err
	}
	given := request.GetEncryptMetadata()
	source := keySourceV1("keySource", request.GetKeySource())
	sealed, algorithm, err := s.encryptData(c, request.GetProfile(), source, given.GetNonce(), request.GetPlaintext(), given.GetAad())
	if err != nil {
		return nil, err
	}
	// One allocation for all of it.
	made := &struct {
		reply      v1.EncryptDataResponse
		cipher     v1.CipherMetadata
		descriptor v1.CryptoDescriptor
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

func (s *Server) decryptDataV1(c *call, request *v1.DecryptDataRequest) (*v1.DecryptDataResponse, error) {
	if err := checkMetadata(c.op, request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
		return nil, err
	}
	given := request.GetDecryptMetadata()
	sealed := engine.Sealed{Nonce: given.GetNonce(), Ciphertext: request.GetCiphertext(), Tag: given.GetTag()}
	plaintext, err := s.decryptData(c, request.GetProfile(), keySourceV1("keySource", request.GetKeySource()), sealed, given.GetAad())
	if err != nil {
		return nil, err
	}
	return &v1.DecryptDataResponse{Plaintext: plaintext}, nil
}

func (s *Server) signDataV1(c *call, request *v1.SignDataRequest) (*v1.SignDataResponse, error) {
	if err := checkMetadata(c.op, request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
		return nil, err
	}
	format, err := signatureFormatV1(c.op, request.GetSignatureFormat())
	if err != nil {
		return nil, err
	}
	signature, algorithm, err := s.signData(c, request.GetProfile(), signKeySourceV1(request.GetKeySource()), format, request.GetInput())
	if err != nil {
		return nil, err
	}
	return &v1.SignDataResponse{
		Signature: signature,
		Descriptor_: &v1.CryptoDescriptor{
			Profile: request.GetProfile(), Operation: c.op.String(), Algorithm: algorithm,
		},
	}, nil
}

func (s *Server) verifyDataV1(c *call, request *v1.VerifyDataRequest) (*v1.VerifyDataResponse, error) {
	if err := checkMetadata(c.op, request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
		return nil, err
	}
	format, err := signatureFormatV1(c.op, request.GetSignatureFormat())
	if err != nil {
		return nil, err
	}
	valid, err := s.verifyData(c, request.GetProfile(), signKeySourceV1(request.GetKeySource()), format, request.GetInput(), request.GetSignature())
	if err != nil {
		return nil, err
	}
	return &v1.VerifyDataResponse{Valid: valid}, nil
}
