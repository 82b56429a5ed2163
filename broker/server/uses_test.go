// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	sessionv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/session/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// usedCall is a call of the test of uses.
type usedCall struct {
	method  string
	request message
	// fresh returns the fields of the request that depend on the time. It may be nil.
	fresh func() message
}

// sealedText is a ciphertext of AES-GCM with its nonce and the first size bytes of its tag.
func sealedText(t *testing.T, key string, size int) (ciphertext string, metadata message) {
	t.Helper()
	nonce := strings.Repeat("n", 12)
	whole := must(cipher.NewGCM(must(aes.NewCipher([]byte(key))))).Seal(nil, []byte(nonce), []byte("text"), nil)
	return string(whole[:4]), message{}.text(cipherNonce, nonce).text(cipherTag, string(whole[4:4+size]))
}

// make makes the call.
func (c usedCall) make(t *testing.T, conn *grpc.ClientConn) error {
	t.Helper()
	if strings.HasSuffix(c.method, "Stream") {
		return cipherStream(t, conn, c.method, c.request)
	}
	request := slices.Clone(c.request)
	if c.fresh != nil {
		request = append(request, c.fresh()...)
	}
	_, err := call(t, conn, c.method, request)
	return err
}

func dataKeyCall(operation string, fields message) usedCall {
	return usedCall{method: methodsOfDataKeys + operation, request: append(message{}.text(requestProfile, "P"), fields...)}
}

// beginning is the request for a session now.
func beginning(clientID string) usedCall {
	return usedCall{method: methodsOfSessions + "InitSession", fresh: func() message {
		return sessionMessage(&sessionv1.InitSessionRequest{
			Profile: "P", KeyAgreement: "ECDH_P256", ClientPublicKey: base64.StdEncoding.EncodeToString(must(ecKey.ECDH()).PublicKey().Bytes()),
			Nonce: "n", Timestamp: strconv.FormatInt(time.Now().UnixMilli(), 10), ClientId: clientID,
		})
	}}
}

// beginningNative is the request for a native session.
func beginningNative() usedCall {
	point := base64.StdEncoding.EncodeToString(must(ecKey.ECDH()).PublicKey().Bytes())
	return usedCall{method: methodsOfSessions + "InitSession", request: sessionMessage(&sessionv1.InitSessionRequest{
		Profile: "P", KeyAgreement: "HPKE_P256", ClientPublicKey: point,
	})}
}

// The test replaces each profile of the table with each other one.
func TestTheEffectOfAProfileOnACountedUseIsWhatTheBrokerDoes(t *testing.T) {
	rsaKey, p384 := must(rsa.GenerateKey(rand.Reader, 2048)), must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	long, short := strings.Repeat("k", 32), strings.Repeat("k", 16)
	files := newIssuing(t) // an issuer with P-384, and a subject with P-256
	whole, wholeMetadata := sealedText(t, long, 16)
	cut, cutMetadata := sealedText(t, long, 12)
	given := message{}.text(cipherNonce, strings.Repeat("n", 12))
	encrypting := func(key message, metadata message) message {
		return message{}.text(dataProfile, "P").bytes(dataKey, key).text(dataText, "text").bytes(dataCipherMetadata, metadata)
	}
	decrypting := func(text string, metadata message) message {
		return message{}.text(dataProfile, "P").bytes(dataKey, raw(long)).text(dataText, text).bytes(dataCipherMetadata, metadata)
	}
	sign := func(key message) usedCall {
		return usedCall{method: methodSignV1, request: signing("P", one(key), "text")}
	}
	calls := map[string]usedCall{
		"a digest":                        {method: methodHashDataV1, request: message{}.text(requestProfile, "P").text(requestInput, "abc")},
		"encryption with a nonce":         {method: methodEncryptV1, request: encrypting(raw(long), given)},
		"encryption without a nonce":      {method: methodEncryptV1, request: encrypting(raw(long), nil)},
		"encryption with a short key":     {method: methodEncryptV1, request: encrypting(raw(short), given)},
		"encryption with a broker's key":  {method: methodEncryptV1, request: encrypting(byID("aes"), given)},
		"decryption with a whole tag":     {method: methodDecryptV1, request: decrypting(whole, wholeMetadata)},
		"decryption with a short tag":     {method: methodDecryptV1, request: decrypting(cut, cutMetadata)},
		"a signature by RSA":              sign(raw(keyPEM(rsaKey))),
		"a signature by P-256":            sign(raw(keyPEM(ecKey))),
		"a signature by P-384":            sign(raw(keyPEM(p384))),
		"a signature by Ed25519":          sign(raw(edKeyPEM)),
		"a signature by a broker's key":   sign(byID("ec")),
		"a signature in DER":              {method: methodSignV1, request: signing("P", one(raw(keyPEM(ecKey))), "text").number(signFormat, dataGenerations["G5"].der)},
		"a signature in CMS":              {method: methodSignV1, request: signing("P", one(byID("ec")), "text").number(signFormat, dataGenerations["G5"].cms)},
		"a hybrid signature":              {method: methodSignV1, request: signing("P", both(raw(edKeyPEM), raw(keyPEM(mlKey))), "text")},
		"a verification with P-256":       {method: methodVerifyV1, request: verification("P", one(raw(publicPEM(ecKey))), "text", strings.Repeat("s", 64))},
		"a verification with Ed25519":     {method: methodVerifyV1, request: verification("P", one(raw(publicPEM(edKey))), "text", strings.Repeat("s", 64))},
		"a certificate of a P-384 issuer": {method: methodSignCertificateV1, request: files.request("P")},
		"a data key":                      dataKeyCall("GenerateDataKey", message{}.text(wrapKeyID, "aes")),
		"a data key with a context":       dataKeyCall("GenerateDataKey", message{}.text(wrapKeyID, "aes").text(wrapContext, "c")),
		"a data key wrapped with P-256":   dataKeyCall("WrapKey", message{}.text(wrapKeyID, "ec").bytes(wrapDataKey, theDataKey)),
		"a key wrapped with key wrap":     dataKeyCall("UnwrapKey", message{}.bytes(wrappedKey, wrappedWith("aes"))),
		"a key wrapped with another key":  dataKeyCall("RewrapKey", message{}.bytes(wrappedKey, wrappedWith("aes")).text(rewrapKeyID, "ec")),
		"a public key":                    dataKeyCall("GetPublicKey", message{}.text(wrapKeyID, "ec")),
		"a session":                       beginning(""),
		"a session of version 2":          beginning("shop"),
		"a native session":                beginningNative(),
		"a stream":                        {method: methodEncryptStream, request: message{}.text(requestProfile, "P").text(wrapKeyID, "aes")},
		"a stream with a context":         {method: methodEncryptStream, request: message{}.text(requestProfile, "P").text(wrapKeyID, "aes").text(startContext, "c")},
		"a stream that is decrypted":      {method: methodDecryptStream, request: message{}.text(requestProfile, "P").text(wrapKeyID, "aes")},
	}
	certificate := func(sign, hash, subject, issuer string) string {
		return fmt.Sprintf(`API: {SignCertificate: {SignAlg: %s, HashAlg: %s, Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}, `+
			`KeyConstraints: {Subject: {%s}, Issuer: {%s}}}}`, sign, hash, subject, issuer)
	}
	const ec = "ECDSA: {MinKeySize: %d, MaxKeySize: 521}"
	hashing := `API: {HashData: {HashAlg: sha-256}}`
	profiles := map[string]string{
		"digests":                           hashing,
		"other digests":                     `API: {HashData: {HashAlg: sha-512}}`,
		"digests for the user of the test":  fmt.Sprintf(`{Callers: {UIDs: [%d]}, %s}`, os.Getuid(), hashing),
		"digests for another user":          fmt.Sprintf(`{Callers: {UIDs: [%d]}, %s}`, os.Getuid()+1, hashing),
		"digests for containers":            `{Callers: {Containers: [a]}, ` + hashing + `}`,
		"encryption":                        `API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}}`,
		"encryption with random nonces":     `API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random}}`,
		"encryption with short keys":        `API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}}`,
		"encryption with short tags":        `API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, ShortTagLength: 96}}`,
		"encryption with a broker's key":    `API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, KeyIds: [{Id: aes}]}}`,
		"encryption with all broker's keys": `API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, KeyIds: [{Id: "*"}]}}`,
		"encryption with another key":       `API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, KeyIds: [{Id: other}]}}`,
		"RSA":                               `API: {SignData: {SignAlg: rsa, HashAlg: sha-256}}`,
		"RSA with PSS":                      `API: {SignData: {SignAlg: rsa-pss, HashAlg: sha-256}}`,
		"larger keys of RSA":                `API: {SignData: {SignAlg: rsa, HashAlg: sha-256, KeyConstraints: {Issuer: {RSA: {MinKeySize: 3072, MaxKeySize: 4096}}}}}`,
		"ECDSA":                             `API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256}}`,
		"ECDSA with another digest":         `API: {SignData: {SignAlg: ecdsa, HashAlg: sha-384}}`,
		"ECDSA with larger keys":            `API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyConstraints: {Issuer: {` + fmt.Sprintf(ec, 384) + `}}}}`,
		"ECDSA that signs with larger keys": `API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyConstraints: {Issuer: {` + fmt.Sprintf(ec, 384) + `}, Subject: {` + fmt.Sprintf(ec, 256) + `}}}}`,
		"ECDSA in DER":                      `API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256, SignatureFormat: DER}}`,
		"ECDSA with a broker's key":         `API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: ec}]}}`,
		"ECDSA with SHA-3":                  `API: {SignData: {SignAlg: ecdsa, HashAlg: sha3-256, KeyIds: [{Id: ec}]}}`,
		"Ed25519":                           `API: {SignData: {SignAlg: ed25519}}`,
		"data keys":                         `API: {DataKeys: {WrapAlgs: [aes-gcm, aes-kw, hpke-p-256], KeySize: 256, KeyIds: [{Id: "*"}]}}`,
		"data keys of 128 bits":             `API: {DataKeys: {WrapAlgs: [aes-kw, aes-gcm], KeySize: 128, KeyIds: [{Id: aes}]}}`,
		"data keys with a context":          `API: {DataKeys: {WrapAlgs: [aes-gcm, hpke-p-256], KeySize: 256, Context: required, KeyIds: [{Id: aes}, {Id: ec}]}}`,
		"data keys without a context":       `API: {DataKeys: {WrapAlgs: [aes-gcm, hpke-p-256], KeySize: 256, Context: none, KeyIds: [{Id: aes}, {Id: ec}]}}`,
		"sessions":                          `API: {Session: {Protocols: [session-v1, session-v2], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}}`,
		"sessions of version 1":             `API: {Session: {Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, MaxLifetime: 10m}}`,
		"native sessions":                   `API: {Session: {Protocols: [session-v1, session-hpke-p256], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: ec}]}}`,
		"native sessions by Ed25519":        `API: {Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: ec}]}}`,
		"native sessions with another hash": `API: {Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ecdsa, HashAlg: sha-384, KeyIds: [{Id: ec}]}}`,
		"a hybrid":                          `API: {SignData: {SigningMode: hybrid, SignAlg: ed25519+ml-dsa-44}}`,
		"certificates":                      certificate("ecdsa", "sha-256", fmt.Sprintf(ec, 256), fmt.Sprintf(ec, 256)),
		"certificates with another digest":  certificate("ecdsa", "sha-384", fmt.Sprintf(ec, 256), fmt.Sprintf(ec, 256)),
		"certificates of larger issuers":    certificate("ecdsa", "sha-256", fmt.Sprintf(ec, 256), fmt.Sprintf(ec, 521)),
		"certificates for larger subjects":  certificate("ecdsa", "sha-256", fmt.Sprintf(ec, 384), fmt.Sprintf(ec, 256)),
		"certificates for RSA":              certificate("ecdsa", "sha-256", "RSA: {MinKeySize: 2048, MaxKeySize: 4096}", fmt.Sprintf(ec, 256)),
		"certificates by RSA":               certificate("rsa", "sha-256", fmt.Sprintf(ec, 256), fmt.Sprintf(ec, 256)+", RSA: {MinKeySize: 2048, MaxKeySize: 4096}"),
	}
	for name, body := range profiles {
		if strings.HasPrefix(body, "{") {
			profiles[name] = "[{Name: P, " + strings.TrimPrefix(body, "{") + "]"
		} else {
			profiles[name] = "[{Name: P, " + body + "}]"
		}
	}
	b := startWithKeys(t, "[]", map[string]string{"aes.bin": long, "ec.key": keyPEM(ecKey), "ec.crt": certificateOf(ecKey)})
	conn := connect(t, b.socket(""))
	effects := map[profile.Effect]int{}
	for callName, c := range calls {
		for beforeName, before := range profiles {
			b.use(t, "[]") // so that nothing is counted
			b.use(t, before)
			if err := c.make(t, conn); err != nil {
				if counted := b.metrics.Uses(); len(counted.Uses) > 0 {
					t.Errorf("%s by %s: refused, and counted as %+v", callName, beforeName, counted.Uses)
				}
				continue
			}
			counted := b.metrics.Uses()
			if len(counted.Uses) != 1 || counted.Uses[0].Calls != 1 || counted.Uses[0].Profile != "P" {
				t.Fatalf("%s by %s: counted %+v", callName, beforeName, counted)
			}
			use, err := counted.Uses[0].Use()
			if err != nil {
				t.Fatal(err)
			}
			if _, known := use.Primitives(); !known {
				t.Errorf("%s by %s: what %+v is made of is not known", callName, beforeName, use)
			}
			if why := use.Objection(); why != "" && servedWithFIPS(before, use) {
				t.Errorf("%s by %s: a broker that requires FIPS 140-3 serves it, and the use has the objection %q", callName, beforeName, why)
			}
			for afterName, after := range profiles {
				set, problems := profile.Compile(profile.FileName, []byte(after))
				if problems.Err() != nil {
					t.Fatal(problems.Err())
				}
				compiled, _ := set.Lookup("P")
				effect, why := compiled.Effect(use)
				effects[effect]++
				b.use(t, after)
				err := c.make(t, conn)
				if (effect == profile.Refused) != (err != nil) {
					t.Errorf("%s, served by %s and then by %s: found the effect %q (%s), and the broker answered %v", callName, beforeName, afterName, effect, why, err)
				}
				if (effect == "") != (why == "") || afterName == beforeName && effect != "" {
					t.Errorf("%s, served by %s and then by %s: found the effect %q because %q", callName, beforeName, afterName, effect, why)
				}
			}
		}
	}
	if effects[""] < 20 || effects[profile.Changed] < 5 || effects[profile.Refused] < 200 {
		t.Errorf("found %v, expected more of each: do the calls still fit the profiles?", effects)
	}
}

// servedWithFIPS reports whether a broker that requires FIPS 140-3 would serve a use by a profile.
func servedWithFIPS(profiles string, use profile.Use) bool {
	set, problems := profile.Compile(profile.FileName, []byte(profiles), profile.RequireFIPS())
	if problems.Err() != nil {
		return false
	}
	compiled, _ := set.Lookup("P")
	effect, _ := compiled.Effect(use)
	return effect != profile.Refused
}

func TestAStreamThatHashesIsCountedAsItsUse(t *testing.T) {
	b := start(t, sha256Profile)
	conn := connect(t, b.socket(""))
	if reply, err := hashStream(t, conn, startOf(message{}.text(requestProfile, "P")), chunk("abc")); err != nil {
		t.Fatal(reply, err)
	}
	counted := b.metrics.Uses().Uses
	if len(counted) != 1 || counted[0].Operation != "HashData" || counted[0].Algorithm != "sha-256" || counted[0].Calls != 1 || counted[0].UID == nil || *counted[0].UID != uint32(os.Getuid()) {
		t.Errorf("found %+v", counted)
	}
}
