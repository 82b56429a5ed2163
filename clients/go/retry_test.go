// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
	cryptobrokerv1 "github.com/crypto-broker/crypto-broker-operator/clients/go/internal/stubs/cryptobroker/v1"
)

func TestNoCallIsLostWhileTheBrokerIsKilledAndRestarted(t *testing.T) {
	broker := startBroker(t)
	client := newClient(t, broker.socket)
	sealed, err := client.EncryptData(withTimeout(t), cryptobroker.EncryptDataRequest{Profile: "Orders", Key: cryptobroker.KeyID("orders"), Plaintext: []byte("boxes")})
	if err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 200_000)
	operations := []func(context.Context, int) error{
		func(ctx context.Context, n int) error {
			input := fmt.Appendf(nil, "input %d", n)
			got, err := client.HashData(ctx, cryptobroker.HashDataRequest{Profile: "Default", Input: input})
			if want := sha256.Sum256(input); err == nil && string(got.Digest) != string(want[:]) {
				err = fmt.Errorf("the digest of %s is %s", input, got.Hex())
			}
			return err
		},
		func(ctx context.Context, _ int) error {
			got, err := client.DecryptData(ctx, cryptobroker.DecryptDataRequest{
				Profile: "Orders", Key: cryptobroker.KeyID("orders"), Ciphertext: sealed.Ciphertext, Nonce: sealed.Nonce, Tag: sealed.Tag,
			})
			if err == nil && string(got.Plaintext) != "boxes" {
				err = fmt.Errorf("decrypted to %q", got.Plaintext)
			}
			return err
		},
		func(ctx context.Context, _ int) error {
			_, err := client.EncryptData(ctx, cryptobroker.EncryptDataRequest{Profile: "Orders", Key: cryptobroker.KeyID("orders"), Plaintext: []byte("x")})
			return err
		},
		// Too large for the stream.
		func(ctx context.Context, _ int) error {
			got, err := client.HashData(ctx, cryptobroker.HashDataRequest{Profile: "Default", Input: large})
			if want := sha256.Sum256(large); err == nil && string(got.Digest) != string(want[:]) {
				err = errors.New("the digest of a large input is wrong")
			}
			return err
		},
	}
	var done atomic.Bool
	var calls atomic.Int64
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := 0; !done.Load(); n++ {
				if err := operations[i%len(operations)](withTimeout(t), n); err != nil {
					t.Errorf("caller %d: %v", i, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	kills := 10
	if testing.Short() {
		kills = 3
	}
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for range kills {
		<-every.C
		if err := broker.stop(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		if err := broker.start(); err != nil {
			t.Fatal(err)
		}
	}
	// The stream continues after each restart, including the last one.
	for seen := calls.Load(); calls.Load() < seen+100 && !t.Failed(); {
		hashOne(t, client)
	}
	done.Store(true)
	group.Wait()
	t.Logf("%d calls and %d kills", calls.Load(), kills)
}

func TestNoCallIsLostWhileTheBrokerIsReplacedInOrder(t *testing.T) {
	broker := startBroker(t)
	client := newClient(t, broker.socket)
	var done atomic.Bool
	var calls atomic.Int64
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for !done.Load() {
				if _, err := client.HashData(withTimeout(t), cryptobroker.HashDataRequest{Profile: "Default"}); err != nil {
					t.Errorf("caller %d: %v", i, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	for range 5 {
		for seen := calls.Load(); calls.Load() < seen+100 && !t.Failed(); {
			hashOne(t, client)
		}
		if err := broker.stop(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := broker.start(); err != nil {
			t.Fatal(err)
		}
	}
	hashOne(t, client)
	done.Store(true)
	group.Wait()
}

func hashOne(t *testing.T, client *cryptobroker.Client) {
	t.Helper()
	if _, err := client.HashData(withTimeout(t), cryptobroker.HashDataRequest{Profile: "Default"}); err != nil {
		t.Fatal(err)
	}
}

func TestACallWaitsForABrokerThatIsNotThereYet(t *testing.T) {
	broker, err := newProcess(socketDir(t))
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(t, broker.socket)
	result := make(chan error, 1)
	go func() {
		_, err := client.HashData(withTimeout(t), cryptobroker.HashDataRequest{Profile: "Default"})
		result <- err
	}()
	if _, err := client.Health(withTimeout(t)); !errors.Is(err, cryptobroker.ErrUnavailable) {
		t.Errorf("health: %v, want %v", err, cryptobroker.ErrUnavailable)
	}
	if err := broker.start(); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
	if err := broker.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}

func TestASpentBudgetIsTheErrorWithTheLastReason(t *testing.T) {
	socket := socketDir(t) + "/none"
	client := newClient(t, socket, cryptobroker.WithRetryBudget(200*time.Millisecond))
	began := time.Now()
	_, err := client.HashData(withTimeout(t), cryptobroker.HashDataRequest{Profile: "P"})
	if took := time.Since(began); took > waitLimit/2 {
		t.Errorf("it took %s", took)
	}
	for _, want := range []error{cryptobroker.ErrRetryBudgetSpent, cryptobroker.ErrUnavailable} {
		if !errors.Is(err, want) {
			t.Errorf("%v is not %v", err, want)
		}
	}
	for _, want := range []string{`UNAVAILABLE: HashData with profile "P": `, "no such file or directory", socket, "given up after "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v has no %q", err, want)
		}
	}
}

func TestOnlyTransientCodesAreTriedAgain(t *testing.T) {
	for code, again := range map[codes.Code]bool{
		codes.Unavailable: true, codes.ResourceExhausted: true, codes.Aborted: true,
		codes.InvalidArgument: false, codes.FailedPrecondition: false, codes.PermissionDenied: false, codes.NotFound: false,
		codes.Internal: false, codes.Unimplemented: false, codes.Unknown: false,
	} {
		t.Run(code.String(), func(t *testing.T) {
			var tries atomic.Int32
			f := &faulty{hash: func(*cryptobrokerv1.HashDataRequest) (*cryptobrokerv1.HashDataResponse, error) {
				if tries.Add(1) < 3 {
					return nil, status.Error(code, "HashData: no")
				}
				return hashed("unary"), nil
			}}
			socket, _ := serve(t, f)
			_, err := newClient(t, socket).HashData(withTimeout(t), cryptobroker.HashDataRequest{Profile: "P"})
			if again {
				if err != nil || tries.Load() != 3 {
					t.Errorf("%v after %d tries, want success after 3", err, tries.Load())
				}
				return
			}
			var failure *cryptobroker.Error
			if !errors.As(err, &failure) || failure.Code != cryptobroker.Code(code) || tries.Load() != 1 {
				t.Fatalf("%v after %d tries, want one with %s", err, tries.Load(), code)
			}
			if failure.Operation != "HashData" || failure.Profile != "P" || failure.Message != "HashData: no" {
				t.Errorf("the error is %+v", failure)
			}
		})
	}
}

func TestARequestThatNoBrokerReadsIsRefusedAtOnce(t *testing.T) {
	client := newClient(t, "/nowhere")
	_, err := client.HashData(withTimeout(t), cryptobroker.HashDataRequest{Profile: "P", Input: make([]byte, 4<<20)})
	if !errors.Is(err, cryptobroker.ErrInvalidArgument) || !strings.Contains(err.Error(), "expected at most 4194304") {
		t.Errorf("got %v", err)
	}
}

func TestAnInputIsReadAgainOnlyIfItCanBe(t *testing.T) {
	broker := startBroker(t)
	client := newClient(t, broker.socket)
	hashOne(t, client)
	input := strings.Repeat("0123456789", 100_000)
	want := sha256.Sum256([]byte(input))
	// After half of the input another broker takes over.
	restart := sync.OnceFunc(func() {
		if err := broker.stop(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		if err := broker.start(); err != nil {
			t.Error(err)
		}
	})
	seekable := &interrupted{ReadSeeker: strings.NewReader(input), at: 500_000, then: restart}
	got, err := client.HashReader(withTimeout(t), "Default", seekable)
	if err != nil || string(got.Digest) != string(want[:]) {
		t.Errorf("from a file: %s, %v; want %x", got.Hex(), err, want)
	}
	kill := sync.OnceFunc(func() {
		if err := broker.stop(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		if err := broker.start(); err != nil {
			t.Error(err)
		}
	})
	once := struct{ io.Reader }{&interrupted{ReadSeeker: strings.NewReader(input), at: 500_000, then: kill}}
	_, err = client.HashReader(withTimeout(t), "Default", once)
	if !errors.Is(err, cryptobroker.ErrUnavailable) || !strings.Contains(err.Error(), "cannot be read again") {
		t.Errorf("from a pipe: %v", err)
	}
}

// interrupted calls a function after a number of bytes was read.
type interrupted struct {
	io.ReadSeeker
	at, read int
	then     func()
}

func (i *interrupted) Read(b []byte) (int, error) {
	n, err := i.ReadSeeker.Read(b)
	if i.read += n; i.read >= i.at {
		i.then()
	}
	return n, err
}
