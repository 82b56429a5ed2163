// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// never is a poll interval that no test reaches. So only notifications of the file system can report a change.
const never = time.Hour

// waitLimit is far above what anything here takes; only a failure reaches it.
const waitLimit = 20 * time.Second

func file(algorithm string) string {
	return "- Name: P\n  API:\n    HashData:\n      HashAlg: " + algorithm + "\n"
}

// source is a watched directory and the events it had.
type source struct {
	*directory.Source
	t      *testing.T
	events chan directory.Event
	// stop ends the watching and returns when it has ended.
	stop func()
}

func watch(t *testing.T, dir string, options ...directory.Option) *source {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &source{t: t, events: make(chan directory.Event, 1024)}
	options = append([]directory.Option{
		directory.WithPollInterval(never),
		directory.WithObserver(func(event directory.Event) { s.events <- event }),
	}, options...)
	var err error
	if s.Source, err = directory.Watch(ctx, dir, options...); err != nil {
		cancel()
		t.Fatal(err)
	}
	s.stop = func() { cancel(); s.Wait() }
	t.Cleanup(s.stop)
	return s
}

// next waits for the next look at the directory that found something new.
func (s *source) next() directory.Event {
	s.t.Helper()
	deadline := time.After(waitLimit)
	for {
		select {
		case event := <-s.events:
			if event.Result != directory.ResultUnchanged {
				return event
			}
		case <-deadline:
			s.t.Fatal("nothing new was found in the directory")
		}
	}
}

// serves waits until the algorithm is served and checks the state beside it.
func (s *source) serves(algorithm string, reason directory.Reason) {
	s.t.Helper()
	event := s.next()
	if event.Reason != reason {
		s.t.Fatalf("event %+v, want reason %s", event, reason)
	}
	// The state follows the event, which is what lets a server be first.
	eventually(s.t, func() bool {
		state := s.State()
		return state.Reason == reason && (event.Set == nil || event.Set.Digest() == state.Digest)
	})
	state := s.State()
	if algorithm == "" {
		if s.Current() != nil || state.Digest != "" || !state.Since.IsZero() {
			s.t.Fatalf("something is served: %+v", state)
		}
		return
	}
	p, ok := s.Current().Lookup("P")
	if !ok || p.Hash().Algorithm().String() != algorithm {
		s.t.Fatalf("%s is not served", algorithm)
	}
	if state.Digest != s.Current().Digest() || state.Since.IsZero() {
		s.t.Fatalf("state %+v, want digest %s", state, s.Current().Digest())
	}
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	deadline := time.After(waitLimit)
	for !condition() {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatal("what was waited for did not happen")
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// project replaces the files of a projected volume in the steps of a kubelet: a
// new directory, a new link beside the old one, renamed over it, links to the
// files where they are missing, and the old directory removed.
func project(t *testing.T, volume string, files map[string]string) {
	t.Helper()
	stamped, err := os.MkdirTemp(volume, time.Now().UTC().Format("..2006_01_02_15_04_05."))
	must(t, err)
	must(t, os.Chmod(stamped, 0o755))
	for name, content := range files {
		write(t, filepath.Join(stamped, name), content)
	}
	data := filepath.Join(volume, "..data")
	old, _ := os.Readlink(data) // there is none the first time
	must(t, os.Symlink(filepath.Base(stamped), filepath.Join(volume, "..data_tmp")))
	must(t, os.Rename(filepath.Join(volume, "..data_tmp"), data))
	for name := range files {
		if _, err := os.Lstat(filepath.Join(volume, name)); os.IsNotExist(err) {
			must(t, os.Symlink(filepath.Join("..data", name), filepath.Join(volume, name)))
		}
	}
	entries, err := os.ReadDir(volume)
	must(t, err)
	for _, entry := range entries {
		if _, keep := files[entry.Name()]; !keep && !strings.HasPrefix(entry.Name(), "..") {
			must(t, os.Remove(filepath.Join(volume, entry.Name())))
		}
	}
	if old != "" {
		must(t, os.RemoveAll(filepath.Join(volume, old)))
	}
}

func profiles(algorithm string) map[string]string {
	return map[string]string{profile.FileName: file(algorithm)}
}

func TestAProjectedVolumeIsFollowedThroughManyReplacements(t *testing.T) {
	dir := t.TempDir()
	project(t, dir, profiles("sha-256"))
	s := watch(t, dir)
	s.serves("sha-256", directory.Loaded)
	for range 5 {
		for _, algorithm := range []string{"sha-384", "sha-512", "sha3-512"} {
			project(t, dir, profiles(algorithm))
			s.serves(algorithm, directory.Loaded)
		}
	}
}

func TestAFileThatAppearsLateIsServed(t *testing.T) {
	dir := t.TempDir()
	s := watch(t, dir)
	s.serves("", directory.NoProfiles)
	project(t, dir, profiles("sha-256"))
	s.serves("sha-256", directory.Loaded)
}

func TestADirectoryThatAppearsLateIsWatchedFromThenOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	s := watch(t, dir)
	s.serves("", directory.NoProfiles)
	must(t, os.Mkdir(dir, 0o755))
	write(t, filepath.Join(dir, profile.FileName), file("sha-256"))
	s.serves("sha-256", directory.Loaded)
	write(t, filepath.Join(dir, profile.FileName), file("sha-512"))
	s.serves("sha-512", directory.Loaded)
}

func TestADirectoryThatIsReplacedIsWatchedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "profiles")
	must(t, os.Mkdir(dir, 0o755))
	write(t, filepath.Join(dir, profile.FileName), file("sha-256"))
	s := watch(t, dir)
	s.serves("sha-256", directory.Loaded)
	must(t, os.RemoveAll(dir))
	s.serves("sha-256", directory.Missing)
	must(t, os.Mkdir(dir, 0o755))
	write(t, filepath.Join(dir, profile.FileName), file("sha-384"))
	s.serves("sha-384", directory.Loaded)
	write(t, filepath.Join(dir, profile.FileName), file("sha-512"))
	s.serves("sha-512", directory.Loaded)
}

func TestWhatIsWrongNeverReplacesWhatIsServed(t *testing.T) {
	for sentence, test := range map[string]struct {
		files  map[string]string
		reason directory.Reason
	}{
		"a file that is no YAML":            {map[string]string{profile.FileName: "- Name: [P"}, directory.SetRejected},
		"a file without a valid profile":    {map[string]string{profile.FileName: file("md5")}, directory.SetRejected},
		"an empty file":                     {map[string]string{profile.FileName: ""}, directory.SetRejected},
		"a file above the limit":            {map[string]string{profile.FileName: strings.Repeat("#", 2*profile.MaxFileSize)}, directory.SetRejected},
		"a volume that lost the file":       {map[string]string{"other": ""}, directory.Missing},
		"a file with an unknown root key":   {map[string]string{profile.FileName: "Profilez: []\n"}, directory.SetRejected},
		"a file of a version of the future": {map[string]string{profile.FileName: "FormatVersion: 9\nProfiles: []\n"}, directory.SetRejected},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			project(t, dir, profiles("sha-256"))
			s := watch(t, dir)
			s.serves("sha-256", directory.Loaded)
			since := s.State().Since
			project(t, dir, test.files)
			s.serves("sha-256", test.reason)
			project(t, dir, profiles("sha-256"))
			s.serves("sha-256", directory.Loaded)
			if got := s.State().Since; !got.Equal(since) {
				t.Errorf("served since %s, yet it was served all the time since %s", got, since)
			}
			project(t, dir, profiles("sha-512"))
			s.serves("sha-512", directory.Loaded)
		})
	}
}

func TestAProfileWithAProblemLeavesTheOthersInService(t *testing.T) {
	dir := t.TempDir()
	project(t, dir, profiles("sha-256"))
	s := watch(t, dir)
	s.serves("sha-256", directory.Loaded)
	project(t, dir, map[string]string{profile.FileName: file("sha-512") + "- Name: Bad\n"})
	s.serves("sha-512", directory.ProfilesRejected)
	if got := s.Current().Rejected(); got != 1 {
		t.Errorf("%d profiles rejected, want 1", got)
	}
}

func TestAnEmptyListTakesAllProfilesFromABrokerThatServes(t *testing.T) {
	dir := t.TempDir()
	project(t, dir, profiles("sha-256"))
	s := watch(t, dir)
	s.serves("sha-256", directory.Loaded)
	project(t, dir, map[string]string{profile.FileName: "[]\n"})
	if event := s.next(); event.Set == nil || event.Set.Len() != 0 || event.Reason != directory.Loaded {
		t.Fatalf("event %+v, want an empty set", event)
	}
	eventually(t, func() bool { return s.Current().Len() == 0 })
}

func TestAnEmptyListIsNoFirstSet(t *testing.T) {
	dir := t.TempDir()
	project(t, dir, map[string]string{profile.FileName: "[]\n"})
	s := watch(t, dir)
	s.serves("", directory.NoProfiles)
	project(t, dir, profiles("sha-256"))
	s.serves("sha-256", directory.Loaded)
}

func TestWhatIsNoRegularFileIsRefusedWithoutWaiting(t *testing.T) {
	pipe := func(name string) error { return unix.Mkfifo(name, 0o644) }
	for sentence, test := range map[string]struct {
		name string
		make func(name string) error
	}{
		"a directory in the place of the profiles": {profile.FileName, func(name string) error { return os.Mkdir(name, 0o755) }},
		"a pipe in the place of the profiles":      {profile.FileName, pipe},
		"a device in the place of the profiles":    {profile.FileName, func(name string) error { return os.Symlink("/dev/zero", name) }},
		"a pipe in the place of the signature":     {signed.FileName, pipe},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, profile.FileName), file("sha-256"))
			name := filepath.Join(dir, test.name)
			must(t, errors.Join(os.RemoveAll(name), test.make(name)))
			event := watch(t, dir, directory.WithTrust(trusting(0), "")).next()
			if event.Reason != directory.NoProfiles || event.Err == nil || event.Err.Error() != "read "+name+": is not a regular file" {
				t.Errorf("event %+v", event)
			}
		})
	}
}

func TestAChangeThatNothingAnnouncesIsFoundByPolling(t *testing.T) {
	parent := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(parent, "a"), 0o755))
	must(t, os.MkdirAll(filepath.Join(parent, "b"), 0o755))
	write(t, filepath.Join(parent, "a", profile.FileName), file("sha-256"))
	write(t, filepath.Join(parent, "b", profile.FileName), file("sha-512"))
	// No notification comes when a link to the directory changes.
	link := filepath.Join(parent, "profiles")
	must(t, os.Symlink("a", link))
	s := watch(t, link, directory.WithPollInterval(10*time.Millisecond))
	s.serves("sha-256", directory.Loaded)
	must(t, os.Symlink("b", link+".new"))
	must(t, os.Rename(link+".new", link))
	s.serves("sha-512", directory.Loaded)
}

func TestAServerIsHandedASetBeforeAnybodyIsToldOfIt(t *testing.T) {
	dir := t.TempDir()
	project(t, dir, profiles("sha-256"))
	var watched atomic.Pointer[directory.Source]
	told := make(chan string, 16)
	ctx, cancel := context.WithCancel(t.Context())
	source, err := directory.Watch(ctx, dir, directory.WithPollInterval(never), directory.WithObserver(func(event directory.Event) {
		if source := watched.Load(); source != nil && event.Set != nil {
			told <- source.State().Digest
		}
	}))
	must(t, err)
	defer func() { cancel(); source.Wait() }()
	watched.Store(source)
	before := source.State().Digest
	project(t, dir, profiles("sha-512"))
	select {
	case digest := <-told:
		if digest != before {
			t.Errorf("the state told of %s before the observer had it", digest)
		}
	case <-time.After(waitLimit):
		t.Fatal("the change was not seen")
	}
}

func TestAnUnwatchableDirectoryIsReportedOnceAndAgainWhenItIsWatched(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	reports := make(chan error, 16)
	s := watch(t, dir, directory.WithWatchProblem(func(err error) { reports <- err }), directory.WithPollInterval(5*time.Millisecond))
	if err := <-reports; !os.IsNotExist(err) {
		t.Fatalf("reported %v, want that the directory does not exist", err)
	}
	for range 20 { // polls meanwhile
		<-s.events
	}
	must(t, os.Mkdir(dir, 0o755))
	if err := <-reports; err != nil {
		t.Fatalf("reported %v, want that the directory is watched", err)
	}
}

func TestWatchRefusesWhatCannotWork(t *testing.T) {
	for sentence, test := range map[string]struct {
		dir     string
		options []directory.Option
		want    string
	}{
		"a relative path":   {"profiles", nil, `profile directory "profiles": expected an absolute path`},
		"a poll of no time": {"/profiles", []directory.Option{directory.WithPollInterval(0)}, "poll interval 0s: expected more than 0"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := directory.Watch(t.Context(), test.dir, test.options...); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
