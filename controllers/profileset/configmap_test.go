// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
)

func TestASetThatWasDecidedFromAnOlderOneIsNotWritten(t *testing.T) {
	ctx := t.Context()
	server := fake.NewClientBuilder().WithObjects(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: v1alpha1.ProfilesConfigMap},
	}).Build()
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid-of-shop"}}
	former := &configMaps{cached: server, live: server, namespaces: state.NewStore()}
	current := &configMaps{cached: server, live: server, namespaces: state.NewStore()}
	seen, err := former.read(ctx, shop)
	if err != nil {
		t.Fatal(err)
	}
	if err := current.write(ctx, shop, seen, map[string]string{profile.FileName: "current"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := former.write(ctx, shop, seen, map[string]string{profile.FileName: "former"}, nil); !apierrors.IsConflict(err) {
		t.Errorf("found the error %v, expected a conflict", err)
	}
	found, err := get(ctx, server, client.ObjectKey{Namespace: "shop", Name: v1alpha1.ProfilesConfigMap})
	if err != nil || found.Data[profile.FileName] != "current" {
		t.Errorf("found %q (%v), expected the set of the current leader", found.Data[profile.FileName], err)
	}
}
