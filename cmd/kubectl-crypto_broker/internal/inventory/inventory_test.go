// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers/brokerstest"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/inventory"
)

var began = time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC)

// counted is the answer of a broker that began to count at began.
func counted(uses ...telemetry.CountedUse) telemetry.Uses {
	return telemetry.Uses{Version: 1, Since: began, Uses: uses}
}

// used are calls of the container app, the last of them an hour after began. Keys are such as "RSA
// 2048".
func used(name, operation, algorithm string, calls uint64, keys ...string) telemetry.CountedUse {
	u := telemetry.CountedUse{Profile: name, Operation: operation, Algorithm: algorithm, Container: "app", Calls: calls, Since: began, Last: began.Add(time.Hour)}
	for _, key := range keys {
		var k telemetry.CountedKey
		k.Algorithm, _, _ = strings.Cut(key, " ")
		_, _ = fmt.Sscanf(key, k.Algorithm+" %d", &k.Bits) // a key without a size has none
		u.Keys = append(u.Keys, k)
	}
	return u
}

// make makes an inventory of a cluster. change may change the maker.
func makeInventory(t testing.TB, c brokerstest.Cluster, change ...func(*inventory.Maker)) *inventory.Inventory {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: c.Serve(t), QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	m := &inventory.Maker{Client: client, Progress: io.Discard, Now: began.Add(2 * time.Hour)}
	for _, change := range change {
		change(m)
	}
	found, err := m.Make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// lines returns one line for each use, with what was used and by whom.
func lines(uses []inventory.Use) (all []string) {
	for _, u := range uses {
		all = append(all, fmt.Sprintf("%s %s %s %s %s %s %v: %d pods %d calls", u.Namespace, u.Workload, u.Container, u.Profile, u.Operation, u.Algorithm, u.Keys, u.Pods, u.Calls))
	}
	return all
}

func shop() brokerstest.Cluster {
	c := brokerstest.Cluster{}
	signing := used("orders", "SignData", "rsa-with-sha-256", 5, "RSA 2048")
	signing.Keys[0].ID = "one"
	again := used("orders", "SignData", "rsa-with-sha-256", 7, "RSA 2048")
	again.Keys[0].ID, again.Last = "two", began.Add(90*time.Minute)
	old := used("old", "UnwrapKey", "rsa-oaep-sha-1", 1, "RSA 4096")
	old.Last = began.Add(time.Minute)
	c.AddNamespace("shop", nil, nil, map[string]any{
		"web-0": counted(signing, used("orders", "HashData", "sha-512", 1)),
		"web-1": counted(signing, again),
		"bare":  counted(old),
	})
	c.AddNamespace("bank", nil, nil, map[string]any{"db-0": counted(used("money", "SignData", "ecdsa-with-sha-256", 2, "ECDSA 256"))})
	return c
}

func TestUsesAreAddedUpByWorkload(t *testing.T) {
	const signs = "shop statefulset/web app orders SignData rsa-with-sha-256 [RSA 2048]: 2 pods 17 calls"
	const hashes = "shop statefulset/web app orders HashData sha-512 []: 1 pods 1 calls"
	const unwraps = "shop pod/bare app old UnwrapKey rsa-oaep-sha-1 [RSA 4096]: 1 pods 1 calls"
	const bank = "bank statefulset/db app money SignData ecdsa-with-sha-256 [ECDSA 256]: 1 pods 2 calls"
	for sentence, test := range map[string]struct {
		change func(*inventory.Maker)
		want   []string
	}{
		"in all namespaces":           {func(*inventory.Maker) {}, []string{bank, unwraps, hashes, signs}},
		"in one namespace":            {func(m *inventory.Maker) { m.Namespace = "bank" }, []string{bank}},
		"with calls since a time":     {func(m *inventory.Maker) { m.UsedSince = began.Add(time.Hour) }, []string{bank, hashes, signs}},
		"with calls after all others": {func(m *inventory.Maker) { m.UsedSince = began.Add(80 * time.Minute) }, []string{strings.ReplaceAll(strings.ReplaceAll(signs, "2 pods", "1 pods"), "17", "7")}},
		"with SHA-1":                  {selecting(t, "SHA1"), []string{unwraps}},
		"with keys of RSA":            {selecting(t, "rsa"), []string{unwraps, signs}},
		"with P-256 or RSA-2048":      {selecting(t, "P-256", "RSA2048"), []string{bank, signs}},
		"with RSA-OAEP":               {selecting(t, "rsa-oaep-sha-1"), []string{unwraps}},
		"with ECDSA":                  {selecting(t, "ecdsa"), []string{bank}},
		"with nothing that is used":   {selecting(t, "ml-dsa-87"), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			found := makeInventory(t, shop(), test.change)
			if diff := cmp.Diff(test.want, lines(found.Uses)); diff != "" || len(found.Unknown) > 0 || found.Brokers != found.Answered {
				t.Errorf("unknown %+v, uses (-want +got):\n%s", found.Unknown, diff)
			}
		})
	}
}

func selecting(t *testing.T, names ...string) func(*inventory.Maker) {
	t.Helper()
	only, err := inventory.NewSelection(names)
	if err != nil {
		t.Fatal(err)
	}
	return func(m *inventory.Maker) { m.Only = only }
}

func TestANameThatNoAlgorithmHasIsRefused(t *testing.T) {
	for _, name := range []string{"", "sha", "sha-11", "rsa-512", "md5", "p"} {
		if only, err := inventory.NewSelection([]string{name}); err == nil || !strings.Contains(err.Error(), "expected one of aes, ") {
			t.Errorf("%q: found %v, %v", name, only, err)
		}
	}
}

func TestEveryNameThatIsOfferedSelectsSomething(t *testing.T) {
	for _, name := range inventory.Names() {
		if only, err := inventory.NewSelection([]string{strings.ToUpper(name)}); err != nil || len(only) != 1 || only[0] != name {
			t.Errorf("%s: found %v, %v", name, only, err)
		}
	}
}

func TestWhatStandardsSayOfAUse(t *testing.T) {
	for sentence, test := range map[string]struct {
		use  telemetry.CountedUse
		want string
	}{
		"RSA-2048":         {used("p", "SignData", "rsa-with-sha-256", 1, "RSA 2048"), "112 vulnerable, until 2035, deprecated after 2030, CNSA none, FIPS true"},
		"RSA-1024":         {used("p", "SignData", "rsa-with-sha-256", 1, "RSA 1024"), "80 vulnerable, until 2013, CNSA none, FIPS false"},
		"P-384":            {used("p", "SignData", "ecdsa-with-sha-384", 1, "ECDSA 384"), "192 vulnerable, until 2035, CNSA 1.0, FIPS true"},
		"P-384, SHA-512":   {used("p", "SignData", "ecdsa-with-sha-512", 1, "ECDSA 384"), "192 vulnerable, until 2035, CNSA none, FIPS true"},
		"ML-DSA-87":        {used("p", "SignData", "ml-dsa-87", 1, "ML-DSA-87"), "256 resistant, no date, CNSA 2.0, FIPS false"},
		"a hybrid":         {used("p", "SignData", "rsa-with-sha-256+ml-dsa-87", 1, "RSA 2048", "ML-DSA-87"), "256 resistant, no date, CNSA none, FIPS false"},
		"SHA-1":            {used("p", "UnwrapKey", "rsa-oaep-sha-1", 1, "RSA 3072"), "128 vulnerable, until 2030, CNSA none, FIPS false"},
		"a hybrid of CNSA": {used("p", "SignData", "ecdsa-with-sha-384+ml-dsa-87", 1, "ECDSA 384", "ML-DSA-87"), "256 resistant, no date, CNSA none, FIPS false"},
		"a stream":         {used("p", "EncryptStream", "aes-gcm", 1, "AES 256"), "256 unaffected, no date, CNSA none, FIPS false"},
		"AES-256":          {used("p", "EncryptData", "aes-gcm", 1, "AES 256"), "256 unaffected, no date, CNSA 2.0, FIPS true"},
		"SHA-384":          {used("p", "HashData", "sha-384", 1), "192 unaffected, no date, CNSA 2.0, FIPS true"},
		"a session":        {used("p", "InitSession", "session-v2", 1), "128 vulnerable, until 2035, CNSA none, FIPS true"},
		"HPKE with ML-KEM": {used("p", "WrapKey", "hpke-ml-kem-1024", 1), "256 resistant, no date, CNSA 2.0, FIPS false"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := brokerstest.Cluster{}
			c.AddNamespace("shop", nil, nil, map[string]any{"web-0": counted(test.use)})
			found := makeInventory(t, c)
			if len(found.Uses) != 1 {
				t.Fatalf("found %+v", found)
			}
			u := found.Uses[0]
			if got := fmt.Sprintf("%d %s, %s, CNSA %s, FIPS %v", u.Strength, u.PostQuantum, u.NIST(), u.CNSA, u.FIPS); got != test.want {
				t.Errorf("found %q, expected %q", got, test.want)
			}
			if u.FIPS != (u.FIPSReason == "") {
				t.Errorf("found the reason %q", u.FIPSReason)
			}
		})
	}
}

func TestWhatABrokerOfAnAttackerSays(t *testing.T) {
	many := counted()
	for range 257 {
		many.Uses = append(many.Uses, used("p", "HashData", "sha-256", 1))
	}
	strange := func(change func(*telemetry.CountedUse)) telemetry.Uses {
		u := used("p", "SignData", "rsa-with-sha-256", 1, "RSA 2048")
		change(&u)
		return counted(u)
	}
	noJSON := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", 2<<20)) })
	for sentence, test := range map[string]struct {
		answer any
		want   string
	}{
		"an answer without end":               {noJSON, "the broker's answer is not the expected JSON"},
		"more uses than brokers count":        {many, "the broker's answer is not the expected JSON"},
		"a profile that moves the cursor":     {strange(func(u *telemetry.CountedUse) { u.Profile = "p\x1b[2J" }), "the broker's answer has a use that this version does not know"},
		"a profile with a name without end":   {strange(func(u *telemetry.CountedUse) { u.Profile = strings.Repeat("p", 65) }), "the broker's answer has a use that this version does not know"},
		"a profile that is written backwards": {strange(func(u *telemetry.CountedUse) { u.Profile = "p\u202e" }), "the broker's answer has a use that this version does not know"},
		"a container with a line break":       {strange(func(u *telemetry.CountedUse) { u.Container = "app\nshop" }), "the broker's answer has a use that this version does not know"},
		"an algorithm that there is not":      {strange(func(u *telemetry.CountedUse) { u.Algorithm = "rot13" }), "the broker's answer has a use that this version does not know"},
		"an operation that there is not":      {strange(func(u *telemetry.CountedUse) { u.Operation = "Rest" }), "the broker's answer has a use that this version does not know"},
		"a key without end":                   {strange(func(u *telemetry.CountedUse) { u.Keys[0].Bits = math.MaxInt }), "the broker's answer has a use that this version does not know"},
		"uses that are not told apart": {telemetry.Uses{Version: 1, Since: began, Other: []telemetry.OtherUses{{Profile: "p", Operation: "HashData", Calls: 1}}},
			"the broker has counted more different uses than it can distinguish"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := brokerstest.Cluster{}
			c.AddNamespace("shop", nil, nil, map[string]any{"web-0": test.answer})
			found := makeInventory(t, c)
			if len(found.Uses) != 0 || len(found.Unknown) != 1 || found.Unknown[0].Why != test.want || found.Unknown[0].Workload != "statefulset/web" {
				t.Errorf("found %+v", found)
			}
		})
	}
}

func TestCallsWithoutEndAreAddedUpToTheLargestNumber(t *testing.T) {
	c := brokerstest.Cluster{}
	c.AddNamespace("shop", nil, nil, map[string]any{
		"web-0": counted(used("p", "HashData", "sha-256", math.MaxUint64)), "web-1": counted(used("p", "HashData", "sha-256", 5)),
	})
	if found := makeInventory(t, c); len(found.Uses) != 1 || found.Uses[0].Calls != math.MaxUint64 || found.Uses[0].Pods != 2 {
		t.Errorf("found %+v", found.Uses)
	}
}

func TestEachPodThatDoesNotAnswerIsListed(t *testing.T) {
	c := brokerstest.Cluster{}
	pods := map[string]any{"web-0": counted(used("p", "HashData", "sha-256", 1))}
	for i := range 40 {
		pods[fmt.Sprintf("web-%d", i+1)] = http.NotFoundHandler()
	}
	c.AddNamespace("shop", nil, nil, pods)
	found := makeInventory(t, c)
	if found.Brokers != 41 || found.Answered != 1 || len(found.Unknown) != 40 || len(found.Uses) != 1 {
		t.Errorf("found %+v", found)
	}
}
