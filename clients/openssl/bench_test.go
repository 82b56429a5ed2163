// SPDX-License-Identifier: Apache-2.0

//go:build unix

package openssl_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// compare measures both implementations in turns, so that other load of the machine affects both alike. It reports the median time
// of an operation with each, and the median of the ratios of a round, and the ratio of the processor time.
func compare(b *testing.B, config openssl.Config, operations int, prepare func(provider) (round func() error)) {
	providers := []provider{goProvider(b, config), opensslProvider(b, config)}
	var rounds []func() error
	for _, p := range providers {
		round := prepare(p)
		// One-time costs, such as the configuration, are not measured.
		if err := round(); err != nil {
			b.Fatal(err)
		}
		rounds = append(rounds, round)
	}
	times, work := make([][]float64, len(providers)), make([]time.Duration, len(providers))
	var ratios []float64
	for b.Loop() {
		for i, round := range rounds {
			begin, worked := time.Now(), processorTime(b)
			if err := round(); err != nil {
				b.Fatal(err)
			}
			times[i] = append(times[i], float64(time.Since(begin).Microseconds())/float64(operations))
			work[i] += processorTime(b) - worked
		}
		ratios = append(ratios, times[1][len(times[1])-1]/times[0][len(times[0])-1])
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(times[0]), "µs-go")
	b.ReportMetric(median(times[1]), "µs-openssl")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(float64(work[1])/float64(work[0]), "cpu-ratio")
}

// processorTime returns what this process, the servers of the benchmark among it, has used of
// processors. Other load of the machine changes it less than the time that passes.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func get(client *http.Client, url string) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func benchmarkGet(b *testing.B, config openssl.Config, keepAlive bool) {
	const requests = 100
	authority := newAuthority(b)
	server := serveHTTP(b, authority.serverConfig(b), func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	config.RootCAs = authority.pem
	compare(b, config, requests, func(p provider) func() error {
		transport := p.http1()
		transport.DisableKeepAlives = !keepAlive
		client := httpClient(b, transport)
		return func() error {
			for range requests {
				if err := get(client, server.URL); err != nil {
					return err
				}
			}
			return nil
		}
	})
}

func BenchmarkGetOverOneConnection(b *testing.B) { benchmarkGet(b, openssl.Config{}, true) }

func BenchmarkGetOverANewConnection(b *testing.B) { benchmarkGet(b, openssl.Config{}, false) }

func BenchmarkGetOverAResumedConnection(b *testing.B) {
	benchmarkGet(b, openssl.Config{SessionCacheSize: 8}, false)
}

func BenchmarkMessagesOfGRPCStreams(b *testing.B) {
	const streams, messages = 100, 20
	authority := newAuthority(b)
	address := serveGRPC(b, authority)
	compare(b, openssl.Config{RootCAs: authority.pem}, streams*messages, func(p provider) func() error {
		client := dialGRPC(b, p, address)
		return func() error {
			ctx, cancel := context.WithTimeout(b.Context(), patience)
			defer cancel()
			failures := make(chan error, streams)
			var working sync.WaitGroup
			for range streams {
				working.Go(func() { failures <- exchange(ctx, client, messages) })
			}
			working.Wait()
			for range streams {
				if err := <-failures; err != nil {
					return err
				}
			}
			return nil
		}
	})
}
