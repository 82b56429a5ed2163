// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"context"
	"errors"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// asked is a provider that has every key, and records the last request.
type asked struct{ name *keys.Name }

func (a asked) Key(_ context.Context, name keys.Name) (*keys.Key, error) {
	*a.name = name
	cipher, err := engine.NewAESGCM(make([]byte, 16))
	if err != nil {
		return nil, err
	}
	return keys.NewSymmetric(name.ID, cipher).WithVersion(name.Version), nil
}

// remote is a provider that has to be asked.
type remote struct{ asked }

func (remote) KeyNow(keys.Name) (*keys.Key, error) { return nil, keys.ErrWouldWait }

func TestAStackAsksTheProviderThatTheIDNames(t *testing.T) {
	var standard, hsm keys.Name
	stack := keys.NewStack(asked{&standard})
	stack.Use(map[string]keys.Provider{"hsm": remote{asked{&hsm}}})
	for sentence, test := range map[string]struct {
		id       string
		standard keys.Name
		hsm      keys.Name
	}{
		"an id without a slash is of the default provider":     {"orders", keys.Name{ID: "orders", Version: "2"}, keys.Name{}},
		"the text before the slash names the provider":         {"hsm/orders", keys.Name{}, keys.Name{ID: "orders", Version: "2"}},
		"the id of the provider may have slashes":              {"hsm/team/orders", keys.Name{}, keys.Name{ID: "team/orders", Version: "2"}},
		"an id that ends with a slash is of the provider, too": {"hsm/", keys.Name{}, keys.Name{ID: "", Version: "2"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			standard, hsm = keys.Name{}, keys.Name{}
			key, err := stack.Key(t.Context(), keys.Name{ID: test.id, Version: "2"})
			if err != nil || standard != test.standard || hsm != test.hsm {
				t.Errorf("asked the default provider for %v and hsm for %v, error %v", standard, hsm, err)
			}
			if err == nil && key.Version() != "2" {
				t.Errorf("found version %q", key.Version())
			}
		})
	}
}

func TestAProviderLearnsThatAVersionIsNamedToOpenData(t *testing.T) {
	var hsm keys.Name
	stack := keys.NewStack(nil)
	stack.Use(map[string]keys.Provider{"hsm": remote{asked{&hsm}}})
	for _, test := range []struct {
		version   string
		operation profile.Operation
		opens     bool
	}{
		{"2", profile.OpDecryptData, true}, {"2", profile.OpDecryptStream, true}, {"2", profile.OpUnwrapKey, true}, {"2", profile.OpRewrapKey, true},
		{"", profile.OpUnwrapKey, false}, {"2", profile.OpVerifyData, false}, {"2", profile.OpGetPublicKey, false},
	} {
		name := keys.Name{ID: "hsm/orders", Version: test.version, Use: keys.Use{Profile: "P", Operation: test.operation}}
		if _, err := stack.Key(t.Context(), name); err != nil || hsm.Opens != test.opens || hsm.Use != (keys.Use{}) {
			t.Errorf("%s with version %q: asked for %+v, error %v", test.operation, test.version, hsm, err)
		}
	}
}

func TestAStackSaysWhichProviderIsMissing(t *testing.T) {
	for id, provider := range map[string]string{"orders": "", "hsm/orders": "hsm", "/orders": ""} {
		_, err := keys.NewStack(nil).Key(t.Context(), keys.Name{ID: id})
		var missing *keys.NoProviderError
		if !errors.As(err, &missing) || missing.Provider != provider || !errors.Is(err, keys.ErrUnusable) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestAStackKnowsWhichProvidersHaveToBeAsked(t *testing.T) {
	var name keys.Name
	stack := keys.NewStack(asked{&name})
	stack.Use(map[string]keys.Provider{"hsm": remote{asked{&name}}})
	if key, err := stack.KeyNow(keys.Name{ID: "orders"}); err != nil || key.ID() != "orders" {
		t.Errorf("a key in memory: %v", err)
	}
	if _, err := stack.KeyNow(keys.Name{ID: "hsm/orders"}); !errors.Is(err, keys.ErrWouldWait) {
		t.Errorf("a key of a key manager: %v", err)
	}
	stack.Use(nil)
	var missing *keys.NoProviderError
	if _, err := stack.KeyNow(keys.Name{ID: "hsm/orders"}); !errors.As(err, &missing) {
		t.Errorf("a provider that was removed: %v", err)
	}
}

func TestAStackDelegatesWhatItHasNoProviderFor(t *testing.T) {
	var hsm, others keys.Name
	stack := keys.NewStack(nil)
	stack.Use(map[string]keys.Provider{"hsm": remote{asked{&hsm}}})
	stack.Delegate(remote{asked{&others}})
	use := keys.Use{Profile: "P", Operation: profile.OpSignData}
	for _, id := range []string{"hsm/orders", "kms/orders"} {
		if _, err := stack.Key(t.Context(), keys.Name{ID: id, Version: "2", Use: use}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if want := (keys.Name{ID: "orders", Version: "2"}); hsm != want {
		t.Errorf("asked hsm for %v, want %v: it has no need to know what the key is for", hsm, want)
	}
	if want := (keys.Name{ID: "kms/orders", Version: "2", Use: use}); others != want {
		t.Errorf("asked the others for %v, want %v", others, want)
	}
	if _, err := stack.KeyNow(keys.Name{ID: "kms/orders"}); !errors.Is(err, keys.ErrWouldWait) {
		t.Errorf("a key of the others: %v", err)
	}
	var missing *keys.NoProviderError
	if _, err := stack.Key(t.Context(), keys.Name{ID: "orders"}); !errors.As(err, &missing) {
		t.Errorf("an id without a provider: %v, want none: only ids with a provider are delegated", err)
	}
}
