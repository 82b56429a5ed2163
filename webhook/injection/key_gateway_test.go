// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"path"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// besideGateway is the template of an operator that has a key gateway.
func besideGateway() template.Template {
	template := testTemplate()
	template.KeyGateway = "gateway.system.svc:8443"
	return template
}

// inAccount gives a pod its service account, as the API server does before it calls the webhook.
func inAccount(pod *corev1.Pod) { pod.Spec.ServiceAccountName = "default" }

// callsGateway reports whether the broker of a pod has a token for the key gateway.
func callsGateway(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == contract.KeyGatewayVolume })
}

func TestOnlyBrokersThatMayUseKeyProvidersGetATokenForTheKeyGateway(t *testing.T) {
	for sentence, test := range map[string]struct {
		profiles string
		want     bool
	}{
		"a namespace with a key of a key provider":          {fixture.ProfilesWithKeyProvider, true},
		"a namespace without one":                           {fixture.ProfilesOfShop, false},
		"a namespace with keys of the broker's directory":   {"- Name: P\n  API:\n    SignData:\n      KeyIds:\n        - Id: orders\n", false},
		"a namespace that has no profiles, and may get one": {"", true},
		"a namespace whose profiles were deleted":           {"[]\n", true},
		"a namespace whose profiles cannot be read":         {"KeyIds: {", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			for name, template := range map[string]template.Template{"with": besideGateway(), "without": testTemplate()} {
				pod, _, err := Inject(fixture.PodWith(inAccount), "shop", []byte(test.profiles), template)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := callsGateway(pod), test.want && name == "with"; got != want {
					t.Errorf("%s a gateway: found a token: %t", name, got)
				}
				_, told := contract.ArgumentOf(pod.Spec.InitContainers[0].Args, contract.KeyGatewayFlag)
				if told != callsGateway(pod) {
					t.Errorf("%s a gateway: the broker was told its address: %t", name, told)
				}
			}
		})
	}
}

func TestAPodWithoutAServiceAccountGetsNoToken(t *testing.T) {
	pod, _, err := Inject(fixture.PodWith(), "shop", []byte(fixture.ProfilesWithKeyProvider), besideGateway())
	if err != nil {
		t.Fatal(err)
	}
	if callsGateway(pod) {
		t.Error("found the volume with a token, which the API server refuses")
	}
}

func TestNoContainerButTheBrokerGetsTheTokenForTheKeyGateway(t *testing.T) {
	mount := corev1.VolumeMount{Name: contract.KeyGatewayVolume, MountPath: "/stolen"}
	pod, _, err := Inject(fixture.PodWith(inAccount), "shop", []byte(fixture.ProfilesWithKeyProvider), besideGateway())
	if err != nil {
		t.Fatal(err)
	}
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, mount)
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Name == contract.KeyGatewayVolume {
			pod.Spec.Volumes[i].Projected.Sources[1].ConfigMap.Name = "authorities-of-mine"
		}
	}
	again, _, err := Inject(pod, "shop", []byte(fixture.ProfilesWithKeyProvider), besideGateway())
	if err != nil {
		t.Fatal(err)
	}
	each(again, func(place string, c *corev1.Container) {
		for _, found := range c.VolumeMounts {
			if found.Name == contract.KeyGatewayVolume && !isBroker(*c) {
				t.Errorf("%s mounts %s", place, found.Name)
			}
		}
	})
	if diff := cmp.Diff(keyGatewayVolume(false), again.Spec.Volumes[len(again.Spec.Volumes)-1]); diff != "" {
		t.Errorf("not the volume that the operator makes (-want +found):\n%s", diff)
	}
}

func TestABrokerLosesItsTokenWithTheLastKeyOfAKeyProviderInTheSecondPass(t *testing.T) {
	pod, _, err := Inject(fixture.PodWith(inAccount), "shop", []byte(fixture.ProfilesWithKeyProvider), besideGateway())
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), besideGateway())
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := Inject(fixture.PodWith(inAccount), "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("not the pod that a cluster without a key gateway has (-want +found):\n%s", diff)
	}
}

func TestAPodWithoutTheTokenOfItsServiceAccountGetsTheTokenForTheKeyGateway(t *testing.T) {
	pod, _, err := Inject(fixture.PodWith(inAccount, func(pod *corev1.Pod) { pod.Spec.AutomountServiceAccountToken = ptr.To(false) }),
		"shop", []byte(fixture.ProfilesWithKeyProvider), besideGateway())
	if err != nil {
		t.Fatal(err)
	}
	broker := pod.Spec.InitContainers[0]
	file, _ := contract.ArgumentOf(broker.Args, contract.KeyGatewayTokenFlag)
	if !callsGateway(pod) || !slices.ContainsFunc(broker.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.Name == contract.KeyGatewayVolume && m.MountPath == path.Dir(file) && m.ReadOnly
	}) {
		t.Errorf("found the mounts %v, expected one at the directory of %s", broker.VolumeMounts, file)
	}
}

func TestANewPodReplacesOneThatCannotCallTheKeyGatewayOnlyWhereItCan(t *testing.T) {
	without, with := stampOf(testTemplate()), stampOf(besideGateway())
	moved := besideGateway()
	moved.KeyGateway = "elsewhere.system.svc:8443"
	for sentence, test := range map[string]struct {
		stamp, current string
		same           bool
	}{
		"a pod without a token where a new one has none":       {without, without, true},
		"a pod with a token where a new one has it":            {with, with, true},
		"a pod with a token where a new one has none":          {with, without, true},
		"a pod without a token where a new one has it":         {without, with, false},
		"a pod of a gateway that has another address meantime": {with, stampOf(moved), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := SameTemplate(test.stamp, test.current); got != test.same {
				t.Errorf("%s counts as %s: %t", test.stamp, test.current, got)
			}
		})
	}
	pod := injectedPodWith(t)
	pod.Annotations[contract.InjectedAnnotation] = with
	if template := moved; !Outdated(template)(pod) {
		t.Error("a pod that knows the former address of the key gateway does not count as outdated")
	}
	if template := besideGateway(); Outdated(template)(pod) {
		t.Error("a pod that knows the address of the key gateway counts as outdated")
	}
}

func TestParametersHaveTheStampOfPodsThatCanCallTheKeyGateway(t *testing.T) {
	with, err := Parameters(besideGateway(), "")
	if err != nil {
		t.Fatal(err)
	}
	without, err := Parameters(testTemplate(), "")
	if err != nil {
		t.Fatal(err)
	}
	pod, _, err := Inject(fixture.PodWith(inAccount), "shop", []byte(fixture.ProfilesWithKeyProvider), besideGateway())
	if err != nil {
		t.Fatal(err)
	}
	if with.KeyGateway == nil || with.KeyGateway.Stamp != pod.Annotations[contract.InjectedAnnotation] || with.KeyGateway.Address != "gateway.system.svc:8443" {
		t.Errorf("found %+v, and a pod with the stamp %s", with.KeyGateway, pod.Annotations[contract.InjectedAnnotation])
	}
	with.KeyGateway = nil
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("the rest is another with a key gateway (-without +with):\n%s", diff)
	}
}

func TestOnlyTheOperatorsValueGivesBrokersACertificate(t *testing.T) {
	sources := func(common template.Template, profiles string) (found []corev1.VolumeProjection, argument string) {
		pod, _, err := Inject(fixture.PodWith(inAccount), "shop", []byte(profiles), common)
		if err != nil {
			t.Fatal(err)
		}
		for _, volume := range pod.Spec.Volumes {
			if volume.Name == contract.KeyGatewayVolume {
				found = volume.Projected.Sources
			}
		}
		argument, _ = contract.ArgumentOf(pod.Spec.InitContainers[0].Args, contract.KeyGatewayCertificateFlag)
		return found, argument
	}
	template := besideGateway()
	if found, argument := sources(template, ""); len(found) != 2 || argument != "" {
		t.Errorf("without the value, found %d sources and the argument %q", len(found), argument)
	}
	template.BrokerCertificates = true
	found, argument := sources(template, "")
	if len(found) != 3 || found[2].PodCertificate == nil {
		t.Fatalf("with the value, found the sources %+v", found)
	}
	if source := found[2].PodCertificate; source.SignerName != contract.BrokerSigner || argument != path.Join(contract.KeyGatewayDir, source.CredentialBundlePath) {
		t.Errorf("found the source %+v and the argument %q", source, argument)
	}
	if found, argument := sources(template, fixture.ProfilesOfShop); found != nil || argument != "" {
		t.Errorf("a broker without a key gateway has the sources %+v and the argument %q", found, argument)
	}
}

func TestAPodWithoutACertificateIsOutdatedWhereBrokersHaveThem(t *testing.T) {
	before, _, err := Inject(fixture.PodWith(inAccount), "shop", nil, besideGateway())
	if err != nil {
		t.Fatal(err)
	}
	template := besideGateway()
	template.BrokerCertificates = true
	after, _, err := Inject(fixture.PodWith(inAccount), "shop", nil, template)
	if err != nil {
		t.Fatal(err)
	}
	outdated := Outdated(template)
	if !outdated(before) || outdated(after) {
		t.Errorf("outdated: %t without a certificate, %t with one", outdated(before), outdated(after))
	}
	other, _, err := Inject(fixture.PodWith(inAccount), "shop", []byte(fixture.ProfilesOfShop), besideGateway())
	if err != nil {
		t.Fatal(err)
	}
	if outdated(other) {
		t.Error("a pod that needs no key gateway is outdated")
	}
}
