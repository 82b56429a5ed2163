// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package benchkeys

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	kmipgo "github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/ttlv"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/cache"
	"github.com/crypto-broker/crypto-broker-operator/test/kmipserver"
	baoserver "github.com/crypto-broker/crypto-broker-operator/test/openbao"
)

// Many questions over few keys, and many identical ones at once.
const (
	questions, differentKeys, askers, atOnce = 1000, 120, 10, 100
)

// counted is how often a key manager was asked.
type counted struct {
	what   string
	wanted int // at most
	found  int
	// of are the requests by kind.
	of     string
	failed int
}

// calls counts requests by kind. It is safe for concurrent use.
type calls struct {
	mu sync.Mutex
	of map[string]int
}

func (c *calls) add(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[kind]++
}

// take returns what was counted since the last time, the sum and the kinds as text.
func (c *calls) take() (sum int, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(c.of)) {
		sum += c.of[kind]
		parts = append(parts, fmt.Sprintf("%d %s", c.of[kind], kind))
	}
	c.of = map[string]int{}
	return sum, strings.Join(parts, ", ")
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
	counts := &calls{of: map[string]int{}}
	p := openKMIP(b, servers, []string{kmipProxy(b, servers, counts)}, time.Minute)
	if _, err := p.Check(b.Context()); err != nil {
		b.Fatal(err)
	}
	counts.take()
	find := func(id string) error {
		_, err := p.Key(b.Context(), keys.Name{ID: id})
		return err
	}
	failed := ask(func(n int) error { return find(fmt.Sprintf("key-%d", n)) })
	sum, of := counts.take()
	many := counted{each.name + ": 1,000 questions over 120 keys", differentKeys, sum, of, failed}
	if err := direct.CreateAES(b.Context(), "wanted by many", 256); err != nil {
		b.Fatal(err)
	}
	failed = askAtOnce(func() error { return find("wanted by many") })
	sum, of = counts.take()
	return []counted{many, {each.name + ": 100 identical questions at once", 1, sum, of, failed}}
}

// countUnwraps counts the requests for unwraps between the broker's cache and OpenBao.
func countUnwraps(b *testing.B, server *baoserver.Server) []counted {
	counts := &calls{of: map[string]int{}}
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
	counts.take()
	failed := ask(func(n int) error { return unwrap(b, c, wrapper, wrapped[n]) })
	sum, of := counts.take()
	many := counted{"OpenBao: 1,000 unwraps over 120 wrapped data keys", differentKeys, sum, of, failed}
	failed = askAtOnce(func() error { return unwrap(b, c, wrapper, other) })
	sum, of = counts.take()
	return []counted{many, {"OpenBao: 100 identical unwraps at once", 1, sum, of, failed}}
}

func unwrapWith(wrapper keys.Wrapper, wrapped []byte) cache.Unwrap {
	return func(ctx context.Context) ([]byte, error) { return wrapper.Unwrap(ctx, wrapping, wrapped, nil) }
}

// baoProxy passes requests to OpenBao and counts them. It returns its URL and its certificate.
func baoProxy(b *testing.B, server *baoserver.Server, counts *calls) (address string, authority []byte) {
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
		counts.add(r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v1/"))
		proxy.ServeHTTP(w, r)
	}))
	b.Cleanup(listening.Close)
	return listening.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: listening.Certificate().Raw})
}

// kmipProxy passes requests to the first KMIP server and counts them. It ends TLS on
// both sides, with the certificates of the server and the client. It returns its address.
func kmipProxy(b *testing.B, servers *kmipserver.Servers, counts *calls) string {
	b.Helper()
	certificate, err := tls.LoadX509KeyPair(servers.File("server.crt"), servers.File("server.key"))
	if err != nil {
		b.Fatal(err)
	}
	toServer := servers.TLS(b)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: toServer.RootCAs, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() }) // ends the loop below
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := tls.Dial("tcp", servers.Addresses[0], toServer)
			if err != nil {
				_ = client.Close() // the provider sees that no server answers
				continue
			}
			go func() {
				_, _ = io.Copy(client, server) // until either side closes
				_ = client.Close()
			}()
			go func() {
				if err := countKMIPRequests(client, server, counts); !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
					fmt.Fprintln(os.Stderr, "the proxy before the KMIP server:", err)
				}
				_ = server.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// countKMIPRequests copies messages and counts them by their operations.
func countKMIPRequests(from io.Reader, to io.Writer, counts *calls) error {
	for {
		message := make([]byte, 8) // tag, type and length
		if _, err := io.ReadFull(from, message); err != nil {
			return err
		}
		size := binary.BigEndian.Uint32(message[4:])
		if size > 1<<20 {
			return fmt.Errorf("found a request of %d bytes", size)
		}
		message = append(message, make([]byte, size)...)
		if _, err := io.ReadFull(from, message[8:]); err != nil {
			return err
		}
		var request kmipgo.RequestMessage
		if err := ttlv.UnmarshalTTLV(message, &request); err != nil {
			return err
		}
		operations := make([]string, 0, len(request.BatchItem))
		for _, item := range request.BatchItem {
			operations = append(operations, ttlv.EnumStr(item.Operation))
		}
		counts.add(strings.Join(operations, " + "))
		if _, err := to.Write(message); err != nil {
			return err
		}
	}
}
