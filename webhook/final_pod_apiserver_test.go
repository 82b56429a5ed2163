// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	jsonpatch "gomodules.xyz/jsonpatch/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// once adds a volume to a pod unless the pod has it.
func once(volume corev1.Volume) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		if !slices.ContainsFunc(pod.Spec.Volumes, func(found corev1.Volume) bool { return found.Name == volume.Name }) {
			pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
		}
	}
}

// changeArgument replaces the broker's argument that begins with prefix.
func changeArgument(prefix, with string) func(*corev1.Pod) {
	return fixture.InBroker(func(c *corev1.Container) {
		for i, argument := range c.Args {
			if strings.HasPrefix(argument, prefix) {
				c.Args[i] = with
			}
		}
	})
}

// inKeyGatewayVolume changes the volume with the token for the key gateway.
func inKeyGatewayVolume(change func(*corev1.ProjectedVolumeSource)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for i := range pod.Spec.Volumes {
			if pod.Spec.Volumes[i].Name == contract.KeyGatewayVolume {
				change(pod.Spec.Volumes[i].Projected)
			}
		}
	}
}

// meddler is a webhook that the API server calls after the operator's, and again whenever the operator's has changed the pod again.
type meddler struct {
	decoder admission.Decoder
	change  func(*corev1.Pod)
}

func (m *meddler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(&admission.Webhook{Handler: admission.HandlerFunc(m.answer)}).ServeHTTP(w, r)
}

func (m *meddler) answer(_ context.Context, request admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := m.decoder.Decode(request, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if m.change != nil {
		m.change(pod)
	}
	changed, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	operations, err := jsonpatch.CreatePatch(request.Object.Raw, changed)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.Patched("", operations...)
}

func TestABrokerThatAnotherWebhookChangesAfterTheLastCallRefusesThePod(t *testing.T) {
	template := testTemplate()
	template.KeyGateway = "gateway.system.svc:8443" // which brokers of a namespace without profiles can call
	startOperatorWith(t, Options{Template: template})
	pod := func() *corev1.Pod {
		return fixture.PodWith(func(pod *corev1.Pod) { pod.Spec.ServiceAccountName = "default" })
	}
	other := &meddler{decoder: admission.NewDecoder(apiServerScheme())}
	namespace := serveOtherInjector(t, "meddler", other)
	// The API server takes a moment to know the webhook and the policy.
	other.change = fixture.InBroker(func(c *corev1.Container) { c.Image = "mirror.example/broker:0.1.0" })
	eventually(t, "both judge a pod", func() error {
		if _, err := tryPod(t, namespace, pod()); err == nil || !strings.Contains(err.Error(), "found the image") {
			return errNotCalled
		}
		return nil
	})
	const (
		arguments = `spec.initContainers: found arguments of the container "crypto-broker" that are not the ones that are added to the pod`
		container = `spec.initContainers: found a container "crypto-broker" that is not the one that is added to the pod`
		mounted   = `spec.initContainers: found mounts of the container "crypto-broker" that cover its own files`
		volumes   = `spec.volumes: found a volume of the broker that is not the one that is added to the pod`
		elsewhere = `spec.containers: found a mount of a volume of the broker that is not the one that is added to the pod`
		missing   = `spec.initContainers: found no container "crypto-broker" of the operator in a pod that asks for a broker`
	)
	withArgument := func(argument string) func(*corev1.Pod) {
		return fixture.InBroker(func(c *corev1.Container) { c.Args = append(c.Args, argument) })
	}
	for sentence, test := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"another image": {
			fixture.InBroker(func(c *corev1.Container) { c.Image = "mirror.example/broker:0.1.0" }),
			`spec.initContainers: found the image "mirror.example/broker:0.1.0" of the container "crypto-broker", expected "localhost/crypto-broker/broker:0.1.0"; another webhook changes it after the operator's and has to leave it alone`,
		},
		"other profiles":                       {withArgument("--profiles-dir=/tmp"), arguments},
		"another caller":                       {fixture.InBroker(func(c *corev1.Container) { c.Args[2] = "--callers=app,other" }), arguments},
		"more profiles for a caller":           {withArgument("--caller-profiles=app=Default"), arguments},
		"two lowest revisions":                 {fixture.Join(withArgument("--lowest-revision=1"), withArgument("--lowest-revision=2")), arguments},
		"two keys to trust":                    {withArgument("--trusted-keys=a,b"), arguments},
		"no argument":                          {fixture.InBroker(func(c *corev1.Container) { c.Args = nil }), arguments},
		"a command":                            {fixture.InBroker(func(c *corev1.Container) { c.Command = []string{"/bin/sh"} }), container},
		"a right":                              {fixture.InBroker(func(c *corev1.Container) { c.SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_PTRACE"} }), container},
		"no security context":                  {fixture.InBroker(func(c *corev1.Container) { c.SecurityContext = nil }), container},
		"no startup probe":                     {fixture.InBroker(func(c *corev1.Container) { c.StartupProbe = nil }), container},
		"another cryptography":                 {fixture.InBroker(func(c *corev1.Container) { c.Env = fixture.Env("GODEBUG", "fips140=off") }), container},
		"another library that is loaded first": {fixture.InBroker(func(c *corev1.Container) { c.Env = append(c.Env, fixture.Env("LD_PRELOAD", "/mine/x.so")...) }), container},
		"another configuration of OpenSSL":     {fixture.InBroker(func(c *corev1.Container) { c.Env = append(c.Env, fixture.Env("OPENSSL_CONF", "/mine/openssl.cnf")...) }), container},
		"libraries over the broker's": {fixture.Join(once(fixture.Empty("mine")), fixture.InBroker(func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, fixture.Mounts("mine", "/usr/lib/x86_64-linux-gnu")...)
		})), mounted},
		"certificates of others and time zones": {fixture.Join(once(fixture.Empty("mine")), fixture.InBroker(func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, fixture.Mounts("mine", "/etc/ssl/certs", "mine", "/usr/share/zoneinfo", "mine", "/library")...)
		})), ""},
		"a variable from a ConfigMap": {fixture.InBroker(func(c *corev1.Container) {
			c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "x"}}}}
		}), container},
		"an init container that ends": {fixture.InBroker(func(c *corev1.Container) { c.RestartPolicy, c.StartupProbe = nil, nil }), container},
		"a file over the broker's": {fixture.Join(once(fixture.Empty("mine")), fixture.InBroker(func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, fixture.Mounts("mine", "/etc/crypto-broker/profiles/x")...)
		})), mounted},
		"no mount of the profiles": {fixture.InBroker(func(c *corev1.Container) { c.VolumeMounts = c.VolumeMounts[:1] }), mounted},
		"profiles of another ConfigMap": {func(pod *corev1.Pod) {
			last := pod.Spec.Volumes[1].Projected.Sources
			last[len(last)-1].ConfigMap.Name = "mine"
		}, volumes},
		"profiles of another annotation":               {fileOfAnnotation("Profiles.yaml", "mine"), volumes},
		"profiles of the annotation for the log level": {fileOfAnnotation("Profiles.yaml", contract.LogLevelAnnotation), volumes},
		"a log level of another annotation":            {fileOfAnnotation(contract.LogLevelFile, "mine"), volumes},
		"another key gateway":                          {changeArgument("--key-gateway=", "--key-gateway=evil.example:8443"), arguments},
		"another token":                                {changeArgument("--key-gateway-token=", "--key-gateway-token=/var/run/secrets/kubernetes.io/serviceaccount/token"), arguments},
		"no key gateway, but its address":              {fixture.InBroker(func(c *corev1.Container) { c.VolumeMounts = c.VolumeMounts[:2] }), mounted},
		"the token in the app":                         {fixture.Mounting(corev1.VolumeMount{Name: "crypto-broker-key-gateway", MountPath: "/t"}), elsewhere},
		"a token for the API server":                   {inKeyGatewayVolume(func(p *corev1.ProjectedVolumeSource) { p.Sources[0].ServiceAccountToken.Audience = "" }), volumes},
		"authorities of another ConfigMap":             {inKeyGatewayVolume(func(p *corev1.ProjectedVolumeSource) { p.Sources[1].ConfigMap.Name = "mine" }), volumes},
		"authorities of another entry":                 {inKeyGatewayVolume(func(p *corev1.ProjectedVolumeSource) { p.Sources[1].ConfigMap.Items[0].Key = "mine" }), volumes},
		"authorities that are mixed with others": {inKeyGatewayVolume(func(p *corev1.ProjectedVolumeSource) {
			p.Sources = append(p.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "mine"}}})
		}), volumes},
		"the key gateway in a pod without its stamp": {func(pod *corev1.Pod) {
			pod.Annotations[contract.InjectedAnnotation], _, _ = strings.Cut(pod.Annotations[contract.InjectedAnnotation], "-")
		}, arguments},
		"sockets on the node": {func(pod *corev1.Pod) {
			pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}}
		}, volumes},
		"a writable socket":               {func(pod *corev1.Pod) { pod.Spec.Containers[0].VolumeMounts[0].ReadOnly = false }, elsewhere},
		"the profiles in the app":         {fixture.Mounting(corev1.VolumeMount{Name: "crypto-broker-profiles", MountPath: "/p"}), elsewhere},
		"a container with all sockets":    {func(pod *corev1.Pod) { pod.Spec.Containers[0].VolumeMounts[0].SubPath = "" }, elsewhere},
		"no socket in the app":            {func(pod *corev1.Pod) { pod.Spec.Containers[0].VolumeMounts = nil }, "spec.containers: found no socket in one of the containers app"},
		"processes that are shared":       {func(pod *corev1.Pod) { pod.Spec.ShareProcessNamespace = ptr.To(true) }, ""},
		"no broker":                       {func(pod *corev1.Pod) { pod.Spec.InitContainers = nil }, missing},
		"no stamp":                        {func(pod *corev1.Pod) { delete(pod.Annotations, contract.InjectedAnnotation) }, `found "crypto-broker" without the annotation cryptobroker.io/injected`},
		"an app that is another, for one": {func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "mirror.example/app:1" }, ""},
		"resources and a pull policy": {fixture.InBroker(func(c *corev1.Container) {
			c.Resources, c.ImagePullPolicy = fixture.Sized("1", "1Gi", "2", "2Gi"), corev1.PullAlways
		}), ""},
		"a probe that asks a proxy": {fixture.InBroker(func(c *corev1.Container) {
			if c.StartupProbe.HTTPGet != nil {
				c.StartupProbe.ProbeHandler = fixture.HTTPProbe("/app-health/crypto-broker/startupz", 15020).ProbeHandler
			}
		}), ""},
		"a volume with a similar name": {func(pod *corev1.Pod) { once(fixture.Empty("crypto-broker-data"))(pod) }, ""},
		"a variable and a token of others": {fixture.Join(once(fixture.Empty("token")), fixture.InBroker(func(c *corev1.Container) {
			c.Env = append(c.Env, fixture.Env("AWS_ROLE_ARN", "arn")...)
			c.VolumeMounts = append(c.VolumeMounts, fixture.Mounts("token", "/var/run/secrets/token")...)
		})), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			// The first call of the other webhook may come before the operator's. Only its later calls count.
			other.change = func(pod *corev1.Pod) {
				if len(pod.Spec.InitContainers) > 0 && pod.Spec.InitContainers[0].Name == contract.BrokerContainer {
					test.change(pod)
				}
			}
			_, err := tryPod(t, namespace, pod())
			switch {
			case test.want == "" && err != nil:
				t.Errorf("found %v, expected no refusal", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("found %v, expected a refusal with %s", err, test.want)
			}
		})
	}

	t.Run("what a replica of another version has made is not compared", func(t *testing.T) {
		former := otherTemplate()
		former.AllowedImages = nil
		other.change = func(pod *corev1.Pod) {
			made, _, err := injection.Inject(pod, namespace, nil, former)
			if err != nil {
				t.Errorf("%v", err)
				return
			}
			*pod = *made
		}
		pod, err := tryPod(t, namespace, pod())
		if err != nil {
			t.Fatal(err)
		}
		if image := pod.Spec.InitContainers[0].Image; image != former.Image {
			t.Errorf("found the broker %s, expected %s", image, former.Image)
		}
	})
}

func TestWithoutTheMutatingConfigurationPodsThatAskAreRefusedAndNoOthers(t *testing.T) {
	operator := startOperator(t)
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "crypto-broker-operator"}, configuration); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	defer func() {
		configuration.ObjectMeta = metav1.ObjectMeta{Name: configuration.Name, Labels: configuration.Labels}
		if err := admin.Create(t.Context(), configuration); err != nil {
			t.Error(err)
		}
	}()
	own, labelled := newNamespace(t, nil, nil), newNamespace(t, fixture.Enabled, nil)
	const want = `helm upgrade puts the MutatingWebhookConfiguration back, and a pod with the annotation cryptobroker.io/inject: "false" runs without a broker`
	eventually(t, "the API server calls nobody", func() error {
		pod, err := tryPod(t, own, fixture.PodWith())
		if err == nil && len(pod.Spec.InitContainers) == 0 {
			t.Fatal("a pod that asks was admitted without a broker")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			return errNotCalled
		}
		return nil
	})
	silent := func(pod *corev1.Pod) { pod.Annotations = nil }
	if _, err := tryPod(t, labelled, fixture.PodWith(silent)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a silent pod of a labelled namespace: found %v, expected a refusal with %s", err, want)
	}
	for sentence, refused := range map[string]error{
		"a pod that does not ask": func() error { _, err := tryPod(t, own, fixture.PodWith(silent)); return err }(),
		"a pod that declines":     func() error { _, err := tryPod(t, labelled, fixture.PodWith(fixture.Asking("false"))); return err }(),
	} {
		if refused != nil {
			t.Errorf("%s: found %v, expected no refusal", sentence, refused)
		}
	}
	// The operator still validates profiles. It could not do so if it were not ready.
	eventually(t, "the operator has noticed", func() error { return missingConfiguration("MutatingWebhookConfiguration", 1) })
	if err := operator.certificates.Ready(nil); err != nil {
		t.Errorf("found the operator not ready: %v", err)
	}

	// In a first upgrade there is no template yet, and deleting the definition deletes the template.
	template := &v1alpha1.InjectionTemplate{}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(configuration), template); err != nil {
		t.Fatal(err)
	}
	different := fixture.PodWith(func(pod *corev1.Pod) {
		pod.Annotations[contract.InjectedAnnotation] = template.Spec.Stamp
		pod.Spec.InitContainers = []corev1.Container{{Name: contract.BrokerContainer, Image: "mirror.example/broker:1"}}
	})
	if _, err := tryPod(t, own, different); err == nil || !strings.Contains(err.Error(), "that are not the ones that are added to the pod") {
		t.Errorf("a pod with a broker of its own: found %v, expected a refusal", err)
	}
	if err := admin.Delete(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	eventually(t, "brokers are not compared any more", func() error { _, err := tryPod(t, own, different); return err })
	if _, err := tryPod(t, own, fixture.PodWith()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a pod that asks, without a template: found %v, expected a refusal with %s", err, want)
	}
}

// missingConfiguration returns an error unless the metric has this value for a kind.
func missingConfiguration(kind string, want float64) error {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		for _, metric := range family.Metric {
			if family.GetName() == "crypto_broker_operator_webhook_configuration_missing" && metric.Label[0].GetValue() == kind && metric.Gauge.GetValue() == want {
				return nil
			}
		}
	}
	return fmt.Errorf("the metric of missing configurations is not %v for the %s", want, kind)
}

// While the definition of the template is new or deleted, the API server does not know
// its kind for up to 30 seconds, or forever.
func TestPodsAreCreatedWhileTheAPIServerDoesNotKnowTheKindOfTheTemplate(t *testing.T) {
	startOperator(t)
	own, watched := newNamespace(t, nil, nil), newNamespace(t, nil, nil)
	policy := func(name, as string, change func(*admissionregistrationv1.ValidatingAdmissionPolicy)) {
		t.Helper()
		found, binding := &admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		key := client.ObjectKey{Name: name}
		if err := errors.Join(admin.Get(t.Context(), key, found), admin.Get(t.Context(), key, binding)); err != nil {
			t.Fatal(err)
		}
		found.ObjectMeta, binding.ObjectMeta, binding.Spec.PolicyName = metav1.ObjectMeta{Name: as}, metav1.ObjectMeta{Name: as}, as
		found.Spec.ParamKind.Kind = "Unknown"
		change(found)
		for _, object := range []client.Object{found, binding} {
			if err := admin.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := admin.Delete(context.WithoutCancel(t.Context()), object); err != nil {
					t.Error(err)
				}
			})
		}
	}
	policy("crypto-broker-operator-injected-annotated", "unknown", func(*admissionregistrationv1.ValidatingAdmissionPolicy) {})
	// The API server refuses with this policy once it has read both.
	policy("crypto-broker-operator-injected-annotated", "unknown-watched", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
		p.Spec.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
		p.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: watched}}
	})
	silent := func(pod *corev1.Pod) { pod.Annotations = nil }
	eventually(t, "the API server has read the policies", func() error {
		if _, err := tryPod(t, watched, fixture.PodWith(silent)); err == nil || !strings.Contains(err.Error(), "failed to find resource referenced by paramKind") {
			return errNotCalled
		}
		return nil
	})
	if _, err := tryPod(t, own, fixture.PodWith(silent)); err != nil {
		t.Errorf("a pod that does not ask: found %v, expected no refusal", err)
	}
	pod, err := tryPod(t, own, fixture.PodWith())
	if err != nil || len(pod.Spec.InitContainers) != 1 {
		t.Errorf("a pod that asks: found %v, expected it to have its broker", err)
	}
}

// fileOfAnnotation adds a file with an annotation of the pod to the volume of the profiles.
func fileOfAnnotation(name, annotation string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		files := pod.Spec.Volumes[1].Projected.Sources[0].DownwardAPI
		files.Items = append(slices.DeleteFunc(files.Items, func(file corev1.DownwardAPIVolumeFile) bool { return file.Path == name }), corev1.DownwardAPIVolumeFile{
			Path: name, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + annotation + "']"},
		})
	}
}
