// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/planted"
)

// TestNoLogEventOrMetricOfTheClusterHasASecret covers what brokers in pods and the operator write. The traces of a broker are
// searched by a test of cmd/broker, beside its other sinks.
func TestNoLogEventOrMetricOfTheClusterHasASecret(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	var secrets planted.Secrets
	marker := "M" + rand.Text()[:20]
	plantKeysOf(t, &secrets, environment.Namespace)
	must(t, shared.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "keys", Namespace: namespace},
		StringData: map[string]string{"good.bin": secrets.Text("a key", 32), "bad.bin": secrets.Text("a key of a wrong length", 33)},
	}))
	must(t, shared.client.Create(t.Context(), &v1alpha1.CryptoProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace},
		Spec: v1alpha1.ProfileSpec{
			ProfileName: marker,
			Audit:       &v1alpha1.Audit{Level: "all"},
			API: v1alpha1.Operations{EncryptData: &v1alpha1.EncryptData{
				EncryptAlg: "aes-gcm", KeySize: 256, NonceStrategy: "random", KeyIDs: []v1alpha1.KeyID{{ID: "good"}, {ID: "bad"}},
			}},
		},
	}))
	annotations := inject("true")
	annotations[contract.KeysAnnotation] = "keys"
	annotations[contract.LogLevelAnnotation] = "debug"
	pod := appPod(namespace, annotations, nil)
	caller := func(name, key string) corev1.Container {
		return corev1.Container{
			Name: name, Image: shared.Images.Registry + "/cli:" + shared.Images.Tag, SecurityContext: pod.Spec.Containers[0].SecurityContext,
			Args: []string{"encrypt-data", secrets.Text("the plaintext of "+name, 40), "--profile", marker, "--keyId", key, "--loop", "200"},
		}
	}
	// The second one ends after each failure, and is started again.
	pod.Spec.Containers = []corev1.Container{caller("good", "good"), caller("bad", "bad")}
	must(t, shared.client.Create(t.Context(), pod))

	logs := func(of *corev1.Pod, container string) string {
		log, err := shared.clientset.CoreV1().Pods(of.Namespace).GetLogs(of.Name, &corev1.PodLogOptions{Container: container}).DoRaw(t.Context())
		if err != nil {
			return err.Error()
		}
		return string(log)
	}
	eventually(t, patience, "the broker has a record of a served and of a refused call, and the cluster an event of the failure", func() error {
		log := logs(pod, contract.BrokerContainer)
		events, err := kubectl(t, "", "get", "events", "-n", namespace, "-o", "yaml")
		if err != nil {
			return err
		}
		for _, each := range []struct{ text, part string }{{log, `"code":"OK"`}, {log, `"code":"[A-Z_]{3,}"`}, {log, marker}, {events, "BackOff"}} {
			if !regexp.MustCompile(each.part).MatchString(each.text) {
				return fmt.Errorf("there is no %s in\n%.3000s", each.part, each.text)
			}
		}
		return nil
	})

	sinks := map[string]string{"the log of the broker": logs(pod, contract.BrokerContainer)}
	for _, path := range []string{"metrics", "uses", "profiles"} {
		answer, err := podGet(t.Context(), pod, brokerStatusPort, path)
		must(t, err)
		sinks["the broker's /"+path] = string(answer)
	}
	operators, err := shared.load.OperatorPods(t.Context())
	must(t, err)
	for i := range operators {
		sinks["the log of "+operators[i].Name] = logs(&operators[i], operators[i].Spec.Containers[0].Name)
		metrics, err := podGet(t.Context(), &operators[i], 8080, "metrics")
		must(t, err)
		sinks["the metrics of "+operators[i].Name] = string(metrics)
	}
	for _, kind := range []string{"events", "cryptoprofiles", "configmaps"} {
		objects, err := kubectl(t, "", "get", kind, "--all-namespaces", "-o", "yaml")
		must(t, err)
		sinks[kind] = objects
	}
	for _, name := range []string{"the log of the broker", "the broker's /metrics", "the broker's /uses", "cryptoprofiles"} {
		if !strings.Contains(sinks[name], marker) {
			t.Errorf("%s: the profile is not there, so the test shows nothing", name)
		}
	}
	for name, text := range sinks {
		for _, found := range secrets.Find(text) {
			t.Errorf("%s: found %s", name, found)
		}
	}
	manifest, err := kubectl(t, "", "get", "pod", pod.Name, "-n", namespace, "-o", "yaml")
	must(t, err)
	if len(secrets.Find(manifest)) != 2 {
		t.Errorf("found %q in the arguments of the pod, expected both plaintexts, or the test finds nothing", secrets.Find(manifest))
	}
}

// plantKeysOf looks for the private keys in the Secrets of a namespace, which the operator has made.
func plantKeysOf(t *testing.T, secrets *planted.Secrets, namespace string) {
	t.Helper()
	list, err := shared.clientset.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	count := 0
	for _, secret := range list.Items {
		for field, content := range secret.Data {
			block, _ := pem.Decode(content)
			if block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY") {
				continue
			}
			key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				key, err = x509.ParseECPrivateKey(block.Bytes)
			}
			must(t, err)
			name := secret.Name + "/" + field
			switch key := key.(type) {
			case *ecdsa.PrivateKey:
				number, err := key.Bytes()
				must(t, err)
				secrets.Add(name, number)
			case ed25519.PrivateKey:
				secrets.Add(name, key.Seed())
			case *rsa.PrivateKey: // of a key access service that another test has there
				secrets.Add(name, key.D.Bytes())
			default:
				t.Fatalf("%s: found a key of type %T", name, key)
			}
			count++
		}
	}
	if count == 0 {
		t.Fatalf("the namespace %s has no private key", namespace)
	}
}
