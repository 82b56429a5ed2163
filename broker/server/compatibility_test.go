// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

func TestNoCallFailsBecauseOfItsTrace(t *testing.T) {
	conn := connect(t, start(t, sha256Profile).socket(""))
	const traceState = 4
	for sentence, trace := range map[string]message{
		"a traceId of 33 characters":      message{}.text(traceID, strings.Repeat("a", 33)),
		"a traceId of no hexadecimal":     message{}.text(traceID, "none"),
		"a spanId of 17 characters":       message{}.text(2, strings.Repeat("a", 17)),
		"traceFlags of 3 characters":      message{}.text(3, "001"),
		"a traceState of 513 characters":  message{}.text(traceState, strings.Repeat("a", 513)),
		"a traceState with no key at all": message{}.text(traceState, "="),
	} {
		metadata := message{}.text(metadataID, "id").bytes(metadataTrace, trace)
		for method, field := range map[string]protowire.Number{methodHash: 3, methodHashData: 3, methodHashDataV1: 1} {
			t.Run(sentence+" "+method, func(t *testing.T) {
				reply := ask(t, conn, method, message{}.text(requestProfile, "P").text(requestInput, "abc").bytes(requestMetadata, metadata))
				if got := reply[field]; got != string(metadata) {
					t.Errorf("the reply has the metadata %q, want %q", got, metadata)
				}
			})
		}
	}
}

// Released clients repeat calls that end with these codes, and stop calling after a few such replies.
var breaking = []codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.Aborted}

func TestNoRefusalOpensTheBreakerOfAReleasedClient(t *testing.T) {
	const profiles = refusingProfiles + `
- Name: Keys
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, KeyIds: [{Id: small}]}}
- Name: Any
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, KeyIds: [{Id: "*"}]}}
`
	conn := connect(t, startWithKeys(t, profiles, cipherKeys).socket(""))
	hash := func(profile string) message { return message{}.text(requestProfile, profile).text(requestInput, "abc") }
	nonce := strings.Repeat("n", 12)
	for sentence, c := range map[string]struct {
		method  string
		request message
	}{
		"an unknown profile":              {methodHashData, hash("Q")},
		"a profile without the operation": {methodHashData, hash("No hash")},
		"a caller that may not":           {methodHashData, hash("Nobody")},
		"an input above the limit":        {methodHashData, message{}.text(requestProfile, "P").bytes(requestInput, make([]byte, 1<<20+1))},
		"a message above the limit":       {methodHashData, message{}.text(requestProfile, "P").bytes(requestInput, make([]byte, 5<<20))},
		"bytes that are no message":       {methodHashData, message{0xff, 0xff}},
		"a key that is not there":         {methodEncrypt, encryption("Any", byID("nobody"), nonce, "")},
		"a key where none is listed":      {methodEncrypt, encryption("No hash", byID("small"), nonce, "")},
		"a key that is not listed":        {methodEncrypt, encryption("Keys", byID("other"), nonce, "")},
		"a key that came with the call":   {methodEncrypt, encryption("Keys", raw(strings.Repeat("k", 16)), nonce, "")},
		"a key that cannot be used":       {methodEncrypt, encryption("Any", byID("bad"), nonce, "")},
		"a nonce of another size":         {methodEncrypt, encryption("Any", byID("small"), "n", "")},
		"an unknown method":               {"/CryptoBroker.CryptoGrpc/Unknown", nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := call(t, conn, c.method, c.request)
			if code := status.Code(err); err == nil || slices.Contains(breaking, code) {
				t.Errorf("answered with %s (%v)", code, err)
			}
		})
	}
}

func TestThePageOnBenchmarkNamesTheMethodsOfEachGeneration(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations", "benchmark.md"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (.*) \\| `(.*/)Benchmark`, `/FakeEndpoint` \\|$").FindAllStringSubmatch(string(page), -1) {
		told[row[1]] = "/" + row[2]
	}
	want := map[string]string{
		"clients 0.2":        developmentServices["G1"],
		"clients 0.3 to 0.5": developmentServices["G2 to G4"],
		"version 1":          developmentServices["G5"],
	}
	if diff := gocmp.Diff(want, told); diff != "" {
		t.Errorf("methods (-want +told):\n%s", diff)
	}
}
