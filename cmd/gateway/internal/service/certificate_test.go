// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	gatewayv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/gateway/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/gateway"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// demanding is a gateway that demands certificates. Its authorities are those in brokers.
type demanding struct {
	*installation
	authorities atomic.Pointer[x509.CertPool]
}

func installDemanding(t *testing.T, trusted ...*authority) *demanding {
	t.Helper()
	d := &demanding{installation: prepare(t)}
	d.trust(trusted...)
	d.brokers = func() (*x509.CertPool, error) {
		if pool := d.authorities.Load(); pool != nil {
			return pool, nil
		}
		return nil, errors.New("the file is broken")
	}
	d.serve(t, "127.0.0.1:0")
	raw := sha256.Sum256([]byte("key"))
	secret(t, d.manager, "orders", raw[:])
	return d
}

// trust replaces the authorities of brokers. Without authorities, reading them returns an error.
func (d *demanding) trust(trusted ...*authority) {
	if len(trusted) == 0 {
		d.authorities.Store(nil)
		return
	}
	pool := x509.NewCertPool()
	for _, each := range trusted {
		pool.AddCert(each.cert)
	}
	d.authorities.Store(pool)
}

// ofPod returns the template of the certificate of a pod of the namespace shop.
func ofPod(pod string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(3), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, URIs: []*url.URL{contract.BrokerURI("shop", pod, pod)},
	}
}

// encrypt makes a request of the pod web over a new connection with a certificate, or with none.
func (d *demanding) encrypt(t *testing.T, certificate *tls.Certificate) error {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	config.RootCAs.AddCert(d.authority.cert)
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	connection, err := grpc.NewClient(d.address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }() // the cleanup closes it once
	_, err = gatewayv1.NewKeyGatewayServiceClient(connection).Encrypt(callContext(t, 10*time.Second, "Bearer token-of-web"), &gatewayv1.EncryptRequest{
		Use: &gatewayv1.KeyUse{Profile: "P", Operation: "EncryptData", KeyId: "kms/orders"}, Plaintext: []byte("m"),
	})
	return err
}

func TestAGatewayThatDemandsCertificatesServesAPodWithItsOwnOnly(t *testing.T) {
	operator := newAuthority(t)
	d := installDemanding(t, operator)
	changed := func(change func(*x509.Certificate)) *x509.Certificate {
		template := ofPod("web")
		change(template)
		return template
	}
	const (
		mismatch = "refused a request because the certificate of its connection does not belong to the token's pod"
		sentence = "the certificate of the connection does not belong to the pod of the token"
	)
	for which, test := range map[string]struct {
		certificate *tls.Certificate
		code        codes.Code
		want        string
	}{
		"the certificate of the pod":               {operator.sign(t, ofPod("web")), codes.OK, ""},
		"none":                                     {nil, codes.Unavailable, "client didn't provide a certificate"},
		"one of another authority":                 {newAuthority(t).sign(t, ofPod("web")), codes.Unavailable, "certificate signed by unknown authority"},
		"one of the authority of the gateway":      {d.authority.sign(t, ofPod("web")), codes.Unavailable, "certificate signed by unknown authority"},
		"one that has expired":                     {operator.sign(t, changed(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) })), codes.Unavailable, "certificate has expired"},
		"one that is not valid yet":                {operator.sign(t, changed(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) })), codes.Unavailable, "certificate has expired or is not yet valid"},
		"one for servers":                          {operator.sign(t, changed(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })), codes.Unavailable, "incompatible key usage"},
		"one of another pod":                       {operator.sign(t, ofPod("other")), codes.Unauthenticated, mismatch},
		"one of a pod with the same name before":   {operator.sign(t, changed(func(c *x509.Certificate) { c.URIs[0] = contract.BrokerURI("shop", "web", "before") })), codes.Unauthenticated, mismatch},
		"one of a pod in another namespace":        {operator.sign(t, changed(func(c *x509.Certificate) { c.URIs[0] = contract.BrokerURI("elsewhere", "web", "web") })), codes.Unauthenticated, mismatch},
		"one with two names":                       {operator.sign(t, changed(func(c *x509.Certificate) { c.URIs = append(c.URIs, contract.BrokerURI("shop", "other", "other")) })), codes.Unauthenticated, mismatch},
		"one with a name of another kind":          {operator.sign(t, changed(func(c *x509.Certificate) { c.URIs, c.DNSNames = nil, []string{"web"} })), codes.Unauthenticated, mismatch},
		"one whose name has the scheme of another": {operator.sign(t, changed(func(c *x509.Certificate) { c.URIs[0].Scheme = "spiffe" })), codes.Unauthenticated, mismatch},
	} {
		t.Run(which, func(t *testing.T) {
			asked, logged, failed := d.manager.asked.Load(), len(d.log.String()), d.server.FailedHandshakes()
			err := d.encrypt(t, test.certificate)
			if status.Code(err) != test.code || test.code == codes.Unauthenticated && status.Convert(err).Message() != sentence {
				t.Fatalf("found %v, want %s", err, test.code)
			}
			if test.code == codes.OK {
				return
			}
			eventually(t, "the log says why", func() error { // for a handshake, after the client knows
				if found := d.log.String()[logged:]; !strings.Contains(found, test.want) {
					return fmt.Errorf("found %s, want %q", found, test.want)
				}
				return nil
			})
			if d.manager.asked.Load() != asked {
				t.Error("the key manager was asked")
			}
			if counted := d.server.FailedHandshakes() > failed; counted != (test.code == codes.Unavailable) {
				t.Errorf("the handshake counts as failed: %t", counted)
			}
		})
	}
}

func TestACertificateDoesNotReplaceTheToken(t *testing.T) {
	operator := newAuthority(t)
	d := installDemanding(t, operator)
	write(t, d.token, "stolen\n")
	_, err := d.clientWith(t, d.bundle(t, operator.sign(t, ofPod("web")))).Key(t.Context(), named("orders", profile.OpEncryptData))
	if err == nil || !strings.Contains(d.log.String(), "refused a request because of its token") {
		t.Errorf("found %v, and the log %s", err, d.log)
	}
}

func TestAuthoritiesOfBrokersThatChangeCountForTheNextConnection(t *testing.T) {
	before, after := newAuthority(t), newAuthority(t)
	d := installDemanding(t, before)
	old, fresh := before.sign(t, ofPod("web")), after.sign(t, ofPod("web"))
	expect := func(phase string, certificate *tls.Certificate, want codes.Code) {
		t.Helper()
		if err := d.encrypt(t, certificate); status.Code(err) != want {
			t.Errorf("%s: found %v, want %s", phase, err, want)
		}
	}
	expect("before the rotation, the old one", old, codes.OK)
	expect("before the rotation, the new one", fresh, codes.Unavailable)
	d.trust(before, after)
	expect("meanwhile, the old one", old, codes.OK)
	expect("meanwhile, the new one", fresh, codes.OK)
	d.trust(after)
	expect("afterwards, the old one", old, codes.Unavailable)
	expect("afterwards, the new one", fresh, codes.OK)
	d.trust()
	expect("without readable authorities, the new one", fresh, codes.Unavailable)
}

// bundle writes a certificate and its key as the kubelet does, and returns the file.
func (d *demanding) bundle(t *testing.T, certificate *tls.Certificate) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "certificate.pem")
	replace(t, file, certificate)
	return file
}

func replace(t *testing.T, file string, certificate *tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	next := file + ".next"
	write(t, next, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))+string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})))
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
}

func (d *demanding) clientWith(t *testing.T, file string) *gateway.Client {
	t.Helper()
	client, err := gateway.New(gateway.Options{
		Address: d.address, TokenFile: d.token, AuthoritiesFile: d.installation.authorities, CertificateFile: file, Logger: slog.New(slog.NewJSONHandler(d.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestABrokerPresentsTheCertificateThatItsFileHasWhenItConnects(t *testing.T) {
	before, after := newAuthority(t), newAuthority(t)
	d := installDemanding(t, before)
	file := d.bundle(t, before.sign(t, ofPod("web")))
	client := d.clientWith(t, file)
	cipher := must[*keys.Key](t)(client.Key(t.Context(), named("orders", profile.OpEncryptData))).Cipher(t.Context())
	encrypt := func() error {
		_, _, _, err := cipher.SealRandom([]byte("m"), nil)
		return err
	}
	if err := encrypt(); err != nil {
		t.Fatal(err)
	}
	// Another replica, which accepts only the certificate that the kubelet writes next.
	d.trust(after)
	d.stop(d.server)
	d.serve(t, d.address)
	if err := encrypt(); !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("with the certificate before, found %v, want ErrUnavailable", err)
	}
	replace(t, file, after.sign(t, ofPod("web")))
	eventually(t, "the broker presents the new certificate", encrypt)
}
