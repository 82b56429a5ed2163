// SPDX-License-Identifier: Apache-2.0

//go:build languages

package opentdf

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/opentdf/platform/lib/ocrypto"
	"github.com/opentdf/platform/sdk"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// build runs a program that prepares a client.
func build(t *testing.T, folder, program string, arguments ...string) {
	t.Helper()
	if _, err := environment.Command(t.Context(), folder, nil, program, arguments...); err != nil {
		t.Fatal(err)
	}
}

// reads checks what a client has decrypted.
func reads(t *testing.T, client string, got []byte) {
	t.Helper()
	if string(got) != plaintext {
		t.Errorf("%s found %q, want %q", client, got, plaintext)
	}
}

func TestTheClientForJavaEncryptsAndDecryptsWithProofs(t *testing.T) {
	build(t, "../..", "hack/tools/maven", "test/opentdf/java", "--quiet", "package")
	e := start(t, "proofWithPath")
	java := func(verb string, input []byte) []byte {
		return output(t, exec.Command("java", "-cp", "java/target/classes:java/target/lib/*", "opentdf.Client", verb, e.service), input)
	}
	own := java("encrypt", []byte(plaintext))
	reads(t, "Java", java("decrypt", own))
	inGo := newGoClient(t, e.service, e.service)
	text, err := inGo.decrypt(own, ocrypto.EC256Key)
	if err != nil {
		t.Error(err)
	}
	reads(t, "Go", []byte(text))
	reads(t, "Java", java("decrypt", inGo.encrypt(t, ocrypto.RSA2048Key, sdk.WithTargetMode("4.2.2"))))
}

func TestTheClientForJavaScriptEncryptsAndDecrypts(t *testing.T) {
	build(t, "../..", "hack/tools/packages", "test/opentdf/javascript")
	for token, setting := range map[string]string{"proof": "proofWithBearer", "bearer": "plainBearer"} {
		t.Run("with a "+token, func(t *testing.T) {
			e := start(t, setting)
			kas := e.service + "/kas"
			javaScript := func(verb string, input []byte) []byte {
				return output(t, exec.Command("node", "javascript/client.mjs", verb, token, kas, e.issuer), input)
			}
			own := javaScript("encrypt", []byte(plaintext))
			reads(t, "JavaScript", javaScript("decrypt", own))
			inGo := newGoClient(t, e.service, kas)
			text, err := inGo.decrypt(own, ocrypto.EC256Key)
			if err != nil {
				t.Error(err)
			}
			reads(t, "Go", []byte(text))
			reads(t, "JavaScript", javaScript("decrypt", inGo.encrypt(t, ocrypto.RSA2048Key, sdk.WithTargetMode("4.2.2"))))
		})
	}
}

func TestTheCrateForRustDecrypts(t *testing.T) {
	cache, err := environment.Cache("../..")
	if err == nil {
		cache, err = filepath.Abs(cache)
	}
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(cache, "rust")
	build(t, "rust", "cargo", "build", "--locked", "--quiet", "--target-dir", target)
	for key, setting := range map[string]string{"p256": "proofWithPath", "ed25519": "proofWithPath", "bearer": "plainBearer"} {
		t.Run("with "+key, func(t *testing.T) {
			e := start(t, setting)
			inGo := newGoClient(t, e.service, e.service)
			for _, algorithm := range []ocrypto.KeyType{ocrypto.RSA2048Key, ocrypto.EC256Key} {
				rust := exec.Command(filepath.Join(target, "debug", "opentdf-client"), key, e.service, e.issuer+"/token")
				reads(t, "Rust", output(t, rust, inGo.encrypt(t, algorithm)))
			}
		})
	}
}
