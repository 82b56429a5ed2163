// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// The fields that FromTLS takes over. Leaf needs no conversion, because Certificate has the same content.
var (
	mappedFields      = []string{"RootCAs", "Certificates", "ServerName", "NextProtos", "MinVersion", "MaxVersion", "CipherSuites", "CurvePreferences"}
	certificateFields = []string{"Certificate", "PrivateKey", "Leaf"}
)

// FromTLS returns the configuration that means the same as a configuration of crypto/tls, for which nil is the default. The
// certificates of the field RootCAs cannot be read, so roots has the same certificates as PEM. Both must be equal, or both empty.
// Each field that is set and that OpenSSL cannot honor is an error: callbacks, session caches, InsecureSkipVerify, Renegotiation,
// and others. This includes unknown fields of later versions of Go.
//
// FromTLS cannot detect one thing: a constraint that [x509.CertPool.AddCertWithConstraint] has added. OpenSSL does not
// call it.
func FromTLS(config *tls.Config, roots []byte) (Config, error) {
	if config == nil {
		config = &tls.Config{}
	}
	if err := expectFields("tls.Config", config, mappedFields); err != nil {
		return Config{}, err
	}
	if config.CipherSuites != nil && len(config.CipherSuites) == 0 {
		return Config{}, errors.New("openssl: tls.Config.CipherSuites: found an empty list, with which crypto/tls has no suite of TLS 1.2, expected nil")
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

// expectFields returns an error if a field of a structure is set and not one of the expected.
func expectFields(where string, structure any, expected []string) error {
	value := reflect.ValueOf(structure).Elem()
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if field.IsExported() && !value.Field(i).IsZero() && !slices.Contains(expected, field.Name) {
			return fmt.Errorf("openssl: %s: found the field %s, which cannot be used with OpenSSL", where, field.Name)
		}
	}
	return nil
}

func mapCertificate(certificate *tls.Certificate, mapped *Config) error {
	if err := expectFields("tls.Config.Certificates", certificate, certificateFields); err != nil {
		return err
	}
	if len(certificate.Certificate) == 0 {
		return errors.New("openssl: tls.Config.Certificates: found no certificate")
	}
	if leaf := certificate.Leaf; leaf != nil && !bytes.Equal(leaf.Raw, certificate.Certificate[0]) {
		return errors.New("openssl: tls.Config.Certificates: found a Leaf that is not the first certificate, expected the same")
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
