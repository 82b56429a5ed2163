// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/pem"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// certificateRequest is what the requests of all generations have.
type certificateRequest interface {
	GetProfile() string
	GetCsr() string
	GetCaPrivateKey() string
	GetCaCert() string
	GetSubject() string
	GetCrlDistributionPoints() []string
}

// signCertificate serves SignCertificate for every generation: it returns the
// DER of the certificate and names the algorithm of its signature. The times
// are nil where the request has none.
func (s *Server) signCertificate(c *call, request certificateRequest, notBefore, notAfter *uint64) (der []byte, algorithm string, err error) {
	if err := checkCertificateSizes(c.op, request); err != nil {
		return nil, "", err
	}
	name := request.GetProfile()
	p, err := s.profile(c, name)
	if err != nil {
		return nil, "", err
	}
	policy := p.Certificate()
	if policy == nil {
		return nil, "", refused(codes.FailedPrecondition, c.op, name, "the profile does not offer this operation")
	}
	issuer, err := issuerOf(policy, request)
	if err != nil {
		return nil, "", s.certificateError(c, name, err)
	}
	der, err = engine.IssueCertificate(policy, issuer, engine.CertificateRequest{
		CSR:                   []byte(request.GetCsr()),
		Subject:               request.GetSubject(),
		NotBefore:             notBefore,
		NotAfter:              notAfter,
		CRLDistributionPoints: request.GetCrlDistributionPoints(),
	}, time.Now())
	if err != nil {
		return nil, "", s.certificateError(c, name, err)
	}
	return der, policy.SignatureAlgorithmName(), nil
}

func checkCertificateSizes(op engine.Operation, request certificateRequest) error {
	for _, field := range []struct {
		name          string
		size, largest int
	}{
		{"csr", len(request.GetCsr()), maxPEMSize},
		{"caPrivateKey", len(request.GetCaPrivateKey()), maxPEMSize},
		{"caCert", len(request.GetCaCert()), maxPEMSize},
		{"subject", len(request.GetSubject()), maxSubjectSize},
	} {
		if err := checkSize(op, field.name, field.size, field.largest); err != nil {
			return err
		}
	}
	return nil
}

// issuerOf finds out who signs.
//
// A key that came with a request is parsed anew for each and never kept: to
// remember it would save less than a tenth of the time that a certificate takes,
// and would leave the private keys of clients in memory for longer than they are
// used. A key by reference is parsed once anyway.
func issuerOf(policy *profile.CertificatePolicy, request certificateRequest) (engine.Issuer, error) {
	if request.GetCaPrivateKey() == "" {
		return engine.Issuer{}, &engine.InputError{Field: "caPrivateKey", Problem: "is empty, expected the issuer's private key in PEM"}
	}
	if policy.Keys().Restricts() {
		return engine.Issuer{}, &engine.InputError{Field: "caPrivateKey", Problem: "is not empty, expected none: the profile lists the keys that may sign in KeyIds, and the broker has them"}
	}
	certificate, err := engine.ParseCertificate("caCert", []byte(request.GetCaCert()))
	if err != nil {
		return engine.Issuer{}, err
	}
	text := []byte(request.GetCaPrivateKey())
	defer clear(text)
	key, err := keys.ParsePrivateKey(text)
	if err != nil {
		return engine.Issuer{}, &engine.InputError{Field: "caPrivateKey", Problem: err.Error()}
	}
	return engine.Issuer{Key: key, Certificate: certificate}, nil
}

// certificateError turns an error of the engine into one of the wire.
func (s *Server) certificateError(c *call, name string, err error) error {
	var input *engine.InputError
	var precondition *engine.PreconditionError
	switch {
	case errors.As(err, &input):
		return refused(codes.InvalidArgument, c.op, name, "%s", input)
	case errors.As(err, &precondition):
		return refused(codes.FailedPrecondition, c.op, name, "%s", precondition)
	default:
		s.logger.LogAttrs(c.ctx, slog.LevelError, "a certificate could not be signed", slog.String("profile", name), slog.Any("error", err))
		return refused(codes.Internal, c.op, name, "the certificate could not be signed; the broker's log says why")
	}
}

// certificatePEM is the text form of a certificate (RFC 7468).
func certificatePEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
