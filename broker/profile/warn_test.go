// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

func TestWhatCanNeverSucceedHasNoEffectOrHasChangedIsServedWithAWarning(t *testing.T) {
	const unlisted = `is missing, so requests bring their keys and cannot name keys of the broker, as older brokers allow; list the keys to allow, or "*" alone for all keys`
	const keys = "      KeyConstraints:\n        Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 384}}\n"
	tests := map[string]struct {
		file string
		want []string
	}{
		"an issuer's key that the algorithm cannot use": {
			file: certificate(keys + "        Issuer: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}}\n"),
			want: []string{`Profiles.yaml:9:9: profile "P": API.SignCertificate.KeyConstraints.Issuer: does not list "ECDSA", the keys of SignAlg "ecdsa", so that every issuer is refused`},
		},
		"no issuer at all": {
			file: certificate(keys),
			want: []string{`Profiles.yaml:7:7: profile "P": API.SignCertificate.KeyConstraints.Issuer: does not list "ECDSA", the keys of SignAlg "ecdsa", so that every issuer is refused`},
		},
		"no constraints": {
			file: certificate(""),
			want: []string{
				`Profiles.yaml:3:5: profile "P": API.SignCertificate.KeyConstraints.Issuer: does not list "ECDSA", the keys of SignAlg "ecdsa", so that every issuer is refused`,
				`Profiles.yaml:3:5: profile "P": API.SignCertificate.KeyConstraints.Subject: lists no keys, so that every request is refused, expected at least one of "RSA", "ECDSA" or "Ed25519"`,
			},
		},
		"sizes that no curve has": {
			file: certificate("      KeyConstraints:\n        Subject: {ECDSA: {MinKeySize: 400, MaxKeySize: 512}}\n        Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}\n"),
			want: []string{`Profiles.yaml:8:19: profile "P": API.SignCertificate.KeyConstraints.Subject.ECDSA: allows 400 to 512 bits, which no curve has, so that every ECDSA key is refused; curves have 224, 256, 384 and 521 bits`},
		},
		"sizes that no curve has, for data": {
			file: "- Name: P\n  API:\n    SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyConstraints: {Issuer: {ECDSA: {MinKeySize: 257, MaxKeySize: 383}}}}\n",
			want: []string{`Profiles.yaml:3:76: profile "P": API.SignData.KeyConstraints.Issuer.ECDSA: allows 257 to 383 bits, which no curve has, so that every ECDSA key is refused; curves have 224, 256, 384 and 521 bits`},
		},
		"wrapping keys that decrypt data": {
			file: "- Name: P\n  API:\n    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: k}]}\n    DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: other}, {Id: k}]}\n",
			want: []string{`Profiles.yaml:4:73: profile "P": API.DataKeys.KeyIds[1]: is a key that DecryptData may use as well, so that its callers can unwrap data keys without the checks of DataKeys; use a wrapping key for nothing else`},
		},
		"a key of sessions that signs data": {
			file: "- Name: P\n  API:\n    SignData: {SignAlg: ed25519, KeyIds: [{Id: other}, {Id: k}]}\n    Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: k}]}\n",
			want: []string{`Profiles.yaml:4:86: profile "P": API.Session.KeyIds: has a key that SignData signs with as well, so whoever may call SignData can sign a share of the key agreement; use a key of its own`},
		},
		"a key of sessions among all keys that sign data": {
			file: "- Name: P\n  API:\n    SignData: {SignAlg: ed25519, KeyIds: [{Id: \"*\"}]}\n    Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: k}]}\n",
			want: []string{`Profiles.yaml:4:86: profile "P": API.Session.KeyIds: has a key that SignData signs with as well, so whoever may call SignData can sign a share of the key agreement; use a key of its own`},
		},
		"a key of sessions that does nothing else": {
			file: "- Name: P\n  API:\n    SignData: {SignAlg: ed25519, KeyIds: [{Id: other}]}\n    Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: k}]}\n",
		},
		"a length that tags do not have": {
			file: "- Name: P\n  API:\n    EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, TagLength: 96}\n",
			want: []string{`Profiles.yaml:3:65: profile "P": API.EncryptData.TagLength: is 96 and has no effect, as in released brokers: tags have 128 bits; ShortTagLength asks for shorter ones`},
		},
		"a length that tags do not have beside the one that they have": {
			file: "- Name: P\n  API:\n    EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, TagLength: 96, ShortTagLength: 112, KeyIds: [{Id: \"*\"}]}\n",
			want: []string{`Profiles.yaml:3:65: profile "P": API.EncryptData.TagLength: is 96 and has no effect, as in released brokers: tags have 112 bits; ShortTagLength asks for shorter ones`},
		},
		"keys of a key manager that cannot be reached": {
			file: "KMS: {Client: vault}\nProfiles:\n- Name: P\n  API:\n    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, KeyIds: [{Id: k}]}\n",
			want: []string{`Profiles.yaml:5:54: profile "P": API.EncryptData.KeyIds: are keys of the external key manager "vault" (KMS.Client), which brokers of this version have no access to, so that every call is refused`},
		},
		"keys of a key manager of a released profile, which only EncryptData reaches": {
			file: "- Name: P\n  KMS: {Client: openbao, Config: openbao.yaml}\n  API:\n    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, KeyIds: [{Id: k}]}\n    SignData: {SignAlg: ed25519, KeyIds: [{Id: k}]}\n",
			want: []string{`Profiles.yaml:5:34: profile "P": API.SignData.KeyIds: are keys of the external key manager "openbao" (KMS.Client), which brokers of this version have no access to, so that every call is refused`},
		},
		"keys of the broker that a profile could use before": {
			file: "- Name: P\n  API:\n    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random}\n    SignData: {SignAlg: ecdsa, HashAlg: sha-256}\n",
			want: []string{
				`Profiles.yaml:3:5: profile "P": API.EncryptData.KeyIds: ` + unlisted,
				`Profiles.yaml:4:5: profile "P": API.SignData.KeyIds: ` + unlisted,
			},
		},
		"keys of the broker of which another operation lists some": {
			file: "- Name: P\n  API:\n    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, KeyIds: [{Id: \"*\"}]}\n    SignData: {SignAlg: ecdsa, HashAlg: sha-256}\n",
			want: []string{`Profiles.yaml:4:5: profile "P": API.SignData.KeyIds: ` + unlisted},
		},
		"no key of the broker, in a profile that released brokers know": {
			file: "- Name: P\n  API:\n    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}\n    SignData: {SignAlg: ecdsa, HashAlg: sha-256}\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set, problems := profile.Compile(profile.FileName, []byte(test.file))
			if err := problems.Err(); err != nil {
				t.Fatalf("is refused: %v", err)
			}
			if set.Len() != 1 {
				t.Errorf("%d profiles are served, expected 1", set.Len())
			}
			var got []string
			for _, warning := range set.Warnings() {
				got = append(got, warning.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheProfilesOfDistributionsHaveNoWarning(t *testing.T) {
	set, _ := profile.Compile(profile.FileName, catalogue.Profiles)
	if warnings := set.Warnings(); len(warnings) > 0 {
		t.Error(warnings)
	}
}

func TestAProfileWithProblemsHasNoWarningsBesideThem(t *testing.T) {
	set, problems := profile.Compile(profile.FileName, []byte("- Name: Good\n  API: {HashData: {HashAlg: sha-256}}\n"+
		"- Name: Bad\n  API: {HashData: {HashAlg: md5}, EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, TagLength: 96}}\n"))
	if len(problems) != 1 || len(set.Warnings()) != 0 {
		t.Errorf("problems %v and warnings %v, expected one problem", problems, set.Warnings())
	}
}

func TestASetKnowsWhyAProfileOfTheFileIsRefused(t *testing.T) {
	const file = `KMS: {Client: vault}
Profiles:
- Name: Good
  API: {HashData: {HashAlg: sha-256}}
- Name: Weak
  API: {HashData: {HashAlg: md5}, EncryptData: {EncryptAlg: des}}
- Name: Twice
  API: {HashData: {HashAlg: sha-256}}
- Name: Twice
  API: {HashData: {HashAlg: sha-384}}
- Name: For some
  Callers: {Containers: [Payments!]}
  API: {HashData: {HashAlg: sha-256}}
- Name: With credentials
  KMS: {Client: vault, Config: "token=s3cret"}
  API: {HashData: {HashAlg: sha-256}}
`
	set, _ := profile.Compile(profile.FileName, []byte(file))
	want := map[string]string{
		"Weak":             `line 6, API.HashData.HashAlg unknown value "md5", expected one of "sha-256", "sha-384", "sha-512", "sha-512/256", "sha3-256", "sha3-384", "sha3-512", "shake-128" or "shake-256"`,
		"Twice":            `line 9, Name the name "Twice" is taken by the profile on line 7; neither is served while both have it`,
		"For some":         "", // only the log says more, because the caller may not use the profile
		"With credentials": "",
	}
	got := map[string]string{}
	for _, name := range []string{"Good", "Weak", "Twice", "For some", "With credentials", "Nobody"} {
		if refusal, ok := set.Refused(name); ok {
			got[name] = refusal.Problem
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}
