// SPDX-License-Identifier: Apache-2.0

package whatif_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers/brokerstest"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/whatif"
)

func own(namespace, name, hash string) v1alpha1.CryptoProfile {
	p := v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.API.HashData = &v1alpha1.HashData{HashAlg: hash}
	return p
}

func ofCluster(name, hash string) v1alpha1.ClusterCryptoProfile {
	p := v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.API.HashData = &v1alpha1.HashData{HashAlg: hash}
	return p
}

var began = time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC)

// counted is the answer of a broker that began to count at began.
func counted(uses ...telemetry.CountedUse) telemetry.Uses {
	return telemetry.Uses{Version: 1, Since: began, Uses: uses}
}

// hashed are calls of HashData, the last of them an hour after began.
func hashed(name, algorithm string, calls uint64) telemetry.CountedUse {
	return telemetry.CountedUse{Profile: name, Operation: "HashData", Algorithm: algorithm, Container: "app", Calls: calls, Since: began, Last: began.Add(time.Hour)}
}

// read reads manifests for the namespace shop.
func read(t *testing.T, manifests string) (*whatif.Profiles, error) {
	t.Helper()
	documents, err := manifest.ReadObjects([]string{"-"}, strings.NewReader(manifests))
	if err != nil {
		t.Fatal(err)
	}
	return whatif.ReadProfiles(t.Context(), documents, "shop")
}

// ask returns which calls these manifests would break.
func ask(t *testing.T, c brokerstest.Cluster, manifests string) (*whatif.Report, error) {
	t.Helper()
	profiles, err := read(t, manifests)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: c.Serve(t), QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return (&whatif.Asker{Client: client, Progress: io.Discard}).Ask(t.Context(), profiles)
}

func manifestOf(kind, name, api string) string {
	return fmt.Sprintf("---\napiVersion: cryptobroker.io/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: {api: %s}\n", kind, name, api)
}

func TestCallsThatAChangeBreaksAreAddedUpByWorkload(t *testing.T) {
	c := brokerstest.Cluster{}
	c.AddNamespace("shop", []v1alpha1.CryptoProfile{own("shop", "orders", "sha-256"), own("shop", "other", "sha-256")}, nil, map[string]any{
		"web-0": counted(hashed("orders", "sha-256", 40), hashed("other", "sha-256", 7)),
		"web-1": counted(hashed("orders", "sha-256", 2), hashed("orders", "sha-384", 1000)),
		"bare":  counted(hashed("other", "sha-256", 9)),
	})
	const sha512 = "sha-512 instead of sha-256"
	finding := func(workload string, pods int, calls uint64, effect profile.Effect, why string) whatif.Finding {
		return whatif.Finding{
			Namespace: "shop", Workload: workload, Container: "app", Profile: "orders", Operation: "HashData", Algorithm: "sha-256",
			Effect: effect, Why: why, Pods: pods, Calls: calls, Since: began, Last: began.Add(time.Hour),
		}
	}
	other := finding("pod/bare", 1, 9, profile.Changed, sha512)
	other.Profile = "other"
	web := finding("statefulset/web", 1, 7, profile.Changed, sha512)
	web.Profile = "other"
	for sentence, test := range map[string]struct {
		manifests  string
		namespaces int
		want       []whatif.Finding
	}{
		"another algorithm": {manifestOf("CryptoProfile", "orders", "{hashData: {hashAlg: sha-512}}"), 1,
			[]whatif.Finding{finding("statefulset/web", 2, 42, profile.Changed, sha512)}},
		"an operation that is missing": {manifestOf("CryptoProfile", "orders", "{encryptData: {encryptAlg: aes-gcm, keySize: 256, nonceStrategy: random}}"), 1,
			[]whatif.Finding{finding("statefulset/web", 2, 42, profile.Refused, "HashData is not offered")}},
		"a profile of another object, beside one that does not change": {
			manifestOf("CryptoProfile", "orders", "{hashData: {hashAlg: sha-256}}") + manifestOf("CryptoProfile", "other", "{hashData: {hashAlg: sha-512}}"), 1,
			[]whatif.Finding{other, web}},
		"nothing, since more is offered": {manifestOf("CryptoProfile", "orders", "{hashData: {hashAlg: sha-256}, encryptData: {encryptAlg: aes-gcm, keySize: 256, nonceStrategy: random}}"), 1, nil},
		"nothing, since nothing changes": {manifestOf("CryptoProfile", "orders", "{hashData: {hashAlg: sha-256}}"), 0, nil},
		"nothing, since it is new":       {manifestOf("CryptoProfile", "new", "{hashData: {hashAlg: sha-512}}"), 0, nil},
		"a name that goes to a ClusterCryptoProfile": {manifestOf("ClusterCryptoProfile", "orders", "{hashData: {hashAlg: sha-512}}"), 1,
			[]whatif.Finding{finding("statefulset/web", 2, 42, profile.Changed, sha512)}},
		"a name that is given up": {strings.Replace(manifestOf("CryptoProfile", "orders", "{hashData: {hashAlg: sha-256}}"), "spec: {", "spec: {profileName: Orders, ", 1), 1,
			[]whatif.Finding{finding("statefulset/web", 2, 42, profile.Refused, "no profile of this name is served")}},
	} {
		t.Run(sentence, func(t *testing.T) {
			report, err := ask(t, c, test.manifests)
			if err != nil {
				t.Fatal(err)
			}
			if test.want == nil {
				test.want = []whatif.Finding{}
			}
			if diff := cmp.Diff(test.want, report.Findings); diff != "" || report.Namespaces != test.namespaces || len(report.Unknown) > 0 {
				t.Errorf("in %d namespaces, unknown %+v, findings (-want +got):\n%s", report.Namespaces, report.Unknown, diff)
			}
		})
	}
}

func TestAClusterProfileIsComparedWhereItCounts(t *testing.T) {
	c, all := brokerstest.Cluster{}, []v1alpha1.ClusterCryptoProfile{ofCluster("base", "sha-256")}
	c.AddNamespace("shop", nil, all, map[string]any{"web-0": counted(hashed("base", "sha-256", 1))})
	c.AddNamespace("bank", nil, all, map[string]any{"web-0": counted(hashed("base", "sha-256", 2))})
	selected := strings.Replace(manifestOf("ClusterCryptoProfile", "base", "{hashData: {hashAlg: sha-256}}"), "spec: {", `spec: {namespaceSelector: {matchLabels: {team: none}}, `, 1)
	for sentence, test := range map[string]struct {
		manifests string
		why       string
	}{
		"in all namespaces":           {manifestOf("ClusterCryptoProfile", "base", "{hashData: {hashAlg: sha-512}}"), "sha-512 instead of sha-256"},
		"where it no longer is meant": {selected, "no profile of this name is served"},
	} {
		report, err := ask(t, c, test.manifests)
		if err != nil || report.Namespaces != 2 || len(report.Findings) != 2 || report.Findings[0].Namespace != "bank" || report.Findings[0].Calls != 2 || report.Findings[1].Why != test.why {
			t.Errorf("%s: found %+v, %v", sentence, report, err)
		}
	}
}

func TestWhatCannotBeKnownIsListed(t *testing.T) {
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	hidden := counted(hashed("orders", "sha-512", 3))
	hidden.Other = []telemetry.OtherUses{{Profile: "orders", Operation: "HashData", Calls: 7}}
	elsewhere := counted()
	elsewhere.Other = []telemetry.OtherUses{{Profile: "another", Operation: "HashData", Calls: 7}}
	strange := hashed("orders", "sha\x1b[2J", 3)
	for sentence, test := range map[string]struct {
		answer any
		want   string
	}{
		"a broker that is too old":                 {status(http.StatusNotFound, "404 page not found\n"), "the broker is too old to count what calls used: restart the workload after an upgrade"},
		"a broker that may not be asked":           {status(http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`), "asking the broker needs the right to get pods/proxy"},
		"a broker that does not answer":            {status(http.StatusServiceUnavailable, "no route"), "the broker did not answer: "},
		"something else that answers":              {status(http.StatusOK, `{"digest":"x"}`), "the broker's answer is not the expected JSON"},
		"something that answers without end":       {status(http.StatusOK, strings.Repeat(" ", 2<<20)), "the broker's answer is not the expected JSON"},
		"a use that no broker of this version has": {counted(strange), "the broker's answer has a use that this version does not know"},
		"uses that are not told apart":             {hidden, "the broker has counted more different uses than it can distinguish"},
		"nothing, for uses of another profile":     {elsewhere, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := brokerstest.Cluster{}
			c.AddNamespace("shop", []v1alpha1.CryptoProfile{own("shop", "orders", "sha-256")}, nil, map[string]any{"web-0": test.answer})
			report, err := ask(t, c, manifestOf("CryptoProfile", "orders", "{hashData: {hashAlg: sha-512}}"))
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" && len(report.Unknown) == 0 {
				return
			}
			if len(report.Findings) > 0 || len(report.Unknown) != 1 || !strings.HasPrefix(report.Unknown[0].Why, test.want) || report.Unknown[0].Pod != "web-0" {
				t.Errorf("found %+v", report)
			}
		})
	}
}

func TestNamesOfCertificatesThatChangeAreNotKnown(t *testing.T) {
	const before = `{signCertificate: {signAlg: ecdsa, hashAlg: sha-256, validity: {validNotBeforeOffset: -1h, validNotAfterOffset: 24h}, ` +
		`keyConstraints: {subject: {ecdsa: {minKeySize: 256, maxKeySize: 521}}, issuer: {ecdsa: {minKeySize: 256, maxKeySize: 521}}}}}`
	c := brokerstest.Cluster{}
	profiles, err := read(t, manifestOf("CryptoProfile", "orders", before))
	if err != nil {
		t.Fatal(err)
	}
	c.AddNamespace("shop", profiles.Namespaced, nil, map[string]any{"web-0": counted(telemetry.CountedUse{
		Profile: "orders", Operation: "SignCertificate", Algorithm: "ecdsa-with-sha-256", Calls: 3, Since: began, Last: began,
		Keys: []telemetry.CountedKey{{Algorithm: "ECDSA", Bits: 384}, {Algorithm: "ECDSA", Bits: 256}},
	})})
	report, err := ask(t, c, manifestOf("CryptoProfile", "orders", strings.Replace(before, "24h", "12h", 1)))
	if err != nil || len(report.Findings) > 0 || len(report.Unknown) != 1 || !strings.Contains(report.Unknown[0].Why, "periods") {
		t.Errorf("found %+v, %v", report, err)
	}
	report, err = ask(t, c, manifestOf("CryptoProfile", "orders", strings.Replace(before, "subject: {ecdsa: {minKeySize: 256", "subject: {ecdsa: {minKeySize: 384", 1)))
	if err != nil || len(report.Findings) != 1 || report.Findings[0].Effect != profile.Refused || len(report.Findings[0].Keys) != 2 || report.Findings[0].Keys[0] != "ECDSA 384" {
		t.Errorf("found %+v, %v", report, err)
	}
}

func TestNarrowerLimitsOfSessionsAreNotKnown(t *testing.T) {
	const before = `{session: {protocols: [session-v1], keyAgreementAlg: ECDH_P256, encryptAlg: A256GCM, clockWindow: 1m%s}}`
	c := brokerstest.Cluster{}
	profiles, err := read(t, manifestOf("CryptoProfile", "orders", fmt.Sprintf(before, "")))
	if err != nil {
		t.Fatal(err)
	}
	c.AddNamespace("shop", profiles.Namespaced, nil, map[string]any{"web-0": counted(telemetry.CountedUse{
		Profile: "orders", Operation: "OpenRequest", Algorithm: "session-v1", Calls: 3, Since: began, Last: began,
	})})
	for sentence, test := range map[string]struct {
		after   string
		unknown int
	}{
		"a narrower clock window": {strings.Replace(fmt.Sprintf(before, ""), "1m", "1s", 1), 1},
		"fewer messages":          {fmt.Sprintf(before, ", maxMessages: 2"), 1},
		"a shorter lifetime":      {fmt.Sprintf(before, ", maxLifetime: 10m"), 1},
		"a wider clock window":    {strings.Replace(fmt.Sprintf(before, ""), "1m", "5m", 1), 0},
	} {
		report, err := ask(t, c, manifestOf("CryptoProfile", "orders", test.after))
		if err != nil || len(report.Findings) > 0 || len(report.Unknown) != test.unknown || test.unknown > 0 && !strings.Contains(report.Unknown[0].Why, "numbers of messages of sessions") {
			t.Errorf("%s: found %+v, %v", sentence, report, err)
		}
	}
}

func TestManifestsThatCannotBeComparedAreRefusedWithASentence(t *testing.T) {
	for sentence, test := range map[string]struct{ manifests, want string }{
		"no profile":              {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "found no CryptoProfile and no ClusterCryptoProfile of cryptobroker.io/v1alpha1 in the manifests"},
		"an invalid profile":      {manifestOf("CryptoProfile", "orders", "{hashData: {hashAlg: md5}}"), "hashAlg"},
		"an unknown field":        {manifestOf("CryptoProfile", "orders", "{hashData: {hashAlg: sha-256, size: 3}}"), "there is no such field"},
		"a namespace left out":    {strings.Replace(manifestOf("CryptoProfile", "orders", "{hashData: {hashAlg: sha-256}}"), "{name:", "{namespace: kube-system, name:", 1), "never gets profiles"},
		"a namespace that is not": {strings.Replace(manifestOf("CryptoProfile", "orders", "{hashData: {hashAlg: sha-256}}"), "{name:", "{namespace: nowhere, name:", 1), `there is no namespace "nowhere"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := ask(t, brokerstest.Cluster{}, test.manifests); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("found %v, expected %q", err, test.want)
			}
		})
	}
}
