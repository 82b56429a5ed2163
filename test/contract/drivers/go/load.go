// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	cryptobrokerv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
)

// profile and inputSize are of each digest that a load asks for.
const (
	profile   = "Default"
	inputSize = 32
)

// load is a line with a load to make.
type load struct {
	Way       string `json:"way"`
	Operation string `json:"operation"`
	Callers   int    `json:"callers"`
	Millis    int    `json:"millis"`
}

// measured is the line with what was measured. Times are in microseconds.
type measured struct {
	Done      int     `json:"done"`
	Failed    int     `json:"failed"`
	Error     string  `json:"error,omitempty"`
	PerSecond float64 `json:"perSecond"`
	P50       float64 `json:"p50"`
	P99       float64 `json:"p99"`
}

// bare is gRPC's client.
type bare struct {
	crypto cryptobrokerv1.CryptoServiceClient
	health grpc_health_v1.HealthClient
}

// makeLoads makes the load of each line.
func makeLoads() (err error) {
	ctx := context.Background()
	conn, err := grpc.NewClient("unix:"+os.Getenv("CRYPTO_BROKER_SOCKET"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	plain := bare{cryptobrokerv1.NewCryptoServiceClient(conn), grpc_health_v1.NewHealthClient(conn)}
	unary, err := cryptobroker.New(cryptobroker.WithoutExchange())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unary.Close(ctx)) }()
	exchange, err := cryptobroker.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, exchange.Close(ctx)) }()
	calls := map[string]func(context.Context) error{
		"bare HashData": func(ctx context.Context) error {
			_, err := plain.crypto.HashData(ctx, &cryptobrokerv1.HashDataRequest{
				Profile: profile, Input: make([]byte, inputSize), OutputFormat: cryptobrokerv1.HashOutputFormat_HASH_OUTPUT_FORMAT_RAW,
			})
			return err
		},
		"bare Health": func(ctx context.Context) error {
			_, err := plain.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
			return err
		},
		"unary HashData":    func(ctx context.Context) error { return hash(ctx, unary) },
		"exchange HashData": func(ctx context.Context) error { return hash(ctx, exchange) },
		"unary Health": func(ctx context.Context) error {
			_, err := unary.Health(ctx)
			return err
		},
	}
	lines := bufio.NewScanner(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var l load
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return err
		}
		call, ok := calls[l.Way+" "+l.Operation]
		if !ok {
			return fmt.Errorf("found the load %q, expected one of bare, unary and exchange with HashData, or of bare and unary with Health", lines.Text())
		}
		if err := answers.Encode(l.make(ctx, call)); err != nil {
			return err
		}
	}
	return lines.Err()
}

func hash(ctx context.Context, client *cryptobroker.Client) error {
	_, err := client.HashData(ctx, cryptobroker.HashDataRequest{Profile: profile, Input: make([]byte, inputSize)})
	return err
}

// make makes a load: each caller begins its next call when it has its reply.
func (l load) make(ctx context.Context, call func(context.Context) error) measured {
	var group sync.WaitGroup
	times, errs := make([][]time.Duration, l.Callers), make([][]error, l.Callers)
	began := time.Now()
	end := began.Add(time.Duration(l.Millis) * time.Millisecond)
	for i := range l.Callers {
		group.Go(func() {
			for now, more := time.Now(), true; more; more = now.Before(end) {
				if err := call(ctx); err != nil {
					errs[i] = append(errs[i], err)
				}
				after := time.Now()
				times[i] = append(times[i], after.Sub(now))
				now = after
			}
		})
	}
	group.Wait()
	took := time.Since(began)
	all, failed := slices.Concat(times...), slices.Concat(errs...)
	slices.Sort(all)
	m := measured{Done: len(all) - len(failed), Failed: len(failed), PerSecond: float64(len(all)-len(failed)) / took.Seconds()}
	m.P50, m.P99 = percentile(all, 50), percentile(all, 99)
	if len(failed) > 0 {
		m.Error = failed[0].Error()
	}
	return m
}

// percentile returns a percentile of sorted times, in microseconds.
func percentile(sorted []time.Duration, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[len(sorted)*percent/100]) / float64(time.Microsecond)
}
