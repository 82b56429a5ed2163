// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
)

// startExamples starts the broker that the examples call, which name no socket.
func startExamples(dir string) (*process, error) {
	broker, err := newProcess(filepath.Join(dir, "e"))
	if err != nil {
		return nil, err
	}
	if err := os.Setenv(cryptobroker.SocketVariable, broker.socket); err != nil {
		return nil, err
	}
	return broker, broker.start()
}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := cryptobroker.New(cryptobroker.WithProfile("Default"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	result, err := client.HashData(ctx, cryptobroker.HashDataRequest{Input: []byte("abc")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Algorithm, result.Hex())
	// Output: sha-256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
}

func ExampleClient_HashData() {
	ctx := context.Background()
	client, err := cryptobroker.New()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	result, err := client.HashData(ctx, cryptobroker.HashDataRequest{Profile: "Default", Input: []byte("abc")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %x\n", result.Algorithm, result.Digest[:4])
	// Output: sha-256 ba7816bf
}

func ExampleClient_HashReader() {
	ctx := context.Background()
	client, err := cryptobroker.New()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	// A file does as well, of any size.
	result, err := client.HashReader(ctx, "Default", strings.NewReader(strings.Repeat("long ", 1_000_000)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %x\n", result.Algorithm, result.Digest[:4])
	// Output: sha-256 90c33547
}

func ExampleClient_EncryptData() {
	ctx := context.Background()
	client, err := cryptobroker.New(cryptobroker.WithProfile("Orders"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	key, customer := cryptobroker.KeyID("orders"), []byte("customer 12")
	sealed, err := client.EncryptData(ctx, cryptobroker.EncryptDataRequest{
		Key: key, Plaintext: []byte("4711 boxes"), AdditionalData: customer,
	})
	if err != nil {
		log.Fatal(err)
	}
	opened, err := client.DecryptData(ctx, cryptobroker.DecryptDataRequest{
		Key: key, Ciphertext: sealed.Ciphertext, Nonce: sealed.Nonce, Tag: sealed.Tag, AdditionalData: customer,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", opened.Plaintext)
	// Output: 4711 boxes
}

func ExampleError() {
	ctx := context.Background()
	client, err := cryptobroker.New()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	_, err = client.SignData(ctx, cryptobroker.SignDataRequest{Profile: "Default", Key: cryptobroker.KeyID("orders")})
	if errors.Is(err, cryptobroker.ErrNotServed) {
		fmt.Println(err)
	}
	var failure *cryptobroker.Error
	if errors.As(err, &failure) {
		fmt.Println(failure.Code, failure.Operation, failure.Profile)
	}
	// Output:
	// crypto broker: FAILED_PRECONDITION: SignData with profile "Default": the profile does not offer this operation
	// FAILED_PRECONDITION SignData Default
}
