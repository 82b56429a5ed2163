// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
)

func encryptStream(t *testing.T, client *cryptobroker.Client, plaintext []byte) []byte {
	t.Helper()
	var encrypted bytes.Buffer
	result, err := client.EncryptStream(withTimeout(t), &encrypted, iotest.HalfReader(bytes.NewReader(plaintext)), cryptobroker.EncryptStreamRequest{
		Profile: "Data", KeyID: "orders", Context: []byte("4711"),
	})
	if err != nil || result.Algorithm != "aes256-gcm-hkdf-64kb" {
		t.Fatalf("%+v: %v", result, err)
	}
	return encrypted.Bytes()
}

func TestAStreamThatIsEncryptedIsDecrypted(t *testing.T) {
	client := newClient(t, startBroker(t).socket)
	request := cryptobroker.DecryptStreamRequest{Profile: "Data", Context: []byte("4711")}
	for _, size := range []int{0, 1, 64 << 10, 64<<10 + 1, 3 << 20} {
		plaintext := bytes.Repeat([]byte{9}, size)
		encrypted := encryptStream(t, client, plaintext)
		var got bytes.Buffer
		if _, err := client.DecryptStream(withTimeout(t), &got, bytes.NewReader(encrypted), request); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), plaintext) {
			t.Errorf("found %d bytes, expected %d", got.Len(), size)
		}
		got.Reset()
		_, err := client.DecryptStream(withTimeout(t), &got, bytes.NewReader(encrypted[:len(encrypted)-1]), request)
		if !errors.Is(err, cryptobroker.ErrInvalidArgument) || !bytes.HasPrefix(plaintext, got.Bytes()) {
			t.Errorf("without the last byte: %v, and %d bytes", err, got.Len())
		}
	}
}

func TestAnErrorOfTheInputOrTheOutputIsTheErrorOfAStream(t *testing.T) {
	client := newClient(t, startBroker(t).socket)
	torn := errors.New("the tape is torn")
	request := cryptobroker.EncryptStreamRequest{Profile: "Data", KeyID: "orders"}
	for name, whole := range map[string]int{"at the begin": 5, "later": 1 << 20} {
		input := iotest.DataErrReader(&failing{bytes.NewReader(make([]byte, whole)), torn})
		if _, err := client.EncryptStream(withTimeout(t), io.Discard, input, request); !errors.Is(err, torn) {
			t.Errorf("an input that fails %s: %v", name, err)
		}
		output := &full{room: whole, err: torn}
		if _, err := client.EncryptStream(withTimeout(t), output, bytes.NewReader(make([]byte, 2<<20)), request); !errors.Is(err, torn) {
			t.Errorf("an output that is full %s: %v", name, err)
		}
	}
}

// full is a writer with room for so many bytes.
type full struct {
	room int
	err  error
}

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, f.err
	}
	return len(b), nil
}

func TestAStreamIsTriedAgainBeforeItsDataWasProcessed(t *testing.T) {
	broker, err := newProcess(socketDir(t))
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(t, broker.socket)
	done := make(chan error, 1)
	go func() {
		_, err := client.EncryptStream(withTimeout(t), io.Discard, strings.NewReader("text"), cryptobroker.EncryptStreamRequest{Profile: "Data", KeyID: "orders"})
		done <- err
	}()
	serveLater(t, broker)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// serveLater starts a broker until the end of the test.
func serveLater(t *testing.T, broker *process) {
	t.Helper()
	if err := broker.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(broker.await(), broker.stop(15)); err != nil {
			t.Error(err)
		}
	})
}

func TestAStreamEndsWithItsContext(t *testing.T) {
	client := newClient(t, startBroker(t).socket)
	ctx, cancel := context.WithCancel(withTimeout(t))
	input, feed := io.Pipe()
	go func() {
		_, _ = feed.Write(make([]byte, 200_000))
		cancel()
		_ = feed.Close()
	}()
	_, err := client.EncryptStream(ctx, io.Discard, input, cryptobroker.EncryptStreamRequest{Profile: "Data", KeyID: "orders"})
	_ = input.Close()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
}
