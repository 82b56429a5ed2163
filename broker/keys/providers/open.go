// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// Names of credentials, as in Kubernetes Secrets of type kubernetes.io/tls and in the
// directory of credentials. There may also be certificates of keys, see
// [Credentials.KeyCertificates].
const (
	ClientCertificate = "tls.crt" // PEM
	ClientKey         = "tls.key" // PEM
	Authorities       = "ca.crt"  // PEM; without it, the authorities of the system
	Token             = "token"   // of OpenBao
	PIN               = "pin"     // for PKCS #11
	AccessKeyID       = "aws_access_key_id"
	SecretAccessKey   = "aws_secret_access_key"
	SessionToken      = "aws_session_token"
)

// Credentials are the credentials for a key manager, by the names above.
type Credentials map[string][]byte

// IsCredential reports whether an entry of this name can belong to credentials.
func IsCredential(name string) bool {
	switch name {
	case ClientKey, Token, PIN, AccessKeyID, SecretAccessKey, SessionToken:
		return true
	default:
		return strings.HasSuffix(name, certificateSuffix)
	}
}

// CredentialsError is the error of a provider that cannot be opened with its credentials. Its
// text contains no credentials.
type CredentialsError struct{ err error }

// BadCredentials returns an error as a CredentialsError.
func BadCredentials(err error) error { return &CredentialsError{err} }

// Error implements error.
func (e *CredentialsError) Error() string { return e.err.Error() }

// Unwrap returns the error without the mark.
func (e *CredentialsError) Unwrap() error { return e.err }

// TLS returns a client for TLS connections to endpoints, with the authorities, the certificate of
// the client if there is one, and the name of the server. sessions is the number of TLS sessions
// that it keeps to resume them.
func (c Credentials) TLS(serverName string, sessions int) (*tlsprovider.Client, error) {
	client, err := tlsprovider.New(tlsprovider.Config{
		Authorities: c[Authorities], Certificate: c[ClientCertificate], Key: c[ClientKey], ServerName: serverName, Sessions: sessions,
	})
	switch {
	case errors.Is(err, tlsprovider.ErrAuthorities):
		return nil, BadCredentials(fmt.Errorf("%s has no certificate, expected PEM with the authorities of the servers", Authorities))
	case err != nil:
		// The error has no part of the key. It says which of the two cannot be read.
		return nil, BadCredentials(fmt.Errorf("%s and %s cannot be used: %w", ClientCertificate, ClientKey, err))
	}
	return client, nil
}

// KeyCertificates are certificates of keys whose key manager stores no certificates.
type KeyCertificates map[string][]*x509.Certificate

// certificateSuffix is the end of the names of entries with certificates of keys.
const certificateSuffix = ".crt"

// KeyCertificates reads the entries <id>.crt, which have certificates of keys in PEM. "_"
// stands for every "/" and ":" of an id.
func (c Credentials) KeyCertificates() (KeyCertificates, error) {
	all := KeyCertificates{}
	for name, text := range c {
		if name == ClientCertificate || name == Authorities || !strings.HasSuffix(name, certificateSuffix) {
			continue
		}
		chain, err := keys.ParseCertificates(text, algorithm.MaxRSASize)
		if err != nil {
			return nil, BadCredentials(fmt.Errorf("the credential %s %w", name, err))
		}
		all[name] = chain
	}
	return all, nil
}

// Of returns the certificates of a key, or nil if there are none.
func (c KeyCertificates) Of(id string) []*x509.Certificate {
	return c[strings.NewReplacer("/", "_", ":", "_").Replace(id)+certificateSuffix]
}

// Provider is an open provider.
type Provider interface {
	keys.Provider
	// KeyNow is as in [keys.Prompt].
	KeyNow(name keys.Name) (*keys.Key, error)
	// Status returns the state of each endpoint.
	Status() []pool.Status
	// Check asks the key manager whether it serves, and returns its version as text.
	Check(ctx context.Context) (version string, err error)
	// Close ends all connections, once the requests that have begun are done.
	Close()
}

// Types has the types that a program links, by their names.
type Types map[string]func(*Config, Credentials) (Provider, error)

// Open opens a provider. It does not wait until an endpoint answers. Its errors contain no
// credentials. The provider keeps no reference to the credentials, so that the caller can
// overwrite them.
func (t Types) Open(config *Config, credentials Credentials) (Provider, error) {
	if problems := config.Check(); len(problems) > 0 {
		all := make([]error, len(problems))
		for i, problem := range problems {
			all[i] = problem
		}
		return nil, fmt.Errorf("key provider %q: %w", config.Name, errors.Join(all...))
	}
	open, ok := t[config.Type]
	if !ok {
		return nil, fmt.Errorf("key provider %q: Type is %s, which this program does not have, expected one of %s", config.Name, config.Type,
			strings.Join(slices.Sorted(maps.Keys(t)), ", "))
	}
	provider, err := open(config, credentials)
	if err != nil {
		return nil, fmt.Errorf("key provider %q: %w", config.Name, err)
	}
	return provider, nil
}

// CacheFor returns how long keys are used without asking again, 0 for not at all.
func (c *Config) CacheFor() time.Duration {
	switch {
	case c.CacheTime < 0:
		return 0
	case c.CacheTime == 0:
		return MaxCacheTime
	}
	return c.CacheTime
}
