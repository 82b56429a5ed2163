// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
)

// limited is a control group with a memory limit, version 2 or version 1.
type limited struct{ dir, procs, peak, kills string }

// limitMemory makes a control group. It returns nil where the test may not.
func limitMemory(t *testing.T, bytes int64) *limited {
	t.Helper()
	list, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("crypto-broker-%d", os.Getpid())
	for line := range strings.Lines(string(list)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		var g limited
		var limit string
		switch fields[1] {
		case "memory":
			g.dir, limit = filepath.Join("/sys/fs/cgroup/memory", fields[2], name), "memory.limit_in_bytes"
			g.peak, g.kills = "memory.max_usage_in_bytes", "memory.oom_control"
		case "":
			g.dir, limit = filepath.Join("/sys/fs/cgroup", fields[2], name), "memory.max"
			g.peak, g.kills = "memory.peak", "memory.events"
		default:
			continue
		}
		if err := os.Mkdir(g.dir, 0o755); err != nil {
			continue // not the one that controls memory here, or not ours to divide
		}
		t.Cleanup(func() {
			if err := os.Remove(g.dir); err != nil {
				t.Error(err)
			}
		})
		if err := os.WriteFile(filepath.Join(g.dir, limit), []byte(strconv.FormatInt(bytes, 10)), 0o644); err != nil {
			continue
		}
		g.procs = filepath.Join(g.dir, "cgroup.procs")
		return &g
	}
	return nil
}

// read returns a file of the group.
func (g *limited) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// startLimited starts a broker with so much memory: in a control group of its own
// where the test may make one, which the broker has to find by itself, else by
// the flag.
func startLimited(t *testing.T, bytes int64, at *place) (*process, *limited) {
	t.Helper()
	group := limitMemory(t, bytes)
	if group == nil {
		return start(t, at.args("--memory-limit", strconv.FormatInt(bytes, 10))...), nil
	}
	shell := `echo $$ > "$0" && exec "$@"`
	return startProgram(t, environment(), "/bin/sh", append([]string{"-c", shell, group.procs, binary}, at.args()...)...), group
}

func TestAThousandLargeCallsAtOnceEndWithinTheMemory(t *testing.T) {
	const calls, limit = 1024, 128 << 20
	for sentence, connections := range map[string]int{
		"over one connection":        1,
		"over sixteen connections":   16,
		"over a hundred connections": 100,
		"each over one of its own":   calls,
	} {
		t.Run(sentence, func(t *testing.T) {
			at := newPlace(t, "sha-256")
			broker, group := startLimited(t, limit, at)
			broker.listening()
			clients := make([]v0.CryptoGrpcClient, connections)
			for i := range clients {
				conn := connect(t, at.socket(""))
				conn.Connect()
				clients[i] = v0.NewCryptoGrpcClient(conn)
			}
			input := make([]byte, 1<<20)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var all sync.WaitGroup
			failures := make(chan error, calls)
			for i := range calls {
				all.Go(func() {
					_, err := clients[i%connections].HashData(ctx, &v0.HashDataRequest{Profile: "Default", Input: input}, grpc.WaitForReady(true))
					if err != nil && status.Code(err) != codes.DeadlineExceeded {
						failures <- err
					}
				})
			}
			all.Wait()
			close(failures)
			var errs []error
			for err := range failures {
				errs = append(errs, err)
			}
			if len(errs) > 0 {
				t.Errorf("%d of %d calls failed, the first by %v", len(errs), calls, errs[0])
			}
			if err := ctx.Err(); err != nil {
				t.Errorf("the calls did not end in time: %v", err)
			}
			select {
			case <-broker.exited:
				t.Error("the broker is gone: ", broker.err)
			default:
			}
			if group != nil {
				t.Logf("highest use %s of %d", group.read(t, group.peak), limit)
				if kills := group.read(t, group.kills); strings.Contains(kills, "oom_kill ") && !strings.Contains(kills, "oom_kill 0") {
					t.Errorf("the system killed something: %q", kills)
				}
			}
			if group == nil {
				if most := broker.mostResident(); most > limit {
					t.Errorf("resident set of %d bytes, expected at most %d", most, limit)
				}
			}
			broker.stop()
		})
	}
}

// mostResident is the largest resident set that a broker ever had, in bytes.
func (p *process) mostResident() int64 { return p.resident("VmHWM:") }

// resident reads a line of the process's status in bytes.
func (p *process) resident(name string) int64 {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name); found {
			kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	p.t.Fatalf("the status has no %s", name)
	return 0
}
