// SPDX-License-Identifier: Apache-2.0

package providers_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
)

// fake is a provider that says how it was opened, and that can be slow to close.
type fake struct {
	endpoint, token string
	closed          chan struct{}
}

func (f *fake) Key(context.Context, keys.Name) (*keys.Key, error) { return nil, keys.ErrNotFound }
func (f *fake) KeyNow(keys.Name) (*keys.Key, error)               { return nil, keys.ErrWouldWait }
func (f *fake) Status() []pool.Status                             { return nil }
func (f *fake) Check(context.Context) (string, error)             { return "1", nil }
func (f *fake) Close()                                            { close(f.closed) }

// followed is a directory of providers of the fake type, with the events that the test has seen.
type followed struct {
	t      *testing.T
	dir    string
	used   chan map[string]keys.Provider
	events chan providers.Event
	// tried has an entry for each provider that could not be opened. Entries beyond its capacity are dropped.
	tried chan struct{}
}

func follow(t *testing.T, file string) *followed {
	t.Helper()
	f := &followed{t, t.TempDir(), make(chan map[string]keys.Provider, 10), make(chan providers.Event, 10), make(chan struct{}, 10)}
	f.write(providers.FileName, file)
	types := providers.Types{providers.KMIP: func(c *providers.Config, credentials providers.Credentials) (providers.Provider, error) {
		if !c.ActsAsProgram {
			t.Error("a provider of the directory may not act as the program")
		}
		if token := string(credentials[providers.Token]); token != "bad" {
			return &fake{c.Endpoints[0], token, make(chan struct{})}, nil
		}
		select {
		case f.tried <- struct{}{}:
		default:
		}
		return nil, errors.New("the token is not valid")
	}}
	ctx, cancel := context.WithCancel(t.Context())
	all, err := providers.Follow(ctx, f.dir, types, func(p map[string]keys.Provider) { f.used <- p }, func(e providers.Event) { f.events <- e })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); all.Wait() })
	return f
}

// write writes a file as a whole.
func (f *followed) write(name, content string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	for _, err := range []error{
		os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path+".new", []byte(content), 0o600), os.Rename(path+".new", path),
	} {
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

func next[T any](t *testing.T, c chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing happened within a minute")
		panic("unreachable")
	}
}

const two = "Providers: [{Name: a, Type: kmip, Endpoints: [one]}, {Name: b, Type: kmip, Endpoints: [two]}]"

func TestProvidersAreOpenedWithTheirCredentialsAndReplacedWhenTheyChange(t *testing.T) {
	f := follow(t, two)
	first := next(t, f.used)
	if event := next(t, f.events); event.Providers != 2 || event.Err != nil || len(event.Problems) > 0 {
		t.Errorf("found %+v", event)
	}
	a, b := first["a"].(*fake), first["b"].(*fake)
	if a.endpoint != "one" || b.endpoint != "two" || a.token != "" {
		t.Errorf("opened %+v and %+v", a, b)
	}
	f.write("a/token", "secret")
	second := next(t, f.used)
	if got := second["a"].(*fake); got == a || got.token != "secret" {
		t.Errorf("after a new token: %+v", got)
	}
	if second["b"] != first["b"] {
		t.Error("a provider that did not change was opened again")
	}
	next(t, a.closed)
	f.write(providers.FileName, "Providers: [{Name: a, Type: kmip, Endpoints: [one]}]")
	if third := next(t, f.used); len(third) != 1 || third["a"] != second["a"] {
		t.Errorf("after one was removed: %v", third)
	}
	next(t, b.closed)
}

func TestAProviderThatCannotBeOpenedStaysAsItWas(t *testing.T) {
	f := follow(t, two)
	first := next(t, f.used)
	next(t, f.events)
	f.write("a/token", "bad")
	event := next(t, f.events)
	if len(event.Problems) != 1 || event.Problems[0].Error() != `key provider "a": the token is not valid` || event.Providers != 2 {
		t.Errorf("found %+v", event)
	}
	f.write("b/token", "good")
	if second := next(t, f.used); second["a"] != first["a"] || second["b"] == first["b"] {
		t.Error("the other provider is not replaced alone")
	}
}

func TestOnlyAChangeOfAProviderIsUsed(t *testing.T) {
	f := follow(t, "Providers: [{Name: a, Type: kmip, Endpoints: [one]}]")
	next(t, f.used)
	next(t, f.events)
	f.write("b/token", "bad")
	f.write(providers.FileName, two)
	if event := next(t, f.events); event.Providers != 1 || len(event.Problems) != 1 {
		t.Fatalf("found %+v, want a problem with b", event)
	}
	for range cap(f.tried) {
		select {
		case <-f.tried: // of looks before
		default:
		}
	}
	f.write("note", "causes a look")
	next(t, f.tried)
	f.write("a/token", "good")
	if all := next(t, f.used); len(all) != 1 || all["a"].(*fake).token != "good" {
		t.Errorf("providers were replaced although none had changed: %v", all)
	}
	f.write(providers.FileName, "Providers: [{Name: b, Type: kmip, Endpoints: [two]}]")
	if all := next(t, f.used); len(all) != 0 {
		t.Errorf("after a was removed: %v", all)
	}
}

func TestAFileThatCannotBeReadChangesNothing(t *testing.T) {
	f := follow(t, two)
	next(t, f.used)
	next(t, f.events)
	f.write(providers.FileName, "Providers: [{Name: a, Type: kmip, Endpoints: [one]}, {Name: b}]")
	event := next(t, f.events)
	if event.Err == nil || !strings.Contains(event.Err.Error(), "Providers[1].Type") || event.Providers != 2 {
		t.Errorf("found %+v", event)
	}
	if len(f.used) > 0 {
		t.Error("providers were replaced")
	}
}

func TestWithoutAFileThereAreNoProvidersUntilItAppears(t *testing.T) {
	f := follow(t, two)
	next(t, f.used)
	if err := os.Remove(filepath.Join(f.dir, providers.FileName)); err != nil {
		t.Fatal(err)
	}
	if used := next(t, f.used); len(used) > 0 {
		t.Errorf("found %v", used)
	}
	f.write(providers.FileName, two)
	if used := next(t, f.used); len(used) != 2 {
		t.Errorf("found %v", used)
	}
}
