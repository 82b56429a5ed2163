// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// FuzzInject looks for a pod that Inject spoils. The seeds run with every test;
// "go test ./webhook -fuzz FuzzInject" looks for more.
func FuzzInject(f *testing.F) {
	for seed := range int64(500) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		pod, random := randomPod(seed)
		profiles := [][]byte{nil, []byte(fixture.ProfilesOfShop), make([]byte, maxSnapshotSize+1)}[random.Intn(3)]
		template := testTemplate()
		template.NamespaceUserIDs = random.Intn(4) == 0

		once, _, err := Inject(pod, "shop", profiles, template)
		var refusal *Refusal
		if errors.As(err, &refusal) {
			if len(refusal.Problems) == 0 {
				t.Error("a refusal without a reason")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if verdict, err := decide(pod, true); err != nil || !verdict.inject {
			if diff := cmp.Diff(once, pod); diff != "" {
				t.Errorf("a pod that gets no broker has changed (-after +before):\n%s", diff)
			}
			return
		}
		if diff := cmp.Diff(withoutInjection(once, pod), pod); diff != "" {
			t.Errorf("more than the broker's own has changed (-after +before):\n%s", diff)
		}
		if patched := applied(t, fixture.JSON(t, pod), pod, once); !jsonEqual(t, patched, fixture.JSON(t, once)) {
			t.Errorf("the patch makes %s", patched)
		}

		// The API server sends what it was sent, not what is in memory here.
		received := &corev1.Pod{}
		if err := json.Unmarshal(fixture.JSON(t, once), received); err != nil {
			t.Fatal(err)
		}
		twice, _, err := Inject(received, "shop", profiles, template)
		if err != nil {
			t.Fatalf("the second call refused what the first made: %v", err)
		}
		if diff := cmp.Diff(received, twice); diff != "" {
			t.Errorf("the second call changed the pod (-once +twice):\n%s", diff)
		}
		expectOnlyMountAndVariable(t, pod, once)
		if _, _, err := Inject(pod, "shop", profiles, beside(template)); err == nil { // it may be that the other port is taken
			renewed := admitted(t, admitted(t, pod, profiles, beside(template)), profiles, template)
			if diff := cmp.Diff(inNewPod(received), inNewPod(renewed), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the broker of another version has not become that of this one (-want +found):\n%s", diff)
			}
		}
		for _, change := range []string{"the token of the service account", "a cloud identity for every container", "a proxy as a sidecar in front"} {
			between := received.DeepCopy()
			foreignChanges[change](between)
			if _, _, err := Inject(between, "shop", profiles, template); err != nil {
				t.Errorf("after %s the second call refuses the pod: %v", change, err)
			}
		}
	})
}

// expectOnlyMountAndVariable compares what was there of each of the app's
// containers, item by item, with what is there now.
func expectOnlyMountAndVariable(t *testing.T, before, after *corev1.Pod) {
	t.Helper()
	owned := map[string]corev1.Container{}
	each(after, func(_ string, c *corev1.Container) { owned[c.Name] = *c })
	each(before, func(place string, c *corev1.Container) {
		found := owned[c.Name]
		found.VolumeMounts = slices.DeleteFunc(slices.Clone(found.VolumeMounts), func(m corev1.VolumeMount) bool { return m.Name == contract.SocketVolume })
		if more := len(found.Env) - len(c.Env); more == 1 && found.Env[len(c.Env)].Name == "CRYPTO_BROKER_SOCKET" {
			found.Env = found.Env[:len(c.Env)]
		}
		if !equality.Semantic.DeepEqual(*c, found) {
			t.Errorf("%s: more than the mount and the variable has changed (-before +after):\n%s", place, cmp.Diff(*c, found))
		}
	})
}

// withoutInjection takes out of a pod what Inject may have put in, to compare
// the rest with the pod before.
func withoutInjection(pod, before *corev1.Pod) *corev1.Pod {
	socketPath := "/tmp/open-crypto-broker"
	if chosen, found := before.Annotations[contract.SocketPathAnnotation]; found {
		socketPath = chosen
	}
	rest := pod.DeepCopy()
	if len(rest.Spec.ImagePullSecrets) == len(before.Spec.ImagePullSecrets)+1 {
		rest.Spec.ImagePullSecrets = rest.Spec.ImagePullSecrets[:len(before.Spec.ImagePullSecrets)]
	}
	rest.Annotations = before.Annotations
	rest.Spec.InitContainers = slices.DeleteFunc(rest.Spec.InitContainers, isBroker)
	each(rest, func(_ string, c *corev1.Container) {
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return equality.Semantic.DeepEqual(m, rendering{wishes: wishes{socketDir: socketPath}}.mount(c.Name))
		})
		c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool {
			return v == corev1.EnvVar{Name: "CRYPTO_BROKER_SOCKET", Value: socketPath + "/crypto-broker-server.sock"}
		})
	})
	rest.Spec.Volumes = slices.DeleteFunc(rest.Spec.Volumes, func(v corev1.Volume) bool { return contract.IsReservedVolume(v.Name) })
	if context := rest.Spec.SecurityContext; context != nil {
		if before.Spec.SecurityContext == nil {
			if len(context.SupplementalGroups) == 1 {
				rest.Spec.SecurityContext = nil
			}
		} else if groups := before.Spec.SecurityContext.SupplementalGroups; len(context.SupplementalGroups) == len(groups)+1 {
			context.SupplementalGroups = context.SupplementalGroups[:len(groups)]
		}
	}
	// An empty list is what is left of none.
	emptyAsBefore(reflect.ValueOf(rest).Elem(), reflect.ValueOf(before).Elem())
	return rest
}

// emptyAsBefore makes lists that are empty on both sides nil where they were.
func emptyAsBefore(found, before reflect.Value) {
	switch found.Kind() {
	case reflect.Struct:
		for i := range found.NumField() {
			if found.Type().Field(i).IsExported() {
				emptyAsBefore(found.Field(i), before.Field(i))
			}
		}
	case reflect.Pointer:
		if !found.IsNil() && !before.IsNil() {
			emptyAsBefore(found.Elem(), before.Elem())
		}
	case reflect.Slice:
		if found.Len() == 0 && before.Len() == 0 {
			found.Set(before)
			return
		}
		for i := range min(found.Len(), before.Len()) {
			emptyAsBefore(found.Index(i), before.Index(i))
		}
	}
}

// randomPod fills a pod at random. Names are such as the API server accepts,
// since it checks them before it calls; a few are reserved ones.
func randomPod(seed int64) (*corev1.Pod, *rand.Rand) {
	random := rand.New(rand.NewSource(seed))
	names := 0
	name := func(prefix string) string {
		names++
		return fmt.Sprintf("%s-%d", prefix, names)
	}
	oneOf := func(c randfill.Continue, values ...string) string { return values[c.Intn(len(values))] }
	filler := randfill.New().RandSource(rand.NewSource(seed)).NilChance(.6).NumElements(1, 3).MaxDepth(12).Funcs(
		func(c *corev1.Container, r randfill.Continue) {
			r.FillNoCustom(c)
			c.Name = name("container")
			if r.Intn(200) == 0 {
				c.Name = contract.BrokerContainer
			}
		},
		func(v *corev1.Volume, r randfill.Continue) {
			r.FillNoCustom(v)
			v.Name = name("volume")
			if r.Intn(200) == 0 {
				v.Name = oneOf(r, contract.SocketVolume, contract.ProfilesVolume)
			}
		},
		func(m *corev1.VolumeMount, r randfill.Continue) {
			r.FillNoCustom(m)
			m.Name = oneOf(r, "volume-1", "volume-2", "volume-3")
			m.MountPath = oneOf(r, "/data", "/tmp", "/var/lib/app", "/etc/app", "/cache", "/srv", "/tmp/app")
			if r.Intn(100) == 0 {
				m.MountPath = oneOf(r, "/tmp/open-crypto-broker", "/tmp/open-crypto-broker/x")
			}
		},
		func(p *corev1.ContainerPort, r randfill.Continue) {
			r.FillNoCustom(p)
			p.ContainerPort = int32(9465 + r.Intn(10))
			p.Protocol = corev1.Protocol(oneOf(r, "TCP", "UDP", "SCTP", ""))
		},
		func(o *metav1.ObjectMeta, r randfill.Continue) {
			o.Name = name("pod")
			o.Annotations = map[string]string{contract.InjectAnnotation: oneOf(r, "true", "true", "true", "true", "false", "True")}
			if r.Bool() {
				r.Fill(&o.Labels)
			}
			if r.Bool() {
				o.Annotations[evictableAnnotation] = oneOf(r, "", "a", "a,b", "crypto-broker-socket", "a, crypto-broker-socket ,b")
			}
			if r.Bool() {
				o.Annotations["prometheus.io/"+oneOf(r, "scrape", "port", "path")] = "x"
			}
		},
		func(q *resource.Quantity, r randfill.Continue) {
			*q = *resource.NewQuantity(int64(r.Intn(1000)), resource.DecimalSI)
		},
		func(q *resource.Quantity, r randfill.Continue) { *q = resource.MustParse(fmt.Sprint(r.Intn(1000))) },
		func(t *metav1.Time, r randfill.Continue) { *t = metav1.Unix(int64(r.Intn(1<<30)), 0).Rfc3339Copy() },
		func(f *metav1.FieldsV1, r randfill.Continue) {},
	)
	pod := &corev1.Pod{}
	filler.Fill(&pod.ObjectMeta)
	filler.Fill(&pod.Spec)
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []corev1.Container{{Name: name("container")}}
	}
	pod.Spec.EphemeralContainers = nil // a new pod has none
	choose(random, pod)
	if named, found := pod.Annotations[contract.ContainersAnnotation]; found && random.Intn(3) == 0 {
		pod.Annotations[contract.ContainersAnnotation] = "later," + named
	}
	if random.Intn(4) != 0 {
		pod.Spec.OS = nil
	}

	// What an API server sends has been through JSON.
	sent := &corev1.Pod{}
	data, err := json.Marshal(pod)
	if err == nil {
		err = json.Unmarshal(data, sent)
	}
	if err != nil {
		panic(err)
	}
	return sent, random
}

// choose sets annotations that fit the pod, mostly.
func choose(random *rand.Rand, pod *corev1.Pod) {
	var names []string
	each(pod, func(_ string, c *corev1.Container) { names = append(names, c.Name) })
	some := names[:1+random.Intn(len(names))]
	choices := map[string][]string{
		"profiles":              {"Default", "Default, Signing", "Größe"},
		"profiles." + some[0]:   {"Default", "Default,Other"},
		"containers":            {strings.Join(some, ","), strings.Join(some, " , ")},
		"socket-path":           {"/run/crypto", "/srv/broker", "/tmp/open-crypto-broker", "/data"},
		"cpu-request":           {"1m", "50m", "0.25"},
		"cpu-limit":             {"300m", "2"},
		"memory-request":        {"32Mi", "64Mi", "1Gi"},
		"memory-limit":          {"64Mi", "2Gi", "134217728"},
		"log-level":             {"debug", "info", "warn", "error"},
		"metrics-port":          {"1024", "9471", "65535"},
		"image-pull-secret":     {"registry"},
		"keys":                  {"keys", "keys, issuing.ca"},
		"image":                 {"registry.example/broker:1.2.3"},
		"of-no-such-annotation": {"x"},
	}
	for _, name := range slices.Sorted(maps.Keys(choices)) {
		if random.Intn(8) == 0 && (name != "of-no-such-annotation" || random.Intn(20) == 0) {
			values := choices[name]
			pod.Annotations[contract.AnnotationPrefix+name] = values[random.Intn(len(values))]
		}
	}
}

func jsonEqual(t *testing.T, a, b []byte) bool {
	t.Helper()
	var left, right any
	if err := errors.Join(json.Unmarshal(a, &left), json.Unmarshal(b, &right)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(left, right)
}
