// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

func signingKey(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

func publicKey(b byte) ed25519.PublicKey {
	key, _ := signingKey(b).Public().(ed25519.PublicKey)
	return key
}

// keysOf returns the key ring that a Secret would hold.
type keysOf func(context.Context) (signing.Ring, error)

func (f keysOf) Ring(ctx context.Context) (signing.Ring, error) { return f(ctx) }
func (f keysOf) OnChange(func(context.Context))                 {}

func TestWhatABrokerIsToldComesFromKeysClusterAndConfigMap(t *testing.T) {
	now, before := signing.NewRing(signingKey(1), signingKey(2)), signing.NewRing(signingKey(2))
	set := func(ring signing.Ring, audience string, revision int64) *corev1.ConfigMap {
		config := fixture.ProfilesIn("shop")
		signature, err := ring.Sign(signed.Statement{Audience: audience, Revision: revision, Time: time.Now(), Digest: signed.Digest([]byte(fixture.ProfilesOfShop))})
		if err != nil {
			t.Fatal(err)
		}
		config.Data[signed.FileName] = string(signature)
		return config
	}
	shop, system := fixture.Namespace("shop", nil), fixture.Namespace("kube-system", nil)
	shop.UID, system.UID = "91f0", "c6a1"
	const here = "c6a1/shop/91f0"
	trusted := []string{"--trusted-keys=" + signed.FormatKey(publicKey(1)), "--state-dir=/run/broker/.served", "--profiles-audience=" + here}
	from := func(revision string) []string { return append(slices.Clone(trusted), "--lowest-revision="+revision) }
	for sentence, test := range map[string]struct {
		objects  []client.Object
		keys     keysOf
		want     []string
		snapshot bool
		refusal  string
	}{
		"a signed set":                   {objects: []client.Object{system, set(now, here, 7)}, want: from("7"), snapshot: true},
		"no set yet":                     {objects: []client.Object{system}, want: trusted},
		"a set that is not signed yet":   {objects: []client.Object{system, fixture.ProfilesIn("shop")}, want: trusted},
		"a set that somebody else wrote": {objects: []client.Object{system, set(signing.NewRing(signingKey(9)), here, 99)}, want: trusted},
		"a set of another namespace":     {objects: []client.Object{system, set(now, "c6a1/bank/77aa", 99)}, want: trusted},
		"a set of a namespace of before": {objects: []client.Object{system, set(now, "c6a1/shop/0000", 99)}, want: trusted},
		"a set signed before a rotation": {objects: []client.Object{system, set(before, here, 7)}, want: from("7")},
		"no keys to be had": {
			objects: []client.Object{system}, keys: func(context.Context) (signing.Ring, error) { return signing.Ring{}, errors.New("no answer") },
			refusal: "the signing keys that the pod's broker has to trust could not be read: no answer",
		},
		"no name of the cluster": {refusal: `namespace "kube-system", whose UID is part of what profiles of this cluster are signed for, could not be read: it does not exist`},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := apiServerWith(t, append(test.objects, shop)...)
			injector := injectorWith(t, server, server)
			injector.keys = keysOf(func(context.Context) (signing.Ring, error) { return now, nil })
			if test.keys != nil {
				injector.keys = test.keys
			}
			response := injector.Handle(t.Context(), creation(t, fixture.PodWith(), "shop"))
			if test.refusal != "" {
				if response.Allowed || response.Result.Code != http.StatusInternalServerError || response.Result.Message != test.refusal {
					t.Errorf("allowed: %t, %v", response.Allowed, response.Result)
				}
				return
			}
			profiles, signature, _ := injector.profiles(t.Context(), "shop")
			seal, err := injector.seal(t.Context(), shop, profiles, signature)
			if err != nil {
				t.Fatal(err)
			}
			template := testTemplate()
			template.Seal = seal
			pod, _, err := injection.Inject(fixture.PodWith(), "shop", profiles, template)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, flag := range []string{contract.TrustedKeysFlag, contract.StateDirFlag, contract.ProfilesAudienceFlag, contract.LowestRevisionFlag} {
				if value, found := contract.ArgumentOf(pod.Spec.InitContainers[0].Args, flag); found {
					got = append(got, contract.Argument(flag, value))
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" || !response.Allowed {
				t.Errorf("allowed: %t (-want +got):\n%s", response.Allowed, diff)
			}
			if _, has := pod.Annotations[contract.ProfilesSnapshotAnnotation]; has != test.snapshot {
				t.Errorf("the pod carries a snapshot: %t", has)
			}
		})
	}
	if got := signing.Audience(types.UID("c6a1"), shop); got != here {
		t.Errorf("got %s", got)
	}
}
