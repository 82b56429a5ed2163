// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func one(t *testing.T, body string, options ...profile.CompileOption) *profile.Compiled {
	t.Helper()
	set, problems := profile.Compile(profile.FileName, []byte("[{Name: P, "+body+"}]"), options...)
	if err := problems.Err(); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	compiled, _ := set.Lookup("P")
	return compiled
}

func TestWhatAProfileNoLongerOffersIsListed(t *testing.T) {
	const (
		hash     = `API: {HashData: {HashAlg: sha-256}}`
		both     = `API: {HashData: {HashAlg: sha-256}, EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}}`
		sign     = `API: {SignData: {SignAlg: rsa, HashAlg: sha-256}}`
		data     = `API: {DataKeys: {WrapAlgs: [aes-gcm, aes-kw], KeySize: 256, KeyIds: [{Id: a}, {Id: b}]}}`
		certify  = `API: {SignCertificate: {SignAlg: ecdsa, HashAlg: sha-256, Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}, `
		issuer   = `Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}`
		signKeys = `API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: a}, {Id: b}]}}`
	)
	for sentence, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing, since nothing changes":       {both, both, nil},
		"nothing, since more is offered":       {hash, both, nil},
		"nothing, since callers are let in":    {`Callers: {UIDs: [7]}, ` + hash, hash, nil},
		"nothing, since larger keys are added": {sign, `API: {SignData: {SignAlg: rsa, HashAlg: sha-256, KeyConstraints: {Issuer: {RSA: {MinKeySize: 1024, MaxKeySize: 8192}}}}}`, nil},
		"nothing, since its end is announced":  {hash, hash + `, Deprecation: {Reason: old}`, nil},
		"operations":                           {both, hash, []string{"EncryptData is not offered", "DecryptData is not offered"}},
		"an algorithm, for a stronger one": {hash, `API: {HashData: {HashAlg: sha-512}}`,
			[]string{"HashData: sha-512 instead of sha-256"}},
		"an algorithm, for a weaker one": {`API: {HashData: {HashAlg: sha-512}}`, hash,
			[]string{"HashData: sha-256 instead of sha-512"}},
		"a size of keys": {both, `API: {HashData: {HashAlg: sha-256}, EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}}`,
			[]string{"EncryptData: keys of 256 bits, expected 128 bits", "DecryptData: keys of 256 bits, expected 128 bits"}},
		"nonces of callers": {both, `API: {HashData: {HashAlg: sha-256}, EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random}}`,
			[]string{"EncryptData: the caller gives the nonce, expected none: the broker makes it"}},
		"whole tags": {both, `API: {HashData: {HashAlg: sha-256}, EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, ShortTagLength: 96}}`,
			[]string{"EncryptData: tags of 96 bits instead of 128 bits", "DecryptData: tags of 128 bits, expected 96 bits"}},
		"nothing of data keys, since more is allowed": {data, `API: {DataKeys: {WrapAlgs: [aes-gcm, aes-kw, rsa-oaep-sha-256], KeySize: 256, KeyIds: [{Id: "*"}]}}`, nil},
		"a wrapping key": {data, `API: {DataKeys: {WrapAlgs: [aes-gcm, aes-kw], KeySize: 256, KeyIds: [{Id: a}]}}`, []string{
			`GenerateDataKey: the key "b", which KeyIds does not list`, `WrapKey: the key "b", which KeyIds does not list`, `UnwrapKey: the key "b", which KeyIds does not list`,
			`RewrapKey: the key "b", which KeyIds does not list`, `GetPublicKey: the key "b", which KeyIds does not list`,
			`EncryptStream: the key "b", which KeyIds does not list`, `DecryptStream: the key "b", which KeyIds does not list`,
		}},
		"an old wrapping algorithm": {data, `API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: a}, {Id: b}]}}`, []string{
			"UnwrapKey: keys wrapped with aes-kw, expected aes-gcm", "DecryptStream: keys wrapped with aes-kw, expected aes-gcm",
		}},
		"the wrapping algorithm of new data keys": {data, `API: {DataKeys: {WrapAlgs: [aes-kwp, aes-gcm, aes-kw], KeySize: 256, KeyIds: [{Id: a}, {Id: b}]}}`, []string{
			"GenerateDataKey: aes-kwp instead of aes-gcm", "WrapKey: aes-kwp instead of aes-gcm", "RewrapKey: aes-kwp instead of aes-gcm",
			"EncryptStream: aes-kwp instead of aes-gcm",
		}},
		"data keys without a context": {`API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: a}]}}`, `API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, Context: required, KeyIds: [{Id: a}]}}`, []string{
			"GenerateDataKey: no context, expected one", "WrapKey: no context, expected one", "UnwrapKey: no context, expected one", "RewrapKey: no context, expected one",
			"EncryptStream: no context, expected one", "DecryptStream: no context, expected one",
		}},
		"the size of data keys": {`API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: a}]}}`, `API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 128, KeyIds: [{Id: a}]}}`, []string{
			"GenerateDataKey: data keys of 128 bits instead of 256 bits",
		}},
		"a protocol of sessions": {`API: {Session: {Protocols: [session-v1, session-v2], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}}`,
			`API: {Session: {Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}}`, []string{
				"InitSession: session-v2, expected session-v1", "OpenRequest: session-v2, expected session-v1",
				"SealReply: session-v2, expected session-v1", "CloseSession: session-v2, expected session-v1",
			}},
		"a native protocol of sessions": {`API: {Session: {Protocols: [session-v1, session-hpke-p256], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: a}]}}`,
			`API: {Session: {Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}}`, []string{
				"InitSession: session-hpke-p256, expected session-v1", "OpenRequest: session-hpke-p256, expected session-v1",
				"SealReply: session-hpke-p256, expected session-v1", "CloseSession: session-hpke-p256, expected session-v1",
				"RekeySession: session-hpke-p256, expected session-v1",
			}},
		"the key that signs sessions": {`API: {Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: a}]}}`, `API: {Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: b}]}}`,
			[]string{"InitSession: signed with the key b instead of a"}},
		"the algorithm that signs sessions": {`API: {Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: a}]}}`, `API: {Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: a}]}}`,
			[]string{"InitSession: Ed25519 keys, expected ECDSA keys"}},
		"small keys": {sign, `API: {SignData: {SignAlg: rsa, HashAlg: sha-256, KeyConstraints: {Issuer: {RSA: {MinKeySize: 3072, MaxKeySize: 4096}}}}}`,
			[]string{"SignData: RSA keys of 2048 bits, expected 3072 to 4096 bits", "VerifyData: RSA keys of 2048 bits, expected 3072 to 4096 bits"}},
		"keys of another algorithm": {sign, `API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256}}`,
			[]string{"SignData: RSA keys, expected ECDSA keys", "VerifyData: RSA keys, expected ECDSA keys"}},
		"keys of requests": {sign, `API: {SignData: {SignAlg: rsa, HashAlg: sha-256, KeyIds: [{Id: a}]}}`,
			[]string{"SignData: keys of requests, expected one of the keys in KeyIds", "VerifyData: keys of requests, expected one of the keys in KeyIds"}},
		"one of its keys": {signKeys, `API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: a}]}}`,
			[]string{`SignData: the key "b", which KeyIds does not list`, `VerifyData: the key "b", which KeyIds does not list`}},
		"formats": {`API: {SignData: {SignAlg: ed25519}}`, `API: {SignData: {SignAlg: ed25519, SignatureFormat: DER}}`,
			[]string{"SignData: signatures in RAW, expected DER", "SignData: signatures in PEM, expected DER",
				"VerifyData: signatures in RAW, expected DER", "VerifyData: signatures in PEM, expected DER"}},
		"the format of calls that ask for none": {`API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256, SignatureFormat: DER}}`, `API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256}}`,
			[]string{"SignData: signatures in RAW instead of DER", "VerifyData: signatures in DER, expected RAW"}},
		"subjects with some keys": {
			certify + `KeyConstraints: {Subject: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}, ECDSA: {MinKeySize: 256, MaxKeySize: 521}}, ` + issuer + `}}}`,
			certify + `KeyConstraints: {Subject: {ECDSA: {MinKeySize: 384, MaxKeySize: 521}}, ` + issuer + `}}}`,
			[]string{"SignCertificate: subjects with ECDSA keys of 256 bits, expected 384 to 521 bits", "SignCertificate: subjects with RSA keys"}},
		"callers":      {hash, `Callers: {Containers: [a], UIDs: [7, 8]}, ` + hash, []string{"callers other than the containers a", "callers other than the users 7, 8"}},
		"some callers": {`Callers: {Containers: [a, b], UIDs: [7]}, ` + hash, `Callers: {Containers: [b, c]}, ` + hash, []string{"the container a"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, one(t, test.before).Lost(one(t, test.after))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAUseIsRefusedByAProfileThatIsNotServed(t *testing.T) {
	var none *profile.Compiled
	if effect, why := none.Effect(profile.Use{}); effect != profile.Refused || why != "no profile of this name is served" {
		t.Errorf("found %q, %q", effect, why)
	}
}

func TestABrokerThatRequiresFIPSRefusesWhatIsNotApproved(t *testing.T) {
	const given = `API: {HashData: {HashAlg: sha-256}, EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}}`
	use := profile.Use{Operation: profile.OpEncryptData, Algorithm: "aes-gcm", GivenNonce: true, TagSize: 16, Keys: [2]profile.UsedKey{{Algorithm: profile.AESKey, Bits: 256}}}
	if effect, why := one(t, given).Effect(use); effect != "" {
		t.Errorf("found %q, %q", effect, why)
	}
	if effect, _ := one(t, given, profile.RequireFIPS()).Effect(use); effect != profile.Refused {
		t.Errorf("found %q", effect)
	}
}

func TestCallsThatNameAKeyAreServedWhereAReleasedProfileNamesItsKeyManager(t *testing.T) {
	call := profile.Use{Operation: profile.OpEncryptData, Algorithm: "aes-gcm", TagSize: 16, GivenNonce: true}
	call.Keys[0] = profile.UsedKey{Algorithm: profile.AESKey, Bits: 256, ID: "a"}
	for sentence, test := range map[string]struct{ body, want string }{
		"a file":                     {`KMS: {Client: openbao, Config: openbao.yaml}, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}}`, ""},
		"a file and the key":         {`KMS: {Client: openbao, Config: openbao.yaml}, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, KeyIds: [{Id: a}]}}`, ""},
		"a file and another key":     {`KMS: {Client: openbao, Config: openbao.yaml}, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, KeyIds: [{Id: b}]}}`, `the key "a", which KeyIds does not list`},
		"settings without a file":    {`KMS: {Client: openbao, Config: {address: a}}, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}}`, "keys of the broker, expected keys of an external key manager"},
		"another client with a file": {`KMS: {Client: vault, Config: vault.yaml}, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}}`, "keys of the broker, expected keys of an external key manager"},
	} {
		if _, why := one(t, test.body).Effect(call); why != test.want {
			t.Errorf("%s: got %q, want %q", sentence, why, test.want)
		}
	}
}
