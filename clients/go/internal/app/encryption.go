// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
)

// encryptionProfile is the name of the profile that offers EncryptData.
const encryptionProfile = "Data"

// sealed is a ciphertext with its plaintext.
type sealed struct {
	cryptobroker.EncryptDataResult
	plaintext string
}

// encryptionTally counts the calls of EncryptData and DecryptData.
type encryptionTally struct {
	mu sync.Mutex
	// Calls is the number of calls that succeeded, and Failed is the number of calls that failed,
	// by the name of the code.
	Calls  int64            `json:"calls"`
	Failed map[string]int64 `json:"failed"`
	// LastFailed is when the last call failed.
	LastFailed time.Time `json:"lastFailed"`
	Errors     []string  `json:"errors"`
	// KeyIDs are the ids that new ciphertexts named, in the order of their first use.
	KeyIDs []string `json:"keyIds"`
	// OldDecrypted is how often the first ciphertext was decrypted.
	OldDecrypted        int64   `json:"oldDecrypted"`
	SlowestMilliseconds float64 `json:"slowestMilliseconds"`

	oldest *sealed
}

// call encrypts with a key of the broker, decrypts that, and decrypts the first ciphertext, until
// the context ends.
func (t *encryptionTally) call(ctx context.Context, client *cryptobroker.Client, keyID string) {
	for ctx.Err() == nil {
		fresh := t.encrypt(ctx, client, keyID)
		if fresh != nil {
			t.decrypt(ctx, client, fresh)
		}
		t.mu.Lock()
		oldest := t.oldest
		t.mu.Unlock()
		if oldest != nil && t.decrypt(ctx, client, oldest) {
			t.mu.Lock()
			t.OldDecrypted++
			t.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (t *encryptionTally) encrypt(ctx context.Context, client *cryptobroker.Client, keyID string) *sealed {
	plaintext, began := rand.Text(), time.Now()
	result, err := client.EncryptData(ctx, cryptobroker.EncryptDataRequest{
		Profile: encryptionProfile, Key: cryptobroker.KeyID(keyID), Plaintext: []byte(plaintext),
	})
	if !t.count(ctx, err, time.Since(began)) {
		return nil
	}
	fresh := &sealed{result, plaintext}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.oldest == nil {
		t.oldest = fresh
	}
	if !slices.Contains(t.KeyIDs, result.KeyID) {
		t.KeyIDs = append(t.KeyIDs, result.KeyID)
	}
	return fresh
}

func (t *encryptionTally) decrypt(ctx context.Context, client *cryptobroker.Client, s *sealed) bool {
	began := time.Now()
	result, err := client.DecryptData(ctx, cryptobroker.DecryptDataRequest{
		Profile: encryptionProfile, Key: cryptobroker.KeyID(s.KeyID), Ciphertext: s.Ciphertext, Nonce: s.Nonce, Tag: s.Tag,
	})
	if err == nil && string(result.Plaintext) != s.plaintext {
		err = errors.New("the plaintext differs from the text that was encrypted")
	}
	return t.count(ctx, err, time.Since(began))
}

// count counts a call and reports whether it succeeded. It does not count the call that the end of
// the context interrupts.
func (t *encryptionTally) count(ctx context.Context, err error, took time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.Calls++
		t.SlowestMilliseconds = max(t.SlowestMilliseconds, float64(took.Microseconds())/1000)
	case ctx.Err() == nil:
		code := "wrong plaintext"
		var said *cryptobroker.Error
		if errors.As(err, &said) {
			code = said.Code.String()
		}
		t.Failed[code]++
		t.LastFailed = time.Now()
		if text := fmt.Sprint(err); len(t.Errors) < maxErrors && !slices.Contains(t.Errors, text) {
			t.Errors = append(t.Errors, text)
		}
	}
	return err == nil
}
