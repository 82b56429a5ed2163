// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// floorSocket names the variable that makes this program a bare server of gRPC.
const floorSocket = "CRYPTO_BROKER_TEST_FLOOR"

func init() {
	if path := os.Getenv(floorSocket); path != "" {
		if err := serveFloor(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// floor is HashData with nothing around it.
type floor struct {
	v1.UnimplementedCryptoServiceServer
}

func (floor) HashData(_ context.Context, request *v1.HashDataRequest) (*v1.HashDataResponse, error) {
	sum := sha256.Sum256(request.GetInput())
	return &v1.HashDataResponse{
		Metadata:    request.GetMetadata(),
		HashValue:   &v1.HashDataResponse_HashValueHex{HashValueHex: hex.EncodeToString(sum[:])},
		Descriptor_: &v1.CryptoDescriptor{Profile: request.GetProfile(), Operation: "HashData", Algorithm: "sha-256"},
	}, nil
}

// serveFloor serves until standard input ends, tuned as the broker is.
func serveFloor(path string) error {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return err
	}
	server := grpc.NewServer(
		grpc.StaticStreamWindowSize(1<<20),
		grpc.StaticConnWindowSize(1<<20),
		grpc.NumStreamWorkers(uint32(max(2, runtime.GOMAXPROCS(0)))),
	)
	v1.RegisterCryptoServiceServer(server, floor{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it only has to end
		server.Stop()
	}()
	fmt.Println("listening")
	return server.Serve(listener)
}

// startFloor runs the bare server in a process of its own.
func startFloor(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("", "floor")
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), floorSocket+"="+path)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := errors.Join(stdin.Close(), cmd.Wait(), os.RemoveAll(dir)); err != nil {
			b.Error(err)
		}
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		b.Fatalf("the bare server said %q: %v", line, err)
	}
	return path
}

// exchangeClient makes the calls of many callers on one stream. A caller whose
// turn it is sends what the others have, too.
type exchangeClient struct {
	stream grpc.ClientStream

	mu      sync.Mutex
	buffer  []byte
	sending bool
	slots   []chan []byte // by id; each holds the reply of one caller
}

// plain passes bytes as they are.
type plain struct{}

func (plain) Name() string { return "proto" }

func (plain) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (plain) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = plain{}

func newExchangeClient(b *testing.B, conn *grpc.ClientConn, callers int) *exchangeClient {
	b.Helper()
	// That of the benchmark ends before the stream can be closed.
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
		"/cryptobroker.stream.v1.StreamService/Exchange", grpc.ForceCodecV2(plain{}))
	if err != nil {
		cancel()
		b.Fatal(err)
	}
	c := &exchangeClient{stream: stream, slots: make([]chan []byte, callers)}
	for i := range c.slots {
		c.slots[i] = make(chan []byte, 1)
	}
	read := make(chan error, 1)
	go func() { read <- c.read() }()
	b.Cleanup(func() {
		defer cancel()
		if err := errors.Join(stream.CloseSend(), <-read); err != nil {
			b.Error(err)
		}
	})
	return c
}

func (c *exchangeClient) read() error {
	for {
		var message []byte
		if err := c.stream.RecvMsg(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			for _, slot := range c.slots {
				close(slot)
			}
			return err
		}
		for len(message) > 0 {
			_, _, n := protowire.ConsumeTag(message)
			reply, m := protowire.ConsumeBytes(message[n:])
			id, k := protowire.ConsumeVarint(reply[1:])
			c.slots[id] <- reply[1+k:]
			message = message[n+m:]
		}
	}
}

// hash makes one call; each id belongs to one caller.
func (c *exchangeClient) hash(id int, request *v1.HashDataRequest) error {
	size := proto.Size(request)
	body := 1 + protowire.SizeVarint(uint64(id)) + 1 + protowire.SizeBytes(size)
	c.mu.Lock()
	c.buffer = protowire.AppendTag(c.buffer, 1, protowire.BytesType)
	c.buffer = protowire.AppendVarint(c.buffer, uint64(body))
	c.buffer = protowire.AppendTag(c.buffer, 1, protowire.VarintType)
	c.buffer = protowire.AppendVarint(c.buffer, uint64(id))
	c.buffer = protowire.AppendTag(c.buffer, 3, protowire.BytesType)
	c.buffer = protowire.AppendVarint(c.buffer, uint64(size))
	var err error
	c.buffer, err = proto.MarshalOptions{}.MarshalAppend(c.buffer, request)
	for !c.sending && len(c.buffer) > 0 && err == nil {
		c.sending = true
		c.mu.Unlock()
		runtime.Gosched() // who is ready to call, too, goes with this message
		c.mu.Lock()
		message := c.buffer
		c.buffer = make([]byte, 0, len(message))
		c.mu.Unlock()
		err = c.stream.SendMsg(message)
		c.mu.Lock()
		c.sending = false
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	reply, open := <-c.slots[id]
	if !open {
		return errors.New("the stream has ended")
	}
	number, _, n := protowire.ConsumeTag(reply)
	if number != 3 {
		return fmt.Errorf("got the result %d, want a hash: %q", number, reply)
	}
	content, _ := protowire.ConsumeBytes(reply[n:])
	var response v1.HashDataResponse
	if err := proto.Unmarshal(content, &response); err != nil {
		return err
	}
	return checked(&response)
}

func checked(reply *v1.HashDataResponse) error {
	if got := reply.GetHashValueHex(); len(got) != 64 {
		return fmt.Errorf("got %q, want a digest", got)
	}
	return nil
}

// BenchmarkExchange measures small hashes from one process to another: by unary
// calls of a bare server of gRPC, by those of the broker, and by its Exchange.
func BenchmarkExchange(b *testing.B) {
	at := newPlace(b, "sha-256")
	start(b, at.args()...).listening()
	bare := startFloor(b)
	request := &v1.HashDataRequest{Profile: "Default", Input: []byte("abc"), Metadata: &v1.Metadata{Id: "4f6b"}}
	unary := func(socket string) func(*testing.B, int) func(int) error {
		return func(b *testing.B, _ int) func(int) error {
			client := v1.NewCryptoServiceClient(connect(b, socket))
			return func(int) error {
				reply, err := client.HashData(b.Context(), request, grpc.WaitForReady(true))
				if err != nil {
					return err
				}
				return checked(reply)
			}
		}
	}
	for _, callers := range []int{1, 16, 64} {
		for _, way := range []struct {
			name string
			make func(*testing.B, int) func(int) error
		}{
			{"bare", unary(bare)},
			{"unary", unary(at.socket(""))},
			{"exchange", func(b *testing.B, callers int) func(int) error {
				client := newExchangeClient(b, connect(b, at.socket("")), callers)
				return func(caller int) error { return client.hash(caller, request) }
			}},
		} {
			b.Run(fmt.Sprintf("callers=%d/%s", callers, way.name), func(b *testing.B) {
				measure(b, callers, way.make(b, callers))
			})
		}
	}
}

// measure makes b.N calls by so many callers at one time.
func measure(b *testing.B, callers int, call func(caller int) error) {
	b.ReportAllocs()
	taken := make([][]time.Duration, callers)
	errs := make([]error, callers)
	var left atomic.Int64
	left.Store(int64(b.N))
	if err := call(0); err != nil { // the connection is there before the time counts
		b.Fatal(err)
	}
	b.ResetTimer()
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				began := time.Now()
				if err := call(caller); err != nil {
					errs[caller] = err
					return
				}
				taken[caller] = append(taken[caller], time.Since(began))
			}
		})
	}
	group.Wait()
	b.StopTimer()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	all := slices.Concat(taken...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1e3, "p50-µs")
}
