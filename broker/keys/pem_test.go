// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"os/exec"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/internal/fuzzmemory"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// writtenByOpenSSL runs openssl and returns its output. So the library that reads the keys of these tests has not written them.
func writtenByOpenSSL(t testing.TB, input []byte, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), "openssl", args...)
	command.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("openssl %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}

func newPEMKey(t testing.TB, algorithm string, options ...string) []byte {
	t.Helper()
	args := []string{"genpkey", "-quiet", "-algorithm", algorithm}
	for _, option := range options {
		args = append(args, "-pkeyopt", option)
	}
	return writtenByOpenSSL(t, nil, args...)
}

func TestAPrivateKeyIsReadFrom(t *testing.T) {
	rsa := newPEMKey(t, "RSA", "rsa_keygen_bits:2048")
	p256 := newPEMKey(t, "EC", "ec_paramgen_curve:P-256")
	for sentence, text := range map[string][]byte{
		"PKCS #8 with RSA":     rsa,
		"PKCS #1":              writtenByOpenSSL(t, rsa, "rsa", "-traditional"),
		"PKCS #8 with ECDSA":   p256,
		"PKCS #8 with P-521":   newPEMKey(t, "EC", "ec_paramgen_curve:P-521"),
		"PKCS #8 with Ed25519": newPEMKey(t, "ED25519"),
		"SEC 1":                writtenByOpenSSL(t, p256, "ec"),
		"SEC 1 after the parameters that OpenSSL writes before it": writtenByOpenSSL(t, nil, "ecparam", "-name", "secp384r1", "-genkey"),
		"PKCS #8 under the label of PKCS #1":                       bytes.ReplaceAll(rsa, []byte("PRIVATE KEY"), []byte("RSA PRIVATE KEY")),
		"a file with a certificate behind the key":                 append(bytes.Clone(p256), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"...),
		"a file with text before the key":                          append([]byte("Bag Attributes\n  friendlyName: ca\n"), p256...),
		"a file with a byte order mark":                            append([]byte("\ufeff"), p256...),
		"a file with carriage returns":                             bytes.ReplaceAll(p256, []byte("\n"), []byte("\r\n")),
	} {
		t.Run(sentence, func(t *testing.T) {
			signer, err := keys.ParsePrivateKey(text, algorithm.MaxRSASize)
			if err != nil {
				t.Fatalf("the key %v", err)
			}
			public, err := x509.MarshalPKIXPublicKey(signer.Public())
			if err != nil {
				t.Fatal(err)
			}
			if want := writtenByOpenSSL(t, text, "pkey", "-pubout", "-outform", "DER"); !bytes.Equal(public, want) {
				t.Errorf("public key\n got %x\nwant %x", public, want)
			}
		})
	}
}

func TestAPrivateKeyIsRefusedBecauseIt(t *testing.T) {
	p256 := newPEMKey(t, "EC", "ec_paramgen_curve:P-256")
	rsa := newPEMKey(t, "RSA", "rsa_keygen_bits:2048")
	damaged := func(text []byte) []byte {
		block, _ := pem.Decode(text)
		block.Bytes[len(block.Bytes)/2] ^= 0xff
		return pem.EncodeToMemory(block)
	}
	content := func(text []byte) []byte {
		block, _ := pem.Decode(text)
		return block.Bytes
	}
	block := func(label string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der})
	}
	for sentence, c := range map[string]struct {
		text []byte
		want string
	}{
		"is empty":                          {nil, "has no complete PEM block, expected a private key in PEM"},
		"is cut":                            {p256[:len(p256)-20], "has no complete PEM block, expected a private key in PEM"},
		"is DER":                            {[]byte{0x30, 0x03, 0x02, 0x01, 0x00}, "has no complete PEM block, expected a private key in PEM"},
		"is encrypted in PKCS #8":           {writtenByOpenSSL(t, p256, "pkey", "-aes256", "-passout", "pass:secret"), "is encrypted, expected an unencrypted private key, because the broker has no passphrase"},
		"is encrypted in the old way":       {writtenByOpenSSL(t, rsa, "rsa", "-traditional", "-aes256", "-passout", "pass:secret"), "is encrypted, expected an unencrypted private key, because the broker has no passphrase"},
		"is a public key":                   {writtenByOpenSSL(t, p256, "pkey", "-pubout"), `has a PEM block "PUBLIC KEY", expected "PRIVATE KEY", "EC PRIVATE KEY" or "RSA PRIVATE KEY"`},
		"is a certificate":                  {block("CERTIFICATE", []byte{0}), `has a PEM block "CERTIFICATE", expected "PRIVATE KEY", "EC PRIVATE KEY" or "RSA PRIVATE KEY"`},
		"has a label without an end":        {block(strings.Repeat("X", 40), []byte{0}), `has a PEM block "` + strings.Repeat("X", 32) + `…", expected "PRIVATE KEY", "EC PRIVATE KEY" or "RSA PRIVATE KEY"`},
		"is larger than any key":            {block("PRIVATE KEY", make([]byte, 16<<10+1)), "has a PEM block of 16385 bytes, expected at most 16384, more than an RSA key of 16384 bits has"},
		"has content that is no DER":        {block("PRIVATE KEY", []byte("secret")), `has a PEM block "PRIVATE KEY" whose content is damaged or cut: its 6 bytes are not complete DER, expected a private key of PKCS #8, PKCS #1 or SEC 1`},
		"has content that was cut":          {block("EC PRIVATE KEY", content(p256)[:40]), `has a PEM block "EC PRIVATE KEY" whose content is damaged or cut: its 40 bytes are not complete DER, expected a private key of PKCS #8, PKCS #1 or SEC 1`},
		"has content that is no key":        {block("PRIVATE KEY", []byte{0x30, 0x03, 0x02, 0x01, 0x00}), `has a PEM block "PRIVATE KEY" whose content is DER, but not a private key of PKCS #8, PKCS #1 or SEC 1`},
		"has a changed byte in RSA":         {damaged(rsa), "is damaged: its parts do not fit together"},
		"is on a curve of other vendors":    {newPEMKey(t, "EC", "ec_paramgen_curve:secp256k1"), "is an ECDSA key on another curve, expected P-224, P-256, P-384 or P-521 by name"},
		"has the parameters of its curve":   {newPEMKey(t, "EC", "ec_paramgen_curve:P-256", "ec_param_enc:explicit"), "is an ECDSA key on another curve, expected P-224, P-256, P-384 or P-521 by name"},
		"is on another curve in SEC 1":      {writtenByOpenSSL(t, nil, "ecparam", "-name", "brainpoolP256r1", "-genkey"), "is an ECDSA key on another curve, expected P-224, P-256, P-384 or P-521 by name"},
		"is for RSASSA-PSS only":            {newPEMKey(t, "RSA-PSS", "rsa_keygen_bits:2048"), "is an RSA key restricted to RSASSA-PSS, expected the ordinary kind (rsaEncryption); a profile chooses PSS by SignAlg rsa-pss"},
		"is for key agreement":              {newPEMKey(t, "X25519"), "is a key for key agreement, expected one that signs: RSA, ECDSA or Ed25519"},
		"is of an algorithm that is not in": {newPEMKey(t, "ED448"), "has a key of the algorithm 1.3.101.113, expected RSA, ECDSA or Ed25519"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := keys.ParsePrivateKey(c.text, algorithm.MaxRSASize)
			if err == nil {
				t.Fatalf("no error, want %q", c.want)
			}
			if err.Error() != c.want {
				t.Errorf("the key\n got %s\nwant %s", err, c.want)
			}
		})
	}
}

// FuzzParsePrivateKey checks that each accepted key can be encoded again, and that each error message has only one line.
func FuzzParsePrivateKey(f *testing.F) {
	p256 := newPEMKey(f, "EC", "ec_paramgen_curve:P-256")
	for _, seed := range [][]byte{
		p256, writtenByOpenSSL(f, p256, "ec"), newPEMKey(f, "ED25519"), newPEMKey(f, "X25519"), p256[:100],
		writtenByOpenSSL(f, p256, "pkey", "-aes256", "-passout", "pass:secret"), writtenByOpenSSL(f, nil, "ecparam", "-name", "secp224r1", "-genkey"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var signer crypto.Signer
		var err error
		fuzzmemory.Check(t, len(text), fuzzmemory.PerByte, func() { signer, err = keys.ParsePrivateKey(text, algorithm.MaxRSASize) })
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("message of more than a line: %q", err)
			}
			return
		}
		if _, err := keys.NewSigning("fuzz", signer, nil); err != nil {
			t.Errorf("a key was accepted that is none: %v", err)
		}
	})
}

func TestASigningKeyThatWasCutIsCalledByWhatItIs(t *testing.T) {
	text := newPEMKey(t, "EC", "ec_paramgen_curve:P-256")
	block, _ := pem.Decode(text)
	cut := block.Bytes[:40]
	const damage = " is damaged or cut: its 40 bytes are not complete DER, expected a private key of PKCS #8, PKCS #1 or SEC 1"
	for form, c := range map[string]struct {
		data []byte
		want string
	}{
		"PEM": {pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: cut}), `has a PEM block "PRIVATE KEY" whose content` + damage},
		"DER": {cut, "has content that" + damage},
	} {
		t.Run(form, func(t *testing.T) {
			if _, err := keys.ParseSigner(c.data, algorithm.MaxRSASize); err == nil || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}
