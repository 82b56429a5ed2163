// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/base64"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
)

func (s *Server) signV0(c *call, request *v0.SignRequest) (*v0.SignResponse, error) {
	if err := checkMetadata(c.op, request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
		return nil, err
	}
	der, _, err := s.signCertificate(c, request, request.ValidNotBefore, request.ValidNotAfter)
	if err != nil {
		return nil, err
	}
	return &v0.SignResponse{SignedCertificate: base64.StdEncoding.EncodeToString(der)}, nil
}

func (s *Server) signCertificateV0(c *call, request *v0.SignCertificateRequest) (*v0.SignCertificateResponse, error) {
	if err := checkMetadata(c.op, request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
		return nil, err
	}
	inPEM := request.GetOutputFormat() == v0.SignOutputFormat_SIGN_OUTPUT_FORMAT_PEM
	if !inPEM && request.GetOutputFormat() != v0.SignOutputFormat_SIGN_OUTPUT_FORMAT_DER {
		return nil, invalid(c.op, "outputFormat", "is %d, expected 0 (DER) or 1 (PEM)", request.GetOutputFormat())
	}
	der, algorithm, err := s.signCertificate(c, request, request.ValidNotBefore, request.ValidNotAfter)
	if err != nil {
		return nil, err
	}
	reply := &v0.SignCertificateResponse{
		Descriptor_: &v0.CryptoDescriptor{
			Profile: request.GetProfile(), Operation: c.op.String(), Algorithm: algorithm,
		},
	}
	if inPEM {
		reply.SignedCertificate = &v0.SignCertificateResponse_Pem{Pem: certificatePEM(der)}
	} else {
		reply.SignedCertificate = &v0.SignCertificateResponse_Der{Der: der}
	}
	return reply, nil
}
