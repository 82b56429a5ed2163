// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"testing"
)

func TestAKeyEncryptsOnlySoOftenWithRandomNonces(t *testing.T) {
	key, err := NewAESGCM(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	key.used.Store(maxRandomNonces - 1)
	if _, _, _, err := key.SealRandom(nil, nil); err != nil {
		t.Errorf("the last time that is allowed: %v", err)
	}
	for range 2 {
		if _, _, _, err := key.SealRandom(nil, nil); !errors.Is(err, ErrExhausted) {
			t.Errorf("%v, want ErrExhausted", err)
		}
	}
	if got := key.used.Load(); got != maxRandomNonces {
		t.Errorf("the count went on to %d", got)
	}
	if _, _, err := key.Seal(make([]byte, NonceSize), nil, nil); err != nil {
		t.Errorf("nonces of the caller are not counted: %v", err)
	}
}
