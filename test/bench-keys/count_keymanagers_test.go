// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package benchkeys

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/datakeycache"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmip"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	baoserver "github.com/crypto-broker/crypto-broker-operator/test/openbao"
)

// The numbers of the test: many requests for few keys, and many identical requests at once.
const (
	questions, differentKeys, askers, atOnce = 1000, 120, 10, 100
)

// counted is how often a key manager was asked.
type counted struct {
	what   string
	wanted int // at most
	found  int
	// of has the number of requests by kind.
	of     string
	failed int
}

// ask asks for different keys in turn, by some askers at once. It returns how many questions failed.
func ask(question func(key int) error) int {
	var failed, next atomic.Int64
	var all sync.WaitGroup
	for range askers {
		all.Go(func() {
			for n := next.Add(1); n <= questions; n = next.Add(1) {
				if question(int(n)%differentKeys) != nil {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(failed.Load())
}

// askAtOnce asks the same question many times at once. It returns how many failed.
func askAtOnce(question func() error) int {
	var failed atomic.Int64
	var all sync.WaitGroup
	begin := make(chan struct{})
	for range atOnce {
		all.Go(func() {
			<-begin
			if question() != nil {
				failed.Add(1)
			}
		})
	}
	close(begin)
	all.Wait()
	return int(failed.Load())
}

// countKMIP counts the requests for keys between the broker's provider and a KMIP server.
func countKMIP(b *testing.B, each *kmipServers) []counted {
	servers := each.servers
	direct := openKMIP(b, servers, servers.Addresses[:1], -1)
	for n := range differentKeys {
		if err := direct.CreateAES(b.Context(), fmt.Sprintf("key-%d", n), 256); err != nil {
			b.Fatal(err)
		}
	}
	address, counts := servers.Counted(b)
	p := openKMIP(b, servers, []string{address}, time.Minute)
	if _, err := p.Check(b.Context()); err != nil {
		b.Fatal(err)
	}
	counts.Take()
	find := func(id string) error {
		_, err := p.Key(b.Context(), keys.Name{ID: id})
		return err
	}
	failed := ask(func(n int) error { return find(fmt.Sprintf("key-%d", n)) })
	sum, of := counts.Take()
	many := counted{each.name + ": 1,000 questions for 120 keys by their names", differentKeys, sum, of, failed}
	if err := direct.CreateAES(b.Context(), "wanted by many", 256); err != nil {
		b.Fatal(err)
	}
	failed = askAtOnce(func() error { return find("wanted by many") })
	sum, of = counts.Take()
	all := []counted{many, {each.name + ": 100 identical questions for a name at once", 1, sum, of, failed}}
	return append(all, countKMIPUnwraps(b, each, direct)...)
}

// countKMIPUnwraps counts the requests for unwraps under keys that the broker does not know yet. A wrapped
// data key names the version of its key.
func countKMIPUnwraps(b *testing.B, each *kmipServers, direct *kmip.Provider) []counted {
	type wrappedKey struct {
		name    keys.Name
		wrapped []byte
	}
	wrap := func(id string) wrappedKey {
		key, err := direct.Key(b.Context(), keys.Name{ID: id})
		if err != nil {
			b.Fatal(err)
		}
		wrapped, err := key.Wrapper().Wrap(b.Context(), wrapping, make([]byte, 32), nil)
		if err != nil {
			b.Fatal(err)
		}
		return wrappedKey{keys.Name{ID: id, Version: key.Version(), Opens: true}, wrapped}
	}
	var wrapped []wrappedKey
	for n := range differentKeys {
		wrapped = append(wrapped, wrap(fmt.Sprintf("key-%d", n)))
	}
	other := wrap("wanted by many")
	address, counts := each.servers.Counted(b)
	p, c := openKMIP(b, each.servers, []string{address}, time.Minute), newCache(b)
	if _, err := p.Check(b.Context()); err != nil {
		b.Fatal(err)
	}
	counts.Take()
	unwrap := func(of wrappedKey) error {
		dataKey, err := c.Get(b.Context(), datakeycache.NewID([]byte(of.name.ID), of.wrapped), func(ctx context.Context) ([]byte, error) {
			key, err := p.Key(ctx, of.name)
			if err != nil {
				return nil, err
			}
			return key.Wrapper().Unwrap(ctx, wrapping, of.wrapped, nil)
		})
		clear(dataKey)
		return err
	}
	failed := ask(func(n int) error { return unwrap(wrapped[n]) })
	sum, of := counts.Take()
	many := counted{each.name + ": 1,000 unwraps over 120 keys", differentKeys, sum, of, failed}
	failed = askAtOnce(func() error { return unwrap(other) })
	sum, of = counts.Take()
	return []counted{many, {each.name + ": 100 identical unwraps at once", 1, sum, of, failed}}
}

// countUnwraps counts the requests for unwraps between the broker's cache and OpenBao.
func countUnwraps(b *testing.B, server *baoserver.Server) []counted {
	counts := new(measurement.Calls)
	address, authority := baoProxy(b, server, counts)
	wrapper := wrapperOf(b, openTransit(b, address, server.Token, authority), "measured")
	wrap := func() []byte {
		wrapped, err := wrapper.Wrap(b.Context(), wrapping, make([]byte, 32), nil)
		if err != nil {
			b.Fatal(err)
		}
		return wrapped
	}
	var wrapped [][]byte
	for range differentKeys {
		wrapped = append(wrapped, wrap())
	}
	other, c := wrap(), newCache(b)
	counts.Take()
	failed := ask(func(n int) error { return unwrap(b, c, wrapper, wrapped[n]) })
	sum, of := counts.Take()
	many := counted{"OpenBao: 1,000 unwraps over 120 wrapped data keys", differentKeys, sum, of, failed}
	failed = askAtOnce(func() error { return unwrap(b, c, wrapper, other) })
	sum, of = counts.Take()
	return []counted{many, {"OpenBao: 100 identical unwraps at once", 1, sum, of, failed}}
}

func unwrapWith(wrapper keys.Wrapper, wrapped []byte) datakeycache.Unwrap {
	return func(ctx context.Context) ([]byte, error) { return wrapper.Unwrap(ctx, wrapping, wrapped, nil) }
}

// baoProxy passes requests to OpenBao and counts them. It returns its URL and its certificate.
func baoProxy(b *testing.B, server *baoserver.Server, counts *measurement.Calls) (address string, authority []byte) {
	b.Helper()
	target, err := url.Parse(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(read(b, server.Authority))
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
	}
	listening := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counts.Add(r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v1/"))
		proxy.ServeHTTP(w, r)
	}))
	b.Cleanup(listening.Close)
	return listening.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: listening.Certificate().Raw})
}
