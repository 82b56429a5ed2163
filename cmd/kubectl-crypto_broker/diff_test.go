// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers/brokerstest"
)

func TestDiffKnowsProfilesOfNamespacesWithoutASet(t *testing.T) {
	const own = "/apis/cryptobroker.io/v1alpha1"
	shop := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	url := brokerstest.Cluster{
		"/api/v1/namespaces":           corev1.NamespaceList{Items: []corev1.Namespace{shop}},
		"/api/v1/configmaps":           corev1.ConfigMapList{},
		own + "/cryptoprofiles":        v1alpha1.CryptoProfileList{Items: []v1alpha1.CryptoProfile{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}}},
		own + "/clustercryptoprofiles": v1alpha1.ClusterCryptoProfileList{Items: []v1alpha1.ClusterCryptoProfile{{ObjectMeta: metav1.ObjectMeta{Name: "base"}}}},
	}.Serve(t)
	for object, want := range map[string]struct {
		code           int
		stdout, stderr string
	}{
		"cprof/orders": {0, "Nothing is withheld.\n", ""},
		"ccprof/base":  {0, "Nothing is withheld.\n", ""},
		"ccprof/other": {1, "", `there is no ClusterCryptoProfile "other" in any namespace`},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"diff", object, "-A", "--server", url}, strings.NewReader(""), &stdout, &stderr)
		if code != want.code || stdout.String() != want.stdout || !strings.Contains(stderr.String(), want.stderr) {
			t.Errorf("%s: got %d %q %q", object, code, stdout.String(), stderr.String())
		}
	}
}

func TestCommandsSayThatResourceDefinitionsAreMissing(t *testing.T) {
	url := brokerstest.Cluster{"/api/v1/namespaces/shop": corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}.Serve(t)
	for _, args := range [][]string{{"diff"}, {"profiles"}, {"allow", "cprof/orders"}} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append(args, "-n", "shop", "--server", url), strings.NewReader(""), &stdout, &stderr)
		const want = "the API server has no resource cryptoprofiles.cryptobroker.io: is the operator installed? kubectl crypto-broker check says more"
		if code != 1 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: got %d %q %q, expected %q", args, code, stdout.String(), stderr.String(), want)
		}
	}
}
