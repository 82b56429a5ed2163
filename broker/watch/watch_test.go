// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// follow watches a directory and returns a channel with a value for each look.
// Nothing but notifications leads to one within the time of a test, unless the
// intervals are changed.
func follow(t *testing.T, dir string, change func(*watch.Config)) (looks chan struct{}, problems chan error) {
	t.Helper()
	looks, problems = make(chan struct{}, 100), make(chan error, 100)
	config := watch.Config{
		Dir:       dir,
		Matters:   func(name string) bool { return name == "file" },
		Look:      func() bool { looks <- struct{}{}; return true },
		Problem:   func(err error) { problems <- err },
		Interval:  time.Hour,
		Unwatched: 10 * time.Millisecond,
		Quiet:     10 * time.Millisecond,
	}
	if change != nil {
		change(&config)
	}
	w := watch.New(config)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	await(t, looks, "the first look")
	return looks, problems
}

func await[T any](t *testing.T, from <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(10 * time.Second):
		t.Fatalf("waited 10 s for %s", what)
	}
	return v
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(time.Now().String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatMattersIsAReasonToLook(t *testing.T) {
	dir := t.TempDir()
	looks, _ := follow(t, dir, nil)
	write(t, filepath.Join(dir, "file"))
	await(t, looks, "a look after the file was written")
}

func TestTheLinkOfAKubeletIsAReasonToLook(t *testing.T) {
	dir := t.TempDir()
	looks, _ := follow(t, dir, nil)
	if err := os.Symlink("..2026_11_20", filepath.Join(dir, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, watch.DataLink)); err != nil {
		t.Fatal(err)
	}
	await(t, looks, "a look after the link was renamed")
}

func TestABurstIsOneLook(t *testing.T) {
	dir := t.TempDir()
	looks, _ := follow(t, dir, func(c *watch.Config) { c.Quiet = 300 * time.Millisecond })
	for range 20 {
		write(t, filepath.Join(dir, "file"))
	}
	await(t, looks, "a look after the burst")
	if len(looks) > 0 {
		t.Errorf("a burst of writes led to %d looks more than one", len(looks))
	}
}

func TestAFileThatDoesNotMatterIsNoReason(t *testing.T) {
	dir := t.TempDir()
	looks, _ := follow(t, dir, nil)
	write(t, filepath.Join(dir, "other"))
	write(t, filepath.Join(dir, "file"))
	await(t, looks, "the look for the file that matters")
	if len(looks) > 0 {
		t.Error("the file that does not matter led to a look of its own")
	}
}

func TestADirectoryInsideIsWatchedWithItsLink(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "inside")
	looks, _ := follow(t, dir, func(c *watch.Config) {
		c.Matters = func(name string) bool { return name == "file" || name == "inside" }
		c.Also = func() []string {
			if _, err := os.Stat(inside); err != nil {
				return nil
			}
			return []string{inside}
		}
	})
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	await(t, looks, "a look after the directory was made")
	write(t, filepath.Join(inside, "file"))
	await(t, looks, "a look after a file inside was written")
	if err := os.RemoveAll(inside); err != nil {
		t.Fatal(err)
	}
	await(t, looks, "a look after the directory was removed")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	await(t, looks, "a look after the directory was made again")
	write(t, filepath.Join(inside, "file"))
	await(t, looks, "a look after a file in the new directory was written")
}

func TestADirectoryThatIsMissingIsLookedAtUntilItIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	looks, problems := follow(t, dir, nil)
	if err := await(t, problems, "the reason why it is not watched"); err == nil {
		t.Error("a missing directory was not told of")
	}
	await(t, looks, "a look without a notification")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := await(t, problems, "the end of the problem"); err != nil {
		t.Errorf("after the directory appeared: %v", err)
	}
}

func TestALookThatFoundNoRestIsFollowedByAnother(t *testing.T) {
	dir := t.TempDir()
	looks := make(chan struct{}, 100)
	count := 0
	follow(t, dir, func(c *watch.Config) {
		before := c.Look
		c.Look = func() bool {
			before()
			looks <- struct{}{}
			count++
			return count != 2
		}
	})
	await(t, looks, "the first look")
	write(t, filepath.Join(dir, "file"))
	await(t, looks, "the look that finds no rest")
	await(t, looks, "another one")
}

func TestTheDirectoryIsLookedAtEvenWhereNothingIsAnnounced(t *testing.T) {
	looks, _ := follow(t, t.TempDir(), func(c *watch.Config) { c.Interval = 10 * time.Millisecond })
	await(t, looks, "a second look")
	await(t, looks, "a third look")
}
