// SPDX-License-Identifier: Apache-2.0

//go:build redis

package redis_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/session"
	"github.com/crypto-broker/crypto-broker-operator/broker/session/redis"
	"github.com/crypto-broker/crypto-broker-operator/test/redisserver"
)

// askPort is the port without TLS at which the test asks servers. Brokers know only the port with TLS.
const askPort = "6380"

// Servers and Sentinel have certificates of one authority, ask each other for them, and ask the broker for one.
func TestSentinelsAndTheirServersHaveTLS(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	authority := certify(t, folder, "ca", nil, nil)
	certify(t, folder, "client", nil, authority)
	certify(t, folder, "other", nil, nil)
	master, replica, sentinel := redisserver.New(t), redisserver.New(t), redisserver.New(t)
	for name, server := range map[string]*redisserver.Server{"master": master, "replica": replica, "sentinel": sentinel} {
		certify(t, folder, name, net.ParseIP(server.Host), authority)
	}
	run := func(server *redisserver.Server, name string, settings ...string) {
		t.Helper()
		server.RunAs(t, append([]string{
			"--save", "", "--port", askPort, "--tls-port", redisserver.Port, "--tls-cert-file", at(name + ".crt"), "--tls-key-file", at(name + ".key"),
			"--tls-ca-cert-file", at("ca.crt"), "--tls-auth-clients", "yes", "--tls-replication", "yes", "--replica-announce-ip", server.Host,
			"--repl-timeout", "600", "--repl-diskless-sync-delay", "0",
		}, settings...)...)
		server.Ask(t, append(append([]string{"-p", askPort, "ACL", "SETUSER"}, rights(t, "secret")...), "+role")...)
	}
	run(master, "master")
	run(replica, "replica", "--replicaof", master.Host+" "+redisserver.Port)
	answers(t, replica, "master_link_status:up", "-p", askPort, "INFO", "replication")
	sentinel.RunSentinel(t, "port "+askPort, "tls-port "+redisserver.Port, "tls-cert-file "+at("sentinel.crt"), "tls-key-file "+at("sentinel.key"),
		"tls-ca-cert-file "+at("ca.crt"), "tls-auth-clients yes", "tls-replication yes",
		"sentinel monitor sessions "+master.Host+" "+redisserver.Port+" 1", "sentinel down-after-milliseconds sessions 600000",
		"user watcher on >watched +@all &* ~*")
	connecting := func(t *testing.T, authority, certificate string) *place {
		t.Helper()
		p := newPlace(t, "Addresses: ["+sentinel.Address+"]", "SentinelMaster: sessions", "SentinelUser: watcher", "User: broker", "WrappingKey: sessions", "Timeout: 10s")
		p.write(p.settings, redis.Password, "secret")
		p.write(p.settings, redis.SentinelPassword, "watched")
		for name, from := range map[string]string{"ca.crt": authority + ".crt", "tls.crt": certificate + ".crt", "tls.key": certificate + ".key"} {
			text, err := os.ReadFile(at(from))
			if err != nil {
				t.Fatal(err)
			}
			p.write(p.settings, name, string(text))
		}
		return p
	}
	for sentence, test := range map[string]struct{ authority, certificate string }{
		"another authority is refused": {"other", "client"},
		"another client is refused":    {"ca", "other"},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := connecting(t, test.authority, test.certificate)
			want(t, "begin", p.open().Add(t.Context(), record(id), key), session.ErrUnavailable)
			if p.hasObserved("serves") {
				t.Errorf("the observer was told %q", p.observed)
			}
		})
	}

	p := connecting(t, "ca", "client")
	a, b := p.open(), p.open()
	serves(t, a, b, id)
	answers(t, replica, "1", "-p", askPort, "HGET", nameOf(id), "sealed") // the last change has arrived
	answers(t, sentinel, replica.Host, "-p", askPort, "SENTINEL", "REPLICAS", "sessions")
	answers(t, sentinel, "OK", "-p", askPort, "SENTINEL", "FAILOVER", "sessions")
	answers(t, sentinel, replica.Host, "-p", askPort, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "sessions")
	const next = "S-11111111111111111111111111111111"
	eventuallyWithin(t, agreement, "begin at the new master", func() error {
		if err := a.Add(t.Context(), record(next), key); err != nil {
			return err
		}
		if found, err := replica.TryToAsk("-p", askPort, "EXISTS", nameOf(next)); err != nil || found != "1" {
			return errors.New("the session is not at the new master")
		}
		return nil
	})
	want(t, "a request of the session of before", a.Accept(t.Context(), id, acceptance(2)), session.ErrRefused)
}
