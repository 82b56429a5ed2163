// SPDX-License-Identifier: Apache-2.0

//go:build apiserver && keymanagers

package main

import (
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/test/pykmip"
)

func TestTheStatusOfAKeyProviderFollowsAKMIPServerThatIsKilledAndComesBack(t *testing.T) {
	servers := pykmip.Start(t, 1)
	certificates := t.TempDir()
	issue(t, certificates)
	g := startGateway(t, certificates, write(t, certificates+"/keys", public(1)), keyProviders)
	register(t, g.process)
	startOperator(t)

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "kmip-"}}
	create(t, namespace)
	meta := metav1.ObjectMeta{Namespace: namespace.Name, Name: "kmip"}
	secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{}}
	for entry, path := range map[string]string{
		providers.ClientCertificate: servers.Certificate, providers.ClientKey: servers.Key, providers.Authorities: servers.Authority,
	} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		secret.Data[entry] = content
	}
	p := &v1alpha1.KeyProvider{ObjectMeta: meta, Spec: v1alpha1.KeyProviderSpec{
		Type: providers.KMIP, Endpoints: []v1alpha1.KeyEndpoint{v1alpha1.KeyEndpoint(servers.Addresses[0])},
		Credentials: &v1alpha1.KeyProviderCredentials{SecretRef: v1alpha1.SecretReference{Name: secret.Name}},
		Connections: &v1alpha1.KeyProviderConnections{IdleTime: "400ms"},
	}}
	create(t,
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret.Name}, Verbs: []string{"get", "watch"}}}},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: meta.Name}},
		secret, p)

	address := servers.Addresses[0]
	expectStatus(t, p, "True AllReachable", "")
	expectEndpoint(t, p, "1/1", v1alpha1.KeyEndpointStatus{Address: address, State: v1alpha1.EndpointReachable, ReachedBy: 1, Version: "KMIP 1.4"})
	servers.Kill(t, 0)
	expectStatus(t, p, "False Unreachable", address+": the gateway cannot connect to it")
	expectEndpoint(t, p, "0/1", v1alpha1.KeyEndpointStatus{Address: address, State: v1alpha1.EndpointUnreachable, Failure: string(pool.NotConnected), Version: "KMIP 1.4"})
	servers.Restart(t, 0)
	expectStatus(t, p, "True AllReachable", "")
	expectEndpoint(t, p, "1/1", v1alpha1.KeyEndpointStatus{Address: address, State: v1alpha1.EndpointReachable, ReachedBy: 1, Version: "KMIP 1.4"})
}

// expectEndpoint waits until the status has one endpoint and what it says is as expected, with any
// latency, and with connections if the endpoint is reachable.
func expectEndpoint(t *testing.T, p *v1alpha1.KeyProvider, reachable string, want v1alpha1.KeyEndpointStatus) {
	t.Helper()
	apiserver.Eventually(t, "the endpoint is "+want.State, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if len(p.Status.Endpoints) != 1 || p.Status.Reachable != reachable {
			return fmt.Errorf("found %+v", p.Status)
		}
		found := p.Status.Endpoints[0]
		connected, measured := found.Connections > 0, found.Latency != ""
		found.Connections, found.Latency, found.PausedBy = 0, "", 0
		if found != want || connected != (want.ReachedBy > 0) || !measured {
			return fmt.Errorf("found %+v", p.Status.Endpoints[0])
		}
		return nil
	})
}
