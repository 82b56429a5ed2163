// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/podauth"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

// useAudited starts an API server with an audit log, which the functions of the other tests use until the test ends.
func useAudited(t *testing.T) apiserver.AuditLog {
	t.Helper()
	audited, log := apiserver.StartAuditedFor(t)
	kubernetes, err := client.New(audited, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	use := func(config *rest.Config, c client.Client) { access, admin = config, c }
	usual, usualAdmin := access, admin
	t.Cleanup(func() { use(usual, usualAdmin) })
	use(audited, kubernetes)
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}})
	return log
}

// The key gateway uses every right that the chart gives it, and asks the API server for nothing else.
func TestTheKeyGatewayUsesEachOfItsRightsAndNoOther(t *testing.T) {
	log := useAudited(t)
	rights := apiserver.GrantByChart(t, access, []string{"key-gateway/rbac"}, "keyGateway.enabled=true", "keyGateway.secrets={all}")[gatewayUser]
	ring := newRing(t)
	shop := newTenant(t, "shop", ring)
	shop.addProvider(t)
	create(t,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "all"}, Data: map[string][]byte{"token": []byte("token of all")}},
		&v1alpha1.ClusterKeyProvider{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.ClusterKeyProviderSpec{KeyProviderSpec: v1alpha1.KeyProviderSpec{
			Type: providers.OpenBao, Endpoints: []v1alpha1.KeyEndpoint{"https://bao"},
			Credentials: &v1alpha1.KeyProviderCredentials{SecretRef: v1alpha1.SecretReference{Name: "all"}},
		}}})

	opened := &managers{}
	certificates, trustedKeys, _ := mount(t, ring)
	authority := issue(t, certificates)
	g := startGateway(t, certificates, trustedKeys, providers.Types{providers.OpenBao: opened.connect})
	ofShop := broker(t, g.process, shop.token(t, podauth.Audience), authority)
	apiserver.Eventually(t, "a pod encrypts", func() error {
		_, err := encrypt(t.Context(), ofShop)
		return err
	})
	apiserver.Eventually(t, "both key providers are open", func() error {
		if n := opened.open.Load(); n != 2 {
			return fmt.Errorf("%d are open", n)
		}
		return nil
	})
	g.stop()
	apiserver.ExpectUse(t, log, gatewayUser, rights, nil)
}

// The key access service uses every right that the chart gives it, and asks the API server for nothing else.
func TestTheKeyAccessServiceUsesEachOfItsRightsAndNoOther(t *testing.T) {
	log := useAudited(t)
	rights := apiserver.GrantByChart(t, access, []string{"key-access/rbac"}, keyAccessValues...)[keyAccessUser]
	policy := newPolicy(t, operatorNamespace, "first", "alice")
	k, stop := startKeyAccessWith(t, clusterKeyAccess(t))
	defer stop()
	expectDecision(t, k, "alice", true)
	changeRule(t, policy, "caller.subject == 'bob'")
	expectDecision(t, k, "bob", true)
	create(t, &v1alpha1.KeyAccessPeer{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "b"}, Spec: v1alpha1.KeyAccessPeerSpec{
		URL: "https://b.example", Issuers: []v1alpha1.KeyAccessIssuer{{URL: "https://idp.example", Audiences: []v1alpha1.KeyAccessAudience{"b"}}},
	}})
	apiserver.Eventually(t, "the service has the peer", func() error {
		if n := len(k.peers.Usable()); n != 1 {
			return fmt.Errorf("found %d peers", n)
		}
		return nil
	})
	apiserver.ExpectUse(t, log, keyAccessUser, rights, nil)
}
