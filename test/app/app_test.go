// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// answer makes a HashDataResponse by number.
func answer(algorithm, hashHex, id string) []byte {
	metadata := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), id)
	message := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), algorithm)
	message = protowire.AppendBytes(protowire.AppendTag(message, 3, protowire.BytesType), metadata)
	return protowire.AppendString(protowire.AppendTag(message, 4, protowire.BytesType), hashHex)
}

// serve answers every call on a new socket with what reply returns, until the test ends.
func serve(t *testing.T, reply func(method string, request []byte) ([]byte, error)) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "broker.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			var request []byte
			if err := stream.RecvMsg(&request); err != nil {
				return err
			}
			response, err := reply(method, request)
			if err != nil {
				return err
			}
			return stream.SendMsg(&response)
		}))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// right gives the answer of a broker that hashes with SHA-256.
func right(method string, request []byte) ([]byte, error) {
	if method == healthMethod {
		return []byte{8, 1}, nil
	}
	var input, id []byte
	err := fields(request, func(number protowire.Number, value []byte, _ uint64) error {
		switch number {
		case 2:
			input = value
		case 3:
			id = value[2:] // one field of less than 128 bytes
		}
		return nil
	})
	digest := sha256.Sum256(input)
	return answer("sha-256", hex.EncodeToString(digest[:]), string(id)), err
}

func TestTheRequestIsWrittenByTheReleasedFieldNumbers(t *testing.T) {
	found := encodeHashData("Default", []byte("abc"), "7")
	want := "\x0a\x07Default" + "\x12\x03abc" + "\x1a\x03\x0a\x017"
	if string(found) != want {
		t.Errorf("found %q, expected %q", found, want)
	}
}

func TestCalls(t *testing.T) {
	var n atomic.Int64
	for sentence, each := range map[string]struct {
		reply           func(method string, request []byte) ([]byte, error)
		failed, retries int64
		says            string
	}{
		"a right answer is a call that succeeded": {reply: right},
		"an unavailable broker is asked again": {retries: 2, reply: func(method string, request []byte) ([]byte, error) {
			if method == hashDataMethod && n.Add(1) <= 2 {
				return nil, status.Error(codes.Unavailable, "starting")
			}
			return right(method, request)
		}},
		"a broker that stays unavailable fails the call after five attempts": {failed: 3, retries: 12, says: "draining",
			reply: func(method string, request []byte) ([]byte, error) {
				if method == hashDataMethod {
					return nil, status.Error(codes.Unavailable, "draining")
				}
				return right(method, request)
			}},
		"a refusal fails the call at once": {failed: 3, says: "no such profile",
			reply: func(method string, request []byte) ([]byte, error) {
				if method == hashDataMethod {
					return nil, status.Error(codes.InvalidArgument, "no such profile")
				}
				return right(method, request)
			}},
		"a wrong digest fails the call": {failed: 3, says: "expected", reply: func(method string, _ []byte) ([]byte, error) {
			if method == hashDataMethod {
				return answer("sha-256", "00", "1"), nil
			}
			return []byte{8, 1}, nil
		}},
		"an answer without an algorithm fails the call": {failed: 3, says: "field 2",
			reply: func(method string, request []byte) ([]byte, error) {
				if method == hashDataMethod {
					return []byte{}, nil
				}
				return right(method, request)
			}},
		"a malformed answer fails the call": {failed: 3, says: "malformed", reply: func(method string, request []byte) ([]byte, error) {
			if method == hashDataMethod {
				return []byte{0x12, 0x7f}, nil
			}
			return right(method, request)
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			record := newRecorder("Default", &bytes.Buffer{})
			broker, err := connect(t.Context(), serve(t, each.reply), time.Minute, record.retried)
			if err != nil {
				t.Fatal(err)
			}
			broker.pause = time.Microsecond
			for call := range int64(3) {
				hashOnce(t.Context(), "Default", call+1, broker, record)
			}
			found := record.snapshot()
			if found.Calls != 3 || found.Failed != each.failed || found.Retries != each.retries {
				t.Errorf("found %+v, expected 3 calls, %d failed, %d repetitions", found, each.failed, each.retries)
			}
			if all := strings.Join(found.Errors, "\n"); !strings.Contains(all, each.says) {
				t.Errorf("found the errors %q, expected one with %q", all, each.says)
			}
			if err := broker.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAJobEndsAfterItsCallsAndSaysWhatItSaw(t *testing.T) {
	var output bytes.Buffer
	o := options{socket: serve(t, right), profile: "Default", workers: 3, calls: 20, statsAddress: "127.0.0.1:0"}
	if err := run(t.Context(), o, newRecorder("Default", &output)); err != nil {
		t.Fatal(err)
	}
	var events []string
	for line := range strings.Lines(output.String()) {
		var event struct{ Event string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("the line %q is no JSON: %v", line, err)
		}
		events = append(events, event.Event)
	}
	if found := strings.Join(events, ", "); found != "started, first hash, ended" {
		t.Errorf("found the events %s in %s", found, output.String())
	}
}

func TestAJobFailsWhenACallFailed(t *testing.T) {
	o := options{profile: "Default", workers: 1, calls: 2, statsAddress: "off",
		socket: serve(t, func(method string, request []byte) ([]byte, error) {
			if method == hashDataMethod {
				return nil, status.Error(codes.PermissionDenied, "not you")
			}
			return right(method, request)
		})}
	err := run(t.Context(), o, newRecorder("Default", &bytes.Buffer{}))
	if err == nil || !strings.Contains(err.Error(), "2 of 2 calls made, 2 of them failed") {
		t.Errorf("found the error %v", err)
	}
}

func TestABrokerThatNeverComesIsAnErrorThatNamesTheSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "none.sock")
	_, err := connect(context.Background(), socket, 50*time.Millisecond, func(error) {})
	if err == nil || !strings.Contains(err.Error(), socket) {
		t.Errorf("found the error %v, expected one that names %s", err, socket)
	}
}

func TestAnAnswerOvertakenByTheFirstOneAfterAChangeIsNoChangeBack(t *testing.T) {
	record := newRecorder("Default", &bytes.Buffer{})
	start := time.Now()
	at := func(milliseconds int) time.Time { return start.Add(time.Duration(milliseconds) * time.Millisecond) }
	record.hashed("sha-256", at(0), at(1))
	record.hashed("sha-512", at(2), at(4))
	record.hashed("sha-256", at(3), at(5)) // began before the new algorithm was seen
	record.hashed("sha-512", at(6), at(7))
	record.hashed("sha-256", at(8), at(9)) // began after it
	found := record.snapshot()
	var order []string
	for _, each := range found.Observed {
		order = append(order, each.Algorithm)
	}
	if got := strings.Join(order, " "); got != "sha-256 sha-512 sha-256" {
		t.Errorf("found the order %s", got)
	}
	if found.Observed[0].Calls != 2 || found.Algorithm != "sha-256" {
		t.Errorf("found %+v", found)
	}
	if seen, ok := found.Seen("sha-256", at(2)); !ok || !seen.Equal(at(9)) {
		t.Errorf("found sha-256 seen again at %v (%v), expected %v", seen, ok, at(9))
	}
}

func TestEveryReleasedAlgorithmIsChecked(t *testing.T) {
	for algorithm, abc := range map[string]string{
		"sha-256":     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		"sha-512/256": "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23",
		"sha3-256":    "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532",
		"shake-128":   "5881092dd818bf5cf8a3ddb793fbcba7",
		"shake-256":   "483366601360a8771c6863080cc4114d8db44530f8f1e1ee4f94ea37e78b5739",
	} {
		if err := checkDigest(algorithm, []byte("abc"), abc); err != nil {
			t.Error(err)
		}
	}
	if err := checkDigest("md5", nil, ""); err == nil {
		t.Error("an unknown algorithm was taken")
	}
}

func TestOptions(t *testing.T) {
	for sentence, each := range map[string]struct {
		arguments   []string
		environment map[string]string
		says        string
	}{
		"a number of calls that is none is refused by name":   {environment: map[string]string{"CALLS": "many"}, says: "CALLS"},
		"no workers at all are refused":                       {arguments: []string{"--workers", "0"}, says: "1 to 1000"},
		"an argument is refused":                              {arguments: []string{"fast"}, says: `"fast"`},
		"a negative interval is refused":                      {arguments: []string{"--interval", "-1s"}, says: "negative"},
		"an option wins over the environment":                 {arguments: []string{"--calls", "1"}, environment: map[string]string{"CALLS": "2"}},
		"the environment alone is enough in a pod's manifest": {environment: map[string]string{"PROFILE": "A", "INTERVAL": "1ms"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := parseOptions(each.arguments, func(name string) string { return each.environment[name] })
			if each.says == "" {
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), each.says) {
				t.Errorf("found the error %v, expected one with %q", err, each.says)
			}
		})
	}
}

func TestAddingTheSameErrorAgainKeepsOneText(t *testing.T) {
	record := newRecorder("Default", &bytes.Buffer{})
	for range 3 {
		record.failed(errors.New("no"))
	}
	if found := record.snapshot(); len(found.Errors) != 1 || found.Failed != 3 {
		t.Errorf("found %+v", found)
	}
}
