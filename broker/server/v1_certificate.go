// SPDX-License-Identifier: Apache-2.0

package server

import v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"

func (s *Server) signCertificateV1(c *call, request *v1.SignCertificateRequest) (*v1.SignCertificateResponse, error) {
	if err := checkMetadata(c.op, request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
		return nil, err
	}
	inPEM := false
	switch format := request.GetOutputFormat(); format {
	case v1.SignOutputFormat_SIGN_OUTPUT_FORMAT_UNSPECIFIED, v1.SignOutputFormat_SIGN_OUTPUT_FORMAT_DER:
	case v1.SignOutputFormat_SIGN_OUTPUT_FORMAT_PEM:
		inPEM = true
	default:
		return nil, invalid(c.op, "outputFormat", "is %d, expected 0 or 1 (DER) or 2 (PEM)", format)
	}
	der, algorithm, err := s.signCertificate(c, request, request.ValidNotBefore, request.ValidNotAfter)
	if err != nil {
		return nil, err
	}
	reply := &v1.SignCertificateResponse{
		Descriptor_: &v1.CryptoDescriptor{
			Profile: request.GetProfile(), Operation: c.op.String(), Algorithm: algorithm,
		},
	}
	if inPEM {
		reply.SignedCertificate = &v1.SignCertificateResponse_Pem{Pem: certificatePEM(der)}
	} else {
		reply.SignedCertificate = &v1.SignCertificateResponse_Der{Der: der}
	}
	return reply, nil
}
