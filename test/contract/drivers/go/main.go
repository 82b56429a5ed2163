// SPDX-License-Identifier: Apache-2.0

// Command go is the driver of the Go client for the cases of the contract. README.md two directories
// above describes drivers.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
)

// Limits of a call.
const (
	maxLine   = 4 << 20
	callLimit = time.Minute
)

func main() {
	work := run
	if slices.Contains(os.Args[1:], "--load") {
		work = makeLoads
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() (err error) {
	var options []cryptobroker.Option
	if slices.Contains(os.Args[1:], "--unary") {
		options = append(options, cryptobroker.WithoutExchange())
	}
	client, err := cryptobroker.New(options...)
	if err != nil {
		return err
	}
	ctx := context.Background()
	defer func() { err = errors.Join(err, client.Close(ctx)) }()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, maxLine)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var call struct {
			Operation string  `json:"operation"`
			Request   request `json:"request"`
		}
		if err := json.Unmarshal(lines.Bytes(), &call); err != nil {
			return err
		}
		if err := answers.Encode(answer(ctx, client, call.Operation, call.Request)); err != nil {
			return err
		}
	}
	return lines.Err()
}

// answer makes a call and returns a driver's line.
func answer(ctx context.Context, client *cryptobroker.Client, operation string, r request) map[string]any {
	perform, ok := operations[operation]
	if !ok {
		return map[string]any{"unsupported": true}
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	reply, err := perform(ctx, client, r)
	if err != nil {
		return map[string]any{"error": report(err)}
	}
	return map[string]any{"reply": reply}
}

// report returns the content of an error of the client.
func report(err error) map[string]any {
	var failed *cryptobroker.Error
	if !errors.As(err, &failed) {
		return map[string]any{"message": "no error of the client: " + err.Error()}
	}
	return map[string]any{"code": failed.Code.String(), "operation": failed.Operation, "profile": failed.Profile, "message": failed.Message}
}

// streamed returns the result of a call that writes its output.
func streamed(call func(*bytes.Buffer) (cryptobroker.StreamResult, error)) (map[string]any, error) {
	var output bytes.Buffer
	result, err := call(&output)
	return reply{"output": output.Bytes()}.with(result.Algorithm, result.Deprecation), err
}
