// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/released"
)

// repository is the checkout of this test.
var repository = filepath.Join("..", "..")

// version is a version of the broker with its contract. Later versions may promise more.
type version struct {
	// name is the name of the version in the table.
	name string
	// binary is the broker.
	binary   string
	profiles []byte
	cases    []Case
}

// ownVersion is the name of the version that is checked out.
const ownVersion = "of this commit"

// readVersion reads the contract of a checkout.
func readVersion(name, source string) (version, error) {
	contract := filepath.Join(source, "test", "contract")
	cases, err := readCases(filepath.Join(contract, "cases"))
	if err != nil {
		return version{}, err
	}
	profiles, err := os.ReadFile(filepath.Join(contract, "profiles.yaml"))
	return version{name: name, profiles: profiles, cases: cases}, err
}

// buildBroker builds the broker of a checkout into a file.
func buildBroker(ctx context.Context, source, binary string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", binary, "./cmd/broker")
	build.Dir = source
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", source, err, output)
	}
	return nil
}

// checkouts checks out the released versions. It returns their names, oldest first, and the checkouts by their names.
func checkouts(t *testing.T) (names []string, sources map[string]string) {
	t.Helper()
	all, err := released.All(repository)
	if err != nil {
		t.Fatal(err)
	}
	sources = map[string]string{}
	for _, each := range all {
		source := filepath.Join(t.TempDir(), "source")
		if _, err := released.Checkout(t.Context(), repository, each.Commit, source); err != nil {
			t.Fatal(err)
		}
		names, sources[each.Name] = append(names, each.Name), source
	}
	return names, sources
}

// versions returns the version that is checked out, and the released versions.
func versions(t *testing.T) []version {
	t.Helper()
	all := []version{own}
	names, sources := checkouts(t)
	for _, name := range names {
		v, err := readVersion(name, sources[name])
		if err != nil {
			t.Fatal(err)
		}
		v.binary = filepath.Join(t.TempDir(), "broker")
		if err := buildBroker(t.Context(), sources[name], v.binary); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// tryCases runs the cases of a broker's version with each driver, and returns which operations each driver supports.
func tryCases(t *testing.T, b *broker, drivers map[string]newDriver) matrix {
	t.Helper()
	found := matrix{}
	for name, start := range drivers {
		t.Run(name+", the broker "+b.version.name, func(t *testing.T) {
			d := open(t, b.socket, start)
			for _, c := range b.version.cases {
				if _, isWire := d.(*wire); c.WireOnly && !isWire {
					continue
				}
				missing, err := c.run(b.values, func(int) driver { return d })
				if err != nil {
					t.Errorf("%s: %v", c.Name, err)
				}
				found.add(strings.TrimSuffix(name, withoutExchange), c, missing)
			}
		})
	}
	return found
}

// versionTable returns a table in Markdown. It has a row for each driver and a column for each version of the broker, in the order of
// names. A cell says which of all operations the driver has with this broker.
func versionTable(names []string, found map[string]matrix, operations []string) string {
	drivers := map[string]bool{}
	for _, m := range found {
		for driver := range m {
			drivers[driver] = true
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| | the broker %s |\n|---|%s\n", strings.Join(names, " | the broker "), strings.Repeat("---|", len(names)))
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		fmt.Fprintf(&b, "| %s |", driver)
		for _, name := range names {
			fmt.Fprintf(&b, " %s |", has(found[name][driver], operations))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// mostMissing is the maximum number of missing operations that a cell names. If more are missing, the cell has their number.
const mostMissing = 3

// has returns the text for a cell: which of the operations the driver supports.
func has(found map[string]bool, operations []string) string {
	var missing []string
	for _, operation := range operations {
		if !found[operation] {
			missing = append(missing, operation)
		}
	}
	switch {
	case len(missing) == 0:
		return "all operations"
	case len(missing) <= mostMissing:
		return "all but " + strings.Join(missing, ", ")
	}
	return fmt.Sprintf("%d of %d operations", len(operations)-len(missing), len(operations))
}

// section is a part of the page that is written by a test.
type section string

// The sections of the page. Each begins with a line, and ends with another one.
const (
	operationsSection section = "operations"
	brokersSection    section = "brokers"
	clientsSection    section = "released clients"
)

// cut returns the section of a page, and what is around it.
func (s section) cut(page string) (before, table, after string, err error) {
	begin := fmt.Sprintf("<!-- The table of %s is written by \"make contract-table\". -->\n", s)
	const end = "<!-- End of the table. -->\n"
	before, rest, found := strings.Cut(page, begin)
	table, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		err = fmt.Errorf("%s: expected %q and then %q", tablePage, begin, end)
	}
	return before + begin, table, end + after, err
}

// compare compares the section of the page with the table that was found, or writes it with -update.
func (s section) compare(t *testing.T, found string) {
	t.Helper()
	content, err := os.ReadFile(tablePage)
	if err != nil {
		t.Fatal(err)
	}
	before, table, after, err := s.cut(string(content))
	if err != nil {
		t.Fatal(err)
	}
	want := "\n" + found + "\n"
	switch {
	case table == want:
	case *update:
		if err := os.WriteFile(tablePage, []byte(before+want+after), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has another table of %s than the one that was found. Run \"make contract-table\". Found:\n%s", tablePage, s, found)
	}
}

func TestATableOfVersionsSaysWhatIsMissing(t *testing.T) {
	all := []string{"A", "B", "C", "D", "E"}
	found := map[string]matrix{
		"of this commit": {"go": {"A": true, "B": true, "C": true, "D": true, "E": true}, "js": {"A": true, "B": false}},
		"v1.0.0":         {"go": {"A": true, "B": true, "D": true}, "js": {"A": true}},
	}
	want := "| | the broker of this commit | the broker v1.0.0 |\n|---|---|---|\n" +
		"| go | all operations | all but C, E |\n| js | 1 of 5 operations | 1 of 5 operations |\n"
	if got := versionTable([]string{"of this commit", "v1.0.0"}, found, all); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
}

// TestThePageHasTheClientsOfEachReleasedVersion fails if somebody adds a version without "make contract-table". No other test of
// "make test" checks this table, because the clients of a release take minutes to build.
func TestThePageHasTheClientsOfEachReleasedVersion(t *testing.T) {
	all, err := released.All(repository)
	content, failed := os.ReadFile(tablePage)
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	_, table, _, err := clientsSection.cut(string(content))
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range all {
		if !strings.Contains(table, " "+each.Name+" |") {
			t.Errorf("%s has no row for the clients of %s. Run \"make contract-table\".", tablePage, each.Name)
		}
	}
}
