// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// sessionGateway has the settings of the session gateway.
type sessionGateway struct {
	// address is the address of its port. It is empty without a gateway.
	address string
	appPort uint16
	profile string
	plain   []string
}

func (g *sessionGateway) settings() []setting {
	return []setting{
		{
			name: contract.SessionGatewayFlag, env: "CRYPTO_BROKER_SESSION_GATEWAY", kind: "ports", set: g.readPorts,
			usage: "[host:]port:application port, such as 8443:8080: serve encrypted sessions by HTTP on the first port, for the application on the second port of 127.0.0.1; without it there is no such gateway",
		},
		{
			name: contract.SessionGatewayProfileFlag, env: "CRYPTO_BROKER_SESSION_GATEWAY_PROFILE", kind: "profile", initial: contract.DefaultSessionProfile, set: g.readProfile,
			usage: "profile of the sessions of the gateway",
		},
		{
			name: contract.SessionGatewayPlainFlag, env: "CRYPTO_BROKER_SESSION_GATEWAY_PLAIN", kind: "paths", set: g.readPlain,
			usage: "paths of GET and HEAD requests that the gateway forwards without encryption, separated by commas, such as /healthz,/readyz; without it none",
		},
	}
}

func (g *sessionGateway) readPorts(text string) error {
	const want = "expected [host:]port:application port such as 8443:8080, with ports from 1 to 65535"
	at, app, ok := cutLast(text, ":")
	port, err := strconv.ParseUint(app, 10, 16)
	if !ok || err != nil || port == 0 {
		return errors.New(want)
	}
	if !strings.Contains(at, ":") {
		at = ":" + at
	}
	host, listen, err := net.SplitHostPort(at)
	if err != nil {
		return errors.New(want)
	}
	switch n, err := strconv.ParseUint(listen, 10, 16); {
	case err != nil, n == 0 && host == "": // port 0 of one address is for tests
		return errors.New(want)
	case n == port:
		return fmt.Errorf("%s; found port %d twice", want, port)
	}
	g.address, g.appPort = at, uint16(port)
	return nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

func (g *sessionGateway) readProfile(text string) error {
	if text == "" || len(text) > profile.MaxNameLength {
		return fmt.Errorf("expected the name of a profile, 1 to %d bytes", profile.MaxNameLength)
	}
	g.profile = text
	return nil
}

func (g *sessionGateway) readPlain(text string) error {
	g.plain = strings.Split(text, ",")
	options := g.options()
	return options.Validate()
}

// readSessionGateway checks the settings that depend on each other.
func (c *config) readSessionGateway() error {
	switch g := &c.sessions; {
	case g.address == "" && (len(g.plain) > 0 || g.profile != contract.DefaultSessionProfile):
		return program.Usagef("--%s and --%s are for the session gateway, but there is none: expected --%s as well",
			contract.SessionGatewayProfileFlag, contract.SessionGatewayPlainFlag, contract.SessionGatewayFlag)
	case g.address != "" && slices.Contains(c.callers, contract.BrokerContainer):
		return program.Usagef("--%s has the name %s, which is the name of the session gateway: expected another name", contract.CallersFlag, contract.BrokerContainer)
	}
	return nil
}

// options returns the options of the gateway.
func (g *sessionGateway) options() server.SessionGateway {
	return server.SessionGateway{Name: contract.BrokerContainer, Profile: g.profile, AppPort: g.appPort, Plain: g.plain}
}

// listen opens the port of the gateway. It returns nil if there is no gateway.
func (g *sessionGateway) listen(ctx context.Context) (net.Listener, error) {
	if g.address == "" {
		return nil, nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", g.address)
	if err != nil {
		return nil, fmt.Errorf("open the port of the session gateway %s: %w", g.address, err)
	}
	return listener, nil
}

// closeListener closes a listener that may be nil, or closed already.
func closeListener(listener net.Listener) error {
	if listener == nil {
		return nil
	}
	if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
