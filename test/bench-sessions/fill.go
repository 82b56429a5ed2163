// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sessionv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/session/v1"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// memoryLimit is the memory limit of the filled broker.
const memoryLimit = "512Mi"

// filled has the costs of a broker with many sessions.
type filled struct {
	sessions int
	failed   int64
	// before and after are the resident memory of the broker, in bytes.
	before, after int64
	empty, full   sample // requests with 10 connections
}

// fill begins sessions in a broker with a memory limit, and measures its memory and its requests.
func fill(ctx context.Context, p *programs, sessions int) (_ *filled, err error) {
	fmt.Fprintf(os.Stderr, "%d sessions in one broker\n", sessions)
	r, err := newRunning()
	if err != nil {
		return nil, err
	}
	defer r.stop()
	socket, err := r.startBroker(ctx, p, "--memory-limit", memoryLimit)
	if err != nil {
		return nil, err
	}
	f := &filled{sessions: sessions}
	target := []string{"--socket", socket, "--profile", "Session"}
	if f.empty, err = bench(ctx, p, target, "request", 10, 3*time.Second); err != nil {
		return nil, err
	}
	if f.before, err = r.resident(); err != nil {
		return nil, err
	}
	if f.failed, err = begin(ctx, socket, sessions); err != nil {
		return nil, err
	}
	if f.after, err = r.resident(); err != nil {
		return nil, err
	}
	f.full, err = bench(ctx, p, target, "request", 10, 3*time.Second)
	return f, err
}

// begin begins sessions of one hour, and returns how many failed.
func begin(ctx context.Context, socket string, sessions int) (int64, error) {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }() // the replies are here
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return 0, err
	}
	public := base64.StdEncoding.EncodeToString(own.PublicKey().Bytes())
	broker := sessionv1.NewSessionServiceClient(conn)
	var next, failed atomic.Int64
	var group errgroup.Group
	for range 16 {
		group.Go(func() error {
			for next.Add(1) <= int64(sessions) && ctx.Err() == nil {
				if _, err := broker.InitSession(ctx, &sessionv1.InitSessionRequest{
					Profile: "Session", KeyAgreement: "ECDH_P256", ClientPublicKey: public, TtlSec: 3600, Nonce: rand.Text(),
					Timestamp: strconv.FormatInt(time.Now().UnixMilli(), 10),
				}); err != nil {
					failed.Add(1)
				}
			}
			return ctx.Err()
		})
	}
	err = group.Wait()
	return failed.Load(), err
}

// resident returns the resident memory of the first process, in bytes.
func (r *running) resident() (int64, error) {
	memory, err := measurement.ProcessMemory(r.started[0].Process.Pid, "VmRSS")
	if err != nil {
		return 0, err
	}
	return memory[0], nil
}
