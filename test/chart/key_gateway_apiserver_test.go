// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestTheOperatorCreatesTheObjectsOfAKeyGatewayOnlyWhereThereIsOne(t *testing.T) {
	apply := func(objects []*unstructured.Unstructured) {
		for _, object := range objects {
			if object.GetKind() != "ValidatingAdmissionPolicy" || object.GetName() != release+"-operator-objects" {
				continue
			}
			err := clusterAdmin(t).Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.ForceOwnership, client.FieldOwner("test"))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	inRelease := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: releaseNamespace, Name: name} }
	own := map[string]client.Object{
		"the authority":   &corev1.Secret{ObjectMeta: inRelease(keyGateway + "-ca")},
		"the certificate": &corev1.Secret{ObjectMeta: inRelease(keyGateway + "-tls")},
		"the keys":        &corev1.ConfigMap{ObjectMeta: inRelease(keyGateway)},
	}
	for name, object := range own {
		t.Run("without, "+name, func(t *testing.T) {
			verdict(t, operator(t).Create(t.Context(), object, client.DryRunAll), "the Crypto Broker Operator may create")
		})
	}
	without := renderChart(t)
	defer func() { // the other tests use the same API server
		apply(without)
		eventually(t, "the rights before", func(ctx context.Context) error {
			if operator(t).Create(ctx, &corev1.Secret{ObjectMeta: inRelease(keyGateway + "-tls")}, client.DryRunAll) == nil {
				return errors.New("the operator may still create the Secret")
			}
			return nil
		})
	}()
	apply(withGateway(t))
	for name, object := range own {
		eventually(t, "the right to create "+name, func(ctx context.Context) error {
			return operator(t).Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
		})
	}
	for name, object := range map[string]client.Object{
		"another Secret":                 &corev1.Secret{ObjectMeta: inRelease("other")},
		"the keys in another namespace":  &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceFor(t, nil), Name: keyGateway}},
		"another ConfigMap in its place": &corev1.ConfigMap{ObjectMeta: inRelease(keyGateway + "-other")},
	} {
		t.Run("with one, "+name, func(t *testing.T) {
			verdict(t, operator(t).Create(t.Context(), object, client.DryRunAll), "the Crypto Broker Operator may create")
		})
	}
}
