// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
	if client, err = cryptobroker.New(); err != nil {
		return nil, err
	}
	return broker, broker.start()
}

// The examples of the methods share a client, as the parts of a program do.
var (
	ctx    = context.Background()
	client *cryptobroker.Client
)

func Example() {
	client, err := cryptobroker.New(cryptobroker.WithProfile("Default"))
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := client.HashData(ctx, cryptobroker.HashDataRequest{Input: []byte("abc")})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Algorithm, result.Hex())
	// At the end of the program. Close waits for calls in progress until ctx ends.
	if err := client.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: sha-256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
}

func ExampleClient_HashData() {
	result, err := client.HashData(ctx, cryptobroker.HashDataRequest{Profile: "Default", Input: []byte("abc")})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %x\n", result.Algorithm, result.Digest[:4])
	// Output: sha-256 ba7816bf
}

func ExampleClient_HashReader() {
	// The input can also be a file of any size.
	result, err := client.HashReader(ctx, "Default", strings.NewReader(strings.Repeat("long ", 1_000_000)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %x\n", result.Algorithm, result.Digest[:4])
	// Output: sha-256 90c33547
}

func ExampleClient_EncryptData() {
	customer := []byte("customer 12")
	sealed, err := client.EncryptData(ctx, cryptobroker.EncryptDataRequest{
		Profile: "Orders", Key: cryptobroker.KeyID("orders"), Plaintext: []byte("4711 boxes"), AdditionalData: customer,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	opened, err := client.DecryptData(ctx, cryptobroker.DecryptDataRequest{
		// The id of the result names the version of the key, if the key has versions.
		Profile: "Orders", Key: cryptobroker.KeyID(sealed.KeyID), Ciphertext: sealed.Ciphertext, Nonce: sealed.Nonce, Tag: sealed.Tag, AdditionalData: customer,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", opened.Plaintext)
	// Output: 4711 boxes
}

func ExampleError() {
	_, err := client.SignData(ctx, cryptobroker.SignDataRequest{Profile: "Default", Key: cryptobroker.KeyID("orders")})
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
