// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	dto "github.com/prometheus/client_model/go"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestABrokenSecretIsRepaired(t *testing.T) {
	foreign, err := webhookServing.newAuthority(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	foreignCertificate, foreignKey, err := encode(foreign.certificate, foreign.key)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		damage func(*corev1.Secret)
		// says is the expected text of the log, or empty for no text.
		says string
		// keeps reports whether the signing authority stays the same.
		keeps bool
	}{
		"no entries": {
			damage: func(s *corev1.Secret) { s.Data = nil },
		},
		"no key": {
			damage: func(s *corev1.Secret) { delete(s.Data, currentKeyEntry) },
			says:   `entries ca.crt and ca.key: found no key, expected a PEM block "PRIVATE KEY"`,
		},
		"no certificate": {
			damage: func(s *corev1.Secret) { delete(s.Data, currentCertificateEntry) },
			says:   `entries ca.crt and ca.key: found no certificate, expected a PEM block "CERTIFICATE"`,
		},
		"text instead of a certificate": {
			damage: func(s *corev1.Secret) { s.Data[currentCertificateEntry] = []byte("garbage") },
			says:   `entries ca.crt and ca.key: found no certificate, expected a PEM block "CERTIFICATE"`,
		},
		"half a certificate": {
			damage: func(s *corev1.Secret) {
				block, _ := pem.Decode(s.Data[currentCertificateEntry])
				block.Bytes = block.Bytes[:len(block.Bytes)/2]
				s.Data[currentCertificateEntry] = pem.EncodeToMemory(block)
			},
			says: "entries ca.crt and ca.key: found a certificate that cannot be read: ",
		},
		"two certificates": {
			damage: func(s *corev1.Secret) {
				s.Data[currentCertificateEntry] = append(s.Data[currentCertificateEntry], foreignCertificate...)
			},
			says: "entries ca.crt and ca.key: found data after the certificate, expected one certificate and nothing else",
		},
		"half a key": {
			damage: func(s *corev1.Secret) {
				block, _ := pem.Decode(s.Data[currentKeyEntry])
				block.Bytes = block.Bytes[:len(block.Bytes)/2]
				s.Data[currentKeyEntry] = pem.EncodeToMemory(block)
			},
			says: "entries ca.crt and ca.key: found a key that cannot be read, expected PKCS #8",
		},
		"the key of another authority": {
			damage: func(s *corev1.Secret) { s.Data[currentKeyEntry] = foreignKey },
			says:   "entries ca.crt and ca.key: found a key that does not belong to the certificate",
		},
		"another authority, complete": {
			damage: func(s *corev1.Secret) {
				s.Data[currentCertificateEntry], s.Data[currentKeyEntry] = foreignCertificate, foreignKey
			},
		},
		"a broken successor": {
			damage: func(s *corev1.Secret) { s.Data[nextCertificateEntry] = []byte("garbage") },
			says:   `entries next-ca.crt and next-ca.key: found no certificate, expected a PEM block "CERTIFICATE"`,
			keeps:  true,
		},
		"broken retired authorities": {
			damage: func(s *corev1.Secret) { s.Data[retiredEntry] = []byte("garbage") },
			says:   "entry retired-cas.crt: found no certificate authority, expected at least one",
			keeps:  true,
		},
		"retired authorities without a time": {
			damage: func(s *corev1.Secret) { s.Data[retiredEntry] = foreignCertificate },
			says:   `annotation cryptobroker.io/retired-until: found "", expected a time in RFC 3339`,
			keeps:  true,
		},
		"entries of somebody else": {
			damage: func(s *corev1.Secret) { s.Data["note"] = []byte("do not delete") },
			keeps:  true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestCluster(webhookConfigurations()...)
			idle := w.replica(w.client)
			pass(t, idle)
			before := w.authorities(t).current.certificate
			secret := w.secret(t)
			test.damage(secret)
			if err := w.client.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}

			replica := w.replica(w.client)
			log := logTo(replica)
			pass(t, replica)
			pass(t, replica)
			if test.says == "" && strings.Contains(log.String(), "broken") {
				t.Errorf("the log complains: %s", log)
			}
			if !strings.Contains(unquoted(log), test.says) {
				t.Errorf("the log says %s, expected %q", log, test.says)
			}
			if kept := w.authorities(t).current.certificate.Equal(before); kept != test.keeps {
				t.Errorf("the signing authority stayed the same: %t, expected %t", kept, test.keeps)
			}
			if name == "entries of somebody else" && string(w.secret(t).Data["note"]) != "do not delete" {
				t.Error("the entry of somebody else is gone")
			}
			// The API server can call both replicas: the one that has repaired the Secret, and the one that does not know that yet.
			for webhook, bundle := range w.bundles(t) {
				for i, replica := range []*Certificates{replica, idle} {
					if name == "another authority, complete" && replica == idle {
						continue // the bundles trust another authority, and no longer this one
					}
					if err := w.handshake(t.Context(), replica, bundle); err != nil {
						t.Errorf("%s can't call replica %d: %v", webhook, i, err)
					}
				}
			}
			// An authority that only the bundles still have is trusted no longer than necessary.
			w.clock.Step(webhookServing.retireAfter())
			pass(t, replica)
			for webhook, bundle := range w.bundles(t) {
				if count := len(parseBundle(bundle)); count != 1 {
					t.Errorf("%s holds %d authorities a day later, expected 1", webhook, count)
				}
			}
		})
	}
}

func TestADeletedSecretIsMadeAgain(t *testing.T) {
	w := newTestCluster(webhookConfigurations()...)
	first, second := w.replica(w.client), w.replica(w.client)
	pass(t, first)
	pass(t, second)
	before := w.authorities(t).current.certificate
	if err := w.client.Delete(t.Context(), w.secret(t)); err != nil {
		t.Fatal(err)
	}

	pass(t, first)
	if w.authorities(t).current.certificate.Equal(before) {
		t.Error("the authority is the same without its key")
	}
	for webhook, bundle := range w.bundles(t) {
		for i, replica := range []*Certificates{first, second} {
			if err := w.handshake(t.Context(), replica, bundle); err != nil {
				t.Errorf("%s can't call replica %d, which serves a certificate of the authority that is gone: %v", webhook, i, err)
			}
		}
	}
}

func TestAnAuthorityIsDistrustedByDeletingTheSecretAndEmptyingTheBundles(t *testing.T) {
	w := newTestCluster(webhookConfigurations()...)
	pass(t, w.replica(w.client))
	leaked := w.authorities(t).current.certificate
	if err := w.client.Delete(t.Context(), w.secret(t)); err != nil {
		t.Fatal(err)
	}
	empty(t, w)

	// The replica was restarted, so no replica has the old authority in memory.
	pass(t, w.replica(w.client))
	for webhook, bundle := range w.bundles(t) {
		if contains(parseBundle(bundle), leaked) {
			t.Errorf("%s still trusts the authority", webhook)
		}
	}
}

func TestAnEmptiedBundleIsFilledAgain(t *testing.T) {
	w := newTestCluster(webhookConfigurations()...)
	replica := w.replica(w.client)
	pass(t, replica)
	before := w.authorities(t).current.certificate
	empty(t, w)
	pass(t, replica)
	for webhook, bundle := range w.bundles(t) {
		if !contains(parseBundle(bundle), before) {
			t.Errorf("%s does not hold the authority", webhook)
		}
	}
}

func empty(t *testing.T, w *testCluster) {
	t.Helper()
	for _, configuration := range []*configuration{mutating("configuration"), validating("configuration")} {
		if err := configuration.read(t.Context(), w.client); err != nil {
			t.Fatal(err)
		}
		for _, bundle := range configuration.bundles() {
			*bundle = nil
		}
		if err := w.client.Update(t.Context(), configuration.object); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNothingIsServedBeforeTheConfigurationsHoldTheAuthority(t *testing.T) {
	configurations := webhookConfigurations()
	tests := map[string]struct {
		objects []client.Object
		refuse  string
		want    string
	}{
		"neither exists": {
			want: `certificates: the MutatingWebhookConfiguration "configuration" does not exist, expected one whose caBundle to fill` + "\n" +
				`certificates: the ValidatingWebhookConfiguration "configuration" does not exist, expected one whose caBundle to fill`,
		},
		"one can't be written": {
			objects: configurations,
			refuse:  "validatingwebhookconfigurations",
			want:    `certificates: write the caBundle of the ValidatingWebhookConfiguration "configuration": validatingwebhookconfigurations.admissionregistration.k8s.io "configuration" is forbidden: no right`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestCluster(test.objects...)
			replica := w.replica(interceptor.NewClient(w.client, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					if _, ok := object.(*admissionregistrationv1.ValidatingWebhookConfiguration); ok && test.refuse != "" {
						return apierrors.NewForbidden(schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: test.refuse}, object.GetName(), errors.New("no right"))
					}
					return c.Patch(ctx, object, patch, options...)
				},
			}))
			_, err := replica.synchronise(t.Context())
			if (err != nil) != (test.refuse != "") {
				t.Errorf("the pass ended with %v", err)
			}
			for what, err := range map[string]error{"Ready": replica.Ready(nil), "GetCertificate": servedError(replica)} {
				if err == nil || err.Error() != test.want {
					t.Errorf("%s says %v, expected %s", what, err, test.want)
				}
			}
		})
	}
}

func TestAConfigurationThatIsMissingLeavesTheOtherOneServed(t *testing.T) {
	for i, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		t.Run(kind, func(t *testing.T) {
			both := webhookConfigurations()
			lost := both[i].DeepCopyObject().(client.Object)
			w := newTestCluster(both...)
			replica := w.replica(w.client)
			pass(t, replica)
			check := func(replica *Certificates, missing float64) {
				t.Helper()
				for what, err := range map[string]error{"Ready": replica.Ready(nil), "GetCertificate": servedError(replica)} {
					if err != nil {
						t.Errorf("%s says %v, expected no error", what, err)
					}
				}
				metric := &dto.Metric{}
				if err := configurationMissing.WithLabelValues(kind).Write(metric); err != nil {
					t.Fatal(err)
				}
				if found := metric.Gauge.GetValue(); found != missing {
					t.Errorf("found %v in the metric, expected %v", found, missing)
				}
			}
			check(replica, 0)
			if err := w.client.Delete(t.Context(), both[i]); err != nil {
				t.Fatal(err)
			}
			pass(t, replica)
			check(replica, 1)
			another := w.replica(w.client) // begins meanwhile
			pass(t, another)
			check(another, 1)
			if err := w.client.Create(t.Context(), lost); err != nil {
				t.Fatal(err)
			}
			pass(t, replica)
			check(replica, 0)
			for webhook, bundle := range w.bundles(t) {
				if !contains(parseBundle(bundle), replica.leafAuthority) {
					t.Errorf("%s does not hold the authority", webhook)
				}
			}
		})
	}
}

func servedError(replica *Certificates) error {
	_, err := replica.GetCertificate(nil)
	return err
}

func TestReadyBeforeTheFirstPassSaysSo(t *testing.T) {
	if err := newTestCluster().replica(nil).Ready(nil); !errors.Is(err, errNotStarted) {
		t.Errorf("found %v, expected %v", err, errNotStarted)
	}
}

func TestAnApiServerThatCantBeReachedDoesNotMakeAServedCertificateUnready(t *testing.T) {
	w := newTestCluster(webhookConfigurations()...)
	down := false
	replica := w.replica(interceptor.NewClient(w.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if down {
				return errors.New("connection refused")
			}
			return c.Get(ctx, key, object, options...)
		},
	}))
	pass(t, replica)
	down = true
	if _, err := replica.synchronise(t.Context()); err == nil {
		t.Error("the failure was not told")
	}
	if err := replica.Ready(nil); err != nil {
		t.Errorf("not ready with a certificate that is trusted: %v", err)
	}
	w.clock.Step(webhookServing.leafLifetime + time.Second)
	want := "certificates: the serving certificate expired at 2026-01-02T00:00:00Z and was not renewed"
	if err := replica.Ready(nil); err == nil || err.Error() != want {
		t.Errorf("Ready says %v of an expired certificate, expected %q", err, want)
	}
}

// The test logs all events of a rotation and of repairs. None of them may contain a key.
func TestNoKeyIsEverLogged(t *testing.T) {
	w := newTestCluster(webhookConfigurations()...)
	replica := w.replica(w.client)
	log := logTo(replica)
	keys := map[string]bool{}
	remember := func() {
		for _, entry := range []string{currentKeyEntry, nextKeyEntry} {
			if block, _ := pem.Decode(w.secret(t).Data[entry]); block != nil {
				keys[base64.StdEncoding.EncodeToString(block.Bytes)] = true
			}
		}
	}
	pass(t, replica)
	remember()
	w.clock.Step(authorityLifetime - prepareBefore)
	pass(t, replica)
	remember()
	w.clock.Step(settle)
	pass(t, replica)
	secret := w.secret(t)
	secret.Data[currentCertificateEntry] = secret.Data[currentKeyEntry]
	if err := w.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	pass(t, replica)
	remember()
	if len(keys) != 3 {
		t.Fatalf("%d keys came by, expected 3", len(keys))
	}
	if strings.Contains(log.String(), "PRIVATE KEY\\n") || strings.Contains(log.String(), "BEGIN") {
		t.Errorf("the log shows PEM: %s", log)
	}
	for key := range keys {
		if strings.Contains(log.String(), key[:32]) || strings.Contains(log.String(), key[len(key)-32:]) {
			t.Errorf("the log shows a key: %s", log)
		}
	}
}

// logTo collects what a replica logs, at every level.
func logTo(replica *Certificates) *bytes.Buffer {
	var buffer bytes.Buffer
	replica.log = funcr.New(func(prefix, args string) { buffer.WriteString(prefix + " " + args + "\n") }, funcr.Options{Verbosity: 10})
	return &buffer
}

// unquoted is the log without the escapes of its format.
func unquoted(log *bytes.Buffer) string {
	return strings.NewReplacer(`\"`, `"`, `\n`, "\n").Replace(log.String())
}
