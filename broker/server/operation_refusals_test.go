// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

const refusingEachOperation = fuzzedProfiles + `
- Name: Hashes
  API: {HashData: {HashAlg: sha-256}}
- Name: Others
  API: {HashData: {HashAlg: sha-256}}
  Callers: {UIDs: [4294967294]}
- Name: Missing
  API:
    SignCertificate:
      SignAlg: ed25519
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 8760h}
      KeyConstraints: {Subject: {Ed25519: {MinKeySize: 256, MaxKeySize: 256}}, Issuer: {Ed25519: {MinKeySize: 256, MaxKeySize: 256}}}
      KeyIds: [{Id: missing}]
`

func TestEachOperationRefusesCallsWithTheCodesOfItsRow(t *testing.T) {
	files := map[string]string{"cipher.bin": strings.Repeat("k", 32), "pair.key": edKeyPEM}
	conn := connect(t, startWith(t, refusingEachOperation, nil, server.WithKeys(keyDirectory(t, files))).socket(""))
	waiting := connect(t, start(t, "").socket(""))
	seeds := fuzzedSeeds()
	for _, row := range profile.Sections() {
		for _, operation := range row.Names() {
			method := methodsOfDataKeys + operation
			if row.Name == "Session" {
				method = methodsOfSessions + operation
			}
			ask := func(conn *grpc.ClientConn, request message) error {
				_, err := call(t, conn, method, request)
				return err
			}
			valid := func() message { return slices.Clone(seeds[slices.Index(fuzzedMethods, method)]) }
			if strings.HasSuffix(operation, "Stream") {
				ask = func(conn *grpc.ClientConn, start message) error {
					return cipherStream(t, conn, "/cryptobroker.stream.v1.StreamService/"+operation, start)
				}
				valid = func() message { return wrapping("cipher") }
			}
			// The last one of several fields counts.
			with := func(profile string) message { return valid().text(requestProfile, profile) }
			lacking := "Hashes"
			if operation == "HashData" {
				lacking = "K"
			}
			requests := []message{nil, with(lacking), with("Others")}
			switch row.Name {
			case "EncryptData":
				requests = append(requests, with("K").bytes(dataKey, byID("missing")))
			case "SignData":
				requests = append(requests, with("K").bytes(signKey, one(byID("missing"))))
			case "DataKeys":
				requests = append(requests, with("K").text(wrapKeyID, "missing"))
				if operation == "UnwrapKey" || operation == "RewrapKey" {
					requests[3] = with("K").bytes(wrappedKey, wrappedWith("missing"))
				}
			case "SignCertificate":
				requests = append(requests, with("Missing").text(certKey, ""))
			}
			found := []codes.Code{status.Code(ask(waiting, valid()))}
			for _, request := range requests {
				found = append(found, status.Code(ask(conn, request)))
			}
			var want []codes.Code
			for _, name := range row.Refusals {
				var code codes.Code
				if err := code.UnmarshalJSON([]byte(strconv.Quote(name))); err != nil {
					t.Fatal(err)
				}
				want = append(want, code)
			}
			slices.Sort(found)
			slices.Sort(want)
			if !slices.Equal(found, want) {
				t.Errorf("%s refuses calls with %v, its row says %v", operation, found, want)
			}
		}
	}
}

func TestThePageOfAnOperationHasTheRefusalsOfItsRow(t *testing.T) {
	inside, code := regexp.MustCompile("([a-z])([A-Z])"), regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|")
	for _, row := range profile.Sections() {
		page := strings.ToLower(inside.ReplaceAllString(row.Name, "$1-$2")) + ".md"
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations", page))
		if err != nil {
			t.Fatal(err)
		}
		_, refusals, _ := strings.Cut(string(text), "\n## Refusals\n")
		var found []string
		for _, match := range code.FindAllStringSubmatch(refusals, -1) {
			found = append(found, match[1])
		}
		if !slices.Equal(found, row.Refusals) {
			t.Errorf("%s has the codes %q, the row of %s has %q", page, found, row.Name, row.Refusals)
		}
	}
}
