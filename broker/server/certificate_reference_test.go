// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// certificatesByReference makes profiles: each name with the list of its keys.
func certificatesByReference(t *testing.T, provider keys.Provider, keyIDs map[string]string) *grpc.ClientConn {
	t.Helper()
	var profiles strings.Builder
	for name, list := range keyIDs {
		fmt.Fprintf(&profiles, "- Name: %s\n  API:\n    SignCertificate:\n      SignAlg: ecdsa\n      HashAlg: sha-256\n"+
			"      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}\n"+
			"      KeyConstraints: {Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 256}}, Issuer: {ECDSA: {MinKeySize: 384, MaxKeySize: 384}}}\n"+
			"      KeyIds: [%s]\n", name, list)
	}
	var options []server.Option
	if provider != nil {
		options = append(options, server.WithKeys(provider))
	}
	return connect(t, startWith(t, profiles.String(), nil, options...).socket(""))
}

// keyDirectory returns a key directory with these files.
func keyDirectory(t testing.TB, files map[string]string) *keys.Directory {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	directory, err := keys.Watch(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		directory.Wait()
	})
	return directory
}

// pinOf is the SHA-256 of a key's SubjectPublicKeyInfo.
func pinOf(t *testing.T, key string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(runOpenSSL(t, []byte(key), "pkey", "-pubout", "-outform", "DER")))
	return hex.EncodeToString(sum[:])
}

func TestTheKeyOfTheProfileSignsCertificates(t *testing.T) {
	current, next, bare, foreign := newIssuing(t), newIssuing(t), newIssuing(t), newIssuing(t)
	expired := newIssuing(t, "-addext", "basicConstraints=critical,CA:FALSE")
	directory := keyDirectory(t, map[string]string{
		"current.key": current.key, "current.crt": current.certificate,
		"next.key": next.key, "next.crt": next.certificate,
		"bare.key":     bare.key,
		"public.crt":   foreign.certificate,
		"no-ca.key":    expired.key,
		"no-ca.crt":    expired.certificate,
		"broken.key":   "no key",
		"mixed-up.key": current.key, "mixed-up.crt": next.certificate,
		"aes.bin": strings.Repeat("k", 32),
	})
	forged := otherCertificate(t, current)
	conn := certificatesByReference(t, directory, map[string]string{
		"one":      "{Id: current}",
		"rotating": "{Id: gone}, {Id: current}, {Id: next}",
		"bare":     "{Id: bare}",
		"pinned":   "{Id: current, SPKISHA256: " + pinOf(t, current.key) + "}",
		"replaced": "{Id: next, SPKISHA256: " + pinOf(t, current.key) + "}",
		"gone":     "{Id: gone}",
		"broken":   "{Id: broken}",
		"mixed-up": "{Id: mixed-up}",
		"public":   "{Id: public}",
		"no-ca":    "{Id: no-ca}",
		"aes":      "{Id: aes}",
	})
	request := func(name, certificate string) message {
		return message{}.text(certProfile, name).text(certCSR, current.csr).text(certIssuer, certificate)
	}
	for sentence, c := range map[string]struct {
		request message
		issuer  issuing
	}{
		"without anything of the issuer in the request":    {request("one", ""), current},
		"with the issuer's certificate in the request":     {request("one", current.certificate), current},
		"if it is the one that the profile pins":           {request("pinned", ""), current},
		"if it is the one of several that the cert is for": {request("rotating", next.certificate), next},
		"if it is another one of several":                  {request("rotating", current.certificate), current},
	} {
		t.Run(sentence, func(t *testing.T) {
			reply, err := call(t, conn, methodSignCertificateV1, c.request)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range fields(t, reply) {
				if f.Number == 3 {
					c.issuer.verified(t, []byte(f.Value))
				}
			}
		})
	}
	for sentence, c := range map[string]struct {
		request message
		code    codes.Code
		want    string
	}{
		"if the request brings one, too":           {request("one", current.certificate).text(certKey, current.key), codes.InvalidArgument, "caPrivateKey is not empty, expected none: the profile lists the keys that may sign in KeyIds, and the broker has them"},
		"for the certificate of another key":       {request("one", next.certificate), codes.InvalidArgument, `caCert is not the certificate beside the key "current", expected that certificate or none`},
		"for another certificate of the key":       {request("one", forged), codes.InvalidArgument, `caCert is not the certificate beside the key "current", expected that certificate or none`},
		"if several could, for another of one":     {request("rotating", forged), codes.InvalidArgument, "caCert is not one of the certificates beside the 3 keys that the profile lists in KeyIds and the broker has"},
		"if there is no certificate":               {request("bare", ""), codes.FailedPrecondition, `the key "bare" has no certificate, expected the issuer's certificate beside the key in the key directory`},
		"if the certificate is in the request":     {request("bare", bare.certificate), codes.FailedPrecondition, `the key "bare" has no certificate, expected the issuer's certificate beside the key in the key directory`},
		"if several could and none is meant":       {request("rotating", ""), codes.InvalidArgument, "caCert is empty, expected the issuer's certificate in PEM, because the profile lists 3 keys in KeyIds and the certificate selects one of them"},
		"if several could and another is meant":    {request("rotating", foreign.certificate), codes.InvalidArgument, "caCert is not one of the certificates beside the 3 keys that the profile lists in KeyIds and the broker has"},
		"if it is not the one that is pinned":      {request("replaced", ""), codes.FailedPrecondition, `the key "next" is not the key that the profile pins by SPKISHA256`},
		"if it is not there":                       {request("gone", ""), codes.NotFound, `there is no key "gone"`},
		"if it cannot be read":                     {request("broken", ""), codes.FailedPrecondition, `the key "broken" cannot be used; the broker's log says why`},
		"if its certificate is another key's":      {request("mixed-up", ""), codes.FailedPrecondition, `the key "mixed-up" cannot be used; the broker's log says why`},
		"if it is only a public one":               {request("public", ""), codes.FailedPrecondition, `the key "public" has no private key, expected one that signs`},
		"if it is symmetric":                       {request("aes", ""), codes.FailedPrecondition, `the key "aes" has no private key, expected one that signs`},
		"if its certificate is not an authority's": {request("no-ca", ""), codes.FailedPrecondition, `the certificate of the issuer's key "no-ca" is not the certificate of a certificate authority, expected BasicConstraints with CA:TRUE`},
	} {
		t.Run("not "+sentence, func(t *testing.T) {
			name, _, _ := strings.Cut(string(c.request[2:]), "\x12")
			wantRefusal(t, conn, c.request, c.code, fmt.Sprintf("SignCertificate with profile %q: %s", name, c.want))
		})
	}
}

// otherCertificate returns a certificate that a caller made for an issuer's public key, with another name.
func otherCertificate(t *testing.T, of issuing) string {
	t.Helper()
	block, _ := pem.Decode([]byte(of.certificate))
	template := must(x509.ParseCertificate(block.Bytes))
	public := template.PublicKey
	template.RawSubject, template.Subject.CommonName = nil, "of the caller's making"
	own := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	template.SignatureAlgorithm = x509.ECDSAWithSHA384
	parent := *template
	parent.PublicKey = own.Public()
	der := must(x509.CreateCertificate(rand.Reader, template, &parent, public, own))
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func wantRefusal(t *testing.T, conn *grpc.ClientConn, request message, code codes.Code, want string) {
	t.Helper()
	_, err := call(t, conn, methodSignCertificateV1, request)
	if status.Code(err) != code || status.Convert(err).Message() != want {
		t.Errorf("got %v\nwant %s: %s", err, code, want)
	}
}

// unavailable is a provider that cannot be reached.
type unavailable struct{}

func (unavailable) Key(context.Context, keys.Name) (*keys.Key, error) {
	return nil, fmt.Errorf("%w: connection refused", keys.ErrUnavailable)
}

func TestAKeyOfTheProfileThatCannotBeHadSignsNothing(t *testing.T) {
	files := newIssuing(t)
	profiles := map[string]string{"one": "{Id: a}", "two": "{Id: a}, {Id: b}"}
	request := func(name string) message {
		return message{}.text(certProfile, name).text(certCSR, files.csr).text(certIssuer, files.certificate)
	}
	t.Run("because the broker has no keys at all", func(t *testing.T) {
		conn := certificatesByReference(t, nil, profiles)
		for name := range profiles {
			wantRefusal(t, conn, request(name), codes.FailedPrecondition, fmt.Sprintf(
				"SignCertificate with profile %q: the profile names the issuer's key in KeyIds, but this broker was given no keys; start it with --keys-dir", name))
		}
	})
	t.Run("because they cannot be reached, which clients may try again", func(t *testing.T) {
		conn := certificatesByReference(t, unavailable{}, profiles)
		for name := range profiles {
			wantRefusal(t, conn, request(name), codes.Unavailable, fmt.Sprintf(
				"SignCertificate with profile %q: the keys cannot be reached; the broker's log says why", name))
		}
	})
}
