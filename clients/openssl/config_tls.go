// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// The fields of tls.Config that FromTLS takes over.
var mappedFields = []string{"RootCAs", "Certificates", "ServerName", "NextProtos", "MinVersion", "MaxVersion", "CipherSuites", "CurvePreferences"}

// FromTLS returns the configuration that means the same as a configuration of crypto/tls. The field
// RootCAs does not show its certificates, so roots has them as PEM; both have to be equal, or both
// empty. Each field that is set and means nothing to OpenSSL is an error, unknown ones of later
// versions of Go too: callbacks, session caches, InsecureSkipVerify, Renegotiation, and others.
func FromTLS(config *tls.Config, roots []byte) (Config, error) {
	value := reflect.ValueOf(config).Elem()
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if field.IsExported() && !value.Field(i).IsZero() && !slices.Contains(mappedFields, field.Name) {
			return Config{}, fmt.Errorf("openssl: tls.Config: found the field %s, which cannot be used with OpenSSL", field.Name)
		}
	}
	mapped := Config{
		RootCAs: roots, ServerName: config.ServerName, NextProtos: config.NextProtos, MinVersion: config.MinVersion,
		MaxVersion: config.MaxVersion, CipherSuites: config.CipherSuites, CurvePreferences: config.CurvePreferences,
	}
	if (config.RootCAs == nil) != (len(roots) == 0) {
		return Config{}, errors.New("openssl: found one of tls.Config.RootCAs and roots, expected both or none")
	}
	if config.RootCAs != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(roots) || !pool.Equal(config.RootCAs) {
			return Config{}, errors.New("openssl: tls.Config.RootCAs and roots have other certificates, expected the same")
		}
	}
	switch len(config.Certificates) {
	case 0:
		return mapped, nil
	case 1:
		return mapped, mapCertificate(&config.Certificates[0], &mapped)
	default:
		return Config{}, fmt.Errorf("openssl: tls.Config.Certificates: found %d, expected at most one", len(config.Certificates))
	}
}

func mapCertificate(certificate *tls.Certificate, mapped *Config) error {
	for field, set := range map[string]bool{
		"OCSPStaple":                   len(certificate.OCSPStaple) > 0,
		"SignedCertificateTimestamps":  len(certificate.SignedCertificateTimestamps) > 0,
		"SupportedSignatureAlgorithms": len(certificate.SupportedSignatureAlgorithms) > 0,
	} {
		if set {
			return fmt.Errorf("openssl: tls.Config.Certificates: found the field %s, which cannot be used with OpenSSL", field)
		}
	}
	for _, der := range certificate.Certificate {
		mapped.Certificate = append(mapped.Certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		return fmt.Errorf("openssl: tls.Config.Certificates: found a private key of the type %T, expected one that can be marshaled", certificate.PrivateKey)
	}
	defer clear(key)
	mapped.PrivateKey = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	return nil
}
