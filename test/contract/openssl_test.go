// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// message is what OpenSSL verifies and decrypts.
const message = "order 4711"

// opensslReads lets OpenSSL verify a signature and a certificate that a driver gets, and decrypt its ciphertext. Released
// clients have no signatures.
func opensslReads(t *testing.T, d driver, values map[string]any) error {
	t.Helper()
	folder := t.TempDir()
	call := func(operation string, request map[string]any, fields ...string) ([][]byte, error) {
		answer, err := d.call(Call{Operation: operation, Request: request})
		if answer.Unsupported {
			return nil, nil
		}
		if err != nil || answer.Error != nil {
			return nil, fmt.Errorf("%s: %w (%+v)", operation, err, answer.Error)
		}
		var all [][]byte
		for _, path := range fields {
			value, err := field(answer.Reply, path)
			if err != nil {
				return nil, err
			}
			octets, err := base64.StdEncoding.DecodeString(value.(string))
			if err != nil {
				return nil, err
			}
			all = append(all, octets)
		}
		return all, nil
	}
	input := base64.StdEncoding.EncodeToString([]byte(message))
	signed, err := call("SignData", map[string]any{
		"profile": "Contracts", "input": input, "signatureFormat": "SIGNATURE_FORMAT_DER",
		"keySource": map[string]any{"single": map[string]any{"rawKey": values["p256_private"]}},
	}, "signature")
	if err != nil {
		return err
	}
	issued, err := call("SignCertificate", map[string]any{
		"profile": "Servers", "csr": values["csr"], "caPrivateKey": values["ca_key"], "caCert": values["ca_certificate"],
		"outputFormat": "SIGN_OUTPUT_FORMAT_DER",
	}, "der")
	if err != nil {
		return err
	}
	key, nonce, extra := bytes.Repeat([]byte("k"), 16), bytes.Repeat([]byte("n"), 12), []byte("of the context")
	sealed, err := call("EncryptData", map[string]any{
		"profile": "Own", "keySource": map[string]any{"rawKey": key}, "plaintext": input, "encryptMetadata": map[string]any{"nonce": nonce, "aad": extra},
	}, "ciphertext", "cipherMetadata.tag")
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"authority.pem":   []byte(values["ca_certificate"].(string)),
		"certificate.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issued[0]}),
	}
	commands := [][]string{{"verify", "-CAfile", "authority.pem", "certificate.pem"}}
	if signed != nil {
		public, err := base64.StdEncoding.DecodeString(values["p256_public"].(string))
		if err != nil {
			return err
		}
		files["input"], files["public.der"], files["signature.der"] = []byte(message), public, signed[0]
		commands = append(commands, []string{"dgst", "-sha256", "-keyform", "DER", "-verify", "public.der", "-signature", "signature.der", "input"})
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return err
		}
	}
	for _, arguments := range commands {
		if err := command(folder, "openssl", arguments...); err != nil {
			return err
		}
	}
	return decryptByOpenSSL(folder, key, nonce, extra, sealed[0], sealed[1])
}

// decryptByOpenSSL decrypts with AES-GCM. OpenSSL's command has no such cipher, but Node.js has OpenSSL in it.
func decryptByOpenSSL(folder string, key, nonce, extra, ciphertext, tag []byte) error {
	const program = `
const sealed = JSON.parse(process.argv[1], (_, value) => typeof value === "string" ? Buffer.from(value, "base64") : value);
const decipher = require("node:crypto").createDecipheriv("aes-128-gcm", sealed.key, sealed.nonce);
decipher.setAAD(sealed.extra).setAuthTag(sealed.tag);
const found = Buffer.concat([decipher.update(sealed.ciphertext), decipher.final()]);
if (!found.equals(sealed.message)) throw new Error("found " + found + ", expected " + sealed.message);`
	sealed, err := json.Marshal(map[string][]byte{"key": key, "nonce": nonce, "extra": extra, "ciphertext": ciphertext, "tag": tag, "message": []byte(message)})
	if err != nil {
		return err
	}
	return command(folder, "node", "--eval", program, string(sealed))
}

// command runs a program. The error has what it wrote.
func command(folder, name string, arguments ...string) error {
	cmd := exec.Command(name, arguments...)
	cmd.Dir = folder
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, arguments[0], err, output)
	}
	return nil
}

func TestOpenSSLRefusesAChangedCiphertext(t *testing.T) {
	if err := decryptByOpenSSL(t.TempDir(), make([]byte, 16), make([]byte, 12), nil, []byte("changed"), make([]byte, 16)); err == nil {
		t.Error("OpenSSL has decrypted it, expected an error")
	}
}
