// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"crypto/x509"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// issuer returns the issuer of a certificate. Its key and certificate are in the request,
// or the broker has them.
func (h *Handlers) issuer(c *Call, policy *profile.CertificatePolicy, request certificateRequest) (engine.Issuer, error) {
	name := request.GetProfile()
	var certificate *x509.Certificate
	if request.GetCaCert() != "" {
		var err error
		if certificate, err = engine.ParseCertificate("caCert", []byte(request.GetCaCert())); err != nil {
			return engine.Issuer{}, h.engineError(c, name, err)
		}
	}
	byReference := policy.Keys().ByReference()
	switch {
	case byReference && len(c.PrivateKey) > 0:
		return engine.Issuer{}, requests.Refused(codes.InvalidArgument, c.Operation, name, "caPrivateKey is not empty, expected none: the profile lists the keys that may sign in KeyIds, and the broker has them")
	case byReference:
		return h.issuerOfBroker(c, name, policy, certificate)
	case len(c.PrivateKey) == 0:
		return engine.Issuer{}, requests.Refused(codes.InvalidArgument, c.Operation, name, "caPrivateKey is empty, expected the issuer's private key in PEM, because the profile lists no keys in KeyIds")
	case certificate == nil:
		return engine.Issuer{}, requests.Refused(codes.InvalidArgument, c.Operation, name, "caCert is empty, expected the issuer's certificate in PEM")
	}
	return issuerOfRequest(c, name, policy, c.PrivateKey, certificate)
}

// issuerOfRequest returns the issuer whose private key is in a request.
//
// It parses the key for each request. A cache of parsed keys would save about a tenth of the time
// of a certificate (BenchmarkCertificate), but private keys of clients would stay in memory
// longer than they are used.
func issuerOfRequest(c *Call, name string, policy *profile.CertificatePolicy, text []byte, certificate *x509.Certificate) (engine.Issuer, error) {
	largest := policy.IssuerKeys().LargestGivenRSA()
	if err := keys.CheckRSASize(certificate.PublicKey, largest); err != nil {
		return engine.Issuer{}, requests.Refused(codes.InvalidArgument, c.Operation, name, "caCert has a key that %v", err)
	}
	key, err := keys.ParsePrivateKey(text, largest)
	if err != nil {
		return engine.Issuer{}, requests.Refused(codes.InvalidArgument, c.Operation, name, "caPrivateKey %v", err)
	}
	return engine.Issuer{Key: key, Certificate: certificate}, nil
}

// issuerOfBroker returns the issuer whose key is one of the keys that the profile lists.
// Requests have no field for the id of a key, so given, the certificate in the request,
// selects the key. given may be nil if the profile lists one key.
//
// The issuer's certificate is the certificate that the broker has with the key, not the
// certificate of the request. A caller who has the public key can make other certificates for it,
// with another name, another end or without name constraints.
func (h *Handlers) issuerOfBroker(c *Call, name string, policy *profile.CertificatePolicy, given *x509.Certificate) (engine.Issuer, error) {
	ids := policy.KeyIDs()
	if len(ids) > 1 && given == nil {
		return engine.Issuer{}, requests.Refused(codes.InvalidArgument, c.Operation, name, "caCert is empty, expected the issuer's certificate in PEM, because the profile lists %d keys in KeyIds and the certificate selects one of them", len(ids))
	}
	if err := checkManager(c, name, policy.Keys()); err != nil {
		return engine.Issuer{}, err
	}
	if h.Keys == nil {
		return engine.Issuer{}, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the profile names the issuer's key in KeyIds, but this broker was given no keys; start it with --keys-dir")
	}
	find := func(id string) (engine.Issuer, error) {
		return h.issuerByID(c, name, policy.Keys(), id)
	}
	if len(ids) == 1 {
		issuer, err := find(ids[0])
		if err == nil && given != nil && !given.Equal(issuer.Certificate) {
			return engine.Issuer{}, requests.Refused(codes.InvalidArgument, c.Operation, name, "caCert is not the certificate beside the key %q, expected that certificate or none", ids[0])
		}
		return issuer, err
	}
	// A missing or unusable key does not stop the search, because another key of the list may
	// match. Any other error stops the search, because the key that failed may be the selected
	// one.
	for _, id := range ids {
		issuer, err := find(id)
		switch code := status.Code(err); {
		case err == nil:
			if given.Equal(issuer.Certificate) {
				return issuer, nil
			}
		case code != codes.NotFound && code != codes.FailedPrecondition:
			return engine.Issuer{}, err
		}
	}
	return engine.Issuer{}, requests.Refused(codes.InvalidArgument, c.Operation, name, "caCert is not one of the certificates beside the %d keys that the profile lists in KeyIds and the broker has", len(ids))
}

// issuerByID returns a key of the broker with its certificate.
func (h *Handlers) issuerByID(c *Call, name string, policy *keyrules.Policy, id string) (engine.Issuer, error) {
	key, err := h.key(c, name, policy, KeySource{ByID: true, ID: id})
	switch {
	case err != nil:
		return engine.Issuer{}, err
	case !key.Signs():
		return engine.Issuer{}, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q has no private key, expected one that signs", id)
	case len(key.Certificates()) == 0:
		return engine.Issuer{}, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q has no certificate, expected the issuer's certificate beside the key in the key directory", id)
	}
	return engine.Issuer{KeyID: id, Key: key.Signer(c.contextOf(key)), Certificate: key.Certificates()[0]}, nil
}
