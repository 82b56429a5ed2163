// SPDX-License-Identifier: Apache-2.0

//go:build apiserver && keymanagers && pkcs11

package main

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/podauth"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/test/softhsm"
)

// The gateway has the types of key providers of the build with PKCS #11, and a ClusterKeyProvider names the device.
func TestPodsEncryptUnderAKeyOfADeviceThroughAGateway(t *testing.T) {
	softhsm.Start(t)
	device, raw := softhsm.NewToken(t, "gateway"), bytes.Repeat([]byte{7}, 32)
	device.ImportAES(t, "orders", 1, raw)

	ring := newRing(t)
	tenant := newTenant(t, "with-device", ring)
	meta := metav1.ObjectMeta{Namespace: operatorNamespace, Name: "device"}
	create(t,
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{meta.Name}, Verbs: []string{"get", "watch"}}}},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: meta.Name}},
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{providers.PIN: []byte(softhsm.PIN)}})
	provider := &v1alpha1.ClusterKeyProvider{ObjectMeta: metav1.ObjectMeta{Name: "kms"}, Spec: v1alpha1.ClusterKeyProviderSpec{KeyProviderSpec: v1alpha1.KeyProviderSpec{
		Type: providers.PKCS11, PKCS11: &v1alpha1.PKCS11Settings{Module: softhsm.Library, TokenLabel: device.Label},
		Credentials: &v1alpha1.KeyProviderCredentials{SecretRef: v1alpha1.SecretReference{Name: meta.Name}},
	}}}
	create(t, provider)
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), provider); err != nil {
			t.Error(err)
		}
	})

	certificates := t.TempDir()
	authority := issue(t, certificates)
	g := startGateway(t, certificates, write(t, filepath.Join(certificates, "keys"), signed.FormatKey(ring.Current())), keyProviders)
	pod := broker(t, g.process, tenant.token(t, podauth.Audience), authority)
	var message sealed
	apiserver.Eventually(t, "the pod encrypts", func() (err error) {
		message, err = encrypt(t.Context(), pod)
		return err
	})
	if found, err := decrypt(t.Context(), pod, message); err != nil || found != "message" {
		t.Errorf("the pod decrypted %q, error %v", found, err)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		t.Fatal(err)
	}
	outside, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := outside.Open(nil, message.nonce, append(message.ciphertext, message.tag...), []byte("additional")); err != nil || string(found) != "message" {
		t.Errorf("outside, the message of the device is decrypted to %q: %v", found, err)
	}
}
