// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/gateway"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/podauth"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

// certificateOf returns the file that a kubelet writes for a pod, with a certificate that the operator
// has signed.
func certificateOf(t *testing.T, ring signing.Ring, pod *corev1.Pod) string {
	t.Helper()
	operator, stop := runForGateways(t, ring)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var leaf *x509.Certificate
	apiserver.Eventually(t, "the operator signs", func() (err error) {
		leaf, err = operator.SignClient(key.Public(), contract.BrokerURI(pod.Namespace, pod.Name, string(pod.UID)), time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
		return err
	})
	stop()
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, filepath.Join(t.TempDir(), "certificate.pem"),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))+string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})))
}

func TestWithItsFlagTheGatewayNeedsTokenAndCertificateOfOnePod(t *testing.T) {
	ring := newRing(t)
	shop, other := newTenant(t, "certified", ring), newTenant(t, "certified-too", ring)
	shop.addProvider(t)
	t.Cleanup(func() { // other tests count the providers
		if err := admin.Delete(context.Background(), &v1alpha1.KeyProvider{ObjectMeta: metav1.ObjectMeta{Namespace: shop.name, Name: "kms"}}); err != nil {
			t.Error(err)
		}
	})
	certificates, trustedKeys, ofOperator := mount(t, ring)
	ofBrokers := write(t, filepath.Join(t.TempDir(), "ca.crt"), ofOperator)
	authority := issue(t, certificates) // a certificate of the gateway for the address of this machine
	g := startGateway(t, certificates, trustedKeys, providers.Types{providers.OpenBao: (&managers{}).connect}, "--broker-authorities-file="+ofBrokers)
	own := certificateOf(t, ring, shop.pod)
	use := func(certificate string) error {
		dir := t.TempDir()
		broker, err := gateway.New(gateway.Options{
			Address: g.listener.Addr().String(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), CertificateFile: certificate,
			TokenFile: write(t, filepath.Join(dir, "token"), shop.token(t, podauth.Audience)), AuthoritiesFile: write(t, filepath.Join(dir, "ca.crt"), authority),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer broker.Close()
		_, err = encrypt(t.Context(), broker)
		return err
	}
	if err := use(own); err != nil {
		t.Errorf("with its certificate, found %v", err)
	}
	if err := use(""); !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("without a certificate, found %v, want ErrUnavailable", err)
	}
	if err := use(certificateOf(t, ring, other.pod)); err == nil {
		t.Error("the certificate of another pod is accepted")
	}
	write(t, ofBrokers, authority)
	if err := use(own); !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("after its authority is gone from the file, found %v, want ErrUnavailable", err)
	}
}
