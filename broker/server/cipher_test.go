// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

const cipherProfiles = `
- Name: P
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, NonceStrategy: user-provided, TagLength: 128}}
- Name: Any
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, NonceStrategy: user-provided, TagLength: 128, KeyIds: [{Id: "*"}]}}
- Name: Random
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random}}
- Name: Held
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: large}]}}
- Name: Listed
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, KeyIds: [{Id: small}, {Id: gone}]}}
- Name: Hash
  API: {HashData: {HashAlg: sha-256}}
`

var cipherKeys = map[string]string{
	"small.bin": strings.Repeat("s", 16), "large.bin": strings.Repeat("l", 32), "bad.bin": "bad", "pair.key": edKeyPEM, "other.bin": strings.Repeat("o", 16),
}

// Test case 4 of McGrew and Viega, "The Galois/Counter Mode of Operation (GCM)",
// the submission to NIST, appendix B.
var (
	gcmKey        = unhex("feffe9928665731c6d6a8f9467308308")
	gcmNonce      = unhex("cafebabefacedbaddecaf888")
	gcmPlaintext  = unhex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39")
	gcmAAD        = unhex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
	gcmCiphertext = unhex("42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091")
	gcmTag        = unhex("5bc94fbc3221a5db94fae95ae7121a47")
)

func unhex(text string) string {
	data, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func encryption(profile string, key message, nonce, plaintext string) message {
	return message{}.text(dataProfile, profile).bytes(dataKey, key).text(dataText, plaintext).bytes(dataCipherMetadata, message{}.text(cipherNonce, nonce))
}

func TestEachGenerationEncryptsAndDecrypts(t *testing.T) {
	conn := connect(t, start(t, cipherProfiles).socket(""))
	for generation, methods := range map[string][2]string{
		"G4": {methodEncrypt, methodDecrypt},
		"G5": {methodEncryptV1, methodDecryptV1},
	} {
		t.Run(generation, func(t *testing.T) {
			metadata := message{}.text(metadataID, "id").text(77, "later")
			request := message{}.text(dataProfile, "P").bytes(dataKey, raw(gcmKey)).text(dataText, gcmPlaintext).
				bytes(dataCipherMetadata, message{}.text(cipherNonce, gcmNonce).text(cipherAAD, gcmAAD)).bytes(dataMetadata, metadata)
			got := ask(t, conn, methods[0], request)
			want := values{
				replyCiphertext:     gcmCiphertext,
				replyCipherMetadata: string(message{}.text(sealedNonce, gcmNonce).text(sealedAAD, gcmAAD).text(sealedTag, gcmTag)),
				3:                   string(metadata),
				replyDescriptor:     string(message{}.text(1, "P").text(2, "EncryptData").text(3, "aes-gcm")),
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("encrypted (-want +got):\n%s", diff)
			}
			request = message{}.text(dataProfile, "P").bytes(dataKey, raw(gcmKey)).text(dataText, gcmCiphertext).
				bytes(dataCipherMetadata, message{}.text(cipherNonce, gcmNonce).text(cipherAAD, gcmAAD).text(cipherTag, gcmTag)).bytes(dataMetadata, metadata)
			if diff := gocmp.Diff(values{1: gcmPlaintext, 2: string(metadata)}, ask(t, conn, methods[1], request)); diff != "" {
				t.Errorf("decrypted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAKeyByReferenceEncryptsWithANonceOfTheBroker(t *testing.T) {
	conn := connect(t, startWithKeys(t, cipherProfiles, cipherKeys).socket(""))
	request := message{}.text(dataProfile, "Held").bytes(dataKey, byID("large")).text(dataText, "plain")
	first, second := ask(t, conn, methodEncrypt, request), ask(t, conn, methodEncrypt, request)
	if first[replyCiphertext] == second[replyCiphertext] {
		t.Error("the same nonce was used twice")
	}
	sealed := parse(t, []byte(first[replyCipherMetadata]))
	if sealed[sealedKeyID] != "large" || len(sealed[sealedNonce]) != 12 || len(sealed[sealedTag]) != 16 || len(sealed) != 3 {
		t.Errorf("cipher metadata %q", sealed)
	}
	request = message{}.text(dataProfile, "Held").bytes(dataKey, byID("large")).text(dataText, first[replyCiphertext]).
		bytes(dataCipherMetadata, message{}.text(cipherNonce, sealed[sealedNonce]).text(cipherTag, sealed[sealedTag]))
	if got := ask(t, conn, methodDecryptV1, request); got[1] != "plain" {
		t.Errorf("decrypted to %q", got)
	}
}

// remoteAES is a provider whose AES keys stay in the key manager.
type remoteAES struct{}

func (remoteAES) Key(_ context.Context, name keys.Name) (*keys.Key, error) {
	return keys.NewRemoteSymmetric(name.ID, struct{ keys.RemoteCipher }{}), nil
}

func TestShortTagsAreRefusedForKeysThatStayInTheirManager(t *testing.T) {
	const profiles = `[{Name: Short, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, ShortTagLength: 96, KeyIds: [{Id: k}]}}}]`
	conn := connect(t, startWith(t, profiles, nil, server.WithKeys(remoteAES{})).socket(""))
	request := message{}.text(dataProfile, "Short").bytes(dataKey, byID("k")).text(dataText, "plain")
	refuses(t, conn, methodEncryptV1, request, codes.FailedPrecondition,
		`EncryptData with profile "Short": the key "k" stays in its key manager, which makes and checks tags of 128 bits, and the profile has a ShortTagLength of 96 bits`)
}

func TestAnEmptyPlaintextAndOneAtTheLimitAreEncrypted(t *testing.T) {
	conn := connect(t, start(t, cipherProfiles).socket(""))
	for _, size := range []int{0, 1, 1 << 20} {
		nonce, aad := strings.Repeat("n", 12), strings.Repeat("a", 64<<10)
		metadata := message{}.text(cipherNonce, nonce).text(cipherAAD, aad)
		request := message{}.text(dataProfile, "P").bytes(dataKey, raw(gcmKey)).bytes(dataText, make([]byte, size)).bytes(dataCipherMetadata, metadata)
		got := ask(t, conn, methodEncrypt, request)
		if len(got[replyCiphertext]) != size {
			t.Fatalf("%d bytes became %d", size, len(got[replyCiphertext]))
		}
		tag := parse(t, []byte(got[replyCipherMetadata]))[sealedTag]
		request = message{}.text(dataProfile, "P").bytes(dataKey, raw(gcmKey)).text(dataText, got[replyCiphertext]).bytes(dataCipherMetadata, metadata.text(cipherTag, tag))
		if got := ask(t, conn, methodDecrypt, request); got[1] != strings.Repeat("\x00", size) {
			t.Errorf("%d bytes did not come back", size)
		}
	}
}

func TestAnEncryptionThatIsRefusedLearnsWhy(t *testing.T) {
	const mebibyte = 1 << 20
	nonce := strings.Repeat("n", 12)
	conn := connect(t, startWithKeys(t, cipherProfiles, cipherKeys).socket(""))
	for sentence, test := range map[string]struct {
		request message
		code    codes.Code
		want    string
	}{
		"no key":                      {encryption("P", message{}, nonce, ""), codes.InvalidArgument, "EncryptData: keySource is empty, expected keyId or rawKey"},
		"no key source":               {message{}.text(dataProfile, "P"), codes.InvalidArgument, "EncryptData: keySource is empty, expected keyId or rawKey"},
		"an empty id":                 {encryption("P", byID(""), nonce, ""), codes.InvalidArgument, "EncryptData: keySource.keyId is not the id of a key, expected 1 to 64 bytes of printable ASCII without spaces; found 0 bytes"},
		"an id above the limit":       {encryption("P", byID(strings.Repeat("k", 65)), nonce, ""), codes.InvalidArgument, "EncryptData: keySource.keyId is not the id of a key, expected 1 to 64 bytes of printable ASCII without spaces; found 65 bytes"},
		"an id with a line break":     {encryption("P", byID("a\nb"), nonce, ""), codes.InvalidArgument, "EncryptData: keySource.keyId is not the id of a key, expected 1 to 64 bytes of printable ASCII without spaces; found 3 bytes"},
		"an id that is a path":        {encryption("Any", byID("../small"), nonce, ""), codes.PermissionDenied, `EncryptData with profile "Any": the profile does not list the key "../small" in KeyIds`},
		"an unknown id":               {encryption("Any", byID("none"), nonce, ""), codes.NotFound, `EncryptData with profile "Any": there is no key "none"`},
		"an id that is not listed":    {encryption("Listed", byID("other"), nonce, ""), codes.PermissionDenied, `EncryptData with profile "Listed": the profile does not list the key "other" in KeyIds`},
		"an id without any list":      {encryption("P", byID("small"), nonce, ""), codes.PermissionDenied, `EncryptData with profile "P": the profile lists no keys of the broker, so requests bring their own; to use the key "small", add it to API.EncryptData.KeyIds`},
		"a key where all are listed":  {encryption("Any", raw(gcmKey), nonce, ""), codes.InvalidArgument, `EncryptData with profile "Any": keySource.rawKey is not empty, expected keyId: the profile lists the keys to use in KeyIds, and the broker has them`},
		"the sign for every key":      {encryption("Any", byID("*"), nonce, ""), codes.NotFound, `EncryptData with profile "Any": there is no key "*"`},
		"a listed id without a key":   {encryption("Listed", byID("gone"), nonce, ""), codes.NotFound, `EncryptData with profile "Listed": there is no key "gone"`},
		"a key where ids are listed":  {encryption("Listed", raw(gcmKey), nonce, ""), codes.InvalidArgument, `EncryptData with profile "Listed": keySource.rawKey is not empty, expected keyId: the profile lists the keys to use in KeyIds, and the broker has them`},
		"a key that is bad":           {encryption("Any", byID("bad"), nonce, ""), codes.FailedPrecondition, `EncryptData with profile "Any": the key "bad" cannot be used; the broker's log says why`},
		"a key pair":                  {encryption("Any", byID("pair"), nonce, ""), codes.InvalidArgument, `EncryptData with profile "Any": keySource.keyId names a key pair, expected an AES key`},
		"a key of another size by id": {encryption("Any", byID("large"), nonce, ""), codes.InvalidArgument, `EncryptData with profile "Any": keySource is a key of 256 bits, expected one of 128 bits`},
		"a key of another size":       {encryption("P", raw(strings.Repeat("k", 32)), nonce, ""), codes.InvalidArgument, `EncryptData with profile "P": keySource is a key of 256 bits, expected one of 128 bits`},
		"an empty key":                {encryption("P", raw(""), nonce, ""), codes.InvalidArgument, `EncryptData with profile "P": keySource.rawKey has 0 bytes, expected the 16, 24 or 32 bytes of an AES key`},
		"a key of no size":            {encryption("P", raw("short"), nonce, ""), codes.InvalidArgument, `EncryptData with profile "P": keySource.rawKey has 5 bytes, expected the 16, 24 or 32 bytes of an AES key`},
		"a key above the limit":       {encryption("P", raw(strings.Repeat("k", 33)), nonce, ""), codes.InvalidArgument, "EncryptData: keySource.rawKey has 33 bytes, expected at most 32"},
		"no nonce":                    {encryption("P", raw(gcmKey), "", ""), codes.InvalidArgument, `EncryptData with profile "P": encryptMetadata.nonce has 0 bytes, expected 12`},
		"a nonce of another size":     {encryption("P", raw(gcmKey), nonce+"n", ""), codes.InvalidArgument, `EncryptData with profile "P": encryptMetadata.nonce has 13 bytes, expected 12`},
		"a nonce above the limit":     {encryption("P", raw(gcmKey), strings.Repeat("n", 33), ""), codes.InvalidArgument, "EncryptData: encryptMetadata.nonce has 33 bytes, expected at most 32"},
		"a nonce nobody asked for":    {encryption("Held", byID("large"), nonce, ""), codes.InvalidArgument, `EncryptData with profile "Held": encryptMetadata.nonce has 12 bytes, expected none: with NonceStrategy random the broker makes the nonce`},
		"a plaintext above the limit": {encryption("P", raw(gcmKey), nonce, strings.Repeat("p", mebibyte+1)), codes.InvalidArgument, "EncryptData: plaintext has 1048577 bytes, expected at most 1048576"},
		"more aad than allowed": {message{}.text(dataProfile, "P").bytes(dataKey, raw(gcmKey)).bytes(dataCipherMetadata, message{}.text(cipherNonce, nonce).bytes(cipherAAD, make([]byte, 64<<10+1))),
			codes.InvalidArgument, "EncryptData: encryptMetadata.aad has 65537 bytes, expected at most 65536"},
		"a profile without it":  {encryption("Hash", raw(gcmKey), nonce, ""), codes.FailedPrecondition, `EncryptData with profile "Hash": the profile does not offer this operation`},
		"an unknown profile":    {encryption("Q", raw(gcmKey), nonce, ""), codes.InvalidArgument, `EncryptData with profile "Q": no profile of this name is served`},
		"metadata out of bound": {encryption("P", raw(gcmKey), nonce, "").bytes(dataMetadata, message{}.text(metadataID, strings.Repeat("i", 129))), codes.InvalidArgument, "EncryptData: metadata.id has 129 bytes, expected at most 128"},
	} {
		for _, method := range []string{methodEncrypt, methodEncryptV1} {
			t.Run(sentence+" "+method, func(t *testing.T) { refuses(t, conn, method, test.request, test.code, test.want) })
		}
	}
}

// The answers are from the test cases 4, 10 and 16 of McGrew and Viega; the
// profiles have what the catalogue of released brokers says of their tags.
func TestWhatReleasedBrokersEncryptIsTheSameHere(t *testing.T) {
	const whole = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"
	conn := connect(t, start(t, `
- Name: "128"
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, NonceStrategy: user-provided, TagLength: 96}}
- Name: "192"
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 192, NonceStrategy: user-provided, TagLength: 112}}
- Name: "256"
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: user-provided, TagLength: 128}}
`).socket(""))
	for name, answer := range map[string]struct{ ciphertext, tag string }{
		"128": {gcmCiphertext, gcmTag},
		"192": {
			unhex("3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710"),
			unhex("2519498e80f1478f37ba55bd6d27618c"),
		},
		"256": {
			unhex("522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"),
			unhex("76fc6ece0f4e1768cddf8853bb2d551b"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			size, err := strconv.Atoi(name)
			if err != nil {
				t.Fatal(err)
			}
			key := raw(unhex(whole)[:size/8])
			nonce := message{}.text(cipherNonce, gcmNonce).text(cipherAAD, gcmAAD)
			sealed := ask(t, conn, methodEncrypt, message{}.text(dataProfile, name).bytes(dataKey, key).text(dataText, gcmPlaintext).bytes(dataCipherMetadata, nonce))
			if sealed[replyCiphertext] != answer.ciphertext || !strings.HasSuffix(sealed[replyCipherMetadata], string(message{}.text(sealedTag, answer.tag))) {
				t.Errorf("encrypted to %x with %x", sealed[replyCiphertext], sealed[replyCipherMetadata])
			}
			opened := ask(t, conn, methodDecrypt, message{}.text(dataProfile, name).bytes(dataKey, key).text(dataText, answer.ciphertext).bytes(dataCipherMetadata, nonce.text(cipherTag, answer.tag)))
			if opened[1] != gcmPlaintext {
				t.Errorf("decrypted to %x", opened[1])
			}
		})
	}
}

func TestADecryptionThatIsRefusedLearnsWhy(t *testing.T) {
	decryption := func(profile string, key message, nonce, ciphertext, tag string) message {
		return message{}.text(dataProfile, profile).bytes(dataKey, key).text(dataText, ciphertext).
			bytes(dataCipherMetadata, message{}.text(cipherNonce, nonce).text(cipherAAD, gcmAAD).text(cipherTag, tag))
	}
	const notAuthentic = `DecryptData with profile "P": ciphertext does not authenticate with this key, nonce, aad and tag`
	conn := connect(t, startWithKeys(t, cipherProfiles, cipherKeys).socket(""))
	for sentence, test := range map[string]struct {
		request message
		code    codes.Code
		want    string
	}{
		"another key":                 {decryption("Any", byID("small"), gcmNonce, gcmCiphertext, gcmTag), codes.InvalidArgument, `DecryptData with profile "Any": ciphertext does not authenticate with this key, nonce, aad and tag`},
		"another nonce":               {decryption("P", raw(gcmKey), strings.Repeat("n", 12), gcmCiphertext, gcmTag), codes.InvalidArgument, notAuthentic},
		"another ciphertext":          {decryption("P", raw(gcmKey), gcmNonce, gcmPlaintext, gcmTag), codes.InvalidArgument, notAuthentic},
		"another tag":                 {decryption("P", raw(gcmKey), gcmNonce, gcmCiphertext, gcmKey), codes.InvalidArgument, notAuthentic},
		"no tag":                      {decryption("P", raw(gcmKey), gcmNonce, gcmCiphertext, ""), codes.InvalidArgument, `DecryptData with profile "P": decryptMetadata.tag has 0 bytes, expected the 16 that tags of this profile have`},
		"a tag that was cut":          {decryption("P", raw(gcmKey), gcmNonce, gcmCiphertext, gcmTag[:12]), codes.InvalidArgument, `DecryptData with profile "P": decryptMetadata.tag has 12 bytes, expected the 16 that tags of this profile have`},
		"a tag above the limit":       {decryption("P", raw(gcmKey), gcmNonce, gcmCiphertext, strings.Repeat("t", 33)), codes.InvalidArgument, "DecryptData: decryptMetadata.tag has 33 bytes, expected at most 32"},
		"no nonce":                    {decryption("P", raw(gcmKey), "", gcmCiphertext, gcmTag), codes.InvalidArgument, `DecryptData with profile "P": decryptMetadata.nonce has 0 bytes, expected 12`},
		"too large a ciphertext":      {decryption("P", raw(gcmKey), gcmNonce, strings.Repeat("c", 1<<20+1), gcmTag), codes.InvalidArgument, "DecryptData: ciphertext has 1048577 bytes, expected at most 1048576"},
		"an id that is not listed":    {decryption("Listed", byID("other"), gcmNonce, gcmCiphertext, gcmTag), codes.PermissionDenied, `DecryptData with profile "Listed": the profile does not list the key "other" in KeyIds`},
		"an id without any list":      {decryption("P", byID("small"), gcmNonce, gcmCiphertext, gcmTag), codes.PermissionDenied, `DecryptData with profile "P": the profile lists no keys of the broker, so requests bring their own; to use the key "small", add it to API.EncryptData.KeyIds`},
		"a profile without it":        {decryption("Hash", raw(gcmKey), gcmNonce, gcmCiphertext, gcmTag), codes.FailedPrecondition, `DecryptData with profile "Hash": the profile does not offer this operation`},
		"a message that is cut short": {decryption("P", raw(gcmKey), gcmNonce, gcmCiphertext, gcmTag)[:30], codes.InvalidArgument, ""},
	} {
		for _, method := range []string{methodDecrypt, methodDecryptV1} {
			t.Run(sentence+" "+method, func(t *testing.T) {
				if test.want == "" {
					if _, err := call(t, conn, method, test.request); err == nil {
						t.Error("it was served")
					}
					return
				}
				refuses(t, conn, method, test.request, test.code, test.want)
			})
		}
	}
}

func TestWithoutKeysARequestThatNamesOneIsRefused(t *testing.T) {
	conn := connect(t, start(t, cipherProfiles).socket(""))
	refuses(t, conn, methodEncrypt, encryption("Any", byID("small"), strings.Repeat("n", 12), ""), codes.FailedPrecondition,
		`EncryptData with profile "Any": the key "small" cannot be found, because this broker was given no keys; start it with --keys-dir`)
}

func TestKeysOfAnExternalManagerAreNotTakenFromTheDirectory(t *testing.T) {
	issuer := newIssuing(t)
	profiles := "FormatVersion: 1\nKMS: {Client: vault}\nProfiles:\n" +
		"- {Name: Listed, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, KeyIds: [{Id: small}]}}}\n" +
		"- {Name: Any, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}}}\n" +
		"- {Name: Elsewhere, KMS: {Client: hsm}, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}}}\n" +
		"- {Name: Released, KMS: {Client: openbao, Config: openbao.yaml, Cache: true}, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}}}\n" +
		"- {Name: Inline, KMS: {Client: openbao, Config: {address: https://bao}}, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}}}\n" +
		"- {Name: Both, KMS: {Client: openbao, Config: openbao.yaml}, API: {SignData: {SignAlg: ed25519}}}\n" +
		"- {Name: Own, KMS: {}, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, KeyIds: [{Id: small}]}}}\n" +
		"- {Name: Sign, API: {SignData: {SignAlg: ed25519}}}\n" +
		"- Name: Certify\n  API:\n    SignCertificate:\n      SignAlg: ecdsa\n      HashAlg: sha-256\n" +
		"      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}\n" +
		"      KeyConstraints: {Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 256}}, Issuer: {ECDSA: {MinKeySize: 384, MaxKeySize: 384}}}\n" +
		"      KeyIds: [{Id: ca}, {Id: next}]\n"
	conn := connect(t, startWithKeys(t, profiles, cipherKeys).socket(""))
	nonce := strings.Repeat("n", 12)
	const (
		only  = `which this broker has no access to: it takes keys only from openbao, with settings in a file that KMS.Config names, for EncryptData and DecryptData`
		vault = `the profile takes keys from the external key manager "vault" (KMS.Client), ` + only
	)
	for sentence, test := range map[string]struct {
		method  string
		request message
		want    string
	}{
		"an id that is listed":         {methodEncrypt, encryption("Listed", byID("small"), nonce, ""), `EncryptData with profile "Listed": ` + vault},
		"any id":                       {methodDecrypt, encryption("Any", byID("small"), nonce, ""), `DecryptData with profile "Any": ` + vault},
		"a manager of the profile's":   {methodEncrypt, encryption("Elsewhere", byID("small"), nonce, ""), `EncryptData with profile "Elsewhere": the profile takes keys from the external key manager "hsm" (KMS.Client), ` + only},
		"a manager of a released file": {methodEncrypt, encryption("Released", byID("small"), nonce, ""), `EncryptData with profile "Released": the profile takes keys from the external key manager "openbao" (KMS.Client), which this broker has no access to; start it with --kms-dir`},
		"settings in the profile":      {methodEncrypt, encryption("Inline", byID("small"), nonce, ""), `EncryptData with profile "Inline": the profile takes keys from the external key manager "openbao" (KMS.Client), ` + only},
		"a released file, and a key that signs": {methodSignData, message{}.text(signProfile, "Both").bytes(signKey, one(byID("pair"))),
			`SignData with profile "Both": the profile takes keys from the external key manager "openbao" (KMS.Client), ` + only},
		"a key that signs": {methodSignData, message{}.text(signProfile, "Sign").bytes(signKey, one(byID("pair"))), `SignData with profile "Sign": ` + vault},
		"a key of an issuer": {methodSignCertificateV1, message{}.text(certProfile, "Certify").text(certCSR, issuer.csr).text(certIssuer, issuer.certificate),
			`SignCertificate with profile "Certify": ` + vault},
	} {
		t.Run(sentence, func(t *testing.T) { refuses(t, conn, test.method, test.request, codes.FailedPrecondition, test.want) })
	}
	for sentence, request := range map[string]message{
		"a key of the request": encryption("Any", raw(gcmKey), nonce, ""),
		"no manager after all": encryption("Own", byID("small"), nonce, ""),
	} {
		t.Run(sentence, func(t *testing.T) { ask(t, conn, methodEncrypt, request) })
	}
}

// failing is a provider that has a fault.
type failing struct{ err error }

func (f failing) Key(context.Context, keys.Name) (*keys.Key, error) { return nil, f.err }

func TestAFaultOfTheProviderIsNoFaultOfTheRequest(t *testing.T) {
	for sentence, test := range map[string]struct {
		err  error
		code codes.Code
		want string
	}{
		"it cannot be reached": {fmt.Errorf("dial the key manager: %w", keys.ErrUnavailable), codes.Unavailable, `EncryptData with profile "Any": the keys cannot be reached; the broker's log says why`},
		"it fails":             {fmt.Errorf("secret detail"), codes.Internal, `EncryptData with profile "Any": failed because of an error inside the broker; the broker's log has the details`},
	} {
		t.Run(sentence, func(t *testing.T) {
			conn := connect(t, startWith(t, cipherProfiles, nil, server.WithKeys(failing{test.err})).socket(""))
			refuses(t, conn, methodEncrypt, encryption("Any", byID("small"), strings.Repeat("n", 12), ""), test.code, test.want)
		})
	}
}
