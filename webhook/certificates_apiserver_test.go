// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/webhook/certificates"
)

var errNotCalled = errors.New("the other injector was not called yet")

func pemOf(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// accepted reports whether all webhooks trust the signer of a replica's certificate.
func accepted(ctx context.Context, certs *certificates.Certificates) error {
	served, err := certs.GetCertificate(nil)
	if err != nil {
		return err
	}
	bundles, err := bundlesOf(ctx)
	if err != nil {
		return err
	}
	for i, bundle := range bundles {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle)
		if _, err := served.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost"}); err != nil {
			return fmt.Errorf("webhook %d: %w", i, err)
		}
	}
	return nil
}

// This shows that the operator has the right to watch: without a watch it would take minutes.
func TestABundleThatSomebodyEmptiesComesBackAtOnce(t *testing.T) {
	replica := startOperator(t)
	for name, empty := range map[string]func() error{
		"of the mutating webhooks": func() error {
			return emptied(t, &admissionregistrationv1.MutatingWebhookConfiguration{})
		},
		"of the validating webhooks": func() error {
			return emptied(t, &admissionregistrationv1.ValidatingWebhookConfiguration{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := empty(); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			eventually(t, "the bundle is back", func() error { return accepted(t.Context(), replica.certificates) })
			t.Logf("back after %s", time.Since(begin).Round(time.Millisecond))
		})
	}
}

// emptied removes the bundles of all webhooks of a configuration.
func emptied(t *testing.T, configuration client.Object) error {
	t.Helper()
	configuration.SetName("crypto-broker-operator")
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(configuration), configuration); err != nil {
		return err
	}
	webhooks := 0
	switch found := configuration.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		webhooks = len(found.Webhooks)
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		webhooks = len(found.Webhooks)
	}
	var operations []string
	for i := range webhooks {
		operations = append(operations, fmt.Sprintf(`{"op": "remove", "path": "/webhooks/%d/clientConfig/caBundle"}`, i))
	}
	patch := "[" + strings.Join(operations, ",") + "]"
	return admin.Patch(t.Context(), configuration, client.RawPatch("application/json-patch+json", []byte(patch)))
}

func TestASecretThatSomebodyDeletesOrSpoilsComesBackAtOnce(t *testing.T) {
	replica := startOperator(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "crypto-broker-operator-ca"}}
	get := func() error { return admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret) }
	for name, spoil := range map[string]func() error{
		"deleted": func() error { return admin.Delete(t.Context(), secret) },
		"emptied": func() error { secret.Data = nil; return admin.Update(t.Context(), secret) },
		"garbage": func() error {
			secret.Data["ca.key"] = []byte("garbage")
			return admin.Update(t.Context(), secret)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := get(); err != nil {
				t.Fatal(err)
			}
			before := string(secret.Data["ca.crt"])
			if err := spoil(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "there is another authority", func() error {
				if err := get(); err != nil {
					return err
				}
				if after := string(secret.Data["ca.crt"]); after == "" || after == before {
					return errors.New("the Secret holds the authority of before or none")
				}
				return accepted(t.Context(), replica.certificates)
			})
		})
	}
}

// Three replicas start at the same moment, before any object exists.
func TestReplicasThatBeginAtTheSameTimeShareOneAuthority(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "crypto-broker-operator-ca"}}
	if err := client.IgnoreNotFound(admin.Delete(t.Context(), secret)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		emptied(t, &admissionregistrationv1.MutatingWebhookConfiguration{}),
		emptied(t, &admissionregistrationv1.ValidatingWebhookConfiguration{}),
	); err != nil {
		t.Log(err) // nothing to remove
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 3)
	var replicas []*certificates.Certificates
	for range 3 {
		replica, err := certificates.New(access, certificateOptions())
		if err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, replica)
	}
	for _, replica := range replicas {
		go func() { ended <- replica.Start(ctx) }()
	}
	for i, replica := range replicas {
		eventually(t, fmt.Sprintf("replica %d is ready and accepted", i), func() error {
			return errors.Join(replica.Ready(nil), accepted(t.Context(), replica))
		})
	}
	bundles, err := bundlesOf(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, bundle := range bundles {
		if block, rest := pem.Decode(bundle); block == nil || len(rest) > 0 {
			t.Errorf("webhook %d trusts another number of authorities than one: %s", i, bundle)
		}
	}
	cancel()
	for range replicas {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
