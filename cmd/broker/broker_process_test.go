// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	grpcstatus "google.golang.org/grpc/status"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// hashes asks for a digest. If there is no broker, it waits for one.
func hashes(t testing.TB, conn *grpc.ClientConn) (algorithm string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	reply, err := v0.NewCryptoGrpcClient(conn).HashData(ctx,
		&v0.HashDataRequest{Profile: "Default", Input: []byte("an input that is nobody's business")}, grpc.WaitForReady(true))
	return reply.GetHashAlgorithm(), err
}

func TestABrokerServesWhatItsDirectorySays(t *testing.T) {
	at := newPlace(t, "sha-256")
	broker := start(t, at.args()...)
	status := broker.listening()
	conn := connect(t, at.socket(""))
	if algorithm, err := hashes(t, conn); err != nil || algorithm != "sha-256" {
		t.Fatalf("got %q, %v", algorithm, err)
	}
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n"} {
		if code, body := get(t, status, path); code != http.StatusOK || body != want {
			t.Errorf("%s: got %d %q", path, code, body)
		}
	}
	at.write("- Name: Default\n  API: {HashData: {HashAlg: sha3-512}}\n")
	digest := broker.logged("profiles loaded", 2)["digest"]
	if algorithm, err := hashes(t, conn); err != nil || algorithm != "sha3-512" {
		t.Errorf("got %q, %v", algorithm, err)
	}
	var told struct{ Digest, Since, Reason string }
	for deadline := time.Now().Add(waitLimit); told.Digest != digest; { // the log is a moment ahead
		_, body := get(t, status, "/profiles")
		if err := json.Unmarshal([]byte(body), &told); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("/profiles tells %+v, want digest %s", told, digest)
		}
	}
	if since, err := time.Parse(time.RFC3339Nano, told.Since); err != nil || time.Since(since) > waitLimit || told.Reason != "Loaded" {
		t.Errorf("/profiles tells %+v", told)
	}
	_, metrics := get(t, status, "/metrics")
	for _, want := range []string{
		`crypto_broker_requests_total{code="OK",operation="HashData",profile="Default"} 2`,
		`crypto_broker_request_duration_seconds_count{operation="HashData"} 2`,
		`crypto_broker_profiles_reloads_total{result="loaded"} 2`,
		`crypto_broker_build_info{goversion="go`, `version="v1.2.3"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
}

func TestABrokerWaitsForItsFirstProfiles(t *testing.T) {
	at := newPlace(t, "")
	broker := start(t, at.args()...)
	status := broker.listening()
	health := []string{"health", "--socket", at.socket("")}
	if code, _, stderr := run(t, environment(), health...); code != 1 || stderr != "broker: the broker at "+at.socket("")+" is NOT_SERVING\n" {
		t.Errorf("health: %d %q", code, stderr)
	}
	if code, body := get(t, status, "/readyz"); code != http.StatusServiceUnavailable || body != "not ready: NoProfiles\n" {
		t.Errorf("/readyz: %d %q", code, body)
	}
	if code, _ := get(t, status, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d", code)
	}
	at.write("- Name: Default\n  API: {HashData: {HashAlg: md5}}\n")
	if problem := broker.logged("problem with a profile", 1); problem["line"] != 2.0 || problem["column"] != 29.0 || problem["field"] != "API.HashData.HashAlg" {
		t.Errorf("logged %v", problem)
	}
	at.write("- Name: Default\n  API: {HashData: {HashAlg: sha-256}}\n")
	broker.logged("profiles loaded", 1)
	if code, stdout, stderr := run(t, environment(), health...); code != 0 || stdout != "SERVING\n" {
		t.Errorf("health: %d %q %q", code, stdout, stderr)
	}
	if code, body := get(t, status, "/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d %q", code, body)
	}
}

func TestAProfileThatWasServedAndIsWrongIsToldSinceItIsOutOfService(t *testing.T) {
	const other = "- Name: Other\n  API: {HashData: {HashAlg: sha-256}}\n"
	at := newPlace(t, "")
	at.write(other + "- Name: Default\n  API: {HashData: {HashAlg: sha-256}}\n")
	broker := start(t, at.args()...)
	status := broker.listening()
	at.write(other + "- Name: Default\n  API: {HashData: {HashAlg: md5}}\n")
	line := broker.logged("a profile that the broker served is out of service: its calls fail with FAILED_PRECONDITION until the profile in the file is valid", 1)
	if line["profile"] != "Default" || line["level"] != "WARN" {
		t.Errorf("logged %v", line)
	}
	since, err := time.Parse(time.RFC3339Nano, fmt.Sprint(line["since"]))
	if err != nil {
		t.Fatal(err)
	}
	want := `"reason":"ProfilesRejected","withdrawn":[{"profile":"Default","since":"` + since.UTC().Format("2006-01-02T15:04:05.000Z07:00") + `"}]}`
	for deadline := time.Now().Add(waitLimit); ; { // the log is a moment ahead
		_, told := get(t, status, "/profiles")
		if strings.Contains(told, want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("/profiles tells %s, want %s", told, want)
		}
	}
	if _, err := hashes(t, connect(t, at.socket(""))); grpcstatus.Code(err) != codes.FailedPrecondition {
		t.Errorf("its callers get %v", err)
	}
}

func TestWhatCanNeverSucceedIsLoggedOnceWhenItIsLoaded(t *testing.T) {
	at := newPlace(t, "")
	at.write("- Name: Default\n  API: {HashData: {HashAlg: sha-256}, EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, TagLength: 96}}\n")
	broker := start(t, append(at.args(), "--profiles-poll-interval=20ms")...)
	broker.listening()
	const message = "warning about a profile that is served"
	if warning := broker.logged(message, 1); warning["level"] != "WARN" || warning["line"] != 2.0 || warning["profile"] != "Default" || warning["field"] != "API.EncryptData.TagLength" {
		t.Errorf("logged %v", warning)
	}
	at.write("- Name: Default\n  API: {HashData: {HashAlg: sha-256}}\n") // after that there is nothing to warn about
	broker.logged("profiles loaded", 2)
	times := 0
	for _, line := range broker.log() {
		if line["msg"] == message {
			times++
		}
	}
	if times != 1 {
		t.Errorf("logged %d times", times)
	}
}

func TestABadSetNeverEndsTheServiceOfAGoodOne(t *testing.T) {
	at := newPlace(t, "sha-256")
	broker := start(t, at.args()...)
	status := broker.listening()
	at.write("- Name: [Default\n")
	broker.logged("profiles rejected: the broker goes on serving the last good set", 1)
	if algorithm, err := hashes(t, connect(t, at.socket(""))); err != nil || algorithm != "sha-256" {
		t.Errorf("got %q, %v", algorithm, err)
	}
	if code, body := get(t, status, "/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d %q", code, body)
	}
	if err := os.Remove(filepath.Join(at.profiles, "Profiles.yaml")); err != nil {
		t.Fatal(err)
	}
	broker.logged("profiles rejected: the broker goes on serving the last good set", 2)
	if algorithm, err := hashes(t, connect(t, at.socket(""))); err != nil || algorithm != "sha-256" {
		t.Errorf("got %q, %v", algorithm, err)
	}
}

func TestFiveCallersAreServedAgainAfterTheBrokerWasKilled(t *testing.T) {
	callers := []string{"app-1", "app-2", "app-3", "app-4", "app-5"}
	at := newPlace(t, "sha-256")
	args := at.args("--callers", strings.Join(callers, ","))
	conns := make([]*grpc.ClientConn, len(callers))
	for i, caller := range callers {
		conns[i] = connect(t, at.socket(caller))
	}
	var directories []os.FileInfo
	for life := range 3 {
		broker := start(t, args...)
		for i, conn := range conns {
			if algorithm, err := hashes(t, conn); err != nil || algorithm != "sha-256" {
				t.Fatalf("life %d, %s: got %q, %v", life, callers[i], algorithm, err)
			}
			info, err := os.Stat(filepath.Join(at.sockets, callers[i]))
			if err != nil {
				t.Fatal(err)
			}
			if directories = append(directories, info); !os.SameFile(directories[i], info) {
				t.Errorf("life %d: the directory of %s was replaced", life, callers[i])
			}
		}
		broker.kill(syscall.SIGKILL)
		<-broker.exited
		for i, caller := range callers {
			if _, err := os.Lstat(at.socket(caller)); err != nil {
				t.Errorf("life %d: nothing was left behind, so this test is worth nothing: %v", life, err)
			}
			// A call on a connection that has not seen the end of its broker yet fails: only new connections are tested here.
			if !conns[i].WaitForStateChange(t.Context(), connectivity.Ready) {
				t.Fatalf("life %d, %s: the connection did not see the end of its broker", life, caller)
			}
		}
	}
}

func TestASecondBrokerIsRefusedAndTheFirstGoesOn(t *testing.T) {
	at := newPlace(t, "sha-256")
	start(t, at.args()...).listening()
	code, _, stderr := run(t, environment(), at.args("--log-level", "error")...)
	want := "broker: lock the socket directory " + at.sockets + ": another broker uses the directory: stop that broker or choose another socket directory\n"
	if code != 1 || stderr != want {
		t.Errorf("the second: %d %q, want %q", code, stderr, want)
	}
	if _, err := hashes(t, connect(t, at.socket(""))); err != nil {
		t.Errorf("the first: %v", err)
	}
}

func TestABrokerThatIsToldToStopLeavesNothingButItsDirectories(t *testing.T) {
	for sentence, test := range map[string]struct {
		algorithm string
		signal    syscall.Signal
	}{
		"while it serves":                 {"sha-256", syscall.SIGTERM},
		"by an interrupt":                 {"sha-256", syscall.SIGINT},
		"while it waits for its profiles": {"", syscall.SIGTERM},
	} {
		t.Run(sentence, func(t *testing.T) {
			at := newPlace(t, test.algorithm)
			broker := start(t, at.args("--callers", "app,side")...)
			broker.listening()
			broker.kill(test.signal)
			broker.ends(0)
			broker.logged("stopped", 1)
			for _, caller := range []string{"app", "side"} {
				if left, err := os.ReadDir(filepath.Join(at.sockets, caller)); err != nil || len(left) > 0 {
					t.Errorf("directory of %s: %v, %v, want it there and empty", caller, left, err)
				}
			}
		})
	}
}

func TestABrokerWhoseSocketIsRemovedIsNotReady(t *testing.T) {
	for sentence, remove := range map[string]func(at *place) error{
		"its file":                func(at *place) error { return os.Remove(at.socket("app")) },
		"its directory":           func(at *place) error { return os.RemoveAll(filepath.Join(at.sockets, "app")) },
		"the directory of all":    func(at *place) error { return os.RemoveAll(at.sockets) },
		"its file for another":    func(at *place) error { return os.Rename(at.socket("side"), at.socket("app")) },
		"the directory was moved": func(at *place) error { return os.Rename(at.sockets, at.sockets+"-before") },
	} {
		t.Run(sentence, func(t *testing.T) {
			at := newPlace(t, "sha-256")
			broker := start(t, at.args("--callers", "app,side")...)
			address := broker.listening()
			conn := connect(t, at.socket("app"))
			if _, err := hashes(t, conn); err != nil {
				t.Fatal(err)
			}
			if code, body := get(t, address, contract.ReadyPath); code != http.StatusOK {
				t.Fatalf("with its sockets, found %d %s", code, body)
			}
			if err := remove(at); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				want := "not ready: the file of the socket " + at.socket("app") + " is gone\n"
				if code, body := get(t, address, contract.ReadyPath); code != http.StatusServiceUnavailable || body != want {
					t.Errorf("found %d %s, expected %q", code, body, want)
				}
			}
			broker.logged("clients cannot find a socket any more: its file or a directory above it was removed or replaced; restart the broker", 1)
			if _, err := hashes(t, conn); err != nil {
				t.Errorf("a client that was connected before: %v", err)
			}
		})
	}
}

func TestABrokerThatIsToldToStopWhileItStartsStops(t *testing.T) {
	at := newPlace(t, "sha-256")
	for range 20 {
		broker := start(t, at.args()...)
		broker.kill(syscall.SIGTERM)
		select {
		case <-broker.exited:
		case <-time.After(waitLimit):
			t.Fatal("does not end")
		}
		// If the signal arrives before the program handles it, the system ends the program.
		state := broker.cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !state.Signaled() && state.ExitStatus() != 0 {
			t.Errorf("ended with %d", state.ExitStatus())
		}
		if _, err := os.Lstat(at.socket("")); err == nil && !state.Signaled() {
			t.Error("the socket was left behind")
		}
	}
}

func TestRequestsThatTakeTooLongAreBrokenOffAtTheDeadline(t *testing.T) {
	at := newPlace(t, "sha-256")
	broker := start(t, at.args("--shutdown-timeout", "50ms")...)
	status := broker.listening()
	stream, err := connect(t, at.socket("")).NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, v0.CryptoGrpc_HashData_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(waitLimit); ; {
		if _, metrics := get(t, status, "/metrics"); strings.Contains(metrics, "crypto_broker_requests_in_flight 1") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the request did not begin")
		}
	}
	broker.kill(syscall.SIGTERM)
	broker.ends(0)
	broker.logged("canceled the calls that were not finished at the shutdown timeout", 1)
	if err := stream.RecvMsg(&v0.HashDataResponse{}); err == nil {
		t.Error("the request was answered")
	}
}

func TestNoCallFailsWhileProfilesChange(t *testing.T) {
	at := newPlace(t, "sha-256")
	broker := start(t, at.args()...)
	broker.listening()
	conn := connect(t, at.socket(""))
	var calls atomic.Int64
	stop, done := make(chan struct{}), make(chan error, 4)
	for range cap(done) {
		go func() {
			for {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				if _, err := hashes(t, conn); err != nil {
					done <- err
					return
				}
				calls.Add(1)
			}
		}()
	}
	for change := range 10 {
		at.write(fmt.Sprintf("- Name: Default\n  API: {HashData: {HashAlg: %s}}\n# %d\n", []string{"sha-512", "sha3-256"}[change%2], change))
		broker.logged("profiles loaded", change+2)
	}
	close(stop)
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if calls.Load() == 0 {
		t.Error("no calls were made")
	}
	for _, l := range broker.log() {
		text := fmt.Sprint(l)
		if strings.Contains(text, "nobody's business") {
			t.Errorf("an input was logged: %s", text)
		}
	}
	if n := len(broker.log()); n > 15 {
		t.Errorf("%d lines for %d calls, want none per call", n, calls.Load())
	}
}

func TestMembersOfTheGroupMayConnectAndOthersMayNot(t *testing.T) {
	group := os.Getegid()
	root := os.Geteuid() == 0
	if root {
		group = 60471
	}
	at := newPlace(t, "sha-256")
	start(t, at.args("--callers", "app", "--socket-group", fmt.Sprint(group))...).listening()
	for path, want := range map[string]os.FileMode{
		at.sockets:                       os.ModeDir | 0o750,
		filepath.Join(at.sockets, "app"): os.ModeDir | 0o750,
		at.socket("app"):                 os.ModeSocket | 0o660,
	} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Sys().(*syscall.Stat_t).Gid; info.Mode() != want || int(got) != group {
			t.Errorf("%s: mode %s and group %d, want %s and %d", path, info.Mode(), got, want, group)
		}
	}
	// Only root can become another user.
	if !root {
		return
	}
	for sentence, test := range map[string]struct {
		credential syscall.Credential
		code       int
	}{
		"another user with the group":    {syscall.Credential{Uid: 4711, Gid: 4711, Groups: []uint32{uint32(group)}}, 0},
		"another user without the group": {syscall.Credential{Uid: 4711, Gid: 4711}, 1},
	} {
		health := exec.CommandContext(t.Context(), binary, "health", "--socket", at.socket("app"))
		health.SysProcAttr = &syscall.SysProcAttr{Credential: &test.credential}
		output, err := health.CombinedOutput()
		if health.ProcessState == nil {
			t.Fatal(err)
		}
		if got := health.ProcessState.ExitCode(); got != test.code {
			t.Errorf("%s: exit code %d, want %d: %s", sentence, got, test.code, output)
		}
	}
}
