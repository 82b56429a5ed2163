// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

func signingKey(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

func publicKey(b byte) ed25519.PublicKey {
	key, _ := signingKey(b).Public().(ed25519.PublicKey)
	return key
}

// sealed is a template for namespace shop with a set of this revision.
func sealed(t *testing.T, key byte, revision int64) Template {
	t.Helper()
	template := testTemplate()
	template.Seal = Seal{Keys: []ed25519.PublicKey{publicKey(key)}, Audience: "c6a1/shop/91f0", Lowest: revision}
	var err error
	template.Seal.Signature, err = signed.Sign(signed.Statement{
		Audience: template.Seal.Audience, Revision: revision, Time: time.Now(), Digest: signed.Digest([]byte(fixture.ProfilesOfShop)),
	}, signingKey(key))
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// trustOf are the arguments of a pod's broker about signed sets.
func trustOf(pod *corev1.Pod) []string {
	var found []string
	for _, argument := range pod.Spec.InitContainers[0].Args {
		for _, flag := range []string{contract.Argument(contract.TrustedKeysFlag, ""), contract.Argument(contract.StateDirFlag, ""), contract.Argument(contract.ProfilesAudienceFlag, ""), contract.Argument(contract.LowestRevisionFlag, "")} {
			if strings.HasPrefix(argument, flag) {
				found = append(found, argument)
			}
		}
	}
	return found
}

func inject(t *testing.T, pod *corev1.Pod, template Template) *corev1.Pod {
	t.Helper()
	injected, _, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), template)
	if err != nil {
		t.Fatal(err)
	}
	return injected
}

func TestABrokerIsToldWhomToTrustForWhatAndFromWhenOn(t *testing.T) {
	template := sealed(t, 1, 42)
	pod := inject(t, podWith(), template)
	want := []string{"--trusted-keys=" + signed.FormatKey(publicKey(1)), "--state-dir=/run/broker/.served", "--profiles-audience=c6a1/shop/91f0", "--lowest-revision=42"}
	if diff := cmp.Diff(want, trustOf(pod)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if pod.Annotations[contract.ProfilesSnapshotAnnotation] != fixture.ProfilesOfShop || pod.Annotations[contract.ProfilesSnapshotSignatureAnnotation] != string(template.Seal.Signature) {
		t.Errorf("the pod does not carry profiles and signature: %v", pod.Annotations)
	}
	volume := pod.Spec.Volumes[slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == contract.ProfilesVolume })]
	files := map[string]string{}
	for _, item := range volume.Projected.Sources[0].DownwardAPI.Items {
		files[item.Path] = item.FieldRef.FieldPath
	}
	if diff := cmp.Diff(map[string]string{
		"Profiles.yaml": "metadata.annotations['cryptobroker.io/profiles-snapshot']",
		"Profiles.sig":  "metadata.annotations['cryptobroker.io/profiles-snapshot-signature']",
	}, files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if pod.Annotations[contract.InjectedAnnotation] != inject(t, podWith(), testTemplate()).Annotations[contract.InjectedAnnotation] {
		t.Error("the stamp follows keys and revision, which change while the broker stays the same")
	}
}

func TestASnapshotHasProfilesAndSignatureOrNeither(t *testing.T) {
	for sentence, test := range map[string]struct {
		profiles string
		change   func(*Seal)
		want     bool
	}{
		"both": {fixture.ProfilesOfShop, func(*Seal) {}, true},
		"without a signature that the broker takes":   {fixture.ProfilesOfShop, func(s *Seal) { s.Signature = nil }, false},
		"at the limit of both together":               {strings.Repeat("#", 16<<10-600), func(s *Seal) { s.Signature = bytes.Repeat([]byte("s"), 600) }, true},
		"above the limit of both together":            {strings.Repeat("#", 16<<10-600), func(s *Seal) { s.Signature = bytes.Repeat([]byte("s"), 601) }, false},
		"where no signature is needed, the profiles ": {fixture.ProfilesOfShop, func(s *Seal) { *s = Seal{} }, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			template := sealed(t, 1, 42)
			test.change(&template.Seal)
			// What a copy of another pod brings is never kept.
			pod := podWith(func(pod *corev1.Pod) {
				pod.Annotations[contract.ProfilesSnapshotAnnotation] = "mine"
				pod.Annotations[contract.ProfilesSnapshotSignatureAnnotation] = "mine"
			})
			injected, _, err := Inject(pod, "shop", []byte(test.profiles), template)
			if err != nil {
				t.Fatal(err)
			}
			profiles, has := injected.Annotations[contract.ProfilesSnapshotAnnotation]
			signature, signed := injected.Annotations[contract.ProfilesSnapshotSignatureAnnotation]
			if has != test.want || has && profiles != test.profiles {
				t.Errorf("carries profiles: %t", has)
			}
			if want := test.want && template.Seal.Keys != nil; signed != want || signed && signature != string(template.Seal.Signature) {
				t.Errorf("carries a signature: %t", signed)
			}
			again, _, err := Inject(injected, "shop", []byte(test.profiles), template)
			if diff := cmp.Diff(injected, again); err != nil || diff != "" {
				t.Errorf("a second call changes the pod: %v\n%s", err, diff)
			}
		})
	}
}

func TestASecondCallBringsTrustUpToDate(t *testing.T) {
	first := inject(t, podWith(), sealed(t, 1, 42))
	next := sealed(t, 2, 50)
	want := inject(t, podWith(), next)
	for sentence, change := range map[string]func(args []string) []string{
		"a pod that was admitted a moment ago": func(args []string) []string { return args },
		"a copy that takes older sets": func(args []string) []string {
			return replaced(args, contract.Argument(contract.LowestRevisionFlag, ""), contract.Argument(contract.LowestRevisionFlag, "")+"1")
		},
		"a copy that takes sets of another place": func(args []string) []string {
			return replaced(args, contract.Argument(contract.ProfilesAudienceFlag, ""), contract.Argument(contract.ProfilesAudienceFlag, "")+"elsewhere")
		},
		"a copy that trusts somebody else as well": func(args []string) []string {
			return append(args, contract.Argument(contract.TrustedKeysFlag, "")+signed.FormatKey(publicKey(9)))
		},
		"a copy from before sets were signed": func(args []string) []string {
			return slices.DeleteFunc(args, func(a string) bool { return slices.Contains(trustOf(first), a) })
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			pod := first.DeepCopy()
			pod.Spec.InitContainers[0].Args = change(pod.Spec.InitContainers[0].Args)
			// What the API server makes of the answer is what counts.
			var admitted corev1.Pod
			if err := json.Unmarshal(applied(t, fixture.JSON(t, pod), pod, inject(t, pod, next)), &admitted); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Spec, admitted.Spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func replaced(args []string, flag, with string) []string {
	args = slices.Clone(args)
	for i, argument := range args {
		if strings.HasPrefix(argument, flag) {
			args[i] = with
		}
	}
	return args
}

// keysOf gives the ring that a Secret would hold.
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
			refusal: "the pod's broker has to be told which signatures of profiles to trust, and the keys could not be read: no answer",
		},
		"no name of the cluster": {refusal: `namespace "kube-system", whose UID tells this cluster's profiles from another's, could not be read: it does not exist`},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := apiServerWith(t, append(test.objects, shop)...)
			injector := injectorWith(t, server, server)
			injector.keys = keysOf(func(context.Context) (signing.Ring, error) { return now, nil })
			if test.keys != nil {
				injector.keys = test.keys
			}
			response := injector.Handle(t.Context(), creation(t, podWith(), "shop"))
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
			if diff := cmp.Diff(test.want, append(seal.first(), seal.here()...)); diff != "" || !response.Allowed {
				t.Errorf("allowed: %t (-want +got):\n%s", response.Allowed, diff)
			}
			if has := seal.snapshot(profiles) != nil; has != test.snapshot {
				t.Errorf("the pod carries a snapshot: %t", has)
			}
		})
	}
	if got := signing.Audience(types.UID("c6a1"), shop); got != here {
		t.Errorf("got %s", got)
	}
}
