// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"filippo.io/mldsa"
	mldsax509 "filippo.io/mldsa/x509"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func keyPEM(key any) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(mldsax509.MarshalPKCS8PrivateKey(key))}))
}

func publicDER(key crypto.Signer) []byte { return must(mldsax509.MarshalPKIXPublicKey(key.Public())) }

func publicPEM(key crypto.Signer) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER(key)}))
}

func pinTo(key crypto.Signer) string {
	sum := sha256.Sum256(publicDER(key))
	return hex.EncodeToString(sum[:])
}

var (
	edKey    = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	edKeyPEM = keyPEM(edKey)
	ecKey    = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	mlKey    = must(mldsa.GenerateKey(mldsa.MLDSA44()))
)

func certificateOf(key crypto.Signer) string {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "signer"}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

var signatureProfiles = `
- Name: Ed
  API: {SignData: {SignAlg: ed25519, KeyIds: [{Id: "*"}]}}
- Name: Own
  API: {SignData: {SignAlg: ed25519}}
- Name: DER
  API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256, SignatureFormat: DER, KeyIds: [{Id: ec}]}}
- Name: EC
  API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: ec}, {Id: bare}]}}
- Name: Hybrid
  API: {SignData: {SigningMode: hybrid, SignAlg: ed25519+ml-dsa-44, KeyIds: [{Id: ed}, {Id: ml}]}}
- Name: Own hybrid
  API: {SignData: {SigningMode: hybrid, SignAlg: ed25519+ml-dsa-44}}
- Name: Pinned
  API: {SignData: {SignAlg: ed25519, KeyIds: [{Id: ed, SPKISHA256: ` + pinTo(edKey) + `}]}}
- Name: Mispinned
  API: {SignData: {SignAlg: ed25519, KeyIds: [{Id: ed, SPKISHA256: ` + pinTo(ecKey) + `}]}}
- Name: Hash
  API: {HashData: {HashAlg: sha-256}}
`

func signatureKeys() map[string]string {
	return map[string]string{
		"ed.key": edKeyPEM, "ec.key": keyPEM(ecKey), "ec.crt": certificateOf(ecKey), "ml.key": keyPEM(mlKey),
		"public.pub": publicPEM(edKey), "aes.bin": strings.Repeat("k", 16), "bare.key": keyPEM(ecKey),
	}
}

func signing(profile string, keys message, input string) message {
	return message{}.text(signProfile, profile).bytes(signKey, keys).text(signInput, input)
}

func verification(profile string, keys message, input, signature string) message {
	return signing(profile, keys, input).text(verifySignature, signature)
}

// formats are the numbers of the formats of a generation.
type formats struct{ raw, der, pem, cms uint64 }

var dataGenerations = map[string]struct {
	sign, verify string
	formats
}{
	"G4b": {methodSignData, methodVerify, formats{0, 1, 2, 3}},
	"G5":  {methodSignV1, methodVerifyV1, formats{1, 2, 3, 4}},
}

func TestEachGenerationSignsAndVerifies(t *testing.T) {
	conn := connect(t, startWithKeys(t, signatureProfiles, signatureKeys()).socket(""))
	metadata := message{}.text(metadataID, "id").text(77, "later")
	for generation, g := range dataGenerations {
		t.Run(generation, func(t *testing.T) {
			// Ed25519 is deterministic, so that the whole reply is known (RFC 8032).
			got := ask(t, conn, g.sign, signing("Ed", one(byID("ed")), "input").bytes(signMetadata, metadata))
			want := values{
				1: string(ed25519.Sign(edKey, []byte("input"))),
				2: string(message{}.text(1, "Ed").text(2, "SignData").text(3, "ed25519")),
				3: string(metadata),
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("signed (-want +got):\n%s", diff)
			}
			yes := string(protowire.AppendVarint(nil, 1))
			got = ask(t, conn, g.verify, verification("Own", one(raw(publicPEM(edKey))), "input", want[1]).bytes(verifyMetadata, metadata))
			if diff := gocmp.Diff(values{1: yes, 2: string(metadata)}, got); diff != "" {
				t.Errorf("verified (-want +got):\n%s", diff)
			}
			// false is the default of the wire and not sent.
			if got = ask(t, conn, g.verify, verification("Ed", one(byID("public")), "another", want[1])); len(got) != 0 {
				t.Errorf("for another input: %q", got)
			}
			for format, number := range map[string]uint64{"RAW": g.raw, "DER": g.der, "PEM": g.pem, "CMS": g.cms} {
				signed := ask(t, conn, g.sign, signing("EC", one(byID("ec")), "input").number(signFormat, number))
				got = ask(t, conn, g.verify, verification("EC", one(byID("ec")), "input", signed[1]).number(verifyFormat, number))
				if got[1] != yes {
					t.Errorf("%s is not valid", format)
				}
				form := map[string]bool{
					"RAW": len(signed[1]) == 64, "DER": strings.HasPrefix(signed[1], "\x30") && len(signed[1]) < 80,
					"PEM": strings.HasPrefix(signed[1], "-----BEGIN SIGNATURE-----\n"), "CMS": strings.HasPrefix(signed[1], "\x30\x82"),
				}
				if !form[format] {
					t.Errorf("what came in %s has another form: %q", format, signed[1])
				}
				if want := string(message{}.text(1, "EC").text(2, "SignData").text(3, "ecdsa-with-sha-256")); signed[2] != want {
					t.Errorf("descriptor %q, want %q", signed[2], want)
				}
			}
			signed := ask(t, conn, g.sign, signing("Own hybrid", both(raw(edKeyPEM), raw(keyPEM(mlKey))), "input"))
			got = ask(t, conn, g.verify, verification("Hybrid", both(byID("ed"), byID("ml")), "input", signed[1]))
			if got[1] != yes {
				t.Error("the hybrid of the request's keys is not valid")
			}
			signed = ask(t, conn, g.sign, signing("Hybrid", both(byID("ed"), byID("ml")), "input"))
			got = ask(t, conn, g.verify, verification("Own hybrid", both(raw(publicPEM(edKey)), raw(publicPEM(mlKey))), "input", signed[1]))
			if got[1] != yes {
				t.Error("the hybrid of the broker's keys is not valid")
			}
		})
	}
}

func TestWithoutAFormatThatOfTheProfileCounts(t *testing.T) {
	conn := connect(t, startWithKeys(t, signatureProfiles, signatureKeys()).socket(""))
	for generation, g := range dataGenerations {
		if signed := ask(t, conn, g.sign, signing("DER", one(byID("ec")), "input")); !strings.HasPrefix(signed[1], "\x30") {
			t.Errorf("%s: the profile prescribes DER, got %q", generation, signed[1])
		}
		if signed := ask(t, conn, g.sign, signing("EC", one(byID("ec")), "input")); len(signed[1]) != 64 {
			t.Errorf("%s: expected RAW where the profile prescribes nothing, got %d bytes", generation, len(signed[1]))
		}
		refuses(t, conn, g.sign, signing("DER", one(byID("ec")), "input").number(signFormat, g.raw), codes.InvalidArgument,
			`SignData with profile "DER": signatureFormat is RAW, expected DER, which the profile prescribes`)
	}
	refuses(t, conn, methodSignData, signing("EC", one(byID("ec")), "input").number(signFormat, 4), codes.InvalidArgument,
		"SignData: signatureFormat is 4, expected 0 (RAW), 1 (DER), 2 (PEM) or 3 (CMS)")
	refuses(t, conn, methodSignV1, signing("EC", one(byID("ec")), "input").number(signFormat, 5), codes.InvalidArgument,
		"SignData: signatureFormat is 5, expected 0 (the format of the profile), 1 (RAW), 2 (DER), 3 (PEM) or 4 (CMS)")
}

func TestASignatureThatIsRefusedLearnsWhy(t *testing.T) {
	conn := connect(t, startWithKeys(t, signatureProfiles, signatureKeys()).socket(""))
	const hunter = "hunter2"
	for sentence, test := range map[string]struct {
		request message
		code    codes.Code
		want    string
	}{
		"no key source":               {message{}.text(signProfile, "Ed"), codes.InvalidArgument, "SignData: keySource is empty, expected single or componentKeys"},
		"no component":                {signing("Hybrid", message{}.bytes(components, nil), ""), codes.InvalidArgument, "SignData: keySource is empty, expected single or componentKeys"},
		"an empty single":             {signing("Ed", one(message{}), ""), codes.InvalidArgument, "SignData: keySource.single is empty, expected keyId or rawKey"},
		"an empty component":          {signing("Hybrid", both(byID("ed"), message{}), ""), codes.InvalidArgument, "SignData: keySource.componentKeys.keys[1] is empty, expected keyId or rawKey"},
		"three components":            {signing("Hybrid", message{}.bytes(components, message{}.bytes(1, byID("a")).bytes(1, byID("b")).bytes(1, byID("c"))), ""), codes.InvalidArgument, "SignData: keySource.componentKeys has 3 keys, expected at most 2"},
		"one key for a hybrid":        {signing("Hybrid", one(byID("ed")), ""), codes.InvalidArgument, `SignData with profile "Hybrid": keySource has 1 key, expected 2 in componentKeys for ed25519+ml-dsa-44, the classical one first`},
		"a hybrid the wrong way":      {signing("Hybrid", both(byID("ml"), byID("ed")), ""), codes.InvalidArgument, `SignData with profile "Hybrid": keySource.componentKeys.keys[0] is an ML-DSA-44 key, expected an Ed25519 key for ed25519`},
		"a key of another algorithm":  {signing("Ed", one(byID("ec")), ""), codes.InvalidArgument, `SignData with profile "Ed": keySource.single is an ECDSA key, expected an Ed25519 key for ed25519`},
		"a public key by id":          {signing("Ed", one(byID("public")), ""), codes.FailedPrecondition, `SignData with profile "Ed": the key "public" has no private key, so it can only verify`},
		"an AES key":                  {signing("Ed", one(byID("aes")), ""), codes.InvalidArgument, `SignData with profile "Ed": keySource.single.keyId names an AES key, expected a key pair`},
		"a public key":                {signing("Own", one(raw(publicPEM(edKey))), ""), codes.InvalidArgument, `SignData with profile "Own": keySource.single.rawKey has a PEM block "PUBLIC KEY", expected "PRIVATE KEY", "EC PRIVATE KEY" or "RSA PRIVATE KEY"`},
		"text":                        {signing("Own", one(raw(hunter)), ""), codes.InvalidArgument, `SignData with profile "Own": keySource.single.rawKey has no complete PEM block, expected a private key in PEM`},
		"a key above the limit":       {signing("Own", one(raw(strings.Repeat("k", 64<<10+1))), ""), codes.InvalidArgument, "SignData: keySource.single.rawKey has 65537 bytes, expected at most 65536"},
		"an unknown id":               {signing("Ed", one(byID("none")), ""), codes.NotFound, `SignData with profile "Ed": there is no key "none"`},
		"an id that is not listed":    {signing("Pinned", one(byID("ec")), ""), codes.PermissionDenied, `SignData with profile "Pinned": the profile does not list the key "ec" in KeyIds`},
		"an id without any list":      {signing("Own", one(byID("ed")), ""), codes.PermissionDenied, `SignData with profile "Own": the profile lists no keys of the broker, so requests bring their own; to use the key "ed", add it to API.SignData.KeyIds`},
		"one key without any list":    {signing("Own hybrid", both(raw(edKeyPEM), byID("ml")), ""), codes.PermissionDenied, `SignData with profile "Own hybrid": the profile lists no keys of the broker, so requests bring their own; to use the key "ml", add it to API.SignData.KeyIds`},
		"a key where ids are listed":  {signing("Pinned", one(raw(edKeyPEM)), ""), codes.InvalidArgument, `SignData with profile "Pinned": keySource.single.rawKey is not empty, expected keyId: the profile lists the keys to use in KeyIds, and the broker has them`},
		"a key that another replaced": {signing("Mispinned", one(byID("ed")), ""), codes.FailedPrecondition, `SignData with profile "Mispinned": the key "ed" is not the key that the profile pins by SPKISHA256`},
		"an input above the limit":    {signing("Ed", one(byID("ed")), strings.Repeat("i", 1<<20+1)), codes.InvalidArgument, "SignData: input has 1048577 bytes, expected at most 1048576"},
		"a profile without it":        {signing("Hash", one(byID("ed")), ""), codes.FailedPrecondition, `SignData with profile "Hash": the profile does not offer this operation`},
	} {
		for _, g := range dataGenerations {
			t.Run(sentence+" "+g.sign, func(t *testing.T) {
				refuses(t, conn, g.sign, test.request, test.code, test.want)
				if strings.Contains(test.want, hunter) {
					t.Error("the sentence quotes the key")
				}
			})
		}
	}
	for _, g := range dataGenerations {
		refuses(t, conn, g.sign, signing("EC", one(byID("bare")), "").number(signFormat, g.cms), codes.FailedPrecondition,
			`SignData with profile "EC": format CMS needs the certificate of the signer, which only a key in the key directory can have; this key has none`)
		// The pinned key itself signs.
		if got := ask(t, conn, g.sign, signing("Pinned", one(byID("ed")), "input")); got[1] != string(ed25519.Sign(edKey, []byte("input"))) {
			t.Errorf("%s: the pinned key made %q", g.sign, got[1])
		}
	}
}

func TestAVerificationThatIsRefusedLearnsWhy(t *testing.T) {
	conn := connect(t, startWithKeys(t, signatureProfiles, signatureKeys()).socket(""))
	good := string(ed25519.Sign(edKey, []byte("input")))
	for sentence, test := range map[string]struct {
		request message
		code    codes.Code
		want    string
	}{
		"no signature":                {verification("Ed", one(byID("ed")), "input", ""), codes.InvalidArgument, `VerifyData with profile "Ed": signature is empty, expected a signature in format RAW`},
		"half a signature":            {verification("Ed", one(byID("ed")), "input", good[:32]), codes.InvalidArgument, `VerifyData with profile "Ed": signature has 32 bytes, expected the 64 bytes of a signature by this ed25519 key`},
		"a signature above the limit": {verification("Ed", one(byID("ed")), "input", strings.Repeat("s", 64<<10+1)), codes.InvalidArgument, "VerifyData: signature has 65537 bytes, expected at most 65536"},
		"an input above the limit":    {verification("Ed", one(byID("ed")), strings.Repeat("i", 1<<20+1), good), codes.InvalidArgument, "VerifyData: input has 1048577 bytes, expected at most 1048576"},
		"a key that is none":          {verification("Own", one(raw("hunter2")), "input", good), codes.InvalidArgument, `VerifyData with profile "Own": keySource.single.rawKey has no key, expected PEM with a public key, a certificate or a private key`},
		"a key of another algorithm":  {verification("Own", one(raw(publicPEM(ecKey))), "input", good), codes.InvalidArgument, `VerifyData with profile "Own": keySource.single is an ECDSA key, expected an Ed25519 key for ed25519`},
		"an id that is not listed":    {verification("Pinned", one(byID("public")), "input", good), codes.PermissionDenied, `VerifyData with profile "Pinned": the profile does not list the key "public" in KeyIds`},
		"an id without any list":      {verification("Own", one(byID("ed")), "input", good), codes.PermissionDenied, `VerifyData with profile "Own": the profile lists no keys of the broker, so requests bring their own; to use the key "ed", add it to API.SignData.KeyIds`},
		"a key where ids are listed":  {verification("Pinned", one(raw(publicPEM(edKey))), "input", good), codes.InvalidArgument, `VerifyData with profile "Pinned": keySource.single.rawKey is not empty, expected keyId: the profile lists the keys to use in KeyIds, and the broker has them`},
		"a profile without it":        {verification("Hash", one(byID("ed")), "input", good), codes.FailedPrecondition, `VerifyData with profile "Hash": the profile does not offer this operation`},
	} {
		for _, g := range dataGenerations {
			t.Run(sentence+" "+g.verify, func(t *testing.T) { refuses(t, conn, g.verify, test.request, test.code, test.want) })
		}
	}
}

func TestAnInputAndASignatureAtTheLimitsAreServed(t *testing.T) {
	conn := connect(t, startWithKeys(t, signatureProfiles, signatureKeys()).socket(""))
	input := strings.Repeat("i", 1<<20)
	for generation, g := range dataGenerations {
		signed := ask(t, conn, g.sign, signing("Ed", one(byID("ed")), input))
		if got := ask(t, conn, g.verify, verification("Ed", one(byID("ed")), input, signed[1])); len(got) == 0 {
			t.Errorf("%s: not valid", generation)
		}
		refuses(t, conn, g.verify, verification("Ed", one(byID("ed")), input, strings.Repeat("s", 64<<10)), codes.InvalidArgument,
			fmt.Sprintf(`VerifyData with profile "Ed": signature has %d bytes, expected the 64 bytes of a signature by this ed25519 key`, 64<<10))
	}
}
