// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// The method and the numbers of its fields, written down a second time.
const (
	methodHashStream = "/cryptobroker.stream.v1.StreamService/HashStream"

	partStart, partChunk = 1, 2
)

// OpenStream begins a stream of messages that are passed as they are.
func openStream(t testing.TB, conn *grpc.ClientConn, method string) grpc.ClientStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	t.Cleanup(cancel)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodecV2(wire{}))
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// send sends a message. If the stream has ended, receiving returns the reason.
func send(t testing.TB, stream grpc.ClientStream, m message) {
	t.Helper()
	if err := stream.SendMsg([]byte(m)); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

func receive(t testing.TB, stream grpc.ClientStream) ([]byte, error) {
	t.Helper()
	var reply []byte
	err := stream.RecvMsg(&reply)
	return reply, err
}

// hashStream sends all messages and returns the reply.
func hashStream(t testing.TB, conn *grpc.ClientConn, messages ...message) ([]byte, error) {
	t.Helper()
	stream := openStream(t, conn, methodHashStream)
	for _, m := range messages {
		send(t, stream, m)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	return receive(t, stream)
}

func startOf(start message) message { return message{}.bytes(partStart, start) }
func chunk(data string) message     { return message{}.text(partChunk, data) }

func TestAStreamOfChunksHasTheDigestOfTheWhole(t *testing.T) {
	raw, err := hex.DecodeString(abc)
	if err != nil {
		t.Fatal(err)
	}
	descriptor := string(message{}.text(1, "P").text(2, "HashData").text(3, "sha-256"))
	metadata := message{}.text(metadataID, "id").bytes(metadataTrace, message{}.text(traceCorrelationID, "order 4711")).text(99, "later")
	begin := startOf(message{}.text(requestProfile, "P"))
	largest := strings.Repeat("0123456789abcdef", 1<<20/16)
	sum := sha256.Sum256([]byte(largest + "abc"))
	conn := connect(t, start(t, sha256Profile).socket(""))
	for sentence, test := range map[string]struct {
		messages []message
		want     []field
	}{
		"a chunk in many frames": {
			[]message{begin, chunk(largest), chunk("abc")},
			[]field{{2, hex.EncodeToString(sum[:])}, {4, descriptor}},
		},
		"a chunk in many frames, with a field that is not known": {
			[]message{begin, chunk(largest).number(10, 1), chunk("abc")},
			[]field{{2, hex.EncodeToString(sum[:])}, {4, descriptor}},
		},
		"one chunk": {
			[]message{begin, chunk("abc")},
			[]field{{2, abc}, {4, descriptor}},
		},
		"several chunks, an empty one among them": {
			[]message{begin, chunk("a"), chunk(""), chunk("bc")},
			[]field{{2, abc}, {4, descriptor}},
		},
		"no chunk": {
			[]message{begin},
			[]field{{2, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}, {4, descriptor}},
		},
		"raw, with metadata": {
			[]message{startOf(message{}.text(requestProfile, "P").bytes(requestMetadata, metadata).number(requestFormat, 2)), chunk("abc")},
			[]field{{1, string(metadata)}, {3, string(raw)}, {4, descriptor}},
		},
		"fields that are not known": {
			[]message{startOf(message{}.text(requestProfile, "P").text(77, "later")).text(9, "later"), chunk("abc").number(10, 1)},
			[]field{{2, abc}, {4, descriptor}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			reply, err := hashStream(t, conn, test.messages...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, fields(t, reply)); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAStreamOfChunksIsRefusedWithASentence(t *testing.T) {
	b := start(t, sha256Profile+"- Name: Q\n  API: {SignData: {SignAlg: ed25519}}\n"+
		"- Name: R\n  API: {HashData: {HashAlg: SHA-256}}\n  Callers: {Containers: [other]}\n", "app", "other")
	conn := connect(t, b.socket("app"))
	begin := startOf(message{}.text(requestProfile, "P"))
	for sentence, test := range map[string]struct {
		messages []message
		code     codes.Code
		want     string
	}{
		"nothing": {nil, codes.InvalidArgument, "HashData: start is missing, expected it in the first message"},
		"a chunk before the start": {
			[]message{chunk("abc")}, codes.InvalidArgument, "HashData: start is missing, expected it in the first message",
		},
		"a second start": {
			[]message{begin, begin}, codes.InvalidArgument, "HashData: start is there again, expected it in the first message only",
		},
		"an empty message": {
			[]message{begin, {}}, codes.InvalidArgument, "HashData: a message is empty, expected a start or a chunk",
		},
		"both in one message": {
			[]message{begin.text(partChunk, "abc")}, codes.InvalidArgument, "HashData: a message has more than one part, expected a start or a chunk",
		},
		"a chunk that is too large": {
			[]message{begin, chunk(strings.Repeat("x", 1<<20+1))}, codes.InvalidArgument, "HashData: chunk has 1048577 bytes, expected at most 1048576",
		},
		"metadata that is too large": {
			[]message{startOf(message{}.text(requestProfile, "P").bytes(requestMetadata, message{}.bytes(77, make([]byte, 1<<20))))},
			codes.InvalidArgument, "HashData: start.metadata has 1048585 bytes, expected at most 8192",
		},
		"a profile that is not served": {
			[]message{startOf(message{}.text(requestProfile, "nope"))}, codes.InvalidArgument,
			`HashData with profile "nope": no profile of this name is served`,
		},
		"a profile without the operation": {
			[]message{startOf(message{}.text(requestProfile, "Q"))}, codes.FailedPrecondition,
			`HashData with profile "Q": the profile does not offer this operation`,
		},
		"a format that is not known": {
			[]message{startOf(message{}.text(requestProfile, "P").number(requestFormat, 3))}, codes.InvalidArgument,
			"HashData: outputFormat is 3, expected 0 or 1 (hex) or 2 (raw)",
		},
		"metadata that is too long": {
			[]message{startOf(message{}.text(requestProfile, "P").bytes(requestMetadata, message{}.text(metadataID, strings.Repeat("x", 129))))}, codes.InvalidArgument,
			"HashData: metadata.id has 129 bytes, expected at most 128",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := hashStream(t, conn, test.messages...)
			if got := status.Convert(err); got.Code() != test.code || got.Message() != test.want {
				t.Errorf("got %s %q\nwant %s %q", got.Code(), got.Message(), test.code, test.want)
			}
		})
	}
	t.Run("a caller that the profile does not allow", func(t *testing.T) {
		_, err := hashStream(t, conn, startOf(message{}.text(requestProfile, "R")))
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("got %v, want PermissionDenied", err)
		}
	})
	t.Run("a chunk that is cut off, with a size in more bytes than needed", func(t *testing.T) {
		_, err := hashStream(t, conn, begin, message{partChunk<<3 | 2, 0x85, 0x00, 'a', 'b', 'c', 'd'})
		const want = "HashData: a message is not a cryptobroker.stream.v1.HashStreamRequest: unexpected EOF"
		if got := status.Convert(err); got.Code() != codes.InvalidArgument || got.Message() != want {
			t.Errorf("got %v, want InvalidArgument %q", err, want)
		}
	})
	t.Run("bytes that are no message", func(t *testing.T) {
		_, err := hashStream(t, conn, message{0xff})
		if got := status.Convert(err); got.Code() != codes.InvalidArgument || !strings.HasPrefix(got.Message(), "HashData: a message is not a cryptobroker.stream.v1.HashStreamRequest: ") {
			t.Errorf("got %v, want InvalidArgument that says so", err)
		}
	})
}

func TestALargeInputIsHashedInLittleMemory(t *testing.T) {
	conn := connect(t, start(t, sha256Profile).socket(""))
	stream := openStream(t, conn, methodHashStream)
	send(t, stream, startOf(message{}.text(requestProfile, "P")))
	part := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	m := message{}.bytes(partChunk, part)
	whole := sha256.New()
	var before, after runtime.MemStats
	var largest uint64
	runtime.ReadMemStats(&before)
	for range 128 {
		send(t, stream, m)
		whole.Write(part)
		runtime.ReadMemStats(&after)
		largest = max(largest, after.HeapAlloc)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	reply, err := receive(t, stream)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := parse(t, reply)[2], hex.EncodeToString(whole.Sum(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// The stream had 128 MiB, and the copies of the client are in the same process.
	if used := largest - min(largest, before.HeapAlloc); used > 48<<20 {
		t.Errorf("up to %d MiB were in use, want little", used>>20)
	}
}

func TestAStreamOfChunksIsCountedAsAHash(t *testing.T) {
	b := start(t, sha256Profile)
	conn := connect(t, b.socket(""))
	if _, err := hashStream(t, conn, startOf(message{}.text(requestProfile, "P")), chunk("abc")); err != nil {
		t.Fatal(err)
	}
	if _, err := hashStream(t, conn, chunk("abc")); err == nil {
		t.Error("a chunk without a start was hashed")
	}
	awaitMetrics(t, b,
		`crypto_broker_requests_total{code="OK",operation="HashData",profile="P"} 1`,
		`crypto_broker_requests_total{code="InvalidArgument",operation="HashData",profile="unknown"} 1`,
		`crypto_broker_requests_in_flight 0`)
}

// awaitMetrics waits until all lines are there.
func awaitMetrics(t testing.TB, b *broker, lines ...string) {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); ; {
		text := b.metricsText(t)
		missing := ""
		for _, line := range lines {
			if !strings.Contains(text, line+"\n") {
				missing = line
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not there in\n%s", missing, text)
		}
	}
}

func TestAStreamOfChunksThatDoesNotGoOnEnds(t *testing.T) {
	b := startWith(t, sha256Profile, nil, server.WithIdleTime(50*time.Millisecond))
	stream := openStream(t, connect(t, b.socket("")), methodHashStream)
	send(t, stream, startOf(message{}.text(requestProfile, "P")))
	_, err := receive(t, stream)
	if got := status.Convert(err); got.Code() != codes.DeadlineExceeded || got.Message() != "HashData: no chunk came within 50ms" {
		t.Errorf("got %v", err)
	}
	awaitMetrics(t, b, `crypto_broker_requests_total{code="DeadlineExceeded",operation="HashData",profile="P"} 1`)
}

func TestAClientMayGiveUpAStreamOfChunks(t *testing.T) {
	b := start(t, sha256Profile)
	conn := connect(t, b.socket(""))
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, methodHashStream, grpc.ForceCodecV2(wire{}))
	if err != nil {
		t.Fatal(err)
	}
	send(t, stream, startOf(message{}.text(requestProfile, "P")))
	awaitMetrics(t, b, `crypto_broker_requests_in_flight 1`)
	cancel()
	awaitMetrics(t, b, `crypto_broker_requests_in_flight 0`)
}

func TestShutdownWaitsForAStreamOfChunks(t *testing.T) {
	b := start(t, sha256Profile)
	stream := openStream(t, connect(t, b.socket("")), methodHashStream)
	send(t, stream, startOf(message{}.text(requestProfile, "P")))
	awaitMetrics(t, b, `crypto_broker_requests_in_flight 1`)
	done := make(chan error, 1)
	go func() { done <- b.Shutdown(t.Context()) }()
	for deadline := time.Now().Add(waitLimit); dial(t, b.socket("")) == nil; {
		if time.Now().After(deadline) {
			t.Fatal("the socket still takes connections")
		}
	}
	send(t, stream, chunk("abc"))
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	reply, err := receive(t, stream)
	if err != nil {
		t.Fatal(err)
	}
	if got := parse(t, reply)[2]; got != abc {
		t.Errorf("got %s, want %s", got, abc)
	}
	if err := <-done; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// The start is kept for as long as the stream lasts.
func TestTheStartOfAStreamOfChunksHasTheLimitsOfRequests(t *testing.T) {
	conn := connect(t, start(t, sha256Profile).socket(""))
	_, err := hashStream(t, conn, startOf(manyFields(message{}.text(requestProfile, "P"), 257)), chunk("abc"))
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("more than 256 fields: got %v, want InvalidArgument", err)
	}
}
