// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package v1alpha1_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

var (
	apiServer client.Client
	// access is the access of the API server's administrator.
	access *rest.Config
)

func TestMain(m *testing.M) {
	os.Exit(apiserver.Run(m, func(admin *rest.Config) (err error) {
		access = admin
		apiServer, err = client.New(admin, client.Options{})
		return err
	}))
}

// certificate is a spec with a valid certificate policy. Tests add lines to it or replace a line.
const certificate = `
api:
  signCertificate:
    signAlg: ecdsa
    hashAlg: sha-512
    validity: {validNotBeforeOffset: -1h, validNotAfterOffset: 8760h}
    keyConstraints:
      subject: {rsa: {minKeySize: 2048, maxKeySize: 4096}, ecdsa: {minKeySize: 256, maxKeySize: 521}}
      issuer: {ecdsa: {minKeySize: 384, maxKeySize: 521}}
`

// in adds lines to the certificate policy.
func in(lines string) string {
	var b strings.Builder
	b.WriteString(certificate)
	for line := range strings.Lines(lines) {
		b.WriteString("    " + line)
	}
	return b.String()
}

// paused is a spec whose rollout has a pause of a duration.
func paused(duration string) string {
	return `{api: {hashData: {hashAlg: sha3-512}}, rollout: {steps: [{setWeight: 10, pause: {duration: "` + duration + `"}}]}}`
}

func TestTheSchema(t *testing.T) {
	tests := map[string]struct {
		spec    string
		refusal string // "" when the API server must accept
		// onOldest is the message of Kubernetes 1.30, which names the type of the value.
		onOldest string
	}{
		"accepts a hash": {
			spec: `{api: {hashData: {hashAlg: sha3-512}}}`,
		},
		"accepts a profile name that is no object name": {
			spec: `{profileName: FIPS-140-3-256bit, api: {hashData: {hashAlg: sha-512}}}`,
		},
		"accepts a certificate policy as released profiles have it": {
			spec: in("keyUsage: [digitalSignature, keyEncipherment]\nextendedKeyUsage: [clientAuth]\nbasicConstraints: {ca: false}"),
		},
		"accepts every field": {
			spec: in(`skiHashAlg: sha-256
keyUsage: [digitalSignature, keyCertSign, cRLSign]
extendedKeyUsage: [clientAuth, OCSPSigning]
basicConstraints: {ca: true, pathLenConstraint: 0}
subjectAltNames: {rule: patterns, required: true, dns: ["*.example.com"], ip: [10.0.0.0/8], uri: ["spiffe://example.com/*"], email: ["*@example.com"]}
crlDistributionPoints: {rule: patterns, uri: ["http://crl.example.com/*"]}
allowSHA1Requests: true
keyIds: [{id: issuer-1, spkiSHA256: "0000000000000000000000000000000000000000000000000000000000000000"}]`) + `
  hashData: {hashAlg: shake-256}
  encryptData: {encryptAlg: aes-gcm, keySize: 256, nonceStrategy: random, tagLength: 128, shortTagLength: 96, keyIds: [{id: a}]}
  signData: {signingMode: legacy, signAlg: rsa-pss, hashAlg: sha-256, signatureFormat: DER, keyConstraints: {issuer: {rsa: {minKeySize: 3072, maxKeySize: 4096}}}, keyIds: [{id: "*"}]}
  dataKeys: {wrapAlgs: [aes-gcm, hpke-mlkem768-x25519], keySize: 256, context: required, keyIds: [{id: vault/orders}]}
  session: {protocols: [session-v1, session-v2, session-hpke-p256, session-hpke-x-wing], keyAgreementAlg: ECDH_P256, encryptAlg: A256GCM, signAlg: ecdsa, hashAlg: sha-256, keyIds: [{id: sessions}], minLifetime: 90s, maxLifetime: 1h, clockWindow: 1m30s, maxMessages: 1073741824, store: memory}
settings: {cryptoLibrary: native}
kms: {client: pkcs11, config: {slot: 1, label: {deep: [true]}}, cache: {ttl: 10s}}
callers: {containers: [app], uids: [1000], gids: [0]}
audit: {level: all, required: true}
deprecation: {replacedBy: Default, deprecatedSince: "2026-01-01", removeAfter: "2027-01-01", reason: Too weak.}`,
		},
		"accepts a pause of eleven years, as Go prints it": {
			spec: paused("99999h59m59.999999999s"),
		},
		// A client in Go cannot read such a duration, and with it no list of profiles.
		"refuses a pause in days": {
			spec:     paused("10d"),
			refusal:  `spec.rollout.steps[0].pause.duration: Invalid value: "10d": expected a duration in h, m, s and ms such as 90s, 10m or 24h, each below 100000; there are no days`,
			onOldest: `spec.rollout.steps[0].pause.duration: Invalid value: "string": expected a duration in h, m, s and ms`,
		},
		"refuses a pause of three hundred years": {
			spec:     paused("2628000h"),
			refusal:  `spec.rollout.steps[0].pause.duration: Invalid value: "2628000h": expected a duration`,
			onOldest: `spec.rollout.steps[0].pause.duration: Invalid value: "string": expected a duration`,
		},
		"refuses a pause without a number": {
			spec:     paused(""),
			refusal:  `spec.rollout.steps[0].pause.duration: Invalid value: "": expected a duration`,
			onOldest: `spec.rollout.steps[0].pause.duration: Invalid value: "string": expected a duration`,
		},
		"refuses a digest algorithm that does not exist": {
			spec:    `{api: {hashData: {hashAlg: md5}}}`,
			refusal: `spec.api.hashData.hashAlg: Unsupported value: "md5"`,
		},
		"refuses a misspelt field by its path": {
			spec:    `{api: {hashData: {hashAlgorithm: sha3-512, hashAlg: sha3-512}}}`,
			refusal: `unknown field "spec.api.hashData.hashAlgorithm"`,
		},
		"refuses a profile that offers nothing": {
			spec:     `{api: {}}`,
			refusal:  `spec.api: Invalid value: a profile offers at least one operation`,
			onOldest: `spec.api: Invalid value: "object": a profile offers at least one operation`,
		},
		"refuses a profile without api": {
			spec:    `{profileName: a}`,
			refusal: `spec.api: Required value`,
		},
		"refuses a profile name of 22 characters and 66 bytes": {
			spec:    `{profileName: "` + strings.Repeat("€", 22) + `", api: {hashData: {hashAlg: sha-256}}}`,
			refusal: `at most 64 bytes`,
		},
		"refuses a profile name that ends with a space": {
			spec:    `{profileName: "Default ", api: {hashData: {hashAlg: sha-256}}}`,
			refusal: `spec.profileName: Invalid value`,
		},
		"refuses a profile name with a line break": {
			spec:    `{profileName: "a\nb", api: {hashData: {hashAlg: sha-256}}}`,
			refusal: `spec.profileName: Invalid value`,
		},
		"refuses a path length for a certificate that is no authority": {
			spec:     in("basicConstraints: {pathLenConstraint: 1}"),
			refusal:  `basicConstraints: Invalid value: pathLenConstraint is only allowed with ca: true`,
			onOldest: `basicConstraints: Invalid value: "object": pathLenConstraint is only allowed with ca: true`,
		},
		"refuses a smallest key size above the greatest": {
			spec:     strings.Replace(certificate, "minKeySize: 384", "minKeySize: 522", 1),
			refusal:  `issuer.ecdsa: Invalid value: minKeySize must not be greater than maxKeySize`,
			onOldest: `issuer.ecdsa: Invalid value: "object": minKeySize must not be greater than maxKeySize`,
		},
		"refuses key constraints that allow no key": {
			spec:     strings.Replace(certificate, "{ecdsa: {minKeySize: 384, maxKeySize: 521}}", "{}", 1),
			refusal:  `issuer: Invalid value: no key would be allowed`,
			onOldest: `issuer: Invalid value: "object": no key would be allowed`,
		},
		"refuses a certificate policy without a digest algorithm": {
			spec:    strings.Replace(certificate, "    hashAlg: sha-512\n", "", 1),
			refusal: `hashAlg is required`,
		},
		"accepts Ed25519 without a digest algorithm": {
			spec: strings.Replace(certificate, "    signAlg: ecdsa\n    hashAlg: sha-512\n", "    signAlg: ed25519\n", 1),
		},
		"refuses a period that ends before it begins": {
			spec:    strings.Replace(certificate, "-1h", "8761h", 1),
			refusal: `validNotBeforeOffset must be earlier than validNotAfterOffset`,
		},
		"refuses a duration in days": {
			spec:     strings.Replace(certificate, "8760h", "365d", 1),
			refusal:  `validity.validNotAfterOffset: Invalid value: "365d": expected a duration in h, m and s such as -1h, 720h or 8760h`,
			onOldest: `validity.validNotAfterOffset: Invalid value: "string": expected a duration in h, m and s such as -1h, 720h or 8760h`,
		},
		"refuses a key usage that does not exist": {
			spec:    in("keyUsage: [crlSign]"),
			refusal: `keyUsage[0]: Unsupported value: "crlSign"`,
		},
		"refuses a key usage that is there twice": {
			spec:    in("keyUsage: [cRLSign, cRLSign]"),
			refusal: `keyUsage[1]: Duplicate value: "cRLSign"`,
		},
		"refuses patterns of names under another rule": {
			spec:    in("subjectAltNames: {rule: copy, dns: [a.example.com]}"),
			refusal: `only allowed with rule patterns`,
		},
		"refuses the rule patterns without a pattern": {
			spec:    in("subjectAltNames: {rule: patterns}"),
			refusal: `rule patterns needs at least one`,
		},
		"refuses to require names that are denied": {
			spec:    in("subjectAltNames: {rule: deny, required: true}"),
			refusal: `required is only allowed with rule copy or patterns`,
		},
		"refuses patterns of CRL distribution points under another rule": {
			spec:    in("crlDistributionPoints: {rule: any, uri: ['http://a/*']}"),
			refusal: `uri is only allowed with rule patterns`,
		},
		"refuses the rule patterns without a CRL distribution point": {
			spec:    in("crlDistributionPoints: {rule: patterns}"),
			refusal: `rule patterns needs uri`,
		},
		"refuses a key size AES does not have": {
			spec:    `{api: {encryptData: {encryptAlg: aes-gcm, keySize: 512, nonceStrategy: random}}}`,
			refusal: `spec.api.encryptData.keySize: Unsupported value: 512`,
		},
		"refuses a short tag": {
			spec:    `{api: {encryptData: {encryptAlg: aes-gcm, keySize: 256, nonceStrategy: random, tagLength: 64}}}`,
			refusal: `spec.api.encryptData.tagLength: Invalid value: 64`,
		},
		"refuses a whole tag as a short one": {
			spec:    `{api: {encryptData: {encryptAlg: aes-gcm, keySize: 256, nonceStrategy: random, shortTagLength: 128}}}`,
			refusal: `spec.api.encryptData.shortTagLength: Unsupported value: 128`,
		},
		"refuses encryption that does not say who makes the nonce": {
			spec:    `{api: {encryptData: {encryptAlg: aes-gcm, keySize: 256}}}`,
			refusal: `spec.api.encryptData.nonceStrategy: Required value`,
		},
		"refuses a digest algorithm beside one that has its own": {
			spec:    `{api: {signData: {signAlg: ml-dsa-65, hashAlg: sha-256, signingMode: post-quantum}}}`,
			refusal: `not allowed with ed25519 and ml-dsa`,
		},
		"refuses CMS with an algorithm it has no name for": {
			spec:    `{api: {signData: {signAlg: rsa-pss, hashAlg: sha-384, signatureFormat: CMS}}}`,
			refusal: `signatureFormat CMS needs signAlg rsa or ecdsa`,
		},
		"accepts a hybrid of a classical and a post-quantum algorithm": {
			spec: `{api: {signData: {signAlg: ecdsa+ml-dsa-65, hashAlg: sha-384, signingMode: hybrid}}}`,
		},
		"refuses one algorithm as a hybrid": {
			spec:    `{api: {signData: {signAlg: ecdsa, hashAlg: sha-384, signingMode: hybrid}}}`,
			refusal: `hybrid needs two`,
		},
		"refuses a classical algorithm as post-quantum": {
			spec:    `{api: {signData: {signAlg: ecdsa, hashAlg: sha-384, signingMode: post-quantum}}}`,
			refusal: `post-quantum needs one of them`,
		},
		"accepts Ed25519 keys, whose size needs no saying": {
			spec: strings.Replace(certificate, "issuer: {ecdsa: {minKeySize: 384, maxKeySize: 521}}", "issuer: {ed25519: {}}", 1),
		},
		"refuses RSA keys that are too small for anything": {
			spec:    strings.Replace(certificate, "minKeySize: 2048", "minKeySize: 512", 1),
			refusal: `subject.rsa.minKeySize: Invalid value: 512`,
		},
		"refuses certificates that would all be expired": {
			spec:    strings.Replace(certificate, "8760h", "-1m", 1),
			refusal: `every certificate would be expired`,
		},
		"refuses a key id with a space": {
			spec:    in("keyIds: [{id: a b}]"),
			refusal: `keyIds[0].id: Invalid value: "a b"`,
		},
		"refuses callers that restrict nobody": {
			spec:    `{api: {hashData: {hashAlg: sha-256}}, callers: {}}`,
			refusal: `callers restricts nothing`,
		},
		"refuses an empty list of callers": {
			spec:    `{api: {hashData: {hashAlg: sha-256}}, callers: {uids: []}}`,
			refusal: `spec.callers.uids: Invalid value: 0`,
		},
		"refuses every key of the broker as the issuer's": {
			spec:    in(`keyIds: [{id: "*"}]`),
			refusal: `expected the id of the issuer's key`,
		},
		"refuses every key of the broker beside one": {
			spec:    `{api: {encryptData: {encryptAlg: aes-gcm, keySize: 256, nonceStrategy: random, keyIds: [{id: "*"}, {id: a}]}}}`,
			refusal: `the id * stands for every key of the broker, expected no other id in the list`,
		},
		"refuses a pin of every key of the broker": {
			spec:    `{api: {signData: {signAlg: ed25519, keyIds: [{id: "*", spkiSHA256: "` + strings.Repeat("0", 64) + `"}]}}}`,
			refusal: `the id * stands for every key of the broker, expected no spkiSHA256 with it`,
		},
		"accepts a profile with data keys alone": {
			spec: `{api: {dataKeys: {wrapAlgs: [aes-kw], keySize: 256, keyIds: [{id: "*"}]}}}`,
		},
		"accepts a profile with sessions alone": {
			spec: `{api: {session: {protocols: [session-v1], keyAgreementAlg: ECDH_P256, encryptAlg: A256GCM}}}`,
		},
		"refuses a protocol of sessions that does not exist": {
			spec:    `{api: {session: {protocols: [session-v3], keyAgreementAlg: ECDH_P256, encryptAlg: A256GCM}}}`,
			refusal: `supported values: "session-v1", "session-v2"`,
		},
		"refuses a clock window that is no duration": {
			spec:    `{api: {session: {protocols: [session-v1], keyAgreementAlg: ECDH_P256, encryptAlg: A256GCM, clockWindow: "30"}}}`,
			refusal: `expected a duration in h, m and s such as 90s or 5m`,
		},
		"refuses a store of sessions that there is not": {
			spec:    `{api: {session: {protocols: [session-v1], keyAgreementAlg: ECDH_P256, encryptAlg: A256GCM, store: etcd}}}`,
			refusal: `supported values: "memory", "redis"`,
		},
		"refuses a context that AES key wrap cannot bind": {
			spec:    `{api: {dataKeys: {wrapAlgs: [aes-gcm, aes-kwp], keySize: 256, context: required, keyIds: [{id: a}]}}}`,
			refusal: `aes-kw and aes-kwp cannot bind a data key to a context`,
		},
		"refuses every key of the broker beside one that wraps": {
			spec:    `{api: {dataKeys: {wrapAlgs: [aes-gcm], keySize: 256, keyIds: [{id: "*"}, {id: a}]}}}`,
			refusal: `the id * stands for every key of the broker, expected no other id in the list`,
		},
		"refuses the same key id twice": {
			spec:    in("keyIds: [{id: a}, {id: a}]"),
			refusal: `keyIds[1]: Duplicate value`,
		},
		"refuses a pin that is no SHA-256": {
			spec:    in("keyIds: [{id: a, spkiSHA256: ABC}]"),
			refusal: `keyIds[0].spkiSHA256: Invalid value: "ABC"`,
		},
		"refuses to require records that are not made": {
			spec:    `{api: {hashData: {hashAlg: sha-256}}, audit: {level: none, required: true}}`,
			refusal: `required needs a level other than none`,
		},
	}
	isOldest := strings.HasPrefix(apiserver.Version(t, access), "v1.30.")
	for sentence, test := range tests {
		if isOldest && test.onOldest != "" {
			test.refusal = test.onOldest
		}
		for _, kind := range []string{"CryptoProfile", "ClusterCryptoProfile"} {
			t.Run(sentence+" in a "+kind, func(t *testing.T) {
				expectAnswer(t, create(t, kind, "test", test.spec), test.refusal)
			})
		}
	}
}

func TestALongObjectNameNeedsAProfileName(t *testing.T) {
	name := strings.Repeat("a", 65)
	err := create(t, "CryptoProfile", name, `{api: {hashData: {hashAlg: sha-256}}}`)
	if err == nil || !strings.Contains(err.Error(), "set spec.profileName") {
		t.Fatalf("expected a refusal that asks for spec.profileName, found %v", err)
	}
	if err := create(t, "CryptoProfile", name, `{profileName: a, api: {hashData: {hashAlg: sha-256}}}`); err != nil {
		t.Fatal(err)
	}
}

func TestTheTagIsFullLengthByDefault(t *testing.T) {
	object := parse(t, "CryptoProfile", "test", `{api: {encryptData: {encryptAlg: aes-gcm, keySize: 256, nonceStrategy: random}}}`)
	if err := apiServer.Create(t.Context(), object, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	length, _, err := unstructured.NestedInt64(object.Object, "spec", "api", "encryptData", "tagLength")
	if err != nil || length != 128 {
		t.Fatalf("tagLength is %d (%v), expected 128", length, err)
	}
}

// create creates the object as a dry run.
func create(t *testing.T, kind, name, spec string) error {
	t.Helper()
	return apiServer.Create(context.Background(), parse(t, kind, name, spec),
		client.DryRunAll, &client.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
}

func parse(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	object.SetAPIVersion("cryptobroker.io/v1alpha1")
	object.SetKind(kind)
	object.SetName(name)
	if slices.Contains([]string{"CryptoProfile", "KeyProvider", "KeyAccessPolicy", "KeyAccessPeer"}, kind) {
		object.SetNamespace("default")
	}
	return object
}
