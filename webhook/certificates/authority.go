// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

// authority is a certificate authority that can sign.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// newAuthority makes an authority that is valid from now on for
// authorityLifetime. Its certificate begins earlier by skew, so that a client
// whose clock is behind accepts it.
func (p purpose) newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of a certificate authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: p.authorityName()},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	certificate, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	return &authority{certificate: certificate, key: key}, nil
}

// made returns the time at which the authority was made.
func (a *authority) made() time.Time {
	return a.certificate.NotBefore.Add(skew)
}

// newLeaf makes a key and a serving certificate for it. The certificate never
// outlives its authority.
func (a *authority) newLeaf(now time.Time, p purpose, dns []string, addresses []net.IP) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of a serving certificate: %w", err)
	}
	expiry := now.Add(p.leafLifetime)
	if expiry.After(a.certificate.NotAfter) {
		expiry = a.certificate.NotAfter
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: p.name},
		NotBefore:   now.Add(-skew),
		NotAfter:    expiry,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    dns,
		IPAddresses: addresses,
	}
	certificate, err := sign(template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("sign a serving certificate: %w", err)
	}
	return &tls.Certificate{
		Certificate: [][]byte{certificate.Raw},
		PrivateKey:  key,
		Leaf:        certificate,
	}, nil
}

// sign makes a certificate. crypto/x509 chooses its serial number at random.
func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// parseAuthority is the inverse of encode. Its errors contain no part of the key.
func parseAuthority(certificatePEM, keyPEM []byte) (*authority, error) {
	certificate, err := parseCertificate(certificatePEM)
	if err != nil {
		return nil, err
	}
	if !certificate.IsCA {
		return nil, errors.New("found a certificate that is not of a certificate authority")
	}
	block, _ := pem.Decode(keyPEM)
	if block == nil || block.Type != keyBlock {
		return nil, fmt.Errorf("found no key, expected a PEM block %q", keyBlock)
	}
	// The parser's error could quote a broken key.
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("found a key that cannot be read, expected PKCS #8")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("found a key of type %T, expected ECDSA", parsed)
	}
	if !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, errors.New("found a key that does not belong to the certificate")
	}
	return &authority{certificate: certificate, key: key}, nil
}

// encode returns the certificate and the key in PEM, the key as PKCS #8.
func encode(certificate *x509.Certificate, key crypto.PrivateKey) (certificatePEM, keyPEM []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, errors.New("the key of a certificate cannot be written as PKCS #8")
	}
	return encodeCertificates(certificate), pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

// encodeCertificates returns the certificates in PEM, in the order given.
func encodeCertificates(certificates ...*x509.Certificate) []byte {
	var bundle bytes.Buffer
	for _, certificate := range certificates {
		bundle.Write(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: certificate.Raw}))
	}
	return bundle.Bytes()
}

// parseCertificate reads exactly one certificate.
func parseCertificate(data []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != certificateBlock {
		return nil, fmt.Errorf("found no certificate, expected a PEM block %q", certificateBlock)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("found data after the certificate, expected one certificate and nothing else")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("found a certificate that cannot be read: %w", err)
	}
	return certificate, nil
}

// parseBundle returns the certificates of authorities in a bundle. It skips anything else, such
// as text or a broken block, because others may write to a bundle, and the next write of this
// package replaces the bundle.
func parseBundle(bundle []byte) []*x509.Certificate {
	var found []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificateBlock {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !certificate.IsCA {
			continue
		}
		found = append(found, certificate)
	}
	return found
}
