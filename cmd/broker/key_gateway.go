// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"log/slog"
	"net"
	"strconv"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/gateway"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// gatewaySettings returns the settings of the key gateway.
func (c *config) gatewaySettings() []setting {
	return []setting{
		{
			name: contract.KeyGatewayFlag, env: "CRYPTO_BROKER_KEY_GATEWAY", kind: "address", set: hostAndPort(&c.gateway.Address),
			usage: "host:port of the key gateway, which uses the keys <provider>/<id> of key managers for this broker",
		},
		{
			name: contract.KeyGatewayTokenFlag, env: "CRYPTO_BROKER_KEY_GATEWAY_TOKEN", kind: "path", set: absolutePath(&c.gateway.TokenFile),
			usage: "file with the token of the pod for the key gateway; read for each request; required with --" + contract.KeyGatewayFlag,
		},
		{
			name: contract.KeyGatewayAuthoritiesFlag, env: "CRYPTO_BROKER_KEY_GATEWAY_AUTHORITIES", kind: "path", set: absolutePath(&c.gateway.AuthoritiesFile),
			usage: "file with the authorities of the key gateway's certificate in PEM; read for each connection; required with --" + contract.KeyGatewayFlag,
		},
		{
			name: contract.KeyGatewayCertificateFlag, env: "CRYPTO_BROKER_KEY_GATEWAY_CERTIFICATE", kind: "path", set: absolutePath(&c.gateway.CertificateFile),
			usage: "file with the certificate that the broker presents to the key gateway, and its private key, in PEM; read for each connection; none if empty; counts with --" + contract.KeyGatewayFlag,
		},
	}
}

// readGateway checks that the settings of the key gateway are all there, or none. The certificate
// may be missing.
func (c *config) readGateway() error {
	g := c.gateway
	if g.CertificateFile != "" && g.Address == "" {
		return program.Usagef("--%s is %q without --%s, expected it only with a key gateway", contract.KeyGatewayCertificateFlag, g.CertificateFile, contract.KeyGatewayFlag)
	}
	if g == (gateway.Options{}) || g.Address != "" && g.TokenFile != "" && g.AuthoritiesFile != "" {
		return nil
	}
	return program.Usagef("--%s, --%s and --%s belong together: found %q, %q and %q, expected all of them or none",
		contract.KeyGatewayFlag, contract.KeyGatewayTokenFlag, contract.KeyGatewayAuthoritiesFlag, g.Address, g.TokenFile, g.AuthoritiesFile)
}

// useGateway lets the gateway use the keys of providers that the stack does not have. The
// gateway is nil if there is none.
func (c *config) useGateway(stack *keys.Stack, logger *slog.Logger) (*gateway.Client, error) {
	if c.gateway.Address == "" {
		return nil, nil
	}
	options := c.gateway
	options.Logger = logger
	client, err := gateway.New(options)
	if err != nil {
		return nil, err
	}
	stack.Delegate(client)
	return client, nil
}

func hostAndPort(into *string) func(string) error {
	return func(text string) error {
		host, port, err := net.SplitHostPort(text)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
			return errors.New("expected host:port such as gateway.example:8443")
		}
		*into = text
		return nil
	}
}
