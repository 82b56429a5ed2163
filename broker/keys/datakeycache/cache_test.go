// SPDX-License-Identifier: Apache-2.0

package datakeycache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

var secret = bytes.Repeat([]byte{0xA7}, 32)

// manager counts unwraps, which take a second.
type manager struct{ unwraps atomic.Int64 }

func (m *manager) unwrap(ctx context.Context) ([]byte, error) {
	m.unwraps.Add(1)
	select {
	case <-time.After(time.Second):
		return bytes.Clone(secret), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func get(t *testing.T, c *Cache, m *manager, id ID) {
	t.Helper()
	if dataKey, err := c.Get(t.Context(), id, m.unwrap); err != nil || !bytes.Equal(dataKey, secret) {
		t.Errorf("got %x, %v", dataKey, err)
	}
}

func (m *manager) want(t *testing.T, unwraps int64) {
	t.Helper()
	if got := m.unwraps.Load(); got != unwraps {
		t.Errorf("the key manager unwrapped %d times, want %d", got, unwraps)
	}
}

func number(i int) ID { return NewID(binary.BigEndian.AppendUint64(nil, uint64(i))) }

func TestADataKeyIsUnwrappedOnceForItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m := New(func(error) {}), &manager{}
		defer c.Close()
		get(t, c, m, number(1))
		<-time.After(KeepTime - 2*time.Second)
		get(t, c, m, number(1))
		m.want(t, 1)
		<-time.After(3 * time.Second)
		get(t, c, m, number(1))
		m.want(t, 2)
		if s := c.Stats(); s.Hits != 1 || s.Misses != 2 || s.Coalesced != 0 || s.Entries != 1 {
			t.Errorf("counted %+v", s)
		}
	})
}

func TestAHundredIdenticalUnwrapsAtOnceCostOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m := New(func(error) {}), &manager{}
		defer c.Close()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { get(t, c, m, number(1)) })
		}
		all.Wait()
		m.want(t, 1)
	})
}

func TestAThousandRequestsOver120KeysCostAtMost120Unwraps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m := New(func(error) {}), &manager{}
		defer c.Close()
		var all sync.WaitGroup
		for worker := range 10 {
			all.Go(func() {
				for i := range 100 {
					get(t, c, m, number((worker*37+i)%120))
				}
			})
		}
		all.Wait()
		if got := m.unwraps.Load(); got > 120 {
			t.Errorf("the key manager unwrapped %d times, want at most 120", got)
		}
	})
}

func TestWhoGivesUpFailsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m := New(func(error) {}), &manager{}
		defer c.Close()
		first, giveUp := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := c.Get(first, number(1), m.unwrap); !errors.Is(err, context.Canceled) {
				t.Errorf("the first one got %v", err)
			}
		})
		synctest.Wait()
		all.Go(func() { get(t, c, m, number(1)) })
		synctest.Wait()
		giveUp()
		all.Wait()
		m.want(t, 1)
	})
}

func TestAnUnwrapThatNobodyWaitsForIsCanceledAndTheNextOneBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m := New(func(error) {}), &manager{}
		defer c.Close()
		ctx, giveUp := context.WithCancel(t.Context())
		giveUp()
		if _, err := c.Get(ctx, number(1), m.unwrap); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		get(t, c, m, number(1))
		m.want(t, 2)
	})
}

func TestAnErrorIsForThoseWhoWaitAndIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m := New(func(error) {}), &manager{}
		defer c.Close()
		fails := func(context.Context) ([]byte, error) { return nil, keys.ErrInvalidCiphertext }
		if _, err := c.Get(t.Context(), number(1), fails); !errors.Is(err, keys.ErrInvalidCiphertext) {
			t.Errorf("got %v", err)
		}
		get(t, c, m, number(1))
	})
}

func TestAnUnwrapThatBeganBeforeForgetIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m := New(func(error) {}), &manager{}
		defer c.Close()
		var all sync.WaitGroup
		all.Go(func() { get(t, c, m, number(1)) })
		synctest.Wait()
		c.Forget()
		all.Wait()
		get(t, c, m, number(1))
		m.want(t, 2)
	})
}

// The test reads the memory as a search through the process would do.
func TestADataKeyIsOverwritten(t *testing.T) {
	for sentence, end := range map[string]func(*Cache, *manager){
		"when its time is over": func(*Cache, *manager) { <-time.After(KeepTime + time.Second) },
		"when it is forgotten":  func(c *Cache, _ *manager) { c.Forget() },
		"when there is no room": func(c *Cache, _ *manager) {
			<-time.After(time.Millisecond)
			for i := range MaxKeys {
				_, _ = c.Get(context.Background(), number(1000+i), func(context.Context) ([]byte, error) { return make([]byte, 32), nil })
			}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, m := New(func(error) {}), &manager{}
				defer c.Close()
				var made []byte
				got, err := c.Get(t.Context(), number(1), func(ctx context.Context) ([]byte, error) {
					dataKey, err := m.unwrap(ctx)
					made = dataKey
					return dataKey, err
				})
				if err != nil || !bytes.Contains(c.memory.Bytes(), secret) {
					t.Fatalf("the data key is not kept: %v", err)
				}
				if !bytes.Equal(got, secret) || bytes.Equal(made, secret) {
					t.Error("the copy of the unwrap was not overwritten, or the one of the caller was")
				}
				end(c, m)
				synctest.Wait()
				if bytes.Contains(c.memory.Bytes(), secret[:8]) {
					t.Error("the data key is still in memory")
				}
			})
		})
	}
}

func TestEachPartOfAnIDCounts(t *testing.T) {
	parts := [][]byte{[]byte("caller"), []byte("profile"), []byte("revision"), []byte("blob"), []byte("context")}
	whole := NewID(parts...)
	for i := range parts {
		changed := append([][]byte{}, parts...)
		changed[i] = append([]byte("x"), parts[i]...)
		if NewID(changed...) == whole {
			t.Errorf("part %d does not count", i)
		}
	}
	if NewID([]byte("ab"), []byte("c")) == NewID([]byte("a"), []byte("bc")) {
		t.Error("the limits between parts do not count")
	}
}
