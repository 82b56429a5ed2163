// SPDX-License-Identifier: Apache-2.0

package keycache_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/keycache"
)

// answers is a key manager that counts questions.
type answers struct{ asked atomic.Int64 }

func (a *answers) find(_ context.Context, name keys.Name, _ *keys.Key) (*keys.Key, error) {
	a.asked.Add(1)
	return keys.NewWrapping(name.ID, nil), nil
}

func (a *answers) want(t *testing.T, asked int64) {
	t.Helper()
	if got := a.asked.Load(); got != asked {
		t.Errorf("the key manager was asked %d times, want %d", got, asked)
	}
}

func get(t *testing.T, k *keycache.Keys, id string) *keys.Key {
	t.Helper()
	key, err := k.Key(t.Context(), keys.Name{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestAKeyIsUsedForItsTimeWithoutAskingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var manager answers
		k := keycache.New(time.Minute, manager.find)
		defer k.Close()
		if _, err := k.KeyNow(keys.Name{ID: "a"}); !errors.Is(err, keys.ErrWouldWait) {
			t.Errorf("a key that nobody asked for: got %v, want ErrWouldWait", err)
		}
		get(t, k, "a")
		<-time.After(59 * time.Second)
		get(t, k, "a")
		if _, err := k.KeyNow(keys.Name{ID: "a"}); err != nil {
			t.Errorf("a key that is remembered: got %v", err)
		}
		manager.want(t, 1)
		<-time.After(2 * time.Second)
		if _, err := k.KeyNow(keys.Name{ID: "a"}); !errors.Is(err, keys.ErrWouldWait) {
			t.Errorf("a key whose time is over: got %v, want ErrWouldWait", err)
		}
		get(t, k, "a")
		manager.want(t, 2)
	})
}

func TestWithoutATimeEveryCallAsks(t *testing.T) {
	var manager answers
	k := keycache.New(0, manager.find)
	defer k.Close()
	get(t, k, "a")
	get(t, k, "a")
	manager.want(t, 2)
}

func TestIdenticalQuestionsAtTheSameTimeAreAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var manager answers
		answer := make(chan struct{})
		k := keycache.New(time.Minute, func(ctx context.Context, name keys.Name, before *keys.Key) (*keys.Key, error) {
			<-answer
			return manager.find(ctx, name, before)
		})
		defer k.Close()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { get(t, k, "a") })
		}
		synctest.Wait()
		close(answer)
		all.Wait()
		manager.want(t, 1)
	})
}

func TestQuestionsForDifferentUsesAreAskedEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var manager answers
		answer := make(chan struct{})
		k := keycache.New(time.Minute, func(ctx context.Context, name keys.Name, before *keys.Key) (*keys.Key, error) {
			<-answer
			if name.Use.Profile == "Q" {
				return nil, keys.ErrDenied
			}
			return manager.find(ctx, name, before)
		})
		defer k.Close()
		var all sync.WaitGroup
		for profile, want := range map[string]error{"P": nil, "Q": keys.ErrDenied} {
			all.Go(func() {
				if _, err := k.Key(t.Context(), keys.Name{ID: "a", Use: keys.Use{Profile: profile}}); !errors.Is(err, want) {
					t.Errorf("profile %s: got %v, want %v", profile, err, want)
				}
			})
		}
		synctest.Wait()
		close(answer)
		all.Wait()
		if _, err := k.KeyNow(keys.Name{ID: "a", Use: keys.Use{Profile: "Q"}}); !errors.Is(err, keys.ErrWouldWait) {
			t.Errorf("the profile that was denied: got %v, want ErrWouldWait", err)
		}
	})
}

func TestWhoGivesUpDoesNotFailTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var manager answers
		answer := make(chan struct{})
		k := keycache.New(time.Minute, func(ctx context.Context, name keys.Name, before *keys.Key) (*keys.Key, error) {
			select {
			case <-answer:
				return manager.find(ctx, name, before)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		defer k.Close()
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() {
			_, err := k.Key(ctx, keys.Name{ID: "a"})
			first <- err
		}()
		synctest.Wait()
		var others sync.WaitGroup
		others.Go(func() { get(t, k, "a") })
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the call that was canceled: got %v", err)
		}
		close(answer)
		others.Wait()
		manager.want(t, 1)
	})
}

func TestAnErrorIsNotRemembered(t *testing.T) {
	failing := true
	k := keycache.New(time.Minute, func(context.Context, keys.Name, *keys.Key) (*keys.Key, error) {
		if failing {
			return nil, keys.ErrNotFound
		}
		return keys.NewWrapping("a", nil), nil
	})
	defer k.Close()
	if _, err := k.Key(t.Context(), keys.Name{ID: "a"}); !errors.Is(err, keys.ErrNotFound) {
		t.Fatalf("got %v, want ErrNotFound", err)
	}
	failing = false
	get(t, k, "a")
}

func TestAKeyThatHasChangedIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var manager answers
		answer := make(chan struct{})
		k := keycache.New(time.Minute, func(ctx context.Context, name keys.Name, before *keys.Key) (*keys.Key, error) {
			<-answer
			return manager.find(ctx, name, before)
		})
		defer k.Close()
		var all sync.WaitGroup
		all.Go(func() { get(t, k, "a") })
		synctest.Wait()
		k.Forget("a") // while the old answer is still on its way
		close(answer)
		all.Wait()
		get(t, k, "a")
		manager.want(t, 2)
		get(t, k, "a")
		manager.want(t, 2)
	})
}

func TestTheKeyBeforeIsKnownForTwiceTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var known []bool
		k := keycache.New(time.Minute, func(_ context.Context, name keys.Name, before *keys.Key) (*keys.Key, error) {
			known = append(known, before != nil)
			return keys.NewWrapping(name.ID, nil), nil
		})
		defer k.Close()
		get(t, k, "a")
		<-time.After(90 * time.Second)
		get(t, k, "a")
		<-time.After(181 * time.Second)
		get(t, k, "a")
		if got := fmt.Sprint(known); got != "[false true false]" {
			t.Errorf("the key before was known: %s", got)
		}
	})
}

func TestOnlySoManyKeysAreRemembered(t *testing.T) {
	var manager answers
	k := keycache.New(time.Hour, manager.find)
	defer k.Close()
	for i := range 2 * keycache.MaxKeys {
		get(t, k, fmt.Sprint(i))
	}
	remembered := 0
	for i := range 2 * keycache.MaxKeys {
		if _, err := k.KeyNow(keys.Name{ID: fmt.Sprint(i)}); err == nil {
			remembered++
		}
	}
	if remembered != keycache.MaxKeys {
		t.Errorf("%d keys are remembered, want %d", remembered, keycache.MaxKeys)
	}
}

func TestAfterCloseThereAreNoKeys(t *testing.T) {
	k := keycache.New(time.Minute, func(ctx context.Context, name keys.Name, _ *keys.Key) (*keys.Key, error) {
		return keys.NewWrapping(name.ID, nil), ctx.Err()
	})
	get(t, k, "a")
	k.Close()
	if _, err := k.Key(t.Context(), keys.Name{ID: "a"}); !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}
