// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
)

// bothWays runs a test over the stream and without it.
func bothWays(t *testing.T, test func(*testing.T, *cryptobroker.Client)) {
	broker := startBroker(t)
	for name, options := range map[string][]cryptobroker.Option{
		"over the stream": nil, "as calls of gRPC": {cryptobroker.WithoutExchange()},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, newClient(t, broker.socket, options...))
		})
	}
}

func TestADigestIsThatOfTheProfilesAlgorithm(t *testing.T) {
	bothWays(t, func(t *testing.T, client *cryptobroker.Client) {
		for _, size := range []int{0, 3, 10_000, 17_000, 1 << 20} {
			input := bytes.Repeat([]byte{7}, size)
			got, err := client.HashData(withTimeout(t), cryptobroker.HashDataRequest{Profile: "Default", Input: input})
			if err != nil {
				t.Fatal(err)
			}
			want := sha256.Sum256(input)
			if !bytes.Equal(got.Digest, want[:]) || got.Algorithm != "sha-256" || got.Deprecation != nil {
				t.Errorf("%d bytes: %+v, want the digest %x by sha-256", size, got, want)
			}
		}
	})
}

func TestAnInputOfAnySizeIsHashedFromAReader(t *testing.T) {
	bothWays(t, func(t *testing.T, client *cryptobroker.Client) {
		for _, size := range []int{0, 5, 256 << 10, 256<<10 + 1, 5 << 20} {
			input := bytes.Repeat([]byte{9}, size)
			want := sha256.Sum256(input)
			got, err := client.HashReader(withTimeout(t), "Default", iotest.HalfReader(bytes.NewReader(input)))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Digest, want[:]) || got.Algorithm != "sha-256" {
				t.Errorf("%d bytes: %+v, want the digest %x", size, got, want)
			}
		}
	})
}

func TestAnErrorOfTheReaderIsTheErrorOfTheCall(t *testing.T) {
	client := newClient(t, startBroker(t).socket)
	torn := errors.New("the tape is torn")
	for name, whole := range map[string]int{"at the begin": 5, "later": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			input := iotest.DataErrReader(&failing{bytes.NewReader(make([]byte, whole)), torn})
			_, err := client.HashReader(withTimeout(t), "Default", input)
			if !errors.Is(err, torn) {
				t.Errorf("the error is %v, want the error of the reader", err)
			}
		})
	}
}

type failing struct {
	*bytes.Reader
	err error
}

func (f *failing) Read(b []byte) (int, error) {
	if f.Len() == 0 {
		return 0, f.err
	}
	return f.Reader.Read(b)
}

func TestWhatIsEncryptedIsDecrypted(t *testing.T) {
	raw := cryptobroker.RawKey(bytes.Repeat([]byte("r"), 16))
	bothWays(t, func(t *testing.T, client *cryptobroker.Client) {
		for name, c := range map[string]cryptobroker.EncryptDataRequest{
			"by a key of the broker":     {Profile: "Orders", Key: cryptobroker.KeyID("orders"), Plaintext: []byte("4711 boxes"), AdditionalData: []byte("12")},
			"by a key of the request":    {Profile: "Own", Key: raw, Plaintext: []byte("4711 boxes"), Nonce: []byte("twelve bytes")},
			"nothing":                    {Profile: "Orders", Key: cryptobroker.KeyID("orders")},
			"a mebibyte, which is a lot": {Profile: "Orders", Key: cryptobroker.KeyID("orders"), Plaintext: make([]byte, 1<<20)},
		} {
			t.Run(name, func(t *testing.T) {
				sealed, err := client.EncryptData(withTimeout(t), c)
				if err != nil {
					t.Fatal(err)
				}
				if len(sealed.Nonce) != 12 || len(sealed.Tag) != 16 || sealed.Algorithm == "" {
					t.Errorf("encrypted: %+v", sealed)
				}
				request := cryptobroker.DecryptDataRequest{
					Profile: c.Profile, Key: c.Key, Ciphertext: sealed.Ciphertext, Nonce: sealed.Nonce, Tag: sealed.Tag, AdditionalData: c.AdditionalData,
				}
				opened, err := client.DecryptData(withTimeout(t), request)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(opened.Plaintext, c.Plaintext) {
					t.Errorf("decrypted to %d bytes, want the %d of the plaintext", len(opened.Plaintext), len(c.Plaintext))
				}
				request.AdditionalData = []byte("13")
				if _, err := client.DecryptData(withTimeout(t), request); !errors.Is(err, cryptobroker.ErrInvalidArgument) {
					t.Errorf("with other additional data: %v, want %v", err, cryptobroker.ErrInvalidArgument)
				}
			})
		}
	})
}

func pkcs8(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func TestADataKeyIsWrappedAndUnwrapped(t *testing.T) {
	bothWays(t, func(t *testing.T, client *cryptobroker.Client) {
		bound := []byte("tenant a")
		made, err := client.GenerateDataKey(withTimeout(t), cryptobroker.GenerateDataKeyRequest{Profile: "Data", KeyID: "orders", Context: bound})
		if err != nil || len(made.DataKey) != 32 {
			t.Fatalf("a data key of %d bytes: %v", len(made.DataKey), err)
		}
		good := cryptobroker.WrappedKey{WrappedKey: made.WrappedKey, Context: bound}
		batch, err := client.UnwrapBatch(withTimeout(t), cryptobroker.UnwrapBatchRequest{Profile: "Data", Keys: []cryptobroker.WrappedKey{{WrappedKey: made.WrappedKey}, good}})
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(batch.Keys[0].Err, cryptobroker.ErrInvalidArgument) || batch.Keys[1].Err != nil || !bytes.Equal(batch.Keys[1].DataKey, made.DataKey) {
			t.Errorf("without a context: %v, with it: %v, and another key", batch.Keys[0].Err, batch.Keys[1].Err)
		}
	})
}

func TestASignatureIsVerifiedByOthersAndByTheBroker(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	input := []byte("We agree.")
	digest := sha256.Sum256(input)
	bothWays(t, func(t *testing.T, client *cryptobroker.Client) {
		for name, c := range map[string]struct {
			request cryptobroker.SignDataRequest
			valid   func(signature []byte) bool
		}{
			"Ed25519": {
				cryptobroker.SignDataRequest{Profile: "Receipts", Key: cryptobroker.RawKey(pkcs8(t, edwards)), Input: input},
				func(s []byte) bool { return ed25519.Verify(edwards.Public().(ed25519.PublicKey), input, s) },
			},
			"ECDSA in DER": {
				cryptobroker.SignDataRequest{Profile: "Contracts", Key: cryptobroker.RawKey(pkcs8(t, curve)), Input: input, Format: cryptobroker.SignatureFormatDER},
				func(s []byte) bool { return ecdsa.VerifyASN1(&curve.PublicKey, digest[:], s) },
			},
		} {
			t.Run(name, func(t *testing.T) {
				signed, err := client.SignData(withTimeout(t), c.request)
				if err != nil {
					t.Fatal(err)
				}
				if !c.valid(signed.Signature) || signed.Algorithm == "" {
					t.Errorf("signed: %+v, which is not valid", signed)
				}
				for _, text := range []string{"We agree.", "We do not."} {
					verified, err := client.VerifyData(withTimeout(t), cryptobroker.VerifyDataRequest{
						Profile: c.request.Profile, Key: c.request.Key, Input: []byte(text), Signature: signed.Signature, Format: c.request.Format,
					})
					if err != nil || verified.Valid != (text == string(input)) {
						t.Errorf("verified over %q: %+v, %v", text, verified, err)
					}
				}
			})
		}
	})
}

// authority makes a certificate authority and a request for a certificate.
func authority(t testing.TB) (request cryptobroker.SignCertificateRequest, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Authority"}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().AddDate(2, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(ca)
	subject, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "web"}}, subject)
	if err != nil {
		t.Fatal(err)
	}
	return cryptobroker.SignCertificateRequest{
		Profile:      "Servers",
		CSR:          pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}),
		CAPrivateKey: pkcs8(t, key), CACertificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, pool
}

func TestACertificateIsIssuedAsItWasAskedFor(t *testing.T) {
	request, pool := authority(t)
	request.Subject = "CN=shop,O=Example"
	request.CRLDistributionPoints = []string{"http://crl.example.com/a", "http://crl.example.com/b"}
	request.NotBefore = time.Now().Add(-time.Minute).Truncate(time.Second)
	request.NotAfter = time.Now().Add(time.Hour).Truncate(time.Second)
	bothWays(t, func(t *testing.T, client *cryptobroker.Client) {
		issued, err := client.SignCertificate(withTimeout(t), request)
		if err != nil {
			t.Fatal(err)
		}
		block, rest := pem.Decode(issued.PEM())
		if block == nil || len(rest) > 0 || !bytes.Equal(block.Bytes, issued.Certificate) || issued.Algorithm == "" {
			t.Errorf("issued: %+v", issued)
		}
		got, err := x509.ParseCertificate(issued.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := got.Verify(x509.VerifyOptions{Roots: pool}); err != nil {
			t.Error(err)
		}
		if !got.NotBefore.Equal(request.NotBefore) || !got.NotAfter.Equal(request.NotAfter) || len(got.CRLDistributionPoints) != 2 || got.Subject.CommonName != "shop" {
			t.Errorf("issued for %s from %s to %s with %q", got.Subject, got.NotBefore, got.NotAfter, got.CRLDistributionPoints)
		}
	})
}

func TestATimeThatNoCertificateHasIsRefused(t *testing.T) {
	client := newClient(t, "/nowhere")
	_, err := client.SignCertificate(withTimeout(t), cryptobroker.SignCertificateRequest{Profile: "P", NotAfter: time.Unix(-1, 0).UTC()})
	want := `crypto broker: INVALID_ARGUMENT: SignCertificate with profile "P": NotAfter is 1969-12-31 23:59:59 +0000 UTC, expected no time before 1970`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAWarningIsInTheResultAndToldOnce(t *testing.T) {
	broker := startBroker(t)
	var told []cryptobroker.Deprecation
	client := newClient(t, broker.socket, cryptobroker.WithProfile("Old"), cryptobroker.WithDeprecationHandler(func(d cryptobroker.Deprecation) {
		told = append(told, d)
	}))
	want := cryptobroker.Deprecation{Profile: "Old", ReplacedBy: "Default", Since: "2026-01-01", RemoveAfter: "2027-01-01", Reason: "It is long."}
	for range 3 {
		got, err := client.HashData(withTimeout(t), cryptobroker.HashDataRequest{Input: []byte("abc")})
		if err != nil {
			t.Fatal(err)
		}
		if digest := sha512.Sum512([]byte("abc")); !bytes.Equal(got.Digest, digest[:]) {
			t.Errorf("the digest is %s", got.Hex())
		}
		if got.Deprecation == nil || *got.Deprecation != want {
			t.Errorf("the warning is %+v, want %+v", got.Deprecation, want)
		}
	}
	if len(told) != 1 || told[0] != want {
		t.Errorf("told %+v, want one %+v", told, want)
	}
}

func TestTheBrokersHealthIsTold(t *testing.T) {
	broker := startBroker(t)
	client := newClient(t, broker.socket)
	// The first call waits for the broker.
	if _, err := client.HashData(withTimeout(t), cryptobroker.HashDataRequest{Profile: "Default"}); err != nil {
		t.Fatal(err)
	}
	got, err := client.Health(withTimeout(t))
	if err != nil || got != cryptobroker.HealthServing || got.String() != "SERVING" {
		t.Errorf("health: %v, %v; want %v", got, err, cryptobroker.HealthServing)
	}
}

func TestTheSocketIsThatOfTheEnvironment(t *testing.T) {
	broker := startBroker(t)
	t.Setenv(cryptobroker.SocketVariable, broker.socket)
	client, err := cryptobroker.New()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.HashReader(withTimeout(t), "Default", strings.NewReader("abc")); err != nil {
		t.Error(err)
	}
	if err := client.Close(withTimeout(t)); err != nil {
		t.Error(err)
	}
	if err := os.Unsetenv(cryptobroker.SocketVariable); err != nil {
		t.Fatal(err)
	}
	_, err = newClient(t, cryptobroker.DefaultSocket+".none").Health(withTimeout(t))
	if !errors.Is(err, cryptobroker.ErrUnavailable) || !strings.Contains(err.Error(), cryptobroker.DefaultSocket+".none") {
		t.Errorf("without a broker: %v", err)
	}
}
