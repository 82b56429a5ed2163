// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/session/v1"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// documented is a document whose examples are run in a directory of their own.
type documented struct {
	t      *testing.T
	dir    string
	blocks map[string][]string
}

func document(t *testing.T, counts map[string]int, path ...string) *documented {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "docs"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	d := &documented{t, t.TempDir(), map[string][]string{}}
	found := map[string]int{}
	for _, match := range codeBlock.FindAllStringSubmatch(string(text), -1) {
		d.blocks[match[1]] = append(d.blocks[match[1]], match[2])
		found[match[1]]++
	}
	if diff := cmp.Diff(counts, found); diff != "" {
		t.Fatalf("the document has other blocks than this test runs (-test +document):\n%s", diff)
	}
	return d
}

// run runs a script and returns what it prints.
func (d *documented) run(script string) string {
	d.t.Helper()
	command := exec.CommandContext(d.t.Context(), "sh", "-e", "-c", script)
	command.Dir = d.dir
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		d.t.Fatalf("%v\n%s\n%s%s", err, script, out, stderr.String())
	}
	return string(out)
}

// connect starts a broker with the document's profile and the keys that its
// scripts made.
func (d *documented) connect(profiles string) *grpc.ClientConn {
	d.t.Helper()
	return connect(d.t, startWith(d.t, profiles, nil, server.WithKeys(d.keys())).socket(""))
}

func (d *documented) keys() *keys.Directory {
	d.t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(d.dir, "keys"))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, entry := range entries {
		files[entry.Name()] = d.read(filepath.Join("keys", entry.Name()))
	}
	return keyDirectory(d.t, files)
}

func (d *documented) read(name string) string {
	d.t.Helper()
	content, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(content)
}

func (d *documented) write(name string, content []byte) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), content, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// ask sends a request of the document, in which "@name" stands for what value
// returns, in base64, and reads the reply.
func (d *documented) ask(conn *grpc.ClientConn, method, text string, value func(name string) string, request, reply proto.Message) {
	d.t.Helper()
	var fields any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		d.t.Fatal(err)
	}
	filled, err := json.Marshal(fill(fields, value))
	if err != nil {
		d.t.Fatal(err)
	}
	if err := protojson.Unmarshal(filled, request); err != nil {
		d.t.Fatalf("%v\n%s", err, filled)
	}
	wire, err := proto.Marshal(request)
	if err != nil {
		d.t.Fatal(err)
	}
	answer, err := call(d.t, conn, method, wire)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := proto.Unmarshal(answer, reply); err != nil {
		d.t.Fatal(err)
	}
}

func fill(fields any, value func(string) string) any {
	switch fields := fields.(type) {
	case map[string]any:
		for _, name := range slices.Collect(maps.Keys(fields)) {
			fields[name] = fill(fields[name], value)
		}
	case string:
		if name, ok := strings.CutPrefix(fields, "@"); ok {
			return base64.StdEncoding.EncodeToString([]byte(value(name)))
		}
	}
	return fields
}

func TestTheExampleInTheDocumentationOfHashDataWorks(t *testing.T) {
	d := document(t, map[string]int{"sh": 1, "yaml": 1, "json": 1}, "operations", "hash-data.md")
	want := strings.TrimSpace(d.run(d.blocks["sh"][0]))
	conn := connect(t, startWith(t, d.blocks["yaml"][0], nil).socket(""))
	var hashed v1.HashDataResponse
	d.ask(conn, methodHashDataV1, d.blocks["json"][0], d.read, &v1.HashDataRequest{}, &hashed)
	if got := hashed.GetHashValueHex(); got != want {
		t.Errorf("the digest is %s, another program computes %s", got, want)
	}
}

func TestTheExampleInTheDocumentationOfEncryptDataWorks(t *testing.T) {
	d := document(t, map[string]int{"sh": 1, "yaml": 1, "json": 2, "text": 1}, "operations", "encrypt-data.md")
	d.run(d.blocks["sh"][0])
	conn := d.connect(d.blocks["yaml"][0])
	var sealed v1.EncryptDataResponse
	d.ask(conn, methodEncryptV1, d.blocks["json"][0], nil, &v1.EncryptDataRequest{}, &sealed)
	parts := map[string][]byte{
		"ciphertext": sealed.GetCiphertext(), "nonce": sealed.GetCipherMetadata().GetNonce(),
		"tag": sealed.GetCipherMetadata().GetTag(), "aad": sealed.GetCipherMetadata().GetAad(),
	}
	if id := sealed.GetCipherMetadata().GetKeyId(); id != "orders" {
		t.Errorf("the key is named %q", id)
	}
	var opened v1.DecryptDataResponse
	d.ask(conn, methodDecryptV1, d.blocks["json"][1], func(name string) string { return string(parts[name]) }, &v1.DecryptDataRequest{}, &opened)
	if want := strings.TrimSpace(d.blocks["text"][0]); string(opened.GetPlaintext()) != want {
		t.Errorf("decrypted to %q, want %q", opened.GetPlaintext(), want)
	}
}

func TestTheExampleInTheDocumentationOfDataKeysWorks(t *testing.T) {
	d := document(t, map[string]int{"sh": 1, "yaml": 1, "json": 2}, "operations", "data-keys.md")
	d.run(d.blocks["sh"][0])
	conn := d.connect(d.blocks["yaml"][0])
	var made v1.GenerateDataKeyResponse
	d.ask(conn, methodsOfDataKeys+"GenerateDataKey", d.blocks["json"][0], nil, &v1.GenerateDataKeyRequest{}, &made)
	var unwrapped v1.UnwrapKeyResponse
	wrapped := func(string) string { return string(made.GetWrappedKey()) }
	d.ask(conn, methodsOfDataKeys+"UnwrapKey", d.blocks["json"][1], wrapped, &v1.UnwrapKeyRequest{}, &unwrapped)
	if len(made.GetDataKey()) != 32 || !bytes.Equal(made.GetDataKey(), unwrapped.GetDataKey()) {
		t.Errorf("made a key of %d bytes, and unwrapped another one", len(made.GetDataKey()))
	}
}

func TestTheExampleInTheDocumentationOfSignDataWorks(t *testing.T) {
	d := document(t, map[string]int{"sh": 2, "yaml": 1, "json": 2, "text": 1}, "operations", "sign-data.md")
	d.run(d.blocks["sh"][0])
	conn := d.connect(d.blocks["yaml"][0])
	for file, format := range map[string]string{"contract.sig": "DER", "contract.p7s": "CMS"} {
		var signed v1.SignDataResponse
		d.ask(conn, methodSignV1, strings.ReplaceAll(d.blocks["json"][0], "FORMAT_DER", "FORMAT_"+format), d.read, &v1.SignDataRequest{}, &signed)
		d.write(file, signed.GetSignature())
	}
	got, want := filledLines(d.run(d.blocks["sh"][1])), filledLines(d.blocks["text"][0])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the commands print (-document +printed):\n%s", diff)
	}
	var verified v1.VerifyDataResponse
	d.ask(conn, methodVerifyV1, d.blocks["json"][1], d.read, &v1.VerifyDataRequest{}, &verified)
	if !verified.GetValid() {
		t.Error("the signature is not valid")
	}
}

func TestTheExamplesInTheDocumentationOfKeysWork(t *testing.T) {
	d := document(t, map[string]int{"sh": 2, "yaml": 2}, "keys.md")
	d.run(d.blocks["sh"][0])
	directory := d.keys()
	if key, err := directory.Key(t.Context(), keys.Name{ID: "orders"}); err != nil || key.Cipher(t.Context()) == nil || key.Cipher(t.Context()).KeySize() != 32 {
		t.Errorf("the key of orders: %v", err)
	}
	key, err := directory.Key(t.Context(), keys.Name{ID: "receipts"})
	if err != nil {
		t.Fatal(err)
	}
	pin, _ := key.SPKISHA256()
	printed := d.run(d.blocks["sh"][1])
	if !strings.Contains(printed, hex.EncodeToString(pin[:])) {
		t.Errorf("the pin is %x, but the command prints %s", pin, printed)
	}
	// The test makes new keys, so it replaces the pin in the document.
	profiles := strings.Replace(d.blocks["yaml"][1], "6f1c8f5d1d0f1d9b6a5c4e3f2b1a09887766554433221100ffeeddccbbaa9988", hex.EncodeToString(pin[:]), 1)
	conn := d.connect(profiles)
	if got := ask(t, conn, methodSignV1, signing("Receipts", one(byID("receipts")), "input")); len(got[1]) != 64 {
		t.Errorf("signed %q", got[1])
	}
}

func TestTheExampleInTheDocumentationOfSessionsWorks(t *testing.T) {
	d := document(t, map[string]int{"yaml": 2, "json": 1}, "operations", "session.md")
	conn := connect(t, startWith(t, d.blocks["yaml"][0], nil).socket(""))
	var begun sessionv1.InitSessionResponse
	request := strings.ReplaceAll(d.blocks["json"][0], "NOW", strconv.FormatInt(time.Now().UnixMilli(), 10))
	d.ask(conn, methodsOfSessions+"InitSession", request, nil, &sessionv1.InitSessionRequest{}, &begun)
	if begun.GetSessionId() == "" || begun.GetServerPublicKey() == "" || begun.GetExpiresInSec() != 1800 {
		t.Errorf("got %v", &begun)
	}
}
