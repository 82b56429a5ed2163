// SPDX-License-Identifier: Apache-2.0

package framed_test

import (
	"bytes"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/test/bench/framed"
	"github.com/crypto-broker/crypto-broker-operator/test/bench/operations"
)

const callers = 16

// servers are the ways of serving, with what connects to them.
var servers = map[string]struct {
	serve func(net.Listener, *operations.Operations) error
	dial  func(string, int) ([]*framed.Client, func() error, error)
}{
	"a connection for each caller": {framed.Serve, framed.Dial},
	"one connection for all":       {framed.ServeMultiplexed, framed.DialShared},
	"one stream of gRPC for all":   {serveStream, dialStream},
}

func serveStream(listener net.Listener, service *operations.Operations) error {
	if err := framed.NewStreamServer(service).Serve(listener); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func dialStream(socket string, callers int) ([]*framed.Client, func() error, error) {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, err
	}
	return framed.DialStream(conn, callers)
}

func TestEachCallerGetsTheReplyToItsOwnRequest(t *testing.T) {
	for sentence, server := range servers {
		t.Run(sentence, func(t *testing.T) {
			clients, end, service := start(t, server.serve, server.dial)
			var all sync.WaitGroup
			for caller, client := range clients {
				all.Go(func() {
					// Small inputs are served where they are received, large ones are not,
					// and the largest are not copied.
					for _, size := range []int{1, 100, 5_000, 100_000, 7} {
						input := bytes.Repeat([]byte{byte(caller)}, size)
						for range 20 {
							got, err := client.Digest(&v1.HashDataRequest{Profile: operations.SHA256, Input: input})
							want, _, wrong := service.Digest(nil, operations.SHA256, input)
							if err := errors.Join(err, wrong); err != nil || !bytes.Equal(got, want) {
								t.Errorf("caller %d, %d bytes: got %x and the error %v, want %x", caller, size, got, err, want)
								return
							}
						}
					}
				})
			}
			all.Wait()
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnEncryptionIsThatOfTheOperation(t *testing.T) {
	for sentence, server := range servers {
		t.Run(sentence, func(t *testing.T) {
			clients, end, service := start(t, server.serve, server.dial)
			key, nonce, plaintext := bytes.Repeat([]byte{7}, 32), make([]byte, 12), []byte("text")
			got, err := clients[3].Encrypt(&v1.EncryptDataRequest{
				KeySource: &v1.KeySource{Source: &v1.KeySource_RawKey{RawKey: key}}, Plaintext: plaintext,
				EncryptMetadata: &v1.EncryptMetadata{Nonce: nonce},
			})
			if err != nil {
				t.Fatal(err)
			}
			want, _, err := service.Encrypt(operations.AESGCM, key, nonce, plaintext)
			if err != nil || !bytes.Equal(got, append(want.Ciphertext, want.Tag...)) {
				t.Errorf("got %x, want %x and %x (%v)", got, want.Ciphertext, want.Tag, err)
			}
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnErrorReachesItsCallerAlone(t *testing.T) {
	for sentence, server := range servers {
		t.Run(sentence, func(t *testing.T) {
			clients, end, _ := start(t, server.serve, server.dial)
			_, err := clients[0].Certificate(&v1.SignCertificateRequest{Profile: "Nobody's"})
			if err == nil || !strings.Contains(err.Error(), `there is no profile "Nobody's"`) {
				t.Errorf("got the error %v", err)
			}
			for _, client := range clients {
				if _, err := client.Digest(&v1.HashDataRequest{Profile: operations.Default, Input: []byte("text")}); err != nil {
					t.Error(err)
				}
			}
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCallsFailOnceTheConnectionIsClosed(t *testing.T) {
	for sentence, server := range servers {
		t.Run(sentence, func(t *testing.T) {
			clients, end, _ := start(t, server.serve, server.dial)
			if err := end(); err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for _, client := range clients {
				all.Go(func() {
					if _, err := client.Digest(&v1.HashDataRequest{Profile: operations.Default}); err == nil {
						t.Error("a call succeeded")
					}
				})
			}
			all.Wait()
		})
	}
}

func start(t *testing.T, serve func(net.Listener, *operations.Operations) error, dial func(string, int) ([]*framed.Client, func() error, error)) ([]*framed.Client, func() error, *operations.Operations) {
	t.Helper()
	service, err := operations.New()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve(listener, service) }()
	t.Cleanup(func() {
		if err := errors.Join(listener.Close(), <-ended); err != nil {
			t.Error(err)
		}
	})
	clients, end, err := dial(socket, callers)
	if err != nil {
		t.Fatal(err)
	}
	return clients, end, service
}
