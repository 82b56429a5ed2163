// SPDX-License-Identifier: Apache-2.0

package wirev0

import (
	"encoding/base64"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

func (a adapter) sign(c *handlers.Call, request *v0.SignRequest) (*v0.SignResponse, error) {
	der, _, err := a.IssueCertificate(c, request, request.ValidNotBefore, request.ValidNotAfter)
	if err != nil {
		return nil, err
	}
	return &v0.SignResponse{SignedCertificate: base64.StdEncoding.EncodeToString(der)}, nil
}

func (a adapter) signCertificate(c *handlers.Call, request *v0.SignCertificateRequest) (*v0.SignCertificateResponse, error) {
	inPEM := request.GetOutputFormat() == v0.SignOutputFormat_SIGN_OUTPUT_FORMAT_PEM
	if !inPEM && request.GetOutputFormat() != v0.SignOutputFormat_SIGN_OUTPUT_FORMAT_DER {
		return nil, requests.Invalid(c.Operation, "outputFormat", "is %d, expected 0 (DER) or 1 (PEM)", request.GetOutputFormat())
	}
	der, algorithm, err := a.IssueCertificate(c, request, request.ValidNotBefore, request.ValidNotAfter)
	if err != nil {
		return nil, err
	}
	reply := &v0.SignCertificateResponse{Descriptor_: descriptor(c, request.GetProfile(), algorithm)}
	if inPEM {
		reply.SignedCertificate = &v0.SignCertificateResponse_Pem{Pem: handlers.CertificatePEM(der)}
	} else {
		reply.SignedCertificate = &v0.SignCertificateResponse_Der{Der: der}
	}
	return reply, nil
}
