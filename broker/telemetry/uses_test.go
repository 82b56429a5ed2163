// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

// hashed is a use by a user.
func hashed(uid uint32) *profile.Use {
	return &profile.Use{Operation: profile.OpHashData, Algorithm: "sha-256", Caller: callers.Caller{Container: "app", UID: uid, Known: true}}
}

func TestEachUseIsCountedWithItsCallsAndItsLastTime(t *testing.T) {
	metrics := telemetry.NewMetrics("test")
	counters := metrics.Profiles(set(t, "A", "B"))
	first := time.Date(2026, 11, 23, 5, 0, 0, 999, time.UTC)
	counters["A"].Used(hashed(7), first)
	counters["A"].Used(hashed(7), first.Add(time.Hour))
	counters["B"].Used(&profile.Use{
		Operation: profile.OpSignData, Algorithm: "rsa-with-sha-256", Keys: [2]profile.UsedKey{{Algorithm: "RSA", Bits: 2048, ID: "orders"}}, Format: profile.SignatureDER,
	}, first)
	answer := get(t, status(metrics), http.MethodGet, "/uses")
	read, err := telemetry.ReadUses(answer.Body.Bytes())
	if err != nil || read.Version != 1 || read.Since.IsZero() || len(read.Other) != 0 || answer.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("found %+v, %v", read, err)
	}
	for i := range read.Uses {
		if read.Uses[i].Since.Before(read.Since) {
			t.Errorf("the profile is counted since %s, and the broker counts since %s", read.Uses[i].Since, read.Since)
		}
		read.Uses[i].Since = time.Time{}
	}
	seven, zero := uint32(7), uint32(0)
	want := []telemetry.CountedUse{
		{Profile: "A", Operation: "HashData", Algorithm: "sha-256", Container: "app", UID: &seven, GID: &zero, Calls: 2, Last: first.Add(time.Hour).Truncate(time.Second)},
		{Profile: "B", Operation: "SignData", Algorithm: "rsa-with-sha-256", Keys: []telemetry.CountedKey{{Algorithm: "RSA", Bits: 2048, ID: "orders"}}, Format: "DER", Calls: 1, Last: first.Truncate(time.Second)},
	}
	if diff := cmp.Diff(want, read.Uses); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
	for i, want := range []profile.Use{*hashed(7), {
		Operation: profile.OpSignData, Algorithm: "rsa-with-sha-256", Keys: [2]profile.UsedKey{{Algorithm: "RSA", Bits: 2048, ID: "orders"}}, Format: profile.SignatureDER,
	}} {
		if use, err := read.Uses[i].Use(); err != nil || use != want {
			t.Errorf("read %+v, %v", use, err)
		}
	}
}

func TestUsesForWhichThereIsNoRoomAreCountedByOperation(t *testing.T) {
	metrics := telemetry.NewMetrics("test")
	counters := metrics.Profiles(set(t, "A", "B"))
	for uid := range uint32(telemetry.MaxUses + 3) {
		counters["A"].Used(hashed(uid), time.Now())
	}
	counters["A"].Used(hashed(0), time.Now()) // known
	counters["B"].Used(hashed(0), time.Now())
	found := metrics.Uses()
	want := []telemetry.OtherUses{{Profile: "A", Operation: "HashData", Calls: 3}, {Profile: "B", Operation: "HashData", Calls: 1}}
	if len(found.Uses) != telemetry.MaxUses || !cmp.Equal(want, found.Other) {
		t.Errorf("found %d uses and the others %+v", len(found.Uses), found.Other)
	}
	if data, err := json.Marshal(found); err != nil || len(data) > 256<<10 {
		t.Errorf("the answer has %d bytes, %v", len(data), err)
	}

	// A profile that leaves the set makes room, and what still runs with it is not counted.
	second := metrics.Profiles(set(t, "B"))
	counters["A"].Used(hashed(4711), time.Now())
	second["B"].Used(hashed(1), time.Now())
	found = metrics.Uses()
	if len(found.Uses) != 1 || found.Uses[0].Profile != "B" || found.Uses[0].Calls != 1 || len(found.Other) != 1 {
		t.Errorf("found %+v", found)
	}
}

func TestManyProfilesWithoutRoomMakeNoLongAnswer(t *testing.T) {
	metrics := telemetry.NewMetrics("test")
	var names []string
	for i := range 3 * telemetry.MaxUses {
		names = append(names, fmt.Sprintf("p%04d", i))
	}
	counters := metrics.Profiles(set(t, names...))
	for _, name := range names {
		counters[name].Used(hashed(0), time.Now())
	}
	found := metrics.Uses()
	if last := found.Other[len(found.Other)-1]; len(found.Other) != telemetry.MaxUses+1 || last != (telemetry.OtherUses{Calls: telemetry.MaxUses}) {
		t.Errorf("found %d others, the last %+v", len(found.Other), last)
	}
}

func TestCallsAtOneTimeLoseNoCount(t *testing.T) {
	metrics := telemetry.NewMetrics("test")
	counters := metrics.Profiles(set(t, "A"))
	const callers, each = 8, 500
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				counters["A"].Used(hashed(rand.Uint32N(2*telemetry.MaxUses)), time.Now())
			}
		})
	}
	for range 20 {
		metrics.Profiles(set(t, "A"))
		_ = metrics.Uses()
	}
	all.Wait()
	found, calls := metrics.Uses(), uint64(0)
	for _, use := range found.Uses {
		calls += use.Calls
	}
	for _, other := range found.Other {
		calls += other.Calls
	}
	if calls != callers*each || len(found.Uses) > telemetry.MaxUses {
		t.Errorf("found %d calls of %d uses", calls, len(found.Uses))
	}
}

func TestAnAnswerThatNoBrokerGivesIsRefused(t *testing.T) {
	for sentence, body := range map[string]string{
		"no JSON":            `x`,
		"another object":     `{"digest":"x"}`,
		"a version before 1": `{"version":0}`,
	} {
		if _, err := telemetry.ReadUses([]byte(body)); err == nil {
			t.Errorf("%s was read", sentence)
		}
	}
	for sentence, use := range map[string]telemetry.CountedUse{
		"an operation that there is not": {Operation: "Guess"},
		"a format that there is not":     {Operation: "SignData", Format: "XML"},
		"a text with control characters": {Operation: "HashData", Algorithm: "sha\x1b[2J"},
		"a container with a line break":  {Operation: "HashData", Container: "a\nb"},
		"three keys":                     {Operation: "SignData", Keys: make([]telemetry.CountedKey, 3)},
		"a key of control characters":    {Operation: "SignData", Keys: []telemetry.CountedKey{{ID: "\x00"}}},
		"a tag of no size":               {Operation: "DecryptData", TagBits: -8},
	} {
		if found, err := use.Use(); err == nil {
			t.Errorf("%s was read as %+v", sentence, found)
		}
	}
}

func BenchmarkUsed(b *testing.B) {
	metrics := telemetry.NewMetrics("test")
	compiled, _ := profile.Compile(profile.FileName, []byte("- Name: A\n  API: {HashData: {HashAlg: sha-256}}\n"))
	counters := metrics.Profiles(compiled)["A"]
	for uid := range uint32(16) {
		counters.Used(hashed(uid), time.Now())
	}
	now := time.Now()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		use := hashed(3)
		for pb.Next() {
			counters.Used(use, now)
		}
	})
}

func BenchmarkCountedCall(b *testing.B) {
	metrics := telemetry.NewMetrics("test")
	compiled, _ := profile.Compile(profile.FileName, []byte("- Name: A\n  API: {HashData: {HashAlg: sha-256}}\n"))
	counters := metrics.Profiles(compiled)["A"]
	use, now := hashed(3), time.Now()
	reply := &v1.HashDataResponse{HashValue: &v1.HashDataResponse_HashValueRaw{HashValueRaw: make([]byte, 32)}, Descriptor_: &v1.CryptoDescriptor{}}
	b.ReportAllocs()
	for b.Loop() {
		metrics.Begin()
		metrics.End(profile.OpHashData, counters, codes.OK, 30*time.Microsecond, "")
		metrics.Transferred(profile.OpHashData, 100, proto.Size(reply))
		counters.Used(use, now)
	}
}
