// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func TestASetHasNoSettingsOfKeyManagers(t *testing.T) {
	found := setOf(&corev1.ConfigMap{Data: map[string]string{profile.FileName: `FormatVersion: 1
KMS: {Client: pkcs11, Config: {pin: planted-of-all}}
Profiles:
- Name: One # planted-comment
  KMS: {Client: pkcs11, Config: {pin: planted-of-one}}
  API: {HashData: {HashAlg: sha-512}}
`}})
	if !strings.Contains(found.Profiles, "HashAlg: sha-512") || strings.Contains(found.Profiles, "planted") {
		t.Errorf("found the profiles\n%s\nexpected them without the settings of key managers", found.Profiles)
	}
}
