// SPDX-License-Identifier: Apache-2.0

package openbao

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/keycache"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// manager has the fields and methods that both engines share.
type manager struct {
	*pool.Pool[*session]
	*keycache.Keys
	tls              *tlsprovider.Client
	login            *login
	namespace, mount string
	certificates     providers.KeyCertificates
}

// Open opens the provider that a configuration of the type openbao describes. It does not wait
// until a server answers.
func Open(config *providers.Config, credentials providers.Credentials) (providers.Provider, error) {
	settings := config.OpenBao
	if settings == nil {
		settings = &providers.OpenBaoSettings{}
	}
	m := &manager{namespace: settings.Namespace}
	var err error
	if m.tls, err = credentials.TLS(config.ServerName, len(config.Endpoints)); err != nil {
		return nil, err
	}
	if m.login, err = newLogin(credentials[providers.Token], settings.Role); err != nil {
		return nil, providers.BadCredentials(err)
	}
	if settings.Role != "" && !config.ActsAsProgram {
		return nil, errors.New("OpenBao.Role is set, expected the credential \"token\", because this provider may not act as the program itself")
	}
	if m.certificates, err = credentials.KeyCertificates(); err != nil {
		return nil, err
	}
	if strings.ContainsFunc(m.namespace, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("OpenBao.Namespace is %q, expected printable ASCII without spaces", m.namespace)
	}
	kv := settings.Engine == "kv"
	mount := settings.Mount
	switch {
	case mount == "" && kv:
		mount = "secret"
	case mount == "":
		mount = "transit"
	}
	var ok bool
	if m.mount, ok = escapePath(mount); !ok {
		return nil, fmt.Errorf("OpenBao.Mount is %q, expected a path such as secret or teams/payments, without an empty part, \".\" and \"..\"", settings.Mount)
	}
	endpoints := make([]string, len(config.Endpoints))
	for i, endpoint := range config.Endpoints {
		if endpoints[i], err = parseEndpoint(endpoint); err != nil {
			return nil, fmt.Errorf("%s is %q, %w", fmt.Sprintf("Endpoints[%d]", i), endpoint, err)
		}
	}
	c := config.Connections
	m.Pool, err = pool.New(pool.Config[*session]{
		Endpoints: endpoints, Dial: m.dial, Max: c.Max, Min: c.Min, Lifetime: c.Lifetime, IdleTime: c.IdleTime,
		DialTimeout: c.ConnectTimeout, RequestTimeout: c.RequestTimeout, RoundRobin: c.RoundRobin,
	})
	if err != nil {
		return nil, err
	}
	if kv {
		store := &KV{manager: m, seen: map[keys.Name][sha256.Size]byte{}}
		m.Keys = keycache.New(config.CacheFor(), store.find)
		return store, nil
	}
	transit := &Transit{m}
	m.Keys = keycache.New(config.CacheFor(), transit.find)
	return transit, nil
}

// parseEndpoint returns scheme, host and port of the URL of a server. Its error continues a
// sentence that begins with the URL.
func parseEndpoint(endpoint string) (string, error) {
	where, err := url.Parse(endpoint)
	if err != nil || where.Host == "" || where.Hostname() == "" || where.Scheme != "https" && where.Scheme != "http" {
		return "", errors.New("expected a URL, such as https://openbao.example:8200")
	}
	if where.User != nil || where.RawQuery != "" || where.Fragment != "" || strings.Trim(where.Path, "/") != "" {
		return "", errors.New("expected a URL with a scheme, a host and a port only, such as https://openbao.example:8200")
	}
	if where.Scheme == "http" && !loopback(where.Hostname()) {
		return "", errors.New("expected https: without TLS, everybody on the network sees the token and the keys; http is only for this host, such as http://127.0.0.1:8200")
	}
	port := where.Port()
	switch {
	case port != "":
	case where.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return where.Scheme + "://" + net.JoinHostPort(where.Hostname(), port), nil
}

// loopback reports whether a host is the host of the broker.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// escapePath returns a path as it is in URLs. It reports false if the path could lead to
// another place of the API.
func escapePath(path string) (string, bool) {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if segment == "" || segment == "." || segment == ".." {
			return "", false
		}
		segments[i] = url.PathEscape(segment)
	}
	return strings.Join(segments, "/"), true
}

// Check implements providers.Provider. It needs no right in the server.
func (m *manager) Check(ctx context.Context) (version string, err error) {
	err = m.Do(ctx, pool.Repeatable, func(ctx context.Context, s *session) error {
		version, err = s.health(ctx)
		return err
	})
	return version, err
}

// Close implements providers.Provider.
func (m *manager) Close() {
	m.Keys.Close()
	m.Pool.Close()
}

// call makes a request to any endpoint.
func (m *manager) call(ctx context.Context, kind pool.Kind, method, path string, body []byte, reply any) error {
	return m.Do(ctx, kind, func(ctx context.Context, s *session) error {
		return s.call(ctx, method, path, body, reply)
	})
}
