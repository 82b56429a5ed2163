// SPDX-License-Identifier: Apache-2.0

package released

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var repository = filepath.Join("..", "..")

// TestEachVersionIsTheOneThatItsCommitStates keeps somebody from naming a commit that states another version.
func TestEachVersionIsTheOneThatItsCommitStates(t *testing.T) {
	all, err := All(repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range all {
		source := filepath.Join(t.TempDir(), "source")
		id, err := Checkout(t.Context(), repository, each.Commit, source)
		if err != nil {
			t.Fatal(err)
		}
		if id != each.Commit {
			t.Errorf("found the commit %s, expected %s", id, each.Commit)
		}
		chart, err := os.ReadFile(filepath.Join(source, "charts", "crypto-broker-operator", "Chart.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		changes, err := os.ReadFile(filepath.Join(source, "CHANGELOG.md"))
		if err != nil {
			t.Fatal(err)
		}
		number := strings.TrimPrefix(each.Name, "v")
		if !strings.Contains(string(chart), "\nappVersion: "+number+"\n") || !strings.Contains(string(changes), "\n## "+number+" - ") {
			t.Errorf("the commit of %s states another version in its chart, or its CHANGELOG.md has no heading for it", each.Name)
		}
	}
}

func TestAFileWithoutVersionsAndAWrongLineAreRefused(t *testing.T) {
	for content, want := range map[string]string{
		"# none\n\n":             "names no version",
		"v0.1.0 main\n":          `has the line "v0.1.0 main", expected a version and its commit`,
		"0.1.0 " + id40 + "\n":   "expected a version and its commit",
		"v0.1.0 " + id40 + " \n": "expected a version and its commit",
	} {
		if _, err := parse(content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: found the error %v, expected %q in it", content, err, want)
		}
	}
	all, err := parse("# two\nv0.1.0 " + id40 + "\n\nv0.2.0-rc.1 " + id40 + "\n")
	if err != nil || len(all) != 2 || all[1] != (Version{"v0.2.0-rc.1", id40}) {
		t.Errorf("found %v and the error %v, expected both versions in their order", all, err)
	}
}

// id40 has the form of a commit's id.
var id40 = strings.Repeat("0a", 20)

func TestACommitThatIsNotThereIsMissedWithWhatToDo(t *testing.T) {
	_, err := Checkout(t.Context(), repository, id40, filepath.Join(t.TempDir(), "source"))
	if err == nil || !strings.Contains(err.Error(), "git fetch --unshallow") {
		t.Errorf("found the error %v, expected that it says how to get the history", err)
	}
}

func TestAShallowCloneTakesAnOldCommitFromItsOrigin(t *testing.T) {
	origin, shallow := filepath.Join(t.TempDir(), "origin"), filepath.Join(t.TempDir(), "shallow")
	in := func(folder string, arguments ...string) string {
		t.Helper()
		output, err := git(t.Context(), folder, arguments...)
		if err != nil {
			t.Fatal(err)
		}
		return output
	}
	in(".", "init", "--quiet", origin)
	for _, message := range []string{"old", "new"} {
		in(origin, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--allow-empty", "--message", message)
	}
	old := in(origin, "rev-parse", "HEAD~1")
	in(".", "clone", "--quiet", "--depth", "1", "file://"+origin, shallow)

	if id, err := Checkout(t.Context(), shallow, old, filepath.Join(t.TempDir(), "source")); err != nil || id != old {
		t.Errorf("found the commit %q and the error %v, expected %s", id, err, old)
	}
	refused := func(which, commit string) {
		t.Helper()
		if _, err := Checkout(t.Context(), shallow, commit, filepath.Join(t.TempDir(), "source")); err == nil || !strings.Contains(err.Error(), "git fetch --unshallow") {
			t.Errorf("%s: found the error %v, expected that it says how to get the history", which, err)
		}
	}
	refused("a commit that the origin does not have", id40)
	refused("a name that the origin may have for another commit", "HEAD~1")
	in(shallow, "remote", "set-url", "origin", filepath.Join(t.TempDir(), "gone"))
	refused("an origin that is gone", old)
}
