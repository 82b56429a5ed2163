// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers"
)

// authorities is a key gateway whose authorities a test changes.
type authorities struct {
	mu      sync.Mutex
	pem     []byte
	looking bool
	changed []func(context.Context)
}

func (a *authorities) Authorities() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pem
}

func (a *authorities) Looked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.looking
}

func (a *authorities) OnChange(f func(context.Context)) { a.changed = append(a.changed, f) }

func (a *authorities) set(ctx context.Context, pem string) {
	a.mu.Lock()
	a.pem, a.looking = []byte(pem), false
	a.mu.Unlock()
	for _, f := range a.changed {
		f(ctx)
	}
}

func withKeyGateway(gateway *authorities) func(*controllers.Options) {
	return func(o *controllers.Options) { o.KeyGateway = gateway }
}

func TestTheAuthoritiesOfTheKeyGatewayAreWhereProfilesNameKeyProviders(t *testing.T) {
	gateway := &authorities{pem: []byte("first")}
	operator := start(t, withKeyGateway(gateway))
	uses, other := namespace(t, nil), namespace(t, nil)
	create(t, hashing(other, "orders", "sha3-512"))
	encrypting := hashing(uses, "orders", "sha3-512")
	encrypting.Spec.API.EncryptData = &v1alpha1.EncryptData{EncryptAlg: "aes-gcm", KeySize: 256, NonceStrategy: "random", KeyIDs: []v1alpha1.KeyID{{ID: "hsm/orders"}}}
	create(t, hashing(uses, "sums", "sha3-512"))
	expectFile(t, uses, fileOf("sums", "sha3-512"))
	create(t, encrypting)

	set := func(namespace string) (found corev1.ConfigMap, err error) {
		err = apiServer.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: v1alpha1.ProfilesConfigMap}, &found)
		return found, err
	}
	expect := func(what, want string) (found corev1.ConfigMap) {
		t.Helper()
		eventually(t, what, func() (err error) {
			if found, err = set(uses); err != nil {
				return err
			}
			if got := found.Data[contract.KeyGatewayAuthorities]; got != want || found.Data[profile.FileName] == "" {
				return fmt.Errorf("found the authorities %q, expected %q", got, want)
			}
			return nil
		})
		return found
	}
	before := expect("the authorities", "first")
	expectFile(t, other, fileOf("orders", "sha3-512"))
	beforeOther, err := set(other)
	if err != nil || len(beforeOther.Data) != 2 {
		t.Fatalf("a namespace without key providers has %d files (%v), expected the set and its signature", len(beforeOther.Data), err)
	}

	gateway.set(t.Context(), "first second")
	after := expect("the authorities after a change", "first second")
	if before.Data["Profiles.sig"] != after.Data["Profiles.sig"] {
		t.Error("other authorities gave the set another revision, which brokers have to load again")
	}
	update(t, &after, func(c *corev1.ConfigMap) { c.Data[contract.KeyGatewayAuthorities] = "of somebody else" })
	expect("the authorities after somebody changed them", "first second")

	operator.stop()
	successor := &authorities{}
	start(t, withKeyGateway(successor))
	labelled := expect("the authorities while the new leader does not know them", "first second")
	update(t, &labelled, func(c *corev1.ConfigMap) { c.Labels = nil })
	eventually(t, "the new leader puts the ConfigMap right", func() error {
		if found, err := set(uses); err != nil || len(found.Labels) == 0 {
			return errNotYet(found)
		}
		return nil
	})
	expect("the authorities after the new leader wrote", "first second")
	successor.set(t.Context(), "second")
	expect("the authorities of the new leader", "second")

	if err := apiServer.Delete(t.Context(), encrypting); err != nil {
		t.Fatal(err)
	}
	expect("no authorities after the last key of a key provider is gone", "")
	if afterOther, err := set(other); err != nil || afterOther.ResourceVersion != beforeOther.ResourceVersion {
		t.Errorf("the ConfigMap of a namespace without key providers was written again (%v)", err)
	}
}

func TestASetThatNamesKeyProvidersWaitsForTheAuthorities(t *testing.T) {
	gateway := &authorities{looking: true}
	start(t, withKeyGateway(gateway))
	uses, other := namespace(t, nil), namespace(t, nil)
	encrypting := hashing(uses, "orders", "sha3-512")
	encrypting.Spec.API.EncryptData = &v1alpha1.EncryptData{EncryptAlg: "aes-gcm", KeySize: 256, NonceStrategy: "random", KeyIDs: []v1alpha1.KeyID{{ID: "hsm/orders"}}}
	create(t, encrypting)
	create(t, hashing(other, "orders", "sha3-512"))
	expectFile(t, other, fileOf("orders", "sha3-512")) // the sets of other namespaces do not wait
	var found corev1.ConfigMap
	set := client.ObjectKey{Namespace: uses, Name: v1alpha1.ProfilesConfigMap}
	if err := apiServer.Get(t.Context(), set, &found); !apierrors.IsNotFound(err) {
		t.Errorf("the set was written without the authorities: %v, error %v", found.Data, err)
	}
	gateway.set(t.Context(), "first")
	eventually(t, "the set with the authorities", func() error {
		if err := apiServer.Get(t.Context(), set, &found); err != nil {
			return err
		}
		if got := found.Data[contract.KeyGatewayAuthorities]; got != "first" {
			t.Fatalf("the set was written with the authorities %q, expected the first ones", got)
		}
		return nil
	})
}
