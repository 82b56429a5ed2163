// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/test/bench/operations"
	"github.com/crypto-broker/crypto-broker-operator/test/loopback"
)

const (
	// caller is the name of the broker's only caller.
	caller = "bench"
	// nobody is the endpoint for spans. No span is sampled, so nothing connects to it.
	nobody = "http://127.0.0.1:1"
)

// logFile is the name of a broker's log, in its folder.
const logFile = "log"

// podMemory is the memory limit that the chart gives brokers in pods, in bytes.
const podMemory = 128 << 20

// manner is how a broker is started.
type manner struct {
	// arguments returns the command line, and creates the folders below dir that it names.
	arguments func(dir, status string) ([]string, error)
	// memory is the limit in bytes, 0 for none.
	memory int64
}

var (
	withEverything = manner{arguments: everything}
	asInjected     = manner{arguments: injected, memory: podMemory}
	withRecords    = manner{arguments: recording}
)

// everything starts the broker with all features that can affect a call.
func everything(dir, status string) ([]string, error) {
	keys := filepath.Join(dir, "k")
	if err := writeKey(keys); err != nil {
		return nil, err
	}
	profiles := filepath.Join(dir, "p")
	if err := writeProfiles(profiles); err != nil {
		return nil, err
	}
	return []string{
		"--profiles-dir", profiles, "--keys-dir", keys, "--socket-dir", filepath.Join(dir, "s"), "--callers", caller,
		"--status-address", status, "--log-level", "warn",
		"--traces-exporter", "otlp", "--traces-protocol", "grpc", "--traces-endpoint", nobody,
		"--traces-sampler", "parentbased_traceidratio", "--traces-sampler-arg", "0",
	}, nil
}

// recording starts the broker with everything and a record of each call in a file. The file is
// small, because the records of a run would fill a disk.
func recording(dir, status string) ([]string, error) {
	arguments, err := everything(dir, status)
	if err != nil {
		return nil, err
	}
	document, problems := profile.Parse(profile.FileName, operations.Profiles)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	for i := range document.Profiles {
		document.Profiles[i].Audit = &profile.Audit{Level: "all"}
	}
	profiles, err := profile.Marshal(document)
	if err != nil {
		return nil, err
	}
	arguments = append(arguments, "--audit-file", filepath.Join(dir, "audit.jsonl"), "--audit-file-size", "16Mi", "--audit-files", "1")
	return arguments, os.WriteFile(filepath.Join(dir, "p", profile.FileName), profiles, 0o600)
}

// injected starts the broker as the webhook does in a pod with signed sets and a Secret
// with keys: with the arguments of webhook/injection/rendering.go and
// webhook/injection/template/seal.go in their order. Only the folders differ, the status port is not
// open to other machines, and the group of the sockets is a group of this program.
func injected(dir, status string) ([]string, error) {
	profiles, keys, sockets := filepath.Join(dir, "p"), filepath.Join(dir, "k"), filepath.Join(dir, "s")
	if err := writeKey(filepath.Join(keys, "broker-keys")); err != nil {
		return nil, err
	}
	if err := writeProfiles(profiles); err != nil {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	const audience, revision = "cluster/namespace/bench", 1
	signature, err := signed.Sign(signed.Statement{
		Audience: audience, Revision: revision, Time: time.Now(), Digest: signed.Digest(operations.Profiles),
	}, private)
	if err != nil {
		return nil, err
	}
	return []string{
		"--profiles-dir=" + profiles,
		"--socket-dir=" + sockets,
		"--trusted-keys=" + signed.FormatKey(public),
		"--state-dir=" + filepath.Join(sockets, ".served"),
		"--callers=" + caller,
		"--socket-group=" + strconv.Itoa(os.Getgid()),
		"--profiles-audience=" + audience,
		"--lowest-revision=" + strconv.Itoa(revision),
		"--status-address=" + status,
		"--log-level=info",
		"--keys-dir=" + keys,
	}, os.WriteFile(filepath.Join(profiles, signed.FileName), signature, 0o600)
}

func writeKey(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "cipher.bin"), make([]byte, 32), 0o600)
}

func writeProfiles(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, profile.FileName), operations.Profiles, 0o600)
}

// startBroker starts the broker and waits until it serves. It returns how long that
// took.
func startBroker(ctx context.Context, o options, programs *programs, as manner) (_ *process, took time.Duration, err error) {
	dir, err := os.MkdirTemp(programs.dir, "b")
	if err != nil {
		return nil, 0, err
	}
	address, err := loopback.Reserve("127.0.0.1")
	if err != nil {
		return nil, 0, err
	}
	arguments, err := as.arguments(dir, address)
	if err != nil {
		return nil, 0, err
	}
	if as.memory > 0 && !programs.grouped {
		arguments = append(arguments, "--memory-limit="+strconv.FormatInt(as.memory, 10))
	}
	p := newProcess(o, dir, exec.Command(programs.broker, arguments...))
	p.socket = filepath.Join(dir, "s", caller, "crypto-broker-server.sock")
	p.tell = func(ctx context.Context) (reported, error) { return readMetrics(ctx, address) }
	p.ask = func() error {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		return nil
	}
	// A broker in a pod also writes its log to standard error.
	log, err := os.Create(filepath.Join(dir, logFile))
	if err != nil {
		return nil, 0, err
	}
	defer log.Close()
	p.cmd.Stderr = log
	if err := p.bound(programs, as.memory); err != nil {
		return nil, 0, err
	}
	began := time.Now()
	if err := p.run(); err != nil {
		return nil, 0, err
	}
	if err := p.answers(ctx); err != nil {
		return nil, 0, errors.Join(err, p.stop())
	}
	return p, time.Since(began), nil
}
