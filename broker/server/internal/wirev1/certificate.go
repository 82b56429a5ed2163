// SPDX-License-Identifier: Apache-2.0

package wirev1

import (
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// SignCertificate serves the method of the same name.
func (a Adapter) SignCertificate(c *handlers.Call, request *v1.SignCertificateRequest) (*v1.SignCertificateResponse, error) {
	inPEM := false
	switch format := request.GetOutputFormat(); format {
	case v1.SignOutputFormat_SIGN_OUTPUT_FORMAT_UNSPECIFIED, v1.SignOutputFormat_SIGN_OUTPUT_FORMAT_DER:
	case v1.SignOutputFormat_SIGN_OUTPUT_FORMAT_PEM:
		inPEM = true
	default:
		return nil, requests.Invalid(c.Operation, "outputFormat", "is %d, expected 0 or 1 (DER) or 2 (PEM)", format)
	}
	der, algorithm, err := a.IssueCertificate(c, request, request.ValidNotBefore, request.ValidNotAfter)
	if err != nil {
		return nil, err
	}
	reply := &v1.SignCertificateResponse{Descriptor_: Descriptor(c, request.GetProfile(), algorithm)}
	if inPEM {
		reply.SignedCertificate = &v1.SignCertificateResponse_Pem{Pem: handlers.CertificatePEM(der)}
	} else {
		reply.SignedCertificate = &v1.SignCertificateResponse_Der{Der: der}
	}
	return reply, nil
}
