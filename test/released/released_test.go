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
