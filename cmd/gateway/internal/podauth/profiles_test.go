// SPDX-License-Identifier: Apache-2.0

package podauth

import (
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/service"
)

func TestAProfileAllowsTheKeyThatSignsItsSessionsForInitSessionAlone(t *testing.T) {
	set, problems := profile.Compile(profile.FileName, []byte(`
- Name: Native
  API: {Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: vault/k}]}}
- Name: Old
  API: {Session: {Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}}
`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	for use, want := range map[service.Use]bool{
		{Profile: "Native", Operation: profile.OpInitSession, KeyID: "vault/k"}:     true,
		{Profile: "Native", Operation: profile.OpInitSession, KeyID: "vault/other"}: false,
		{Profile: "Native", Operation: profile.OpRekeySession, KeyID: "vault/k"}:    false,
		{Profile: "Native", Operation: profile.OpSignData, KeyID: "vault/k"}:        false,
		{Profile: "Old", Operation: profile.OpInitSession, KeyID: "vault/k"}:        false,
	} {
		if err := allowed(set, "shop", use); (err == nil) != want {
			t.Errorf("%s with profile %s and key %s: %v", use.Operation, use.Profile, use.KeyID, err)
		}
	}
}
