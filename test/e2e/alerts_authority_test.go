// SPDX-License-Identifier: Apache-2.0

//go:build e2e && alerts

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// letAuthorityExpire takes from the operator the right to write the Secret of its certificate authority, and writes an authority
// there that expires soon. So the operator cannot make a successor.
func letAuthorityExpire(t *testing.T) {
	t.Helper()
	name := environment.Release + "-ca"
	roles := &rbacv1.RoleList{}
	must(t, shared.client.List(t.Context(), roles, client.InNamespace(environment.Namespace)))
	changed := false
	for i := range roles.Items {
		role := &roles.Items[i]
		before := role.DeepCopy().Rules
		n := slices.IndexFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.ResourceNames, name) && slices.Contains(rule.Verbs, "update")
		})
		if n < 0 {
			continue
		}
		role.Rules[n].Verbs = []string{"get", "list", "watch"}
		must(t, shared.client.Update(t.Context(), role))
		changed = true
		t.Cleanup(func() {
			role.Rules = before
			must(t, shared.client.Update(timeoutContext(t, time.Minute), role))
		})
	}
	if !changed {
		t.Fatalf("found no Role that allows to update the Secret %s", name)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: environment.Namespace}}
	// The operator makes a new authority if there is none.
	t.Cleanup(func() { must(t, client.IgnoreNotFound(shared.client.Delete(timeoutContext(t, time.Minute), secret))) })
	must(t, shared.client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	secret.Data["ca.crt"], secret.Data["ca.key"] = shortAuthority(t, secret.Data["ca.crt"])
	must(t, shared.client.Update(t.Context(), secret))
}

// shortAuthority returns a copy of an authority that expires in two hours.
func shortAuthority(t *testing.T, like []byte) (certificate, key []byte) {
	t.Helper()
	block, _ := pem.Decode(like)
	if block == nil {
		t.Fatalf("found %q, expected a certificate", like)
	}
	before, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: before.Subject.CommonName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(2 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}
