// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"encoding/pem"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// certificateRequest has the fields that the requests of all generations have.
type certificateRequest interface {
	GetProfile() string
	GetCsr() string
	GetCaCert() string
	GetSubject() string
	GetCrlDistributionPoints() []string
}

// IssueCertificate serves SignCertificate for every generation. It returns the certificate in DER
// and the name of the algorithm of its signature. notBefore and notAfter are in seconds since
// 1970, or nil if the request does not have them.
func (h *Handlers) IssueCertificate(c *Call, request certificateRequest, notBefore, notAfter *uint64) (der []byte, algorithm string, err error) {
	if err := checkCertificateSizes(c, request); err != nil {
		return nil, "", err
	}
	name := request.GetProfile()
	policy, err := offered(h, c, name, (*profile.Compiled).Certificate)
	if err != nil {
		return nil, "", err
	}
	issuer, err := h.issuer(c, policy, request)
	if err != nil {
		return nil, "", err
	}
	if issuer.KeyID == "" {
		defer keys.Forget(issuer.Key)
	}
	issued, err := engine.Issue(policy, issuer, engine.CertificateRequest{
		CSR:                   []byte(request.GetCsr()),
		Subject:               request.GetSubject(),
		NotBefore:             notBefore,
		NotAfter:              notAfter,
		CRLDistributionPoints: request.GetCrlDistributionPoints(),
	}, time.Now())
	if err != nil {
		return nil, "", h.engineError(c, name, err)
	}
	c.use.Algorithm, c.use.SHA1Request = policy.Algorithm(), issued.SHA1Request
	c.use.Keys = [2]profile.UsedKey{engine.UsedKey(issuer.Key.Public(), issuer.KeyID), issued.Subject}
	return issued.DER, policy.SignatureAlgorithmName(), nil
}

func checkCertificateSizes(c *Call, request certificateRequest) error {
	for _, field := range []struct {
		name          string
		size, largest int
	}{
		{"csr", len(request.GetCsr()), requests.MaxPEMSize},
		{"caPrivateKey", len(c.PrivateKey), requests.MaxPEMSize},
		{"caCert", len(request.GetCaCert()), requests.MaxPEMSize},
		{"subject", len(request.GetSubject()), requests.MaxSubjectSize},
	} {
		if err := requests.CheckSize(c.Operation, field.name, field.size, field.largest); err != nil {
			return err
		}
	}
	return nil
}

// CertificatePEM returns the text form of a certificate (RFC 7468).
func CertificatePEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
