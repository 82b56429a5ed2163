// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package service_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// asReplica is the variable that makes the process of a test a replica.
const asReplica = "KEY_GATEWAY_REPLICA"

// replica is a gateway in a process of its own.
type replica struct {
	address string
	// authority is the authority of its certificate, in PEM.
	authority string
	process   *exec.Cmd
}

// startReplica runs the test t again as a replica with more variables, which ends with the test.
func startReplica(t *testing.T, variables ...string) *replica {
	t.Helper()
	r := &replica{process: exec.CommandContext(context.Background(), os.Args[0], "-test.run=^"+t.Name()+"$")}
	r.process.Env = append(append(os.Environ(), asReplica+"=1", "TMPDIR="+t.TempDir()), variables...) // a replica that is killed leaves its files
	r.process.Stderr = os.Stderr
	// The replica ends when its standard input does.
	if _, err := r.process.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := r.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.process.Process.Kill() //nolint:errcheck // it may have ended, which Wait says
		_ = r.process.Wait()     // the error of a killed process
	})
	said, authorities := bufio.NewReader(output), ""
	if _, err := fmt.Fscanln(said, &r.address, &authorities); err != nil {
		t.Fatalf("the replica did not start: %v", err)
	}
	text, err := os.ReadFile(authorities)
	if err != nil {
		t.Fatal(err)
	}
	r.authority = string(text)
	return r
}

// serveAsReplica serves until the standard input ends. fill gives the manager its keys.
func serveAsReplica(t *testing.T, fill func(*manager)) {
	t.Helper()
	i := install(t)
	fill(i.manager)
	fmt.Println(i.address, i.authorities)
	_, _ = io.Copy(io.Discard, os.Stdin) // only its end matters
}

// installationAt returns the options with which a client reaches replicas.
func installationAt(t *testing.T, address, authorities string) *installation {
	t.Helper()
	dir := t.TempDir()
	i := &installation{address: address, token: filepath.Join(dir, "token"), authorities: filepath.Join(dir, "ca.crt"), log: &text{}}
	write(t, i.token, "token-of-web")
	write(t, i.authorities, authorities)
	return i
}

func (r *replica) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := r.process.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// virtual is the address of a Service: each connection goes to one replica, in turn, and to no
// other one.
type virtual struct {
	listener net.Listener

	mu       sync.Mutex
	replicas []*replica
	next     int
	used     *replica // by the last connection
}

func startVirtual(t *testing.T, replicas ...*replica) *virtual {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &virtual{listener: listener, replicas: replicas}
	var carrying sync.WaitGroup
	carry := func(from, to net.Conn) {
		_, _ = io.Copy(to, from)        // whichever side ends, both connections end
		_, _ = from.Close(), to.Close() // the other direction may have closed them
	}
	carrying.Go(func() {
		for {
			broker, err := listener.Accept()
			if err != nil {
				return
			}
			gateway, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", v.choose().address)
			if err != nil {
				_ = broker.Close() // nothing listens at this address, so the broker gets an error
				continue
			}
			carrying.Go(func() { carry(broker, gateway) })
			carrying.Go(func() { carry(gateway, broker) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // the cleanup closes it once
		carrying.Wait()
	})
	return v
}

func (v *virtual) choose() *replica {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.used = v.replicas[v.next%len(v.replicas)]
	v.next++
	return v.used
}

// inUse returns the replica of the last connection.
func (v *virtual) inUse() *replica {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.used
}

// replace replaces a replica with another one.
func (v *virtual) replace(old, by *replica) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.replicas {
		if v.replicas[i] == old {
			v.replicas[i] = by
		}
	}
}

func TestCallsGoOnAfterAReplicaIsKilledAndAfterOneIsStopped(t *testing.T) {
	if os.Getenv(asReplica) != "" {
		serveAsReplica(t, func(m *manager) {
			raw := sha256.Sum256([]byte("key"))
			secret(t, m, "orders", raw[:])
		})
		return
	}
	first, second, third := startReplica(t), startReplica(t), startReplica(t)
	service := startVirtual(t, first, second)
	i := installationAt(t, service.listener.Addr().String(), first.authority+second.authority+third.authority)
	client := i.client(t)
	var orders *keys.Key
	eventually(t, "the key is there", func() (err error) {
		orders, err = client.Key(t.Context(), named("orders", profile.OpEncryptData))
		return err
	})
	call := func() error {
		_, _, _, err := orders.Cipher(t.Context()).SealRandom([]byte("m"), nil)
		return err
	}

	// goesOn makes calls until some of the calls that began after the event succeed.
	goesOn := func(event string, happen func()) {
		const callers = 4
		var all sync.WaitGroup
		var happened atomic.Bool
		var failed, succeeded atomic.Int64
		var longest atomic.Int64
		ended := make(chan struct{})
		after := make(chan struct{}, callers)
		for range callers {
			all.Go(func() {
				for done := false; !done; {
					begun, isAfter := time.Now(), happened.Load()
					if err := call(); err != nil {
						failed.Add(1)
					} else {
						succeeded.Add(1)
						if done = isAfter; done {
							after <- struct{}{}
						}
					}
					for took, most := int64(time.Since(begun)), longest.Load(); took > most && !longest.CompareAndSwap(most, took); most = longest.Load() {
					}
					select {
					case <-ended:
						return
					case <-time.After(5 * time.Millisecond):
					}
				}
			})
		}
		eventually(t, "calls succeed before "+event, func() error {
			if succeeded.Load() < 20 {
				return errors.New("fewer than 20 did")
			}
			return nil
		})
		happen()
		happened.Store(true)
		late := time.After(time.Minute)
		for range callers {
			select {
			case <-after:
			case <-late:
				t.Errorf("%s: not all callers had a call that succeeded within a minute", event)
			}
		}
		close(ended)
		all.Wait()
		t.Logf("%s: %d calls succeeded, %d failed, the longest took %s", event, succeeded.Load(), failed.Load(), time.Duration(longest.Load()))
	}
	killed := service.inUse()
	goesOn("a replica is killed", func() { killed.signal(t, syscall.SIGKILL) })
	service.replace(killed, third)
	stopped := service.inUse()
	if stopped == killed {
		t.Fatal("the broker uses the replica that was killed")
	}
	goesOn("a replica is stopped", func() { stopped.signal(t, syscall.SIGSTOP) })
	if !strings.Contains(i.log.String(), "the key gateway does not answer: connecting again") {
		t.Errorf("the broker did not notice that a replica answers nothing, but: %s", i.log)
	}
}
