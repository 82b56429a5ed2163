// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// ErrNoAuthority means that [Issuer.Renew] has not succeeded yet.
var ErrNoAuthority = errors.New("the certificate authority of the key gateway is not known yet")

// clientName is the common name in all certificates of clients. The URI is the name that
// identifies a client.
const clientName = "crypto-broker broker"

// SignClient signs a certificate for a client of the gateways with the current authority. The
// certificate is not valid for servers, and does not outlive the authority. The caller has to
// check that the client may have the name. An error may be [ErrNoAuthority].
func (i *Issuer) SignClient(public crypto.PublicKey, name *url.URL, notBefore, notAfter time.Time) (*x509.Certificate, error) {
	authority := i.signing.Load()
	if authority == nil {
		return nil, ErrNoAuthority
	}
	if notAfter.After(authority.certificate.NotAfter) {
		notAfter = authority.certificate.NotAfter
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: clientName},
		NotBefore:   notBefore,
		NotAfter:    notAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		URIs:        []*url.URL{name},
	}
	certificate, err := sign(template, authority.certificate, public, authority.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of a client: %w", err)
	}
	return certificate, nil
}
