// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"bytes"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

const here = "c6a1/bank/91f0"

func signingKey(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

// trusting returns the trust settings of the sources in these tests.
func trusting(lowest int64) signed.Trust {
	public, _ := signingKey(1).Public().(ed25519.PublicKey)
	return signed.Trust{Keys: []ed25519.PublicKey{public}, Audience: here, Lowest: lowest}
}

// signedSet returns a set with a number, as the operator writes it.
func signedSet(t *testing.T, algorithm string, revision int64) map[string]string {
	t.Helper()
	return signedBy(t, 1, here, file(algorithm), revision)
}

func signedBy(t *testing.T, key byte, audience, content string, revision int64) map[string]string {
	t.Helper()
	signature, err := signed.Sign(signed.Statement{Audience: audience, Revision: revision, Time: time.Now(), Digest: profile.Digest([]byte(content))}, signingKey(key))
	must(t, err)
	return map[string]string{profile.FileName: content, signed.FileName: string(signature)}
}

// revision checks the revision in the state.
func (s *source) revision(want int64) {
	s.t.Helper()
	if got := s.State().Revision; got != want {
		s.t.Fatalf("revision %d is told, want %d", got, want)
	}
}

// rejects waits until a set is rejected, and checks the message.
func (s *source) rejects(algorithm string, reason directory.Reason, sentence string) {
	s.t.Helper()
	event := s.next()
	if event.Result != directory.ResultRejected || event.Reason != reason || event.Err == nil || event.Err.Error() != sentence {
		s.t.Fatalf("event %+v\nwant %s: %s", event, reason, sentence)
	}
	eventually(s.t, func() bool { return s.State().Reason == reason })
	if algorithm == "" {
		return
	}
	if p, ok := s.Current().Lookup("P"); !ok || p.Hash().Algorithm().String() != algorithm {
		s.t.Fatalf("%s is not served", algorithm)
	}
}

func TestASetIsServedOnlyWithASignatureForThisPlaceAndAHigherRevision(t *testing.T) {
	digest := profile.Digest([]byte(file("sha-256")))
	unsigned := profiles("sha-512")
	halved := signedSet(t, "sha-512", 8)
	halved[profile.FileName] += "# one more line\n"
	for sentence, test := range map[string]struct {
		files  map[string]string
		reason directory.Reason
		want   string
	}{
		"without a signature":          {unsigned, directory.SignatureRejected, "there is no Profiles.sig beside Profiles.yaml, expected one, because this broker takes only signed sets"},
		"with an empty signature":      {map[string]string{profile.FileName: file("sha-512"), signed.FileName: ""}, directory.SignatureRejected, "Profiles.sig is empty, expected a signature envelope"},
		"with somebody's signature":    {signedBy(t, 2, here, file("sha-512"), 8), directory.SignatureRejected, "Profiles.sig is signed with the keys \"7adc8cda9f0d4b26\", expected one of the trusted keys 6fdb3d1b2a7d4b26"},
		"of another namespace":         {signedBy(t, 1, "c6a1/shop/77aa", file("sha-512"), 8), directory.SignatureRejected, `the set is signed for "c6a1/shop/77aa", expected "c6a1/bank/91f0"`},
		"with one line more":           {halved, directory.SignatureRejected, "the profiles have the digest " + profile.Digest([]byte(halved[profile.FileName])) + ", expected " + profile.Digest([]byte(file("sha-512"))) + " as signed in Profiles.sig"},
		"of yesterday":                 {signedSet(t, "sha-512", 6), directory.RevisionRejected, "the set has the revision 6, expected at least 7, which this broker has served"},
		"of before the admission":      {signedSet(t, "sha-512", 4), directory.RevisionRejected, "the set has the revision 4, expected at least 5, the lowest allowed revision"},
		"with a number that is taken":  {signedSet(t, "sha-512", 7), directory.RevisionRejected, "the set has the revision 7, expected a higher one, because " + digest + " was served with that number"},
		"the same, but with its past":  {signedSet(t, "sha-256", 6), directory.RevisionRejected, "the set has the revision 6, expected at least 7, which this broker has served"},
		"with a signature that is big": {map[string]string{profile.FileName: file("sha-512"), signed.FileName: strings.Repeat("x", 70_000)}, directory.SignatureRejected, "Profiles.sig has more than 65536 bytes, expected a smaller signature envelope"},
	} {
		t.Run("a set "+sentence, func(t *testing.T) {
			if sentence == "with somebody's signature" {
				public, _ := signingKey(2).Public().(ed25519.PublicKey)
				test.want = `Profiles.sig is signed with the keys "` + signed.KeyID(public) + `", expected one of the trusted keys ` + signed.KeyID(trusting(0).Keys[0])
			}
			dir := t.TempDir()
			project(t, dir, signedSet(t, "sha-256", 7))
			s := watch(t, dir, directory.WithTrust(trusting(5), filepath.Join(t.TempDir(), "served")))
			s.serves("sha-256", directory.Loaded)
			s.revision(7)
			project(t, dir, test.files)
			s.rejects("sha-256", test.reason, test.want)
			s.revision(7)
			project(t, dir, signedSet(t, "sha-256", 7))
			s.serves("sha-256", directory.Loaded)
			project(t, dir, signedSet(t, "sha-384", 8))
			s.serves("sha-384", directory.Loaded)
			s.revision(8)
		})
	}
}

func TestAHigherRevisionOfWhatIsServedIsTaken(t *testing.T) {
	dir := t.TempDir()
	project(t, dir, signedSet(t, "sha-256", 7))
	s := watch(t, dir, directory.WithTrust(trusting(0), ""))
	s.serves("sha-256", directory.Loaded)
	since, set := s.State().Since, s.Current()
	project(t, dir, signedSet(t, "sha-256", 9))
	s.serves("sha-256", directory.Loaded)
	eventually(t, func() bool { return s.State().Revision == 9 })
	if s.Current() != set || !s.State().Since.Equal(since) {
		t.Error("the set was compiled again, or counts as another")
	}
	project(t, dir, signedSet(t, "sha-384", 8))
	s.rejects("sha-256", directory.RevisionRejected, "the set has the revision 8, expected at least 9, which this broker has served")
}

func TestABadSetWithAGoodSignatureIsNoSet(t *testing.T) {
	dir := t.TempDir()
	project(t, dir, signedSet(t, "sha-256", 7))
	s := watch(t, dir, directory.WithTrust(trusting(0), ""))
	s.serves("sha-256", directory.Loaded)
	project(t, dir, signedBy(t, 1, here, "- Name: [", 8))
	s.serves("sha-256", directory.SetRejected)
	s.revision(7)
	project(t, dir, signedSet(t, "sha-384", 8)) // the number was never served
	s.serves("sha-384", directory.Loaded)
}

func TestTheEndOfTheProcessIsNoWayBack(t *testing.T) {
	for sentence, test := range map[string]struct {
		files     map[string]string
		algorithm string
		reason    directory.Reason
	}{
		"to the set of yesterday":        {signedSet(t, "sha-512", 6), "sha-256", directory.RevisionRejected},
		"to none":                        {map[string]string{}, "sha-256", directory.Missing},
		"to one that nobody signed":      {profiles("sha-512"), "sha-256", directory.SignatureRejected},
		"to another with the same name":  {signedSet(t, "sha-512", 7), "sha-256", directory.RevisionRejected},
		"to one that cannot be read":     {signedBy(t, 1, here, "- Name: [", 8), "sha-256", directory.SetRejected},
		"but to the same":                {signedSet(t, "sha-256", 7), "sha-256", directory.Loaded},
		"but to one that came meanwhile": {signedSet(t, "sha-512", 8), "sha-512", directory.Loaded},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir, state := t.TempDir(), filepath.Join(t.TempDir(), "run", "served")
			project(t, dir, signedSet(t, "sha-384", 3))
			first := watch(t, dir, directory.WithTrust(trusting(2), state))
			first.serves("sha-384", directory.Loaded)
			project(t, dir, signedSet(t, "sha-256", 7))
			first.serves("sha-256", directory.Loaded)
			first.stop() // otherwise it would also store the next set
			project(t, dir, test.files)

			// The second source knows about the first one only from the directory.
			second := watch(t, dir, directory.WithTrust(trusting(2), state))
			if event := second.next(); !event.Kept || event.Set == nil || event.Revision != 7 {
				t.Fatalf("began with %+v, want what was kept", event)
			}
			second.serves(test.algorithm, test.reason)
		})
	}
}

func TestABrokerThatServedNoProfilesAnyMoreServesNoneAgain(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	project(t, dir, signedSet(t, "sha-256", 7))
	first := watch(t, dir, directory.WithTrust(trusting(0), state))
	first.serves("sha-256", directory.Loaded)
	project(t, dir, signedBy(t, 1, here, "[]\n", 8))
	if event := first.next(); event.Set == nil || event.Set.Len() != 0 {
		t.Fatalf("event %+v, want an empty set", event)
	}
	first.stop()
	project(t, dir, signedSet(t, "sha-256", 7))
	second := watch(t, dir, directory.WithTrust(trusting(0), state))
	if event := second.next(); event.Set == nil || event.Set.Len() != 0 || event.Revision != 8 {
		t.Fatalf("event %+v, want the empty set", event)
	}
	second.rejects("", directory.RevisionRejected, "the set has the revision 7, expected at least 8, which this broker has served")
}

func TestWhatIsKeptIsForTheBrokerAlone(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	must(t, os.Chmod(state, 0o755))
	project(t, dir, signedSet(t, "sha-256", 7))
	s := watch(t, dir, directory.WithTrust(trusting(0), state))
	s.serves("sha-256", directory.Loaded)
	for revision := range int64(5) {
		project(t, dir, signedSet(t, "sha-256", 8+revision))
		s.serves("sha-256", directory.Loaded)
	}
	modes := map[string]os.FileMode{}
	must(t, filepath.Walk(state, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode()&os.ModeSymlink == 0 {
			modes[path] = info.Mode().Perm()
		}
		return err
	}))
	// The previous set may stay until the next set is stored. The directory also has the record.
	if len(modes) > 1+2*3+1 {
		t.Errorf("%d files and directories are kept, want the files of two sets at most and the record: %v", len(modes), modes)
	}
	for path, mode := range modes {
		if info, err := os.Stat(path); err != nil || mode != map[bool]os.FileMode{true: 0o700, false: 0o600}[info.IsDir()] {
			t.Errorf("%s has the mode %o, %v", path, mode, err)
		}
	}
}

func TestADamagedStateCountsAsNoneAndIsTold(t *testing.T) {
	for sentence, test := range map[string]struct {
		damage func(t *testing.T, current string)
		want   string
	}{
		"profiles with one line more": {func(t *testing.T, current string) {
			write(t, filepath.Join(current, profile.FileName), file("sha-256")+"\n")
		}, "the profiles have the digest " + profile.Digest([]byte(file("sha-256")+"\n")) + ", expected " + profile.Digest([]byte(file("sha-256"))) + " as signed in Profiles.sig"},
		"no signature":  {func(t *testing.T, current string) { must(t, os.Remove(filepath.Join(current, signed.FileName))) }, "Profiles.sig is empty, expected a signature envelope"},
		"no profiles":   {func(t *testing.T, current string) { must(t, os.Remove(filepath.Join(current, profile.FileName))) }, "stat CURRENT/Profiles.yaml: no such file or directory"},
		"no files":      {func(t *testing.T, current string) { must(t, os.RemoveAll(current)) }, "stat CURRENT/Profiles.yaml: no such file or directory"},
		"half a file":   {func(t *testing.T, current string) { must(t, os.Truncate(filepath.Join(current, signed.FileName), 0)) }, "Profiles.sig is empty, expected a signature envelope"},
		"a set too old": {func(t *testing.T, current string) { replace(t, current, signedSet(t, "sha-256", 4)) }, "the set has the revision 4, expected at least 5, the lowest allowed revision"},
		"another's set": {func(t *testing.T, current string) {
			replace(t, current, signedBy(t, 1, "c6a1/shop/77aa", file("sha-256"), 9))
		}, `the set is signed for "c6a1/shop/77aa", expected "c6a1/bank/91f0"`},
		"unreadable sets": {func(t *testing.T, current string) { replace(t, current, signedBy(t, 1, here, "- Name: [", 9)) }, "this broker cannot read it"},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir, state := t.TempDir(), t.TempDir()
			project(t, dir, signedSet(t, "sha-256", 7))
			first := watch(t, dir, directory.WithTrust(trusting(5), state))
			first.serves("sha-256", directory.Loaded)
			first.stop() // otherwise it would also store the next set
			current, err := filepath.EvalSymlinks(filepath.Join(state, "..data"))
			must(t, err)
			test.damage(t, current)
			project(t, dir, signedSet(t, "sha-512", 10))
			second := watch(t, dir, directory.WithTrust(trusting(5), state))
			want := "the set kept in " + state + " cannot be used: " + strings.ReplaceAll(test.want, "CURRENT", current)
			if event := second.next(); !event.Kept || event.Err == nil || event.Err.Error() != want {
				t.Fatalf("event %+v\nwant %s", event, want)
			}
			second.serves("sha-512", directory.Loaded)
		})
	}
}

func replace(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		write(t, filepath.Join(dir, name), content)
	}
}

func TestASetThatCannotBeKeptIsNotServedUntilItCan(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "served")
	project(t, dir, signedSet(t, "sha-256", 7))
	s := watch(t, dir, directory.WithTrust(trusting(0), state), directory.WithPollInterval(5*time.Millisecond))
	s.serves("sha-256", directory.Loaded)
	must(t, os.Rename(state, state+".away")) // root may write everywhere
	project(t, dir, signedSet(t, "sha-512", 8))
	s.serves("sha-256", directory.NotKept)
	for range 3 { // the log reports it only once
		if event := <-s.events; event.Result != directory.ResultUnchanged {
			t.Fatalf("event %+v, want one that tells of nothing new", event)
		}
	}
	must(t, os.Rename(state+".away", state))
	s.serves("sha-512", directory.Loaded)
	s.revision(8)
}

func TestFilesThatAreWrittenOneByOneAreTakenTogether(t *testing.T) {
	for sentence, order := range map[string][]string{
		"profiles first":  {profile.FileName, signed.FileName},
		"signature first": {signed.FileName, profile.FileName},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			replace(t, dir, signedSet(t, "sha-256", 7))
			s := watch(t, dir, directory.WithTrust(trusting(0), ""))
			s.serves("sha-256", directory.Loaded)
			next := signedSet(t, "sha-512", 8)
			for _, name := range order {
				write(t, filepath.Join(dir, name), next[name])
			}
			s.serves("sha-512", directory.Loaded)
			// A set that stays incomplete is refused.
			write(t, filepath.Join(dir, profile.FileName), file("sha-384"))
			s.serves("sha-512", directory.SignatureRejected)
		})
	}
}

func TestAProjectionIsReadAsAWholeWhileAKubeletReplacesIt(t *testing.T) {
	dir := t.TempDir()
	project(t, dir, signedSet(t, "sha-256", 1))
	refused := make(chan directory.Event, 1)
	s := watch(t, dir, directory.WithTrust(trusting(0), t.TempDir()), directory.WithPollInterval(100*time.Microsecond),
		directory.WithObserver(func(event directory.Event) {
			if event.Result == directory.ResultRejected {
				select {
				case refused <- event:
				default: // one is enough
				}
			}
		}))
	const last = 200
	for revision := int64(2); revision <= last; revision++ {
		project(t, dir, signedSet(t, []string{"sha-256", "sha-384", "sha-512"}[revision%3], revision))
	}
	eventually(t, func() bool { return s.State().Revision == last })
	select {
	case event := <-refused:
		t.Errorf("event %+v, want none that refuses", event)
	default:
	}
}

func TestATrustThatCannotWorkIsRefusedAtOnce(t *testing.T) {
	occupied := filepath.Join(t.TempDir(), "file")
	write(t, occupied, "")
	for sentence, test := range map[string]struct {
		trust signed.Trust
		state string
		want  string
	}{
		"no key":                     {signed.Trust{Audience: here}, "", "found 0 trusted keys, expected 1 to 16"},
		"a relative state directory": {trusting(0), "served", `state directory "served": expected an absolute path`},
		"a file for a directory":     {trusting(0), occupied, "the state directory " + occupied + " exists and is not a directory: remove it or choose another state directory"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := directory.Watch(t.Context(), "/profiles", directory.WithTrust(test.trust, test.state)); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
