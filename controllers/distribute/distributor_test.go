// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
)

func distributorOf(cluster client.Reader) *Distributor {
	return &Distributor{
		options:    Options{Changed: func(string) {}},
		client:     cluster,
		writing:    queue.New(writingName),
		asking:     queue.New(askingName),
		namespaces: map[string]*namespace{},
	}
}

// After a change of leader, thousands of brokers are asked one after the other. A status that counts only the brokers that have
// answered would say that the others are gone.
func TestAllBrokersOfANamespaceCountBeforeTheFirstIsAsked(t *testing.T) {
	var pods []client.Object
	for i := range 3 {
		pods = append(pods, injectedPod(func(p *corev1.Pod) {
			p.Name, p.UID, p.ManagedFields = fmt.Sprint("app-", i), types.UID(fmt.Sprint(i)), nil
		}))
	}
	elsewhere := injectedPod(func(p *corev1.Pod) { p.Namespace, p.ManagedFields = "bank", nil })
	cluster := fake.NewClientBuilder().WithObjects(append(pods, elsewhere)...).Build()
	d := distributorOf(cluster)
	if err := d.SetTarget(t.Context(), "shop", Target{Digest: "sha256:00"}); err != nil {
		t.Fatal(err)
	}
	if s := d.Summary("shop"); s.Pods != 3 || s.Checking != 3 {
		t.Errorf("found %+v, expected 3 brokers that are to be asked", s)
	}
	if err := cluster.Delete(t.Context(), pods[0]); err != nil {
		t.Fatal(err)
	}
	if b, err := d.observe(t.Context(), client.ObjectKeyFromObject(pods[0])); b != nil || err != nil {
		t.Fatal(b, err)
	}
	if s := d.Summary("shop"); s.Pods != 2 {
		t.Errorf("found %+v, expected the 2 brokers that are left", s)
	}
}

func TestATargetIsNotSetWhereThePodsCannotBeListed(t *testing.T) {
	broken := errors.New("the cache is not there")
	d := distributorOf(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken },
	}))
	for range 2 {
		if err := d.SetTarget(t.Context(), "shop", Target{Digest: "sha256:00"}); !errors.Is(err, broken) {
			t.Errorf("found %v, expected that the pods can't be listed", err)
		}
	}
}
