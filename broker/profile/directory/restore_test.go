// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

// leaveKept leaves the set with revision 7 in a state directory, like a broker that has ended. It returns the directory of the
// profiles, the state directory, and the directory in it with the set.
func leaveKept(t *testing.T) (dir, state, current string) {
	t.Helper()
	dir, state = t.TempDir(), t.TempDir()
	project(t, dir, signedSet(t, "sha-256", 7))
	first := watch(t, dir, directory.WithTrust(trusting(2), state))
	first.serves("sha-256", directory.Loaded)
	first.stop() // otherwise it would also store the next set
	current, err := filepath.EvalSymlinks(filepath.Join(state, "..data"))
	must(t, err)
	return dir, state, current
}

// newest is the record of the newest revision.
const newest = "newest"

func TestAfterTheKeptSetIsDamagedOnlyANewerOneIsServed(t *testing.T) {
	for sentence, damage := range map[string]func(t *testing.T, state, current string){
		"its profiles have one line more": func(t *testing.T, _, current string) {
			write(t, filepath.Join(current, profile.FileName), file("sha-256")+"\n")
		},
		"its signature is gone": func(t *testing.T, _, current string) {
			must(t, os.Remove(filepath.Join(current, signed.FileName)))
		},
		"its files are gone": func(t *testing.T, _, current string) { must(t, os.RemoveAll(current)) },
		"the link to it is gone": func(t *testing.T, state, _ string) {
			must(t, os.Remove(filepath.Join(state, "..data")))
		},
		"it is an older one": func(t *testing.T, _, current string) { replace(t, current, signedSet(t, "sha-384", 5)) },
		"it is another one with its number": func(t *testing.T, _, current string) {
			replace(t, current, signedSet(t, "sha-384", 7))
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir, state, current := leaveKept(t)
			damage(t, state, current)
			project(t, dir, signedSet(t, "sha-512", 6))
			second := watch(t, dir, directory.WithTrust(trusting(2), state))
			if event := second.next(); !event.Kept || event.Set != nil || event.Err == nil {
				t.Fatalf("event %+v, want one that says what is wrong with the set", event)
			}
			const reason = "expected a higher one than 7, the last revision that this broker has served, because the set kept with it is damaged"
			second.rejects("", directory.NoProfiles, "the set has the revision 6, "+reason)
			project(t, dir, signedSet(t, "sha-512", 7))
			second.rejects("", directory.NoProfiles, "the set has the revision 7, "+reason)
			project(t, dir, signedSet(t, "sha-512", 8))
			second.serves("sha-512", directory.Loaded)
			second.stop()
			third := watch(t, dir, directory.WithTrust(trusting(2), state))
			if event := third.next(); !event.Kept || event.Revision != 8 {
				t.Fatalf("event %+v, want the set that is kept by now", event)
			}
		})
	}
}

func TestWhereNothingTellsWhatWasServedNoSetIsTaken(t *testing.T) {
	for sentence, damage := range map[string]func(t *testing.T, state, current string){
		"the set is damaged and there is no record": func(t *testing.T, state, current string) {
			must(t, os.RemoveAll(current))
			must(t, os.Remove(filepath.Join(state, newest)))
		},
		"the set and the record are damaged": func(t *testing.T, state, current string) {
			must(t, os.RemoveAll(current))
			must(t, os.Truncate(filepath.Join(state, newest), 10))
		},
		"the record has another revision than its checksum": func(t *testing.T, state, _ string) {
			text, err := os.ReadFile(filepath.Join(state, newest))
			must(t, err)
			write(t, filepath.Join(state, newest), strings.Replace(string(text), "1 7 ", "1 3 ", 1))
		},
		"the record is a directory": func(t *testing.T, state, _ string) {
			must(t, os.Remove(filepath.Join(state, newest)))
			must(t, os.Mkdir(filepath.Join(state, newest), 0o700))
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir, state, current := leaveKept(t)
			damage(t, state, current)
			project(t, dir, signedSet(t, "sha-512", 1000))
			second := watch(t, dir, directory.WithTrust(trusting(2), state))
			if event := second.next(); !event.Kept || event.Set != nil || event.Err == nil {
				t.Fatalf("event %+v, want one that says what is wrong", event)
			}
			second.rejects("", directory.NoProfiles, "what is kept in "+state+" is damaged, so the broker does not know which set it served last, and serves none: to accept any signed set again, stop the broker, empty that directory and start the broker, or delete the pod")
			second.stop()

			// The advice in the message helps.
			must(t, os.RemoveAll(state))
			third := watch(t, dir, directory.WithTrust(trusting(2), state))
			third.serves("sha-512", directory.Loaded)
		})
	}
}

// An older broker writes no record, and a broker can end before it has written its record.
func TestASetThatIsKeptWithoutARecordIsServedAndGetsOne(t *testing.T) {
	dir, state, _ := leaveKept(t)
	must(t, os.Remove(filepath.Join(state, newest)))
	second := watch(t, dir, directory.WithTrust(trusting(2), state))
	if event := second.next(); !event.Kept || event.Revision != 7 {
		t.Fatalf("event %+v, want what was kept", event)
	}
	second.serves("sha-256", directory.Loaded)
	if _, err := os.Stat(filepath.Join(state, newest)); err != nil {
		t.Error(err)
	}
}

// Keys and audience of a broker outside of a cluster may change between two starts.
func TestAKeptSetThatIsWholeAndNotTrustedAnyMoreIsTakenWhenItIsSignedAnew(t *testing.T) {
	dir, state, _ := leaveKept(t)
	trust := trusting(2)
	trust.Audience = "c6a1/bank/another"
	second := watch(t, dir, directory.WithTrust(trust, state))
	if event := second.next(); !event.Kept || event.Set != nil {
		t.Fatalf("event %+v, want one that refuses what was kept", event)
	}
	second.next() // the profile directory has this set, too
	project(t, dir, signedBy(t, 1, trust.Audience, file("sha-256"), 6))
	second.rejects("", directory.NoProfiles, "the set has the revision 6, expected at least 7, which this broker has served")
	project(t, dir, signedBy(t, 1, trust.Audience, file("sha-256"), 7))
	second.serves("sha-256", directory.Loaded)
}

func TestAPipeInTheStateDirectoryIsNotWaitedFor(t *testing.T) {
	dir, state, current := leaveKept(t)
	name := filepath.Join(current, profile.FileName)
	must(t, os.Remove(name))
	must(t, unix.Mkfifo(name, 0o600))
	second := watch(t, dir, directory.WithTrust(trusting(2), state))
	want := "the set kept in " + state + " cannot be used: read " + name + ": is not a regular file"
	if event := second.next(); !event.Kept || event.Err == nil || event.Err.Error() != want {
		t.Fatalf("event %+v\nwant %s", event, want)
	}
}
