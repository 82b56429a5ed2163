// SPDX-License-Identifier: Apache-2.0

package server

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// issuer finds out who signs. Requests have no field for the id of a key, so
// one without a private key means that of the profile:
//
//   - where the profile lists one key, that one;
//   - where it lists several, as while one replaces another, the one that the
//     issuer's certificate of the request belongs to.
//
// Without a certificate in the request, the one beside the key is used.
func (s *Server) issuer(c *call, policy *profile.CertificatePolicy, request certificateRequest) (engine.Issuer, error) {
	name := request.GetProfile()
	issuer := engine.Issuer{OwnCertificate: request.GetCaCert() == ""}
	if !issuer.OwnCertificate {
		var err error
		if issuer.Certificate, err = engine.ParseCertificate("caCert", []byte(request.GetCaCert())); err != nil {
			return engine.Issuer{}, s.engineError(c, name, err)
		}
	}
	ids := policy.KeyIDs()
	switch {
	case request.GetCaPrivateKey() != "" && len(ids) > 0:
		return engine.Issuer{}, refused(codes.InvalidArgument, c.op, name, "caPrivateKey is not empty, expected none: the profile lists the keys that may sign in KeyIds, and the broker has them")
	case request.GetCaPrivateKey() != "":
		return s.issuerOfRequest(c, policy, request, issuer)
	case len(ids) == 0:
		return engine.Issuer{}, refused(codes.InvalidArgument, c.op, name, "caPrivateKey is empty, expected the issuer's private key in PEM, since the profile lists none in KeyIds")
	case len(ids) > 1 && issuer.OwnCertificate:
		return engine.Issuer{}, refused(codes.InvalidArgument, c.op, name, "caCert is empty, expected the issuer's certificate in PEM, since the profile lists %d keys in KeyIds and the certificate tells which of them signs", len(ids))
	}
	if err := checkManager(c, name, policy.Keys()); err != nil {
		return engine.Issuer{}, err
	}
	if s.keys == nil {
		return engine.Issuer{}, refused(codes.FailedPrecondition, c.op, name, "the profile names the issuer's key in KeyIds, but this broker was given no keys; start it with --keys-dir")
	}
	key, err := s.issuerKey(c, name, policy, issuer)
	if err != nil {
		return engine.Issuer{}, err
	}
	issuer.KeyID, issuer.Key = key.ID(), key.Signer()
	if issuer.Key == nil {
		return engine.Issuer{}, refused(codes.FailedPrecondition, c.op, name, "the key %q has no private key, expected one that signs", key.ID())
	}
	if issuer.OwnCertificate {
		if len(key.Certificates()) == 0 {
			return engine.Issuer{}, refused(codes.InvalidArgument, c.op, name, "caCert is empty, expected the issuer's certificate in PEM, since there is none beside the key %q", key.ID())
		}
		issuer.Certificate = key.Certificates()[0]
	}
	return issuer, nil
}

// issuerOfRequest reads the private key that came with a request.
//
// It is parsed anew for each request and never kept: to remember it would save
// about a tenth of the time that a certificate takes (BenchmarkCertificate), and
// would leave the private keys of clients in memory for longer than they are
// used. Who wants that time keeps the key in the broker, where it is parsed once.
func (s *Server) issuerOfRequest(c *call, policy *profile.CertificatePolicy, request certificateRequest, issuer engine.Issuer) (engine.Issuer, error) {
	if issuer.Certificate == nil {
		return engine.Issuer{}, refused(codes.InvalidArgument, c.op, request.GetProfile(), "caCert is empty, expected the issuer's certificate in PEM")
	}
	text := []byte(request.GetCaPrivateKey())
	defer clear(text)
	key, err := keys.ParsePrivateKey(text, policy.IssuerKeys().LargestGivenRSA())
	if err != nil {
		return engine.Issuer{}, refused(codes.InvalidArgument, c.op, request.GetProfile(), "caPrivateKey %v", err)
	}
	issuer.Key, issuer.OwnCertificate = key, false
	return issuer, nil
}

// issuerKey finds the key of the profile that signs.
func (s *Server) issuerKey(c *call, name string, policy *profile.CertificatePolicy, issuer engine.Issuer) (*keys.Key, error) {
	ids := policy.KeyIDs()
	if len(ids) == 1 {
		return s.key(c, name, policy.Keys(), keySource{byID: true, id: ids[0]})
	}
	want, err := keys.NewVerifying("", issuer.Certificate.PublicKey, nil)
	if err != nil {
		return nil, refused(codes.InvalidArgument, c.op, name, "caCert has a public key that is not supported, expected RSA, ECDSA or Ed25519")
	}
	sum, _ := want.SPKISHA256()
	// A key of the list that is not there yet, or not any more, is no reason not
	// to sign with another one. One that cannot be asked for is: it might be it.
	for _, id := range ids {
		key, err := s.key(c, name, policy.Keys(), keySource{byID: true, id: id})
		switch code := status.Code(err); {
		case err == nil:
			if found, ok := key.SPKISHA256(); ok && found == sum {
				return key, nil
			}
		case code != codes.NotFound && code != codes.FailedPrecondition:
			return nil, err
		}
	}
	return nil, refused(codes.InvalidArgument, c.op, name, "caCert belongs to none of the %d keys that the profile lists in KeyIds and the broker has", len(ids))
}
