// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

func TestTheOperatorEndsWhenAnObjectHasAnOlderVersionThanItHad(t *testing.T) {
	meta := func(version string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: "orders", ResourceVersion: version}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for sentence, test := range map[string]struct {
		before, after client.Object
		want          string
	}{
		"a profile that came back": {
			&v1alpha1.CryptoProfile{ObjectMeta: meta("1800")}, &v1alpha1.CryptoProfile{ObjectMeta: meta("999")},
			"etcd was restored from a backup: *v1alpha1.CryptoProfile shop/orders has the version 999, and had 1800 before. The operator ends",
		},
		"a set that came back": {
			&corev1.ConfigMap{ObjectMeta: meta("1800")}, &corev1.ConfigMap{ObjectMeta: meta("1799")},
			"*v1.ConfigMap shop/orders has the version 1799",
		},
		"a ClusterCryptoProfile that came back": {
			&v1alpha1.ClusterCryptoProfile{ObjectMeta: meta("1800")}, &v1alpha1.ClusterCryptoProfile{ObjectMeta: meta("1")},
			"*v1alpha1.ClusterCryptoProfile shop/orders has the version 1,",
		},
		"a change":                {&corev1.ConfigMap{ObjectMeta: meta("999")}, &corev1.ConfigMap{ObjectMeta: meta("1800")}, ""},
		"the same, listed anew":   {&corev1.ConfigMap{ObjectMeta: meta("1800")}, &corev1.ConfigMap{ObjectMeta: meta("1800")}, ""},
		"versions without order":  {&corev1.ConfigMap{ObjectMeta: meta("b")}, &corev1.ConfigMap{ObjectMeta: meta("a")}, ""},
		"an object without order": {&corev1.ConfigMap{ObjectMeta: meta("1800")}, &corev1.ConfigMap{}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			informers := &informertest.FakeInformers{Scheme: scheme}
			informer, err := informers.FakeInformerFor(t.Context(), test.before)
			if err != nil {
				t.Fatal(err)
			}
			r := newRestoration()
			if err := errors.Join(r.follow(t.Context(), informers), r.err()); err != nil {
				t.Fatal(err)
			}
			informer.Update(test.before, test.after)
			ctx, cancel := context.WithCancel(t.Context())
			if test.want == "" {
				cancel()
			}
			defer cancel()
			err = r.watch(ctx, informers)
			if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("ended with %v, expected %q", err, test.want)
			}
			if informer.Update(test.before, test.after); (r.err() == nil) != (test.want == "") {
				t.Errorf("after that, what was noticed is %v", r.err())
			}
		})
	}
}
