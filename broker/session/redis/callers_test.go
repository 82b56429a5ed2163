// SPDX-License-Identifier: Apache-2.0

//go:build redis

package redis_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/session"
	"github.com/crypto-broker/crypto-broker-operator/test/redisserver"
)

// mostOfAPart is the maximum number of sessions of a caller whose ids end with the same digit, if MaxSessions has its smallest value.
const mostOfAPart = 1024 / 16

// idOfPart returns an id that ends with a digit.
func idOfPart(i int, digit string) string { return fmt.Sprintf("S-%031x%s", i, digit) }

// fewSessions returns a place whose MaxSessions has its smallest value.
func fewSessions(t *testing.T, server *redisserver.Server, lines ...string) *place {
	t.Helper()
	return newPlace(t, append(lines, "Addresses: ["+server.Address+"]", "WithoutTLS: true", "WrappingKey: sessions", "Timeout: 10s", "MaxSessions: 1024")...)
}

func TestACallerHasSoManySessionsAtAllBrokersTogether(t *testing.T) {
	server := redisserver.Start(t)
	p := fewSessions(t, server)
	a, b := p.open(), p.open()
	// Both brokers begin more sessions than the caller may have, all at once.
	results := make([]error, 4*mostOfAPart)
	var work sync.WaitGroup
	for i := range results {
		work.Go(func() {
			store := a
			if i%2 == 0 {
				store = b
			}
			results[i] = store.Add(t.Context(), record(idOfPart(i, "f")), key)
		})
	}
	work.Wait()
	var begun []string
	for i, err := range results {
		switch {
		case err == nil:
			begun = append(begun, idOfPart(i, "f"))
		case !errors.Is(err, session.ErrFull):
			t.Errorf("session %d: %v", i, err)
		}
	}
	if len(begun) != mostOfAPart {
		t.Fatalf("%d sessions began, expected %d", len(begun), mostOfAPart)
	}
	// Sessions that were refused have left nothing: each session is a hash, and the caller has one set.
	if got := server.Ask(t, "DBSIZE"); got != strconv.Itoa(mostOfAPart+1) {
		t.Errorf("found %s keys, expected %d", got, mostOfAPart+1)
	}

	t.Run("sessions of another digit have room", func(t *testing.T) {
		want(t, "begin", a.Add(t.Context(), record(idOfPart(0, "e")), key), nil)
	})
	t.Run("another caller has room", func(t *testing.T) {
		for i, change := range []func(*session.Owner){
			func(o *session.Owner) { o.Caller.Container = "other" },
			func(o *session.Owner) { o.Caller.UID++ },
			func(o *session.Owner) { o.Socket = "other" },
		} {
			r := record(idOfPart(1000+i, "f"))
			change(&r.Owner)
			want(t, "begin", a.Add(t.Context(), r, key), nil)
		}
	})
	t.Run("another profile of the same caller has none", func(t *testing.T) {
		r := record(idOfPart(2000, "f"))
		r.Owner.Profile = "Q"
		want(t, "begin", b.Add(t.Context(), r, key), session.ErrFull)
	})
	t.Run("a session that ends at one broker makes room at the other", func(t *testing.T) {
		want(t, "the end", a.End(t.Context(), begun[0], record(id).Owner), nil)
		want(t, "begin", b.Add(t.Context(), record(idOfPart(2001, "f")), key), nil)
		want(t, "begin one more", a.Add(t.Context(), record(idOfPart(2002, "f")), key), session.ErrFull)
	})
	t.Run("the end of a session that does not exist makes none", func(t *testing.T) {
		want(t, "the end", a.End(t.Context(), begun[0], record(id).Owner), nil)
		want(t, "begin", b.Add(t.Context(), record(idOfPart(2003, "f")), key), session.ErrFull)
	})
	t.Run("sessions that have expired make room", func(t *testing.T) {
		later := record(idOfPart(2004, "f"))
		later.Began, later.Expires = later.Began.Add(time.Hour), later.Expires.Add(time.Hour)
		want(t, "begin", b.Add(t.Context(), later, key), nil)
	})
	t.Run("the set of the caller ends with its sessions", func(t *testing.T) {
		for _, name := range []string{nameOf(begun[1]), server.Ask(t, "KEYS", "crypto-broker:{e}:caller:*")} {
			if ttl, err := strconv.Atoi(server.Ask(t, "PTTL", name)); err != nil || ttl <= 0 || ttl > int(time.Hour.Milliseconds()) {
				t.Errorf("%s lives for %d ms, %v", name, ttl, err)
			}
		}
	})
}

func TestApplicationsWithUsersOfTheirOwnAreDifferentCallers(t *testing.T) {
	server := redisserver.Start(t)
	place := func(user string) *place {
		server.Ask(t, "ACL", "SETUSER", user, "on", ">secret", "~crypto-broker:*", "+@all")
		p := fewSessions(t, server, "User: "+user)
		p.write(p.settings, "password", "secret")
		return p
	}
	one, other := place("one").open(), place("other").open()
	for i := range mostOfAPart {
		want(t, "begin", one.Add(t.Context(), record(idOfPart(i, "f")), key), nil)
	}
	want(t, "one too many", one.Add(t.Context(), record(idOfPart(100, "f")), key), session.ErrFull)
	want(t, "the other application", other.Add(t.Context(), record(idOfPart(101, "f")), key), nil)
}

func TestSessionsOfAProcessOfRedisThatHasEndedTakeNoRoom(t *testing.T) {
	server := redisserver.New(t)
	durable := []string{"--appendonly", "yes", "--appendfsync", "always", "--save", ""}
	server.RunAs(t, durable...)
	p := fewSessions(t, server)
	a := p.open()
	for i := range mostOfAPart {
		want(t, "begin", a.Add(t.Context(), record(idOfPart(i, "f")), key), nil)
	}
	server.Kill(t)
	server.Again(t)
	if got := server.Ask(t, "DBSIZE"); got != strconv.Itoa(mostOfAPart+1) {
		t.Fatalf("Redis has read %s keys from its disk", got)
	}
	eventually(t, "begin", func() error { return a.Add(t.Context(), record(idOfPart(100, "f")), key) })
}
