// SPDX-License-Identifier: Apache-2.0

//go:build e2e && keymanagers

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// encryption has the numbers of an application's calls of EncryptData and DecryptData, each of which it makes once.
type encryption struct {
	// Calls is the number of calls that succeeded. Failed has the numbers of failed calls by the name of the code.
	Calls        int64            `json:"calls"`
	Failed       map[string]int64 `json:"failed"`
	LastFailed   time.Time        `json:"lastFailed"`
	Errors       []string         `json:"errors"`
	KeyIDs       []string         `json:"keyIds"`
	OldDecrypted int64            `json:"oldDecrypted"`
}

func encryptionOf(t testing.TB, pod *corev1.Pod) (*encryption, error) {
	data, err := podGet(t.Context(), pod, statsPort, "encryption")
	if err != nil {
		return nil, err
	}
	found := &encryption{}
	return found, json.Unmarshal(data, found)
}

func statsOfAll(t testing.TB, apps []corev1.Pod) []encryption {
	t.Helper()
	var all []encryption
	for i := range apps {
		found, err := encryptionOf(t, &apps[i])
		must(t, err)
		all = append(all, *found)
	}
	return all
}

// awaitEncryption waits until each application has encrypted and decrypted that many times more, also its first ciphertext.
func awaitEncryption(t testing.TB, apps []corev1.Pod, more int64) {
	t.Helper()
	before := statsOfAll(t, apps)
	for i := range apps {
		eventually(t, patience, fmt.Sprintf("%s has made %d more calls", apps[i].Name, more), func() error {
			found, err := encryptionOf(t, &apps[i])
			if err == nil && (found.Calls < before[i].Calls+more || found.OldDecrypted <= before[i].OldDecrypted) {
				err = fmt.Errorf("its numbers are %+v, and were %+v", *found, before[i])
			}
			return err
		})
	}
}

// awaitFailures waits until that many calls of each application have failed.
func awaitFailures(t testing.TB, apps []corev1.Pod, before []encryption, more int64) {
	t.Helper()
	for i := range apps {
		eventually(t, patience, fmt.Sprintf("%d calls of %s fail", more, apps[i].Name), func() error {
			found, err := encryptionOf(t, &apps[i])
			if err == nil && total(found.Failed) < total(before[i].Failed)+more {
				err = fmt.Errorf("its numbers are %+v", *found)
			}
			return err
		})
	}
}

func total(failed map[string]int64) (sum int64) {
	for _, each := range failed {
		sum += each
	}
	return sum
}

// outcome has the numbers of all applications for one event.
type outcome struct {
	began      time.Time
	failed     map[string]int64
	lastFailed time.Time
	errors     []string
}

// during runs an event under load, and logs and returns the results of the calls. Calls of another profile must not fail.
func during(t testing.TB, apps []corev1.Pod, event string, happens func()) *outcome {
	t.Helper()
	before, o := statsOfAll(t, apps), &outcome{began: time.Now(), failed: map[string]int64{}}
	var hashed, succeeded int64
	for i := range apps {
		hashed -= mustStats(t, &apps[i]).Calls
	}
	happens()
	for i, after := range statsOfAll(t, apps) {
		succeeded += after.Calls - before[i].Calls
		for code, count := range after.Failed {
			if more := count - before[i].Failed[code]; more > 0 {
				o.failed[code] += more
			}
		}
		if after.LastFailed.After(o.lastFailed) {
			o.lastFailed = after.LastFailed
		}
		o.errors = append(o.errors, after.Errors...)
		hashing := mustStats(t, &apps[i])
		hashed += hashing.Calls
		if hashing.Failed != 0 {
			t.Errorf("%s: %d hashes failed, expected none: %q", event, hashing.Failed, hashing.Errors)
		}
	}
	lasted := "none failed"
	if len(o.failed) > 0 {
		lasted = fmt.Sprintf("failed %v, the last one %.1f s after the begin", o.failed, o.lastFailed.Sub(o.began).Seconds())
	}
	t.Logf("%s, %.1f s: %d encryptions and decryptions succeeded, %s; %d hashes", event, time.Since(o.began).Seconds(), succeeded, lasted, hashed)
	return o
}

func (o *outcome) expectNoFailure(t testing.TB) {
	t.Helper()
	if len(o.failed) > 0 {
		t.Errorf("calls failed %v, expected none: %q", o.failed, o.errors)
	}
}

// expectUnavailableFor fails the test if a call failed with another code, or later than the bound after the given point of time
// (by default the begin of the event).
func (o *outcome) expectUnavailableFor(t testing.TB, bound time.Duration, since ...time.Time) {
	t.Helper()
	from := append(since, o.began)[0]
	for code := range o.failed {
		if code != "UNAVAILABLE" {
			t.Errorf("calls failed %v, expected UNAVAILABLE only: %q", o.failed, o.errors)
		}
	}
	if late := o.lastFailed.Sub(from); late > bound {
		t.Errorf("a call failed %s afterwards, expected none after %s", late, bound)
	}
}
