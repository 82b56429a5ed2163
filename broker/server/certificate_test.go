// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

const (
	methodSign              = "/CryptoBroker.CryptoGrpc/Sign"
	methodSignCertificate   = "/CryptoBroker.CryptoGrpc/SignCertificate"
	methodSignCertificateV1 = "/cryptobroker.v1.CryptoService/SignCertificate"
)

// The numbers of the fields of requests for certificates, written down a second
// time. They are the same in all generations.
const (
	certProfile, certCSR, certKey, certIssuer, certMetadata = 1, 2, 3, 4, 5

	certNotBefore, certNotAfter, certSubject, certPoints, certFormat = 6, 7, 8, 9, 10
)

// runOpenSSL runs it and returns what it prints.
func runOpenSSL(t testing.TB, input []byte, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "openssl", args...)
	command.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("openssl %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out)
}

// requester and issuer are made by OpenSSL, as clients have them.
type issuing struct{ csr, key, certificate string }

func newIssuing(t testing.TB, options ...string) issuing {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	read := func(name string) string {
		text, err := os.ReadFile(file(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	runOpenSSL(t, nil, append([]string{"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-nodes",
		"-keyout", file("ca.key"), "-out", file("ca.crt"), "-days", "3650", "-subj", "/CN=Issuer", "-addext", "keyUsage=critical,keyCertSign"}, options...)...)
	runOpenSSL(t, nil, "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
		"-keyout", file("app.key"), "-out", file("app.csr"), "-subj", "/C=DE/CN=app")
	return issuing{read("app.csr"), read("ca.key"), read("ca.crt")}
}

func (i issuing) request(profile string) message {
	return message{}.text(certProfile, profile).text(certCSR, i.csr).text(certKey, i.key).text(certIssuer, i.certificate)
}

// verified parses a certificate after OpenSSL verified it.
func (i issuing) verified(t *testing.T, der []byte) *x509.Certificate {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte(i.certificate), 0o600); err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	runOpenSSL(t, text, "verify", "-x509_strict", "-CAfile", file)
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func TestEachGenerationSignsCertificatesInItsOwnWay(t *testing.T) {
	files := newIssuing(t)
	conn := connect(t, start(t, string(catalogue.Profiles)).socket(""))
	plain := func(value string) []byte { return []byte(value) }
	fromBase64 := func(value string) []byte {
		der, err := base64.StdEncoding.Strict().DecodeString(value)
		if err != nil {
			t.Error(err)
		}
		return der
	}
	fromPEM := func(value string) []byte {
		block, rest := pem.Decode([]byte(value))
		if block == nil || block.Type != "CERTIFICATE" || len(rest) > 0 {
			t.Errorf("no PEM of a certificate: %q", value)
			return nil
		}
		return block.Bytes
	}
	created := message{}.text(metadataID, "id").text(metadataCreatedAt, "2025-03-01T10:00:00Z")
	metadata := message{}.text(metadataID, "id").bytes(metadataTrace, message{}.text(traceID, "0af7651916cd43dd8448eb211c80319c")).text(77, "later")
	descriptor := string(message{}.text(1, "Default").text(2, "SignCertificate").text(3, "ecdsa-with-SHA512"))
	for sentence, c := range map[string]struct {
		method  string
		request message
		// number is the number of the certificate's field in the reply.
		number protowire.Number
		decode func(string) []byte
		others []field
	}{
		"G1, base64":                           {methodSign, message{}, 1, fromBase64, nil},
		"G1, with the time of creation":        {methodSign, message{}.bytes(certMetadata, created), 1, fromBase64, []field{{2, string(created)}}},
		"G2, with a trace":                     {methodSign, message{}.bytes(certMetadata, metadata), 1, fromBase64, []field{{2, string(metadata)}}},
		"G3, DER by default":                   {methodSignCertificate, message{}, 4, plain, []field{{5, descriptor}}},
		"G3, DER":                              {methodSignCertificate, message{}.number(certFormat, 0), 4, plain, []field{{5, descriptor}}},
		"G3, PEM":                              {methodSignCertificate, message{}.number(certFormat, 1), 3, fromPEM, []field{{5, descriptor}}},
		"G4, with metadata":                    {methodSignCertificate, message{}.bytes(certMetadata, metadata), 4, plain, []field{{2, string(metadata)}, {5, descriptor}}},
		"G5, DER by default":                   {methodSignCertificateV1, message{}, 3, plain, []field{{4, descriptor}}},
		"G5, DER":                              {methodSignCertificateV1, message{}.number(certFormat, 1), 3, plain, []field{{4, descriptor}}},
		"G5, PEM":                              {methodSignCertificateV1, message{}.number(certFormat, 2), 2, fromPEM, []field{{4, descriptor}}},
		"G5, with metadata":                    {methodSignCertificateV1, message{}.bytes(certMetadata, metadata), 3, plain, []field{{1, string(metadata)}, {4, descriptor}}},
		"a later client's fields are left out": {methodSignCertificate, message{}.text(99, "later"), 4, plain, []field{{5, descriptor}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			reply, err := call(t, conn, c.method, append(files.request("Default"), c.request...))
			if err != nil {
				t.Fatal(err)
			}
			var der []byte
			var others []field
			for _, f := range fields(t, reply) {
				if f.Number == c.number {
					der = c.decode(f.Value)
				} else {
					others = append(others, f)
				}
			}
			if diff := gocmp.Diff(c.others, others); diff != "" {
				t.Errorf("the other fields (-want +got):\n%s", diff)
			}
			certificate := files.verified(t, der)
			if got := certificate.Subject.String(); got != "CN=app,C=DE" {
				t.Errorf("subject %s", got)
			}
		})
	}
}

func TestEveryFieldOfARequestForACertificateHasItsEffect(t *testing.T) {
	files := newIssuing(t)
	conn := connect(t, start(t, string(catalogue.Profiles)).socket(""))
	begin, end := time.Now().Add(time.Hour).Truncate(time.Second).UTC(), time.Now().Add(2*time.Hour).Truncate(time.Second).UTC()
	request := files.request("Default").number(certNotBefore, uint64(begin.Unix())).number(certNotAfter, uint64(end.Unix())).
		text(certSubject, "CN=other, O=Example").text(certPoints, "http://a.example/1.crl").text(certPoints, "https://b.example/2.crl")
	for method, number := range map[string]protowire.Number{methodSign: 1, methodSignCertificate: 4, methodSignCertificateV1: 3} {
		t.Run(method, func(t *testing.T) {
			reply, err := call(t, conn, method, request)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range fields(t, reply) {
				if f.Number != number {
					continue
				}
				der := []byte(f.Value)
				if method == methodSign {
					if der, err = base64.StdEncoding.DecodeString(f.Value); err != nil {
						t.Fatal(err)
					}
				}
				certificate := files.verifiedAt(t, der, begin)
				got := []string{certificate.Subject.String(), certificate.NotBefore.String(), certificate.NotAfter.String(), strings.Join(certificate.CRLDistributionPoints, " ")}
				want := []string{"CN=other,O=Example", begin.String(), end.String(), "http://a.example/1.crl https://b.example/2.crl"}
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Errorf("certificate (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// verifiedAt parses a certificate after OpenSSL verified it for another time.
func (i issuing) verifiedAt(t *testing.T, der []byte, at time.Time) *x509.Certificate {
	t.Helper()
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(i.certificate))
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		t.Fatal(err)
	}
	return certificate
}

func TestARequestForACertificateThatIsRefusedLearnsWhy(t *testing.T) {
	good := newIssuing(t)
	other := newIssuing(t)
	leaf := newIssuing(t, "-addext", "basicConstraints=critical,CA:FALSE")
	encrypted := runOpenSSL(t, []byte(good.key), "pkey", "-aes256", "-passout", "pass:secret")
	pad := func(text string, size int) string { return text + strings.Repeat("\n", size-len(text)) }
	request := func(name, csr, key, certificate string) message {
		return message{}.text(certProfile, name).text(certCSR, csr).text(certKey, key).text(certIssuer, certificate)
	}
	profiles := string(catalogue.Profiles) + "- Name: No certificates\n  API: {HashData: {HashAlg: sha-256}}\n" +
		"- Name: By reference\n  API:\n    SignCertificate:\n      SignAlg: ecdsa\n      HashAlg: sha-256\n      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}\n      KeyIds: [{Id: ca}]\n"
	conn := connect(t, start(t, profiles).socket(""))
	const prefix = `SignCertificate with profile "Default": `
	for sentence, c := range map[string]struct {
		request message
		code    codes.Code
		want    string
	}{
		"no profile":                       {request("", good.csr, good.key, good.certificate), codes.InvalidArgument, "SignCertificate: profile is empty, expected the name of a profile"},
		"an unknown profile":               {request("Q", good.csr, good.key, good.certificate), codes.InvalidArgument, `SignCertificate with profile "Q": no profile of this name is served`},
		"a profile without this operation": {request("No certificates", good.csr, good.key, good.certificate), codes.FailedPrecondition, `SignCertificate with profile "No certificates": the profile does not offer this operation`},
		"a key where the profile has its own": {request("By reference", good.csr, good.key, good.certificate), codes.InvalidArgument,
			`SignCertificate with profile "By reference": caPrivateKey is not empty, expected none: the profile lists the keys that may sign in KeyIds, and the broker has them`},

		"no request":                 {request("Default", "", good.key, good.certificate), codes.InvalidArgument, prefix + "csr is empty, expected a certificate request in PEM"},
		"no key":                     {request("Default", good.csr, "", good.certificate), codes.InvalidArgument, prefix + "caPrivateKey is empty, expected the issuer's private key in PEM, because the profile lists no keys in KeyIds"},
		"no certificate":             {request("Default", good.csr, good.key, ""), codes.InvalidArgument, prefix + "caCert is empty, expected the issuer's certificate in PEM"},
		"key and certificate mixed":  {request("Default", good.csr, good.certificate, good.key), codes.InvalidArgument, prefix + `caCert has a PEM block "PRIVATE KEY", expected "CERTIFICATE"`},
		"a certificate as the key":   {request("Default", good.csr, good.certificate, good.certificate), codes.InvalidArgument, prefix + `caPrivateKey has a PEM block "CERTIFICATE", expected "PRIVATE KEY", "EC PRIVATE KEY" or "RSA PRIVATE KEY"`},
		"an encrypted key":           {request("Default", good.csr, encrypted, good.certificate), codes.InvalidArgument, prefix + "caPrivateKey is encrypted, expected an unencrypted private key, because the broker has no passphrase"},
		"a key of somebody else":     {request("Default", good.csr, other.key, good.certificate), codes.InvalidArgument, prefix + "caPrivateKey is not the key of the issuer's certificate, expected the private key that belongs to its public key"},
		"a certificate that is cut":  {request("Default", good.csr, good.key, good.certificate[:200]), codes.InvalidArgument, prefix + "caCert has no complete PEM block, expected a certificate in PEM"},
		"no certificate authority":   {request("Default", good.csr, leaf.key, leaf.certificate), codes.InvalidArgument, prefix + "caCert is not the certificate of a certificate authority, expected BasicConstraints with CA:TRUE"},
		"a weak issuer":              {request("KSA-ADVANCED-2020", good.csr, good.key, good.certificate), codes.InvalidArgument, `SignCertificate with profile "KSA-ADVANCED-2020": caPrivateKey is an ECDSA key of 384 bits, expected what the profile allows for issuers: ECDSA of 521 bits`},
		"another kind of issuer":     {request("KSA-MODERATE-2020", good.csr, good.key, good.certificate), codes.InvalidArgument, `SignCertificate with profile "KSA-MODERATE-2020": caPrivateKey is an ECDSA key, expected what the profile allows for issuers: RSA of 3072 to 8192 bits`},
		"a subject that is none":     {good.request("Default").text(certSubject, "app"), codes.InvalidArgument, prefix + `subject cannot be read: component 1 has no "=", expected an attribute such as "CN=api.example.com"; a comma inside a value is written "\,"`},
		"a period in the past":       {good.request("Default").number(certNotBefore, 1), codes.InvalidArgument, prefix + "validNotBefore is 1970-01-01T00:00:01Z, expected a time that the profile allows, "},
		"a distribution point":       {good.request("Default").text(certPoints, "ftp://a"), codes.InvalidArgument, prefix + "crlDistributionPoints[0] is not a URL of http or https in ASCII, such as \"http://crl.example.com/ca.crl\""},
		"an id above the limit":      {good.request("Default").bytes(certMetadata, message{}.text(metadataID, strings.Repeat("i", 129))), codes.InvalidArgument, "SignCertificate: metadata.id has 129 bytes, expected at most 128"},
		"a request above the limit":  {request("Default", pad(good.csr, 64<<10+1), good.key, good.certificate), codes.InvalidArgument, "SignCertificate: csr has 65537 bytes, expected at most 65536"},
		"a key above the limit":      {request("Default", good.csr, pad(good.key, 64<<10+1), good.certificate), codes.InvalidArgument, "SignCertificate: caPrivateKey has 65537 bytes, expected at most 65536"},
		"an issuer above the limit":  {request("Default", good.csr, good.key, pad(good.certificate, 64<<10+1)), codes.InvalidArgument, "SignCertificate: caCert has 65537 bytes, expected at most 65536"},
		"a subject above the limit":  {good.request("Default").text(certSubject, pad("CN=a", 1025)), codes.InvalidArgument, "SignCertificate: subject has 1025 bytes, expected at most 1024"},
		"a message far too large":    {request("Default", pad(good.csr, 3<<20), good.key, good.certificate), codes.InvalidArgument, "SignCertificate: a message has 31"},
		"a request that is no UTF-8": {request("Default", "\xff", good.key, good.certificate), codes.InvalidArgument, "SignCertificate: the request is not a "},
	} {
		for _, method := range []string{methodSign, methodSignCertificate, methodSignCertificateV1} {
			t.Run(sentence+" "+method, func(t *testing.T) {
				_, err := call(t, conn, method, c.request)
				if status.Code(err) != c.code || !strings.HasPrefix(status.Convert(err).Message(), saidOf(method, c.want)) {
					t.Errorf("got %v\nwant %s: %s", err, c.code, c.want)
				}
				for line := range strings.Lines(good.key) {
					if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") && strings.Contains(status.Convert(err).Message(), line) {
						t.Error("the message has a line of the private key")
					}
				}
			})
		}
	}
	t.Run("a format that there is not", func(t *testing.T) {
		for method, want := range map[string]string{
			methodSignCertificate:   "SignCertificate: outputFormat is 7, expected 0 (DER) or 1 (PEM)",
			methodSignCertificateV1: "SignCertificate: outputFormat is 7, expected 0 or 1 (DER) or 2 (PEM)",
		} {
			if _, err := call(t, conn, method, good.request("Default").number(certFormat, 7)); status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != want {
				t.Errorf("%s: got %v, want %s", method, err, want)
			}
		}
	})
	t.Run("at the limits it is signed", func(t *testing.T) {
		atLimits := request("Default", pad(good.csr, 64<<10), pad(good.key, 64<<10), pad(good.certificate, 64<<10)).text(certSubject, pad("CN=a", 1024))
		for range 16 {
			atLimits = atLimits.text(certPoints, "http://a.example/"+strings.Repeat("c", 2048-17))
		}
		for _, method := range []string{methodSign, methodSignCertificate, methodSignCertificateV1} {
			if _, err := call(t, conn, method, atLimits); err != nil {
				t.Errorf("%s: %v", method, err)
			}
		}
	})
}
