// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// clusterKeyAccess writes the configuration of a service with the policies and peers of the operator's namespace, and gives this
// process the rights of the service.
func clusterKeyAccess(t *testing.T) string {
	t.Helper()
	config := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"test": {Server: access.Host, CertificateAuthorityData: access.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {
			ClientCertificateData: access.CertData, ClientKeyData: access.KeyData, Token: access.BearerToken,
			Impersonate: keyAccessUser,
		}},
		Contexts: map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}}, CurrentContext: "test",
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(config, file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	t.Setenv("POD_NAMESPACE", operatorNamespace)
	statements := write(t, filepath.Join(t.TempDir(), "statements.key"), string(newKey(t)))
	settings := keyAccessConfig(t, issuer.Start(t, issuer.Options{HTTP: true}).URL, "access:\n  allowAllAuthenticated: true", "cluster: {}\nfederation: {keyFiles: ["+statements+"]}")
	text, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, settings, strings.Replace(string(text), `statusBindAddress: "0"`, "statusBindAddress: 127.0.0.1:0", 1))
}

// newPolicy makes a policy that permits everything to a subject.
func newPolicy(t *testing.T, namespace, name, subject string) *v1alpha1.KeyAccessPolicy {
	t.Helper()
	p := &v1alpha1.KeyAccessPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.KeyAccessPolicySpec{
		Allow: []v1alpha1.KeyAccessRule{{Name: "one", When: v1alpha1.KeyAccessExpression("caller.subject == '" + subject + "'")}},
	}}
	create(t, p)
	deleteLater(t, p)
	return p
}

func deleteLater(t *testing.T, object client.Object) {
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), object); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

// changeRule changes the only rule of a policy.
func changeRule(t *testing.T, p *v1alpha1.KeyAccessPolicy, when string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"allow":[{"name":"one","when":%q}]}}`, when))
	if err := admin.Patch(t.Context(), p, patch); err != nil {
		t.Fatal(err)
	}
}

// expectAccessStatus waits until Accepted and Ready have a status and a reason, and the message of Ready has a text.
func expectAccessStatus(t *testing.T, object client.Object, status *v1alpha1.KeyAccessStatus, accepted, ready, text string) {
	t.Helper()
	apiserver.Eventually(t, object.GetName()+" has Ready "+ready, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		for condition, want := range map[string]string{v1alpha1.ConditionAccepted: accepted, v1alpha1.ConditionReady: ready} {
			c := meta.FindStatusCondition(status.Conditions, condition)
			if c == nil || string(c.Status)+" "+c.Reason != want || c.ObservedGeneration != object.GetGeneration() || condition == v1alpha1.ConditionReady && !strings.Contains(c.Message, text) {
				return fmt.Errorf("found %+v", status)
			}
		}
		if status.Services != 1 || status.ObservedGeneration != object.GetGeneration() {
			return fmt.Errorf("found %+v", status)
		}
		return nil
	})
}

// expectDecision waits until a subject may have data keys, or may not.
func expectDecision(t *testing.T, k *keyAccess, subject string, permitted bool) {
	t.Helper()
	authorizer, err := k.newAuthorizer(io.Discard, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, fmt.Sprintf("whether %s may have data keys is %t", subject, permitted), func() error {
		if k.cluster.Set() == nil {
			return errors.New("found no policies")
		}
		if err := authorizer.Authorize(t.Context(), caller.Caller{Subject: subject}, tdfpolicy.Object{}); (err == nil) != permitted {
			return fmt.Errorf("found %w", err)
		}
		return nil
	})
}

func TestAKeyAccessServiceFollowsThePoliciesOfItsNamespace(t *testing.T) {
	first := newPolicy(t, operatorNamespace, "first", "alice")
	elsewhere := newPolicy(t, "default", "elsewhere", "mallory")
	k, stop := startKeyAccessWith(t, clusterKeyAccess(t))
	defer stop()
	o := startOperator(t)
	registerAt(t, contract.KeyAccessComponent, k.status.listener.Addr())
	expectDecision(t, k, "alice", true)
	expectDecision(t, k, "mallory", false)
	const understood, inUse = "True Understood", "True InUse"
	expectAccessStatus(t, first, &first.Status, understood, inUse, "All key access services use it.")

	changeRule(t, first, "caller.subject == 'bob'")
	expectDecision(t, k, "bob", true)
	expectDecision(t, k, "alice", false)
	expectAccessStatus(t, first, &first.Status, understood, inUse, "")

	// There is no webhook that would refuse it.
	wrong := newPolicy(t, operatorNamespace, "wrong", "x")
	changeRule(t, wrong, "caller.isuer == 'x'")
	expectAccessStatus(t, wrong, &wrong.Status, "False Invalid", "False Invalid", "spec.allow[0].when: Invalid value: line 1, column 1 of the expression")
	changeRule(t, first, "caller.subject == 'carol'")
	expectAccessStatus(t, first, &first.Status, understood, "False HeldBack", "the KeyAccessPolicy wrong is wrong: spec.allow[0].when")
	expectDecision(t, k, "carol", false)
	expectAccessObjects(t, o, map[string]float64{"HeldBack": 1, "Invalid": 1, "InUse": 0, "NotRead": 0, "NoService": 0})

	if err := admin.Delete(t.Context(), wrong); err != nil {
		t.Fatal(err)
	}
	expectDecision(t, k, "carol", true)
	expectAccessStatus(t, first, &first.Status, understood, inUse, "")
	expectReasons(t, first, "InUse", "HeldBack")
	expectAccessObjects(t, o, map[string]float64{"HeldBack": 0, "Invalid": 0, "InUse": 1, "NotRead": 0, "NoService": 0})
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(elsewhere), elsewhere); err != nil || len(elsewhere.Status.Conditions) > 0 {
		t.Errorf("found %v and the status %+v of a policy of another namespace", err, elsewhere.Status)
	}
}

// expectAccessObjects waits until the operator's metric has these numbers of policies, by reason.
func expectAccessObjects(t *testing.T, o *operator, want map[string]float64) {
	t.Helper()
	apiserver.Eventually(t, "the operator counts the policies by reason", func() error {
		families, err := o.metrics.Gather()
		if err != nil {
			return err
		}
		found := map[string]float64{}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if family.GetName() == "crypto_broker_operator_key_access_objects" && metric.GetLabel()[0].GetValue() == "KeyAccessPolicy" {
					found[metric.GetLabel()[1].GetValue()] = metric.GetGauge().GetValue()
				}
			}
		}
		if !maps.Equal(found, want) {
			return fmt.Errorf("found %v, expected %v", found, want)
		}
		return nil
	})
}

// expectReasons waits for events about an object with these reasons.
func expectReasons(t *testing.T, about client.Object, reasons ...string) {
	t.Helper()
	apiserver.Eventually(t, fmt.Sprintf("there are events %q", reasons), func() error {
		var list eventsv1.EventList
		if err := admin.List(t.Context(), &list, client.InNamespace(about.GetNamespace())); err != nil {
			return err
		}
		found := map[string]bool{}
		for _, event := range list.Items {
			if event.Regarding.UID == about.GetUID() {
				found[event.Reason] = true
			}
		}
		for _, reason := range reasons {
			if !found[reason] {
				return fmt.Errorf("found %q", slices.Sorted(maps.Keys(found)))
			}
		}
		return nil
	})
}

func TestAKeyAccessServiceServesNothingWhileItsFirstPoliciesAreWrong(t *testing.T) {
	wrong := newPolicy(t, operatorNamespace, "wrong", "x")
	changeRule(t, wrong, "nobody")
	k, stop := startKeyAccessWith(t, clusterKeyAccess(t))
	defer stop()
	get := func() error {
		client := http.Client{Timeout: 200 * time.Millisecond}
		reply, err := client.Get("http://" + k.listener.Addr().String() + "/kas/v2/kas_public_key")
		if err != nil {
			return err
		}
		if err := reply.Body.Close(); err != nil || reply.StatusCode != http.StatusOK {
			return fmt.Errorf("found status %d, %w", reply.StatusCode, err)
		}
		return nil
	}
	apiserver.Eventually(t, "the service says which policy is wrong", func() error {
		if missing := k.ready(); !strings.Contains(missing, "the KeyAccessPolicy wrong is wrong: spec.allow[0].when") {
			return fmt.Errorf("found %q", missing)
		}
		return nil
	})
	if err := get(); err == nil {
		t.Error("the service answers before it has policies")
	}
	changeRule(t, wrong, "caller.subject == 'x'")
	apiserver.Eventually(t, "the service answers", get)
	if missing := k.ready(); missing != "" {
		t.Errorf("found %q, expected that the service is ready", missing)
	}
}

func TestAKeyAccessServiceFollowsThePeersOfItsNamespace(t *testing.T) {
	newPolicy(t, operatorNamespace, "first", "alice")
	k, stop := startKeyAccessWith(t, clusterKeyAccess(t))
	defer stop()
	startOperator(t)
	registerAt(t, contract.KeyAccessComponent, k.status.listener.Addr())
	newPeer := func(name, url string) *v1alpha1.KeyAccessPeer {
		p := &v1alpha1.KeyAccessPeer{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name}, Spec: v1alpha1.KeyAccessPeerSpec{
			URL: v1alpha1.KeyAccessURL(url), Issuers: []v1alpha1.KeyAccessIssuer{{URL: "https://idp.example", Audiences: []v1alpha1.KeyAccessAudience{"b"}}},
		}}
		create(t, p)
		deleteLater(t, p)
		return p
	}
	expectPeers := func(expected ...string) {
		t.Helper()
		apiserver.Eventually(t, fmt.Sprintf("the peers are %q", expected), func() error {
			if found := slices.Sorted(maps.Keys(k.peers.Usable())); !slices.Equal(found, expected) {
				return fmt.Errorf("found %q", found)
			}
			return nil
		})
	}
	b := newPeer("b", "https://b.example")
	expectPeers("https://b.example")
	expectAccessStatus(t, b, &b.Status, "True Understood", "True InUse", "")
	again := newPeer("again", "https://b.example")
	expectAccessStatus(t, again, &again.Status, "True Understood", "False HeldBack", "https://b.example, which is this service or was found before")
	expectPeers("https://b.example")
	if err := errors.Join(admin.Delete(t.Context(), again), admin.Delete(t.Context(), b)); err != nil {
		t.Fatal(err)
	}
	expectPeers()
}
