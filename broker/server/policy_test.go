// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

const methodListProfiles = "/cryptobroker.policy.v1.PolicyService/ListProfiles"

// The numbers of the fields of PolicyService, written down a second time.
const (
	listPageSize, listPageToken                          = 1, 2
	listProfiles, listNextPage, listDigest, listFIPS     = 1, 2, 3, 4
	profileName, profileOperations, profileStrength      = 1, 2, 3
	profileDeprecation                                   = 4
	operationName, operationAlgorithm, operationStrength = 1, 2, 3
	operationFIPS, operationRefused                      = 4, 5
	strengthBits, strengthLimit                          = 1, 2
	verdictApproved, verdictReason                       = 1, 2
	fipsModule, fipsMode, fipsRequired                   = 1, 2, 3
	deprecationReplacedBy, deprecationAfter              = 1, 3
)

// repeated returns the values of a field that may be there several times.
func repeated(t *testing.T, wire string, number protowire.Number) []string {
	t.Helper()
	var all []string
	for len(wire) > 0 {
		found, kind, n := protowire.ConsumeTag([]byte(wire))
		m := protowire.ConsumeFieldValue(found, kind, []byte(wire[max(n, 0):]))
		if n < 0 || m < 0 {
			t.Fatal("the reply is no message")
		}
		if found == number {
			value, _ := protowire.ConsumeBytes([]byte(wire[n : n+m]))
			all = append(all, string(value))
		}
		wire = wire[n+m:]
	}
	return all
}

// number returns a varint of a message, 0 if it is absent.
func number(t *testing.T, m values, field protowire.Number) uint64 {
	t.Helper()
	v, n := protowire.ConsumeVarint([]byte(m[field]))
	if n < 0 && m[field] != "" {
		t.Fatalf("field %d is no number", field)
	}
	return v
}

// listed renders a page: one line for each operation, and the other fields.
func listed(t *testing.T, conn *grpc.ClientConn, request message) (profiles []string, rest values) {
	t.Helper()
	reply, err := call(t, conn, methodListProfiles, request)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range repeated(t, string(reply), listProfiles) {
		name, strength := repeated(t, p, profileName)[0], parse(t, []byte(repeated(t, p, profileStrength)[0]))
		line := fmt.Sprintf("%s: %d %s", name, number(t, strength, strengthBits), strength[strengthLimit])
		for _, text := range repeated(t, p, profileDeprecation) {
			d := parse(t, []byte(text))
			line += fmt.Sprintf(" until %s, use %s", d[deprecationAfter], d[deprecationReplacedBy])
		}
		profiles = append(profiles, line)
		for _, text := range repeated(t, p, profileOperations) {
			o := parse(t, []byte(text))
			verdict := parse(t, []byte(o[operationFIPS]))
			line := fmt.Sprintf("  %s %s %d", o[operationName], o[operationAlgorithm], number(t, parse(t, []byte(o[operationStrength])), strengthBits))
			if number(t, verdict, verdictApproved) == 1 {
				line += " approved"
			} else if verdict[verdictReason] == "" {
				t.Errorf("%s of %s is not approved for no reason", o[operationName], name)
			}
			if number(t, o, operationRefused) == 1 {
				line += " refused"
			}
			profiles = append(profiles, line)
		}
	}
	rest = values{}
	for _, field := range []protowire.Number{listNextPage, listDigest, listFIPS} {
		if found := repeated(t, string(reply), field); len(found) > 0 {
			rest[field] = found[0]
		}
	}
	return profiles, rest
}

const listedProfiles = `- Name: B old
  API:
    HashData: {HashAlg: sha-256}
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}
  Deprecation: {ReplacedBy: C, RemoveAfter: "2027-01-01"}
- Name: C
  API:
    SignData: {SigningMode: hybrid, SignAlg: ed25519+ml-dsa-65}
    HashData: {HashAlg: shake-128}
- Name: A of others
  API: {HashData: {HashAlg: sha-256}}
  Callers: {Containers: [side]}
`

func TestACallerSeesWhatTheProfilesItMayUseAreWorth(t *testing.T) {
	b := start(t, listedProfiles, "app", "side")
	profiles, rest := listed(t, connect(t, b.socket("app")), nil)
	want := []string{
		"B old: 128 SHA-256 until 2027-01-01, use C",
		"  HashData sha-256 128 approved",
		"  EncryptData aes-gcm 256",
		"  DecryptData aes-gcm 256 approved",
		"C: 64 SHAKE-128",
		"  HashData shake-128 64 approved",
		"  SignData ed25519+ml-dsa-65 192",
		"  VerifyData ed25519+ml-dsa-65 192",
	}
	if diff := cmp.Diff(want, profiles); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
	fips := parse(t, []byte(rest[listFIPS]))
	if rest[listDigest] != profile.Digest([]byte(listedProfiles)) || rest[listNextPage] != "" || fips[fipsModule] == "" || fips[fipsMode] == "" || fips[fipsRequired] != "" {
		t.Errorf("the rest is %q", rest)
	}
	all, _ := listed(t, connect(t, b.socket("side")), nil)
	if diff := cmp.Diff(append([]string{"A of others: 128 SHA-256", "  HashData sha-256 128 approved"}, want...), all); diff != "" {
		t.Errorf("profiles of the other caller (-want +got):\n%s", diff)
	}
}

func TestAListIsReadInPages(t *testing.T) {
	var text strings.Builder
	for i := range 450 {
		fmt.Fprintf(&text, "- Name: P%03d\n  API: {HashData: {HashAlg: sha-256}}\n", i)
	}
	conn := connect(t, start(t, text.String()).socket(""))
	for asked, sizes := range map[uint64][]int{0: {200, 200, 50}, 200: {200, 200, 50}, 150: {150, 150, 150}} {
		token, seen := "", map[string]bool{}
		for _, size := range sizes {
			profiles, rest := listed(t, conn, message{}.number(listPageSize, asked).text(listPageToken, token))
			if len(profiles) != 2*size {
				t.Errorf("pages of %d: %d profiles, want %d", asked, len(profiles)/2, size)
			}
			for i := 0; i < len(profiles); i += 2 {
				seen[profiles[i]] = true
			}
			token = rest[listNextPage]
		}
		if token != "" || len(seen) != 450 {
			t.Errorf("pages of %d: %d profiles in all, then %q", asked, len(seen), token)
		}
	}
	refuses(t, conn, methodListProfiles, message{}.number(listPageSize, 201), codes.InvalidArgument, "ListProfiles: pageSize is 201, expected 0 to 200")
	refuses(t, conn, methodListProfiles, message{}.text(listPageToken, strings.Repeat("p", 65)), codes.InvalidArgument, "ListProfiles: pageToken has 65 bytes, expected nextPageToken of the page before")
	refuses(t, connect(t, start(t, "").socket("")), methodListProfiles, nil, codes.Unavailable, "ListProfiles: no profiles are loaded yet, try again later")
}

// startStrict serves profiles as a broker that requires FIPS 140-3 does.
func startStrict(t *testing.T, profiles string) *broker {
	t.Helper()
	b := start(t, "")
	set, problems := profile.Compile(profile.FileName, []byte(profiles), profile.RequireFIPS())
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	b.Use(set, 0)
	return b
}

func TestWhatIsNotApprovedIsRefusedWhereFIPSIsRequired(t *testing.T) {
	const profiles = cipherProfiles + `
- Name: Old identifier
  API:
    HashData: {HashAlg: sha-256}
    SignCertificate:
      {SignAlg: ecdsa, HashAlg: sha-384, Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}, KeyConstraints: {Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 256}}, Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 384}}}}
- Name: Post-quantum
  API:
    HashData: {HashAlg: sha-256}
    SignData: {SigningMode: hybrid, SignAlg: ed25519+ml-dsa-44}
`
	conn := connect(t, startStrict(t, profiles).socket(""))
	const nonce = "the caller makes the nonce, which FIPS 140-3 does not approve for AES-GCM (implementation guidance C.H); choose NonceStrategy random"
	sealing := encryption("P", raw(gcmKey), gcmNonce, gcmPlaintext)
	hybrid := message{}.text(signProfile, "Post-quantum").bytes(signKey, both(raw(edKeyPEM), raw(keyPEM(mlKey)))).text(signInput, "text")
	mldsa := "SignAlg has ml-dsa-44, which the validated module does not have"
	for method, c := range map[string]struct {
		profile string
		request message
		reason  string
	}{
		methodEncrypt:           {"P", sealing, nonce},
		methodEncryptV1:         {"P", sealing, nonce},
		methodSignData:          {"Post-quantum", hybrid, mldsa},
		methodVerifyV1:          {"Post-quantum", append(message{}, hybrid...).text(verifySignature, "signature"), mldsa},
		methodSignCertificateV1: {"Old identifier", message{}.text(1, "Old identifier"), "SKIHashAlg is SHA-1, which FIPS 140-3 does not approve; choose another one"},
	} {
		operation := method[strings.LastIndex(method, "/")+1:]
		refuses(t, conn, method, c.request, codes.FailedPrecondition, fmt.Sprintf("%s with profile %q: this broker requires FIPS 140-3, and %s", operation, c.profile, c.reason))
	}
	// The rest of the profiles serves.
	opening := message{}.text(dataProfile, "P").bytes(dataKey, raw(gcmKey)).text(dataText, gcmCiphertext).
		bytes(dataCipherMetadata, message{}.text(cipherNonce, gcmNonce).text(cipherAAD, gcmAAD).text(cipherTag, gcmTag))
	if reply := ask(t, conn, methodDecrypt, opening); reply[1] != gcmPlaintext {
		t.Errorf("a ciphertext with its nonce was not decrypted: %q", reply)
	}
	ask(t, conn, methodEncrypt, encryption("Random", raw(strings.Repeat("k", 32)), "", "text"))
	for _, name := range []string{"Old identifier", "Post-quantum"} {
		ask(t, conn, methodHashDataV1, message{}.text(requestProfile, name))
	}
	lines, rest := listed(t, conn, nil)
	if fips := parse(t, []byte(rest[listFIPS])); number(t, fips, fipsRequired) != 1 {
		t.Errorf("the list does not say that FIPS is required: %q", fips)
	}
	refused := map[string]bool{}
	for _, line := range lines {
		if operation, ok := strings.CutSuffix(line, " refused"); ok {
			refused[operation] = true
		}
	}
	want := map[string]bool{
		"  EncryptData aes-gcm 128": true, "  SignCertificate ecdsa-with-SHA384 128": true,
		"  SignData ed25519+ml-dsa-44 128": true, "  VerifyData ed25519+ml-dsa-44 128": true,
	}
	if !maps.Equal(want, refused) {
		t.Errorf("listed as refused: %v, want %v", refused, want)
	}
}

func TestTheCatalogueServesWhereFIPSIsRequired(t *testing.T) {
	conn := connect(t, startStrict(t, string(catalogue.Profiles)).socket(""))
	for _, name := range []string{"Default", "FIPS-140-3-128bit", "FIPS-140-3-192bit", "FIPS-140-3-256bit"} {
		ask(t, conn, methodHashData, message{}.text(requestProfile, name))
	}
}
