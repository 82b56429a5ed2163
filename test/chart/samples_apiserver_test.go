// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

// The server has only the resource definitions and no webhooks.
func TestTheAPIServerTakesTheSamples(t *testing.T) {
	c, err := client.New(apiserver.StartFor(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"samples", "samples/catalogue"} {
		for _, object := range kustomize(t, folder) {
			if err := c.Create(t.Context(), object, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s: %v", identity(object), err)
			}
		}
	}
}
