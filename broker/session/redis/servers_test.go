// SPDX-License-Identifier: Apache-2.0

//go:build redis

package redis_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/session"
	"github.com/crypto-broker/crypto-broker-operator/broker/session/redis"
	"github.com/crypto-broker/crypto-broker-operator/test/redisserver"
)

// agreement is how long servers may take to agree. A Sentinel whose machine has stopped it for two seconds does
// nothing for 30 more.
const agreement = 4 * time.Minute

// allow gives the user of docs/session-redis.md more rights at a server. The page has to name these rights.
func allow(t testing.TB, server *redisserver.Server, more string) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/session-redis.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "`"+more+"`") {
		t.Errorf("the page lacks the rights %s", more)
	}
	server.Ask(t, append(append([]string{"ACL", "SETUSER"}, rights(t, "secret")...), strings.Fields(more)...)...)
}

// onServers returns a place for servers that are found through addresses.
func onServers(t testing.TB, address, how string) *place {
	t.Helper()
	p := newPlace(t, "Addresses: ["+address+"]", how, "WithoutTLS: true", "WrappingKey: sessions", "User: broker", "Timeout: 10s")
	p.write(p.settings, redis.Password, "secret")
	return p
}

// answers waits until a server answers a command with a text in it.
func answers(t testing.TB, server *redisserver.Server, text string, command ...string) {
	t.Helper()
	eventuallyWithin(t, agreement, strings.Join(command, " "), func() error {
		if answer, err := server.TryToAsk(command...); err != nil || !strings.Contains(answer, text) {
			return fmt.Errorf("found %q, expected %q in it", answer, text)
		}
		return nil
	})
}

// serves checks that a session begins at one broker, and that both brokers together accept each request once.
func serves(t testing.TB, a, b *redis.Store, id string) {
	t.Helper()
	want(t, "begin", a.Add(t.Context(), record(id), key), nil)
	found(t, b, id)
	want(t, "a request", b.Accept(t.Context(), id, acceptance(1)), nil)
	want(t, "the same at the other broker", a.Accept(t.Context(), id, acceptance(1)), session.ErrRefused)
	want(t, "the same again", b.Accept(t.Context(), id, acceptance(1)), session.ErrRefused)
	want(t, "a reply", a.CountReply(t.Context(), id, 100), nil)
}

func TestSessionsAreOnAllServersOfACluster(t *testing.T) {
	var servers [3]*redisserver.Server
	for i, slots := range [][2]string{{"0", "5461"}, {"5462", "10922"}, {"10923", "16383"}} {
		server := redisserver.New(t)
		// A server that the machine stops for a time does not fail.
		server.Run(t, "--cluster-enabled", "yes", "--cluster-announce-ip", server.Host, "--cluster-node-timeout", "600000")
		allow(t, server, "+cluster|slots +cluster|shards +asking")
		server.Ask(t, "CLUSTER", "ADDSLOTSRANGE", slots[0], slots[1])
		server.Ask(t, "CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i+1))
		servers[i] = server
	}
	for _, server := range servers[1:] {
		servers[0].Ask(t, "CLUSTER", "MEET", server.Host, redisserver.Port)
	}
	for _, server := range servers {
		answers(t, server, "cluster_slots_ok:16384", "CLUSTER", "INFO")
		answers(t, server, "cluster_state:ok", "CLUSTER", "INFO")
	}

	p := onServers(t, servers[0].Address, "Cluster: true")
	a, b := p.open(), p.open()
	id := func(i int) string { return fmt.Sprintf("S-%032x", i) }
	for i := range 12 {
		serves(t, a, b, id(i))
	}
	for i, server := range servers {
		if server.Ask(t, "DBSIZE") == "0" {
			t.Errorf("server %d has no session", i)
		}
	}
	want(t, "the end", a.End(t.Context(), id(0), record(id(0)).Owner), nil)
	want(t, "a request after it", b.Accept(t.Context(), id(0), acceptance(2)), session.ErrRefused)

	t.Run("a session ends when its slot moves to another server", func(t *testing.T) {
		moved := id(1)
		name := nameOf(moved)
		slot := servers[0].Ask(t, "CLUSTER", "KEYSLOT", name)
		var from, to *redisserver.Server
		for _, server := range servers {
			if answer, err := server.TryToAsk("EXISTS", name); err == nil && answer == "1" {
				from = server
			} else {
				to = server
			}
		}
		to.Ask(t, "CLUSTER", "SETSLOT", slot, "IMPORTING", from.Ask(t, "CLUSTER", "MYID"))
		from.Ask(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", to.Ask(t, "CLUSTER", "MYID"))
		from.Ask(t, "MIGRATE", to.Host, redisserver.Port, "", "0", "60000", "KEYS", name, name+":nonces", from.Ask(t, "KEYS", "crypto-broker:{1}:caller:*"))
		want(t, "a request while it moves", a.Accept(t.Context(), moved, acceptance(2)), session.ErrRefused)
		for _, server := range []*redisserver.Server{to, from} {
			server.Ask(t, "CLUSTER", "SETSLOT", slot, "NODE", to.Ask(t, "CLUSTER", "MYID"))
		}
		missing(t, a)
		serves(t, a, b, moved)
		want(t, "a session whose slot has not moved", a.Accept(t.Context(), id(2), acceptance(2)), nil)
	})
}

func TestASessionEndsWhenSentinelsChooseAnotherMaster(t *testing.T) {
	master, replica, sentinel := redisserver.New(t), redisserver.New(t), redisserver.New(t)
	master.Run(t, "--replica-announce-ip", master.Host, "--repl-diskless-sync-delay", "0", "--repl-timeout", "600")
	replica.Run(t, "--replica-announce-ip", replica.Host, "--replicaof", master.Host+" "+redisserver.Port, "--repl-timeout", "600")
	for _, server := range []*redisserver.Server{master, replica} {
		allow(t, server, "+role")
	}
	answers(t, replica, "master_link_status:up", "INFO", "replication")
	// No server is thought to be down because the machine has stopped it for a time.
	sentinel.RunSentinel(t, "sentinel monitor sessions "+master.Host+" "+redisserver.Port+" 1", "sentinel down-after-milliseconds sessions 600000",
		"user watcher on >watched +@all &* ~*")
	p := onServers(t, sentinel.Address, "SentinelMaster: sessions\nSentinelUser: watcher")
	p.write(p.settings, redis.SentinelPassword, "watched")
	a, b := p.open(), p.open()
	serves(t, a, b, id)
	name := nameOf(id)
	answers(t, replica, "1", "HGET", name, "sealed") // the last change has arrived
	answers(t, sentinel, replica.Host, "SENTINEL", "REPLICAS", "sessions")

	answers(t, sentinel, "OK", "SENTINEL", "FAILOVER", "sessions") // the Sentinel answers OK once it knows that the replica is usable
	answers(t, sentinel, replica.Host, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "sessions")
	request := acceptance(0)
	request.MostMessages = 1 << 40
	for sentence, store := range map[string]*redis.Store{"the first": a, "the second": b} {
		eventuallyWithin(t, agreement, "a request at "+sentence+" broker", func() error {
			// The old master may have accepted the last nonce, so each attempt has a new one.
			binary.BigEndian.PutUint32(request.Nonce[:], binary.BigEndian.Uint32(request.Nonce[:])+1)
			if err := store.Accept(t.Context(), id, request); !errors.Is(err, session.ErrRefused) {
				return errors.New("it is not refused")
			}
			return nil
		})
		// The old master also refuses requests once it is a replica, but then no session begins at it.
		eventuallyWithin(t, agreement, "begin at "+sentence+" broker", func() error {
			return store.Add(t.Context(), record("S-11111111111111111111111111111111"), key)
		})
	}
	if got := replica.Ask(t, "EXISTS", name); got != "0" {
		t.Error("the new master still has the session")
	}
	missing(t, a)
	serves(t, b, a, "S-00000000000000000000000000000000")
}

// The state of a replica can lack the last nonces, and the old master takes it over. Its process stays the same.
func TestASessionEndsWhenAMasterIsReplacedAndComesBack(t *testing.T) {
	master, replica := redisserver.New(t), redisserver.New(t)
	master.Run(t, "--repl-diskless-sync-delay", "0", "--repl-timeout", "600")
	replica.Run(t, "--replicaof", master.Host+" "+redisserver.Port, "--repl-diskless-sync-delay", "0", "--repl-timeout", "600")
	answers(t, replica, "master_link_status:up", "INFO", "replication")
	a, b := begun(t, onServer(t, master))
	want(t, "a request", a.Accept(t.Context(), id, acceptance(1)), nil)
	answers(t, replica, "1", "HGET", nameOf(id), "opened") // the request has arrived

	replica.Ask(t, "REPLICAOF", "NO", "ONE")
	want(t, "a request that the new master does not know", a.Accept(t.Context(), id, acceptance(2)), nil)
	master.Ask(t, "REPLICAOF", replica.Host, redisserver.Port)
	answers(t, master, "master_link_status:up", "INFO", "replication")
	replica.Ask(t, "REPLICAOF", master.Host, redisserver.Port)
	master.Ask(t, "REPLICAOF", "NO", "ONE")
	want(t, "the same request", b.Accept(t.Context(), id, acceptance(2)), session.ErrRefused)
	want(t, "a further one", a.Accept(t.Context(), id, acceptance(3)), session.ErrRefused)
	missing(t, a)
	serves(t, a, b, id)
}

func TestASessionEndsWhenItsServerGetsItsFirstReplica(t *testing.T) {
	master, replica := redisserver.New(t), redisserver.New(t)
	master.Run(t, "--repl-diskless-sync-delay", "0", "--repl-timeout", "600")
	a, b := begun(t, onServer(t, master))
	want(t, "a request", a.Accept(t.Context(), id, acceptance(1)), nil)
	replica.Run(t, "--replicaof", master.Host+" "+redisserver.Port, "--repl-timeout", "600")
	answers(t, replica, "master_link_status:up", "INFO", "replication")
	want(t, "a further request", b.Accept(t.Context(), id, acceptance(2)), session.ErrRefused)
	serves(t, a, b, id)
}
