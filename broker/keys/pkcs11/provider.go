// SPDX-License-Identifier: Apache-2.0

//go:build pkcs11

package pkcs11

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/keycache"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
)

// Provider is the provider of the keys of a token. It is safe for concurrent use. The only endpoint of
// its pool is the label of the token, and the connections are sessions.
type Provider struct {
	*pool.Pool[*session]
	*keycache.Keys
	module *module
	label  string
	pin    []byte
	// refused reports whether the token did not accept the PIN.
	refused      atomic.Bool
	certificates providers.KeyCertificates
}

// Open opens the provider that a configuration of the type pkcs11 describes. It loads the
// library, and does not wait until the token answers.
func Open(config *providers.Config, credentials providers.Credentials) (providers.Provider, error) {
	if !config.ActsAsProgram {
		return nil, errors.New("this provider may not load a library into the program")
	}
	pin := bytes.TrimRight(credentials[providers.PIN], "\r\n")
	if len(pin) == 0 {
		return nil, errors.New("found no credential \"pin\", expected the PIN of the user of the token")
	}
	certificates, err := credentials.KeyCertificates()
	if err != nil {
		return nil, err
	}
	library, err := load(config.PKCS11.Module)
	if err != nil {
		return nil, err
	}
	p := &Provider{module: library, label: config.PKCS11.TokenLabel, pin: bytes.Clone(pin), certificates: certificates}
	c := config.Connections
	p.Pool, err = pool.New(pool.Config[*session]{
		Endpoints: []string{p.label}, Dial: p.connect, Max: c.Max, Min: c.Min, Lifetime: c.Lifetime, IdleTime: c.IdleTime,
		DialTimeout: c.ConnectTimeout, RequestTimeout: c.RequestTimeout,
	})
	if err != nil {
		return nil, err
	}
	p.Keys = keycache.New(config.CacheFor(), p.find)
	return p, nil
}

// Check implements providers.Provider. The version is the version of the firmware.
func (p *Provider) Check(ctx context.Context) (version string, err error) {
	return do(ctx, p, func(*session) (string, error) {
		_, token, err := p.module.slot(p.label)
		return fmt.Sprintf("%s %s %d.%d", token.ManufacturerID, token.Model, token.FirmwareVersion.Major, token.FirmwareVersion.Minor), err
	})
}

// Close implements providers.Provider.
func (p *Provider) Close() {
	p.Keys.Close()
	p.Pool.Close()
}
