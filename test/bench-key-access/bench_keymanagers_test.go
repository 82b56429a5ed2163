// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package benchkeyaccess

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // what OpenTDF's clients use
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// The measured requests: all files are read equally often, after a warm-up with other files.
const (
	requests, warmUp, atOnce = 1000, 50, 10
	differentFiles           = 100
	hitRequests, hitFiles    = 5000, 20
	hitsAlone                = 500
	mostServices             = 3
)

var report = flag.String("report", "", "file for the results, Markdown")

// run is one measurement.
type run struct {
	name     string
	services int
	*sample
	// provider is how many requests the key managers got, and providerTook how long these took together.
	provider     int
	providerTook time.Duration
	// hits, misses and coalesced are of the cache of data keys of all services.
	hits, misses, coalesced float64
	// service and peers are the mean times in milliseconds that requests of clients took in the first service, and those to its peers.
	service, peers float64
	cpu            float64 // processor time of all services for a request, in milliseconds
	compared       []*comparison
}

// comparison has the measurement of requests to several services, and of requests to each service on its own.
type comparison struct {
	atOnce   int
	together *sample
	alone    []*sample
}

// hits has the times of requests whose data keys are in the cache.
type hits struct {
	*sample         // 10 at one time
	inside  float64 // mean time in the service, one at a time, in milliseconds
	cpu     float64 // processor time in the service, in milliseconds
}

// results are all measurements.
type results struct {
	began  time.Time
	took   time.Duration
	runs   []*run
	hits   *hits // with proofs
	bearer *hits // without
	parts  cryptography
}

// BenchmarkKeyAccess measures once.
func BenchmarkKeyAccess(b *testing.B) {
	found := &results{began: time.Now()}
	r := newRig(b, mostServices)
	read := newReader(b, r.from, false)
	found.runs = append(found.runs,
		r.measure(b, read, "before", settings{services: 1}, true),
		r.measure(b, read, "data keys not kept", settings{services: 1, known: true}, true),
		r.measure(b, read, "after", settings{services: 1, known: true, kept: true}, false))
	for n := 2; n <= mostServices; n++ {
		found.runs = append(found.runs,
			r.measure(b, read, "before", settings{services: n}, true),
			r.measure(b, read, "after", settings{services: n, known: true, kept: true}, false))
	}
	found.hits = r.measureHits(b, read)
	found.bearer = r.measureHits(b, newReader(b, r.from, true))
	found.parts = measureCryptography(b)
	found.took = time.Since(found.began)
	text := found.document()
	if *report == "" {
		fmt.Print(text)
		return
	}
	if err := os.WriteFile(*report, []byte(text), 0o644); err != nil { //nolint:gosec // for everybody to read
		b.Fatal(err)
	}
}

// measure measures services with some settings.
func (r *rig) measure(b *testing.B, read *reader, name string, s settings, apart bool) *run {
	b.Helper()
	fmt.Fprintf(os.Stderr, "%s, %d services\n", name, s.services)
	services, stop := r.start(b, s)
	defer stop()
	read.renew()
	if found := read.measure(b, read.files(b, warmUp/10, apart, services...), warmUp, atOnce); found.failed > 0 {
		b.Fatalf("%s, %d services: %d of %d requests of the warm-up failed: %s", name, s.services, found.failed, warmUp, found.reason)
	}
	files := read.files(b, differentFiles, apart, services...)
	before := observe(b, services)
	found := &run{name: name, services: s.services, sample: read.measure(b, files, requests, atOnce)}
	found.complete(before, observe(b, services))
	if !apart && s.services > 1 {
		one := read.measure(b, read.files(b, differentFiles, false, services...), requests, 1)
		found.compared = []*comparison{{atOnce: atOnce, together: found.sample}, {atOnce: 1, together: one}}
		for _, c := range found.compared {
			for _, own := range services {
				read.renew()
				c.alone = append(c.alone, read.measure(b, read.files(b, differentFiles, true, own), requests, c.atOnce))
			}
		}
	}
	return found
}

// observed has the metrics of the services and the counts of the providers.
type observed struct {
	provider                                        int
	providerTook                                    time.Duration
	hits, misses, coalesced                         float64
	serviceTook, serviceCount, peersTook, peersDone float64
	cpu                                             float64 // of all services, in seconds
}

// prefix is the beginning of the names of the metrics.
const prefix = "crypto_broker_gateway_key_access_"

func observe(b *testing.B, services []*service) (o observed) {
	b.Helper()
	for i, own := range services {
		calls, took := own.provider.count()
		o.provider, o.providerTook = o.provider+calls, o.providerTook+took
		m := own.metrics(b)
		o.cpu += m["process_cpu_seconds_total"]
		o.hits += m[prefix+`data_key_lookups_total{result="hit"}`]
		o.misses += m[prefix+`data_key_lookups_total{result="miss"}`]
		o.coalesced += m[prefix+`data_key_lookups_total{result="coalesced"}`]
		if i > 0 {
			continue
		}
		o.serviceTook, o.serviceCount = m[prefix+`request_duration_seconds_sum{from="client"}`], m[prefix+`request_duration_seconds_count{from="client"}`]
		for _, other := range services[1:] {
			o.peersTook += m[prefix+`peer_request_duration_seconds_sum{peer="`+other.url+`"}`]
			o.peersDone += m[prefix+`peer_request_duration_seconds_count{peer="`+other.url+`"}`]
		}
	}
	return o
}

// complete computes what happened between two observations.
func (r *run) complete(before, after observed) {
	r.provider, r.providerTook = after.provider-before.provider, after.providerTook-before.providerTook
	r.hits, r.misses, r.coalesced = after.hits-before.hits, after.misses-before.misses, after.coalesced-before.coalesced
	r.cpu = (after.cpu - before.cpu) / requests * 1000
	if n := after.serviceCount - before.serviceCount; n > 0 {
		r.service = (after.serviceTook - before.serviceTook) / n * 1000
	}
	if n := after.peersDone - before.peersDone; n > 0 {
		r.peers = (after.peersTook - before.peersTook) / n * 1000
	}
}

// measureHits measures requests whose data keys are kept.
func (r *rig) measureHits(b *testing.B, read *reader) *hits {
	b.Helper()
	fmt.Fprintln(os.Stderr, "hits")
	services, stop := r.start(b, settings{services: 1, known: true, kept: true, plain: read.plain})
	defer stop()
	read.renew()
	files := read.files(b, hitFiles, false, services...)
	if warm := read.measure(b, files, hitFiles*10, atOnce); warm.failed > 0 {
		b.Fatalf("%d requests of the warm-up failed: %s", warm.failed, warm.reason)
	}
	began := observe(b, services)
	found := &hits{sample: read.rate(b, files, hitRequests, atOnce)}
	before := observe(b, services)
	found.cpu = (before.cpu - began.cpu) / hitRequests * 1000
	if alone := read.rate(b, files, hitsAlone, 1); alone.failed > 0 {
		b.Fatalf("%d requests failed", alone.failed)
	}
	after := observe(b, services)
	found.inside = (after.serviceTook - before.serviceTook) / (after.serviceCount - before.serviceCount) * 1000
	return found
}

// cryptography has the times of single operations with keys in milliseconds.
type cryptography struct{ signature, encryption float64 }

// measureCryptography measures the check of a signature on P-256, and an encryption with an RSA key of 2,048 bits.
func measureCryptography(b *testing.B) cryptography {
	b.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	digest := sha256.Sum256([]byte("request"))
	signature, err := ecdsa.SignASN1(rand.Reader, signer, digest[:])
	if err != nil {
		b.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.Fatal(err)
	}
	return cryptography{
		signature: each(b, func() bool { return ecdsa.VerifyASN1(&signer.PublicKey, digest[:], signature) }),
		encryption: each(b, func() bool {
			_, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, &key.PublicKey, digest[:], nil) //nolint:gosec // what OpenTDF's clients use
			return err == nil
		}),
	}
}

// each returns the median time of an operation in milliseconds. All operations have to succeed.
func each(b *testing.B, operation func() bool) float64 {
	b.Helper()
	took := make([]time.Duration, 5000)
	for i := range took {
		began := time.Now()
		if !operation() {
			b.Fatal("an operation with a good key has failed")
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return milliseconds(took[len(took)/2])
}
