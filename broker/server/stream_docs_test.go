// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
)

func TestTheExamplesInTheDocumentationOfStreamsWork(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations", "streams.md"))
	if err != nil {
		t.Fatal(err)
	}
	var profiles string
	var messages []string
	for _, match := range codeBlock.FindAllStringSubmatch(string(text), -1) {
		switch match[1] {
		case "yaml":
			profiles = match[2]
		case "json":
			messages = append(messages, match[2])
		}
	}
	if len(messages) != 6 {
		t.Fatalf("found %d messages, expected four of HashStream and two of Exchange", len(messages))
	}
	client := streamv1.NewStreamServiceClient(connect(t, start(t, profiles).socket("")))
	written := func(text string, m proto.Message) {
		t.Helper()
		if err := protojson.Unmarshal([]byte(text), m); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}

	hashing, err := client.HashStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range messages[:3] {
		var m streamv1.HashStreamRequest
		written(text, &m)
		if err := hashing.Send(&m); err != nil {
			t.Fatal(err)
		}
	}
	digest, err := hashing.CloseAndRecv()
	if err != nil {
		t.Fatal(err)
	}
	var wantDigest streamv1.HashStreamResponse
	written(messages[3], &wantDigest)
	if diff := cmp.Diff(&wantDigest, digest, protocmp.Transform()); diff != "" {
		t.Errorf("HashStream (-document +broker):\n%s", diff)
	}

	exchange, err := client.Exchange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var request streamv1.ExchangeRequest
	var want, got streamv1.ExchangeResponse
	written(messages[4], &request)
	written(messages[5], &want)
	if err := errors.Join(exchange.Send(&request), exchange.CloseSend()); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := exchange.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		proto.Merge(&got, m)
	}
	if diff := cmp.Diff(&want, &got, protocmp.Transform()); diff != "" {
		t.Errorf("Exchange (-document +broker):\n%s", diff)
	}
}

func TestTheWarningOfADeprecatedProfileComesWithStreams(t *testing.T) {
	conn := connect(t, start(t, "- Name: P\n  API: {HashData: {HashAlg: SHA-256}}\n  Deprecation: {ReplacedBy: Q}\n").socket(""))
	reply, err := hashStream(t, conn, startOf(message{}.text(requestProfile, "P")))
	if err != nil {
		t.Fatal(err)
	}
	e := exchange(t, conn)
	e.send(hashCall(1, "P", "abc"))
	want := string(message{}.bytes(2, message{}.text(1, "P").text(2, "Q")))
	for method, got := range map[string]values{"HashStream": parse(t, reply), "Exchange": e.take(1)[1].values} {
		if got[1] != want {
			t.Errorf("%s: metadata %q, want %q", method, got[1], want)
		}
	}
}
