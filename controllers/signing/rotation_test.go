// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// rotated returns a ring with so many retired keys, an hour apart.
func rotated(t *testing.T, times int) Ring {
	t.Helper()
	r := must[Ring](t)(Ring{}.rotate(epoch))
	for i := range times {
		r = must[Ring](t)(r.rotate(epoch.Add(time.Duration(i+1) * time.Hour)))
	}
	return r
}

func TestKeysAreReadBackAsTheyWereWritten(t *testing.T) {
	r := rotated(t, 3)
	secret := &corev1.Secret{Data: map[string][]byte{"something": nil}}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, retiredSincePrefix+"gone", "x")
	if err := r.writeSecret(secret); err != nil {
		t.Fatal(err)
	}
	got, err := readSecret(secret)
	if err != nil || !got.Equal(r) {
		t.Fatalf("got %+v, %v", got, err)
	}
	for i, k := range append([]key{got.current}, got.retired...) {
		if want := append([]key{r.current}, r.retired...)[i]; !k.private.Equal(want.private) || !k.since.Equal(want.since) {
			t.Errorf("key %s since %s, want %s", k.id, k.since, want.since)
		}
	}
	if len(secret.Data) != 4 || len(secret.Annotations) != 4 {
		t.Errorf("the Secret has %d entries and %d annotations, want 4 of each", len(secret.Data), len(secret.Annotations))
	}
}

func TestASetIsSignedForEveryPodThatTrustsAKeyOfTheRing(t *testing.T) {
	r := rotated(t, 2)
	profiles := []byte("[]\n")
	signature := must[[]byte](t)(r.Sign(signed.Statement{Audience: "a", Revision: 1, Time: epoch, Digest: signed.Digest(profiles)}))
	for _, public := range r.Known() {
		if _, err := (signed.Trust{Keys: r.Known()[:0:0], Audience: "a"}).Verify(profiles, signature); err == nil {
			t.Error("a trust without keys took it")
		}
		trust := signed.Trust{Audience: "a"}
		trust.Keys = append(trust.Keys, public)
		if _, err := trust.Verify(profiles, signature); err != nil {
			t.Error(err)
		}
	}
	if !r.Known()[0].Equal(r.Current()) || len(r.Known()) != 3 {
		t.Errorf("%d keys are known, want 3, the current one first", len(r.Known()))
	}
}

func TestARetiredKeyGoesWhenNobodyDependsOnIt(t *testing.T) {
	r := rotated(t, 2) // retired at 1 h and 2 h
	var first, second string
	for _, k := range r.retired {
		if k.since.Equal(epoch.Add(time.Hour)) {
			first = k.id
		} else {
			second = k.id
		}
	}
	for sentence, test := range map[string]struct {
		trusts [][]string
		after  time.Duration
		want   string
	}{
		"not within an hour":                        {nil, time.Hour + 59*time.Minute, ""},
		"after an hour, each at its time":           {nil, 2*time.Hour + 59*time.Minute, first},
		"both":                                      {nil, 3 * time.Hour, first + " " + second},
		"not while a pod trusts it alone":           {[][]string{{first}}, 3 * time.Hour, second},
		"not while pods trust each":                 {[][]string{{first}, {second}}, 3 * time.Hour, ""},
		"while a pod trusts the current one, too":   {[][]string{{first, r.current.id}}, 3 * time.Hour, first + " " + second},
		"one of two that a pod trusts":              {[][]string{{first, second}}, 3 * time.Hour, "one"},
		"while a pod trusts keys of somebody else":  {[][]string{{"0123456789abcdef"}}, 3 * time.Hour, first + " " + second},
		"while a pod trusts it and an unknown key":  {[][]string{{first, "0123456789abcdef"}}, 3 * time.Hour, second},
		"while one pod depends on it, not another ": {[][]string{{first, second}, {second}}, 3 * time.Hour, first},
	} {
		t.Run(sentence, func(t *testing.T) {
			next, removed := r.prune(test.trusts, epoch.Add(test.after))
			if len(next.retired)+len(removed) != 2 || next.current.id != r.current.id {
				t.Fatalf("%d keys are left and %d removed", len(next.retired), len(removed))
			}
			if test.want == "one" {
				if len(removed) != 1 {
					t.Errorf("removed %v, want one of two", removed)
				}
				return
			}
			for _, id := range removed {
				if !strings.Contains(test.want, id) {
					t.Errorf("removed %s, want %q", id, test.want)
				}
			}
			if len(removed) != len(strings.Fields(test.want)) {
				t.Errorf("removed %v, want %q", removed, test.want)
			}
		})
	}
}

func TestRotationEndsWhereASetCanHaveNoMoreSignatures(t *testing.T) {
	r := rotated(t, signed.MaxSignatures-1)
	if _, err := r.rotate(epoch); err == nil || !strings.HasPrefix(err.Error(), "there are 16 signing keys, and a set can have no more signatures: restart the workloads whose pods trust the oldest keys, which are ") {
		t.Errorf("got %v", err)
	}
}

func TestTheKeysThatAPodTrustsAreReadFromItsBroker(t *testing.T) {
	r := rotated(t, 1)
	pod := func(phase corev1.PodPhase, container string, args ...string) *corev1.Pod {
		return &corev1.Pod{
			Spec:   corev1.PodSpec{InitContainers: []corev1.Container{{Name: container, RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Args: args}}},
			Status: corev1.PodStatus{Phase: phase},
		}
	}
	keys := contract.Argument(contract.TrustedKeysFlag, "") + signed.FormatKey(r.Known()[0]) + "," + signed.FormatKey(r.Known()[1])
	for sentence, test := range map[string]struct {
		pod  *corev1.Pod
		want int
	}{
		"a running pod":          {pod(corev1.PodRunning, contract.BrokerContainer, "--callers=a", keys), 2},
		"a pending pod":          {pod(corev1.PodPending, contract.BrokerContainer, keys), 2},
		"a pod that is done":     {pod(corev1.PodSucceeded, contract.BrokerContainer, keys), 0},
		"a pod that failed":      {pod(corev1.PodFailed, contract.BrokerContainer, keys), 0},
		"another container":      {pod(corev1.PodRunning, "app", keys), 0},
		"keys that are no keys":  {pod(corev1.PodRunning, contract.BrokerContainer, contract.Argument(contract.TrustedKeysFlag, "")+"x,y"), 0},
		"a broker without trust": {pod(corev1.PodRunning, contract.BrokerContainer), 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := TrustedBy(test.pod); len(got) != test.want {
				t.Errorf("got %v, want %d", got, test.want)
			}
		})
	}
}

func TestASecretThatCannotBeReadIsNamedEntryByEntry(t *testing.T) {
	r := rotated(t, 1)
	good := func() *corev1.Secret {
		secret := &corev1.Secret{}
		if err := r.writeSecret(secret); err != nil {
			t.Fatal(err)
		}
		return secret
	}
	ec := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	der := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(ec))
	const want = "expected one PEM block PRIVATE KEY with an Ed25519 key in PKCS #8"
	retired := retiredPrefix + r.retired[0].id + retiredSuffix
	for sentence, test := range map[string]struct {
		change func(*corev1.Secret)
		want   string
	}{
		"no key":            {func(s *corev1.Secret) { s.Data = nil }, "entry current.pem is not there"},
		"no current key":    {func(s *corev1.Secret) { delete(s.Data, currentEntry) }, "entry current.pem is not there"},
		"an entry of yours": {func(s *corev1.Secret) { s.Data["notes"] = nil }, "entry notes is unknown, expected current.pem, and retired-<key id>.pem for each retired key"},
		"no PEM":            {func(s *corev1.Secret) { s.Data[currentEntry] = []byte("secret") }, "entry current.pem has no PEM block, " + want},
		"no private key":    {func(s *corev1.Secret) { s.Data[currentEntry] = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY"}) }, "entry current.pem has a PEM block of another type, " + want},
		"no PKCS #8":        {func(s *corev1.Secret) { s.Data[currentEntry] = pem.EncodeToMemory(&pem.Block{Type: pemType}) }, "entry current.pem is not PKCS #8, " + want},
		"another algorithm": {func(s *corev1.Secret) {
			s.Data[currentEntry] = pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})
		}, "entry current.pem has a key of the type *ecdsa.PrivateKey, " + want},
		"two keys in one":    {func(s *corev1.Secret) { s.Data[currentEntry] = append(s.Data[currentEntry], s.Data[retired]...) }, "entry current.pem has data after its PEM block, " + want},
		"a key under a name": {func(s *corev1.Secret) { s.Data[retired] = s.Data[currentEntry] }, "entry " + retired + " has the key " + r.current.id + ", expected the one it is named after"},
		"a key twice":        {func(s *corev1.Secret) { s.Data[currentEntry] = s.Data[retired] }, "the key " + r.retired[0].id + " is in entry current.pem and among the retired ones, expected it once"},
		"no time":            {func(s *corev1.Secret) { s.Annotations[currentSinceAnnotation] = "today" }, `annotation cryptobroker.io/signing-key-current-since is "today", expected a time in RFC 3339`},
	} {
		t.Run(sentence, func(t *testing.T) {
			secret := good()
			test.change(secret)
			if _, err := readSecret(secret); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestTheAudienceIsOneNamespaceOfOneCluster(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank", UID: "91f0"}}
	if got := Audience(types.UID("c6a1"), namespace); got != "c6a1/bank/91f0" {
		t.Errorf("got %s", got)
	}
}
