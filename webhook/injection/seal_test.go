// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

func signingKey(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

func publicKey(b byte) ed25519.PublicKey {
	key, _ := signingKey(b).Public().(ed25519.PublicKey)
	return key
}

// sealed returns a template for the namespace shop with a set of this revision.
func sealed(t *testing.T, key byte, revision int64) template.Template {
	t.Helper()
	common := testTemplate()
	common.Seal = template.Seal{Keys: []ed25519.PublicKey{publicKey(key)}, Audience: "c6a1/shop/91f0", Lowest: revision}
	var err error
	common.Seal.Signature, err = signed.Sign(signed.Statement{
		Audience: common.Seal.Audience, Revision: revision, Time: time.Now(), Digest: signed.Digest([]byte(fixture.ProfilesOfShop)),
	}, signingKey(key))
	if err != nil {
		t.Fatal(err)
	}
	return common
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

func inject(t *testing.T, pod *corev1.Pod, common template.Template) *corev1.Pod {
	t.Helper()
	injected, _, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), common)
	if err != nil {
		t.Fatal(err)
	}
	return injected
}

func TestABrokerIsToldWhomToTrustForWhatAndFromWhenOn(t *testing.T) {
	template := sealed(t, 1, 42)
	pod := inject(t, fixture.PodWith(), template)
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
		"log-level":     "metadata.annotations['cryptobroker.io/log-level']",
	}, files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if pod.Annotations[contract.InjectedAnnotation] != inject(t, fixture.PodWith(), testTemplate()).Annotations[contract.InjectedAnnotation] {
		t.Error("the stamp follows keys and revision, which change while the broker stays the same")
	}
}

func TestASnapshotHasProfilesAndSignatureOrNeither(t *testing.T) {
	for sentence, test := range map[string]struct {
		profiles string
		change   func(*template.Seal)
		want     bool
	}{
		"both": {fixture.ProfilesOfShop, func(*template.Seal) {}, true},
		"without a signature that the broker takes":   {fixture.ProfilesOfShop, func(s *template.Seal) { s.Signature = nil }, false},
		"at the limit of both together":               {strings.Repeat("#", 16<<10-600), func(s *template.Seal) { s.Signature = bytes.Repeat([]byte("s"), 600) }, true},
		"above the limit of both together":            {strings.Repeat("#", 16<<10-600), func(s *template.Seal) { s.Signature = bytes.Repeat([]byte("s"), 601) }, false},
		"where no signature is needed, the profiles ": {fixture.ProfilesOfShop, func(s *template.Seal) { *s = template.Seal{} }, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			template := sealed(t, 1, 42)
			test.change(&template.Seal)
			// The values of a copied pod are never kept.
			pod := fixture.PodWith(func(pod *corev1.Pod) {
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
	first := inject(t, fixture.PodWith(), sealed(t, 1, 42))
	next := sealed(t, 2, 50)
	want := inject(t, fixture.PodWith(), next)
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
			// Only the result in the API server counts.
			var admitted corev1.Pod
			if err := json.Unmarshal(fixture.Patched(t, fixture.JSON(t, pod), pod, inject(t, pod, next)), &admitted); err != nil {
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
