// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestABurdenHasMemoryOnlyWhereEveryCallWasServedOrRefused(t *testing.T) {
	for sentence, test := range map[string]struct {
		burden burden
		want   string
	}{
		"without a group it is what was resident": {burden{Resident: 3 << 20, Calls: 10}, "3.0 MiB"},
		"a group has more":                        {burden{Resident: 3 << 20, Peak: 2 << 20, Calls: 10}, "3.0 MiB resident, 2.0 MiB in the group"},
		"what was refused is counted":             {burden{Resident: 3 << 20, Calls: 2000, Refused: 1}, "3.0 MiB; 1 of 2,000 calls refused"},
		"what failed takes nothing":               {burden{Resident: 3 << 20, Calls: 10, Failed: 2}, "2 of 10 calls failed"},
		"who was killed has no figures":           {burden{Calls: 10, Failed: 2, Killed: true}, "killed by the system"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := test.burden.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestARefusalIsNoFailure(t *testing.T) {
	var found tally
	for _, err := range []error{nil, status.Error(codes.ResourceExhausted, "enough"), errors.New("broken")} {
		var one tally
		one.count(err)
		found.add(one)
	}
	if found.calls != 3 || found.refused != 1 || found.failed != 1 || found.err == nil || found.err.Error() != "broken" {
		t.Errorf("got %+v", found)
	}
}

func TestThatTheSystemEndsABrokerIsAFailureAndABareServerNot(t *testing.T) {
	killed := burden{Calls: 10, Failed: 4, Killed: true}
	if got := (footprint{Way: unary, Bounded: killed}).errors(); got != 4 {
		t.Errorf("a broker has %d errors, want 4", got)
	}
	if got := (footprint{Way: floor, Bounded: killed}).errors(); got != 0 {
		t.Errorf("a bare server has %d errors, want none", got)
	}
}

func TestIdleMemoryIsJudgedByTheMostOfAllStarts(t *testing.T) {
	r := &results{
		options: options{crowd: crowd{connections: 2, calls: 3, waves: 4}},
		footprints: []footprint{
			{Way: unary, Starts: []time.Duration{time.Millisecond}, Idle: []int64{1 << 20, 2 << 20, 20 << 20}, Own: []int64{1, 2, 3}},
			{Way: floor, Idle: []int64{1 << 20}, Own: []int64{1}},
		},
	}
	var text strings.Builder
	r.writeFootprints(&text)
	for _, want := range []string{
		"| resident when idle: least, median and most of 3 starts | 1.0 MiB, 2.0 MiB, 20.0 MiB | 1.0 MiB, 1.0 MiB, 1.0 MiB | most < 16.0 MiB | **missed** |",
		"Many small calls are 2 connections with 3 hashes of 32 bytes on each at the same time, in 4 waves.",
		"This machine has no control groups for this program",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("got\n%s\nwant in it\n%s", &text, want)
		}
	}
}

func TestTheCommandOfARunNamesNoPlaceOfTheMachine(t *testing.T) {
	o, err := readOptions([]string{"--quick", "--only=hash-32", "--report=/somewhere/page.md", "--before=/somewhere/broker"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "go run . --before PATH --only=hash-32 --quick"; o.command != want {
		t.Errorf("got %q, want %q", o.command, want)
	}
}
