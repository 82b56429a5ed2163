// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

// trustIn returns the trust settings of new brokers of a namespace.
func trustIn(t *testing.T, o operator, namespace string) signed.Trust {
	t.Helper()
	ring, err := o.keys.Ring(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ns, system := &corev1.Namespace{}, &corev1.Namespace{}
	err = errors.Join(
		apiServer.Get(t.Context(), types.NamespacedName{Name: namespace}, ns),
		apiServer.Get(t.Context(), types.NamespacedName{Name: "kube-system"}, system))
	if err != nil {
		t.Fatal(err)
	}
	return signed.Trust{Keys: []ed25519.PublicKey{ring.Current()}, Audience: signing.Audience(system.UID, ns)}
}

// trusting makes a pod whose broker accepts only signed sets.
func trusting(trust signed.Trust) func(*pod) {
	return func(p *pod) {
		p.trust = &trust
		args := &p.object.Spec.InitContainers[0].Args
		*args = append(*args, "--trusted-keys="+signed.FormatKey(trust.Keys[0]))
	}
}

func setIn(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	set := &corev1.ConfigMap{}
	eventually(t, "the namespace has a set", func() error {
		return apiServer.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: v1alpha1.ProfilesConfigMap}, set)
	})
	return set
}

func verify(trust signed.Trust, set *corev1.ConfigMap) (signed.Statement, error) {
	return trust.Verify([]byte(set.Data[profile.FileName]), []byte(set.Data[signed.FileName]))
}

// expectSigned waits until the set has a statement that brokers with these trust settings accept.
func expectSigned(t *testing.T, trust signed.Trust, namespace string) (statement signed.Statement) {
	t.Helper()
	eventually(t, "the set is signed as brokers demand", func() (err error) {
		statement, err = verify(trust, setIn(t, namespace))
		return err
	})
	return statement
}

func TestASetIsSignedForItsNamespaceAndNoOther(t *testing.T) {
	o := start(t)
	ns, other := namespace(t, nil), namespace(t, nil)
	create(t, hashing(ns, "orders", "sha3-512"))
	create(t, hashing(other, "orders", "sha3-512"))
	before := expectSigned(t, trustIn(t, o, ns), ns)
	expectSigned(t, trustIn(t, o, other), other)
	if _, err := verify(trustIn(t, o, other), setIn(t, ns)); err == nil || !strings.HasPrefix(err.Error(), "the set is signed for ") {
		t.Errorf("the set of a namespace is one for another: %v", err)
	}
	if age := time.Since(time.UnixMilli(before.Revision)); age < -time.Minute || age > time.Minute {
		t.Errorf("the revision %d is no time of now", before.Revision)
	}
	// Another operator leaves the set unchanged.
	version := setIn(t, ns).ResourceVersion
	o.stop()
	start(t)
	expectStatus(t, &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orders"}}, has{accepted: "True Valid"})
	if found := setIn(t, ns); found.ResourceVersion != version {
		t.Errorf("another operator wrote the set again:\n%v", found)
	}
}

func TestBrokersWithAHigherRevisionThanTheClusterGetAHigherOneStill(t *testing.T) {
	o := start(t)
	for sentence, test := range map[string]struct {
		ahead time.Duration
		file  string
	}{
		"of the same set": {time.Hour, fileOf("orders", "sha3-512")},
		"of another set":  {2 * time.Hour, fileOf("orders", "sha-256")},
		"of long ago":     {-time.Hour, fileOf("orders", "sha-256")},
	} {
		t.Run(sentence, func(t *testing.T) {
			ns := namespace(t, nil)
			create(t, hashing(ns, "orders", "sha3-512"))
			trust := trustIn(t, o, ns)
			expectSigned(t, trust, ns)
			// As after a restored backup, which does not have later writes.
			newest := time.Now().Add(test.ahead).UnixMilli()
			p := runPod(t, ns, trusting(trust), func(p *pod) {
				p.answer.Digest, p.answer.Revision = profile.Digest([]byte(test.file)), newest
			})
			expectServed(t, fileOf("orders", "sha3-512"), p)
			eventually(t, "the broker has a higher revision", func() error {
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.answer.Revision <= newest || p.answer.Reason != string(directory.Loaded) {
					return fmt.Errorf("it says %+v", p.answer)
				}
				return nil
			})
		})
	}
}

func TestYesterdaysSetThatIsPutBackGetsAHigherRevision(t *testing.T) {
	o := start(t)
	ns := namespace(t, nil)
	object := hashing(ns, "orders", "sha-256")
	create(t, object)
	trust := trustIn(t, o, ns)
	expectSigned(t, trust, ns)
	expectFile(t, ns, fileOf("orders", "sha-256"))
	yesterday := setIn(t, ns).Data
	update(t, object, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha3-512" })
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	p := runPod(t, ns, trusting(trust))
	before := expectSigned(t, trust, ns)
	for sentence, disturb := range map[string]func() error{
		"the old set": func() error {
			set := setIn(t, ns)
			set.Data = yesterday
			return apiServer.Update(t.Context(), set)
		},
		"no set": func() error { return apiServer.Delete(t.Context(), setIn(t, ns)) },
	} {
		t.Run(sentence, func(t *testing.T) {
			eventually(t, "the set is disturbed", disturb)
			expectFile(t, ns, fileOf("orders", "sha3-512"))
			after := expectSigned(t, trust, ns)
			if after.Revision <= before.Revision || after.Digest != before.Digest {
				t.Errorf("found %+v after %+v", after, before)
			}
			eventually(t, "the broker has it", func() error {
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.answer.Revision != after.Revision {
					return fmt.Errorf("it says %+v", p.answer)
				}
				return nil
			})
			before = after
		})
	}
}

// signingSecretOf returns the Secret with the keys, gone when the test ends.
func signingSecretOf(t *testing.T) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: signingSecret}}
	t.Cleanup(func() {
		if err := apiServer.Delete(context.Background(), secret); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return secret
}

func TestARotationSignsTheSameSetsWithBothKeys(t *testing.T) {
	secret := signingSecretOf(t)
	o := start(t)
	ns := namespace(t, nil)
	create(t, hashing(ns, "orders", "sha3-512"))
	old := trustIn(t, o, ns)
	before := expectSigned(t, old, ns)
	p := runPod(t, ns, trusting(old))
	update(t, secret, func(s *corev1.Secret) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, signing.RotateAnnotation, "now")
	})
	eventually(t, "there is another key", func() error {
		if now := trustIn(t, o, ns); now.Keys[0].Equal(old.Keys[0]) {
			return errors.New("it is the same")
		}
		return nil
	})
	for _, trust := range []signed.Trust{old, trustIn(t, o, ns)} {
		if after := expectSigned(t, trust, ns); after != before {
			t.Errorf("found %+v, expected %+v", after, before)
		}
	}
	if values := p.annotations(); slices.ContainsFunc(values, func(v string) bool { return v != "" }) {
		t.Errorf("a pod was woken for a rotation: %q", values)
	}
	if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	if _, asked := secret.Annotations[signing.RotateAnnotation]; asked || len(secret.Data) != 2 {
		t.Errorf("the Secret has %d entries and the annotations %v", len(secret.Data), secret.Annotations)
	}
	update(t, secret, func(s *corev1.Secret) { delete(s.Data, "current.pem") })
	eventually(t, "there is a third key", func() error {
		now := trustIn(t, o, ns)
		_, err := verify(now, setIn(t, ns))
		return err
	})
	expectSigned(t, old, ns) // the key is retired and was not deleted
}

func TestWithoutReadableKeysNothingIsSigned(t *testing.T) {
	secret := signingSecretOf(t)
	o := start(t)
	ns := namespace(t, nil)
	object := hashing(ns, "orders", "sha-256")
	create(t, object)
	expectSigned(t, trustIn(t, o, ns), ns)
	var key []byte
	update(t, secret, func(s *corev1.Secret) {
		key = s.Data["current.pem"]
		s.Data["current.pem"] = []byte("not a key")
	})
	eventually(t, "the keys are gone", func() error {
		if _, err := o.keys.Ring(t.Context()); err == nil || !strings.Contains(err.Error(), "entry current.pem has no PEM block") || strings.Contains(err.Error(), "not a key") {
			return fmt.Errorf("found %w", err)
		}
		return nil
	})
	update(t, object, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha3-512" })
	expectStatus(t, object, has{accepted: "False NotWritten"})
	update(t, secret, func(s *corev1.Secret) { s.Data["current.pem"] = key })
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	expectSigned(t, trustIn(t, o, ns), ns)
}
