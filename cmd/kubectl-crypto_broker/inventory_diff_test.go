// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers/brokerstest"
)

// laterMade is when the later of two inventories was made.
var laterMade = regexp.MustCompile(`"to": "[^"]*"`)

// hashed is a broker that has served a digest.
func hashed(algorithm string) telemetry.Uses {
	began := time.Date(2026, 5, 2, 8, 0, 0, 0, time.UTC)
	return telemetry.Uses{Version: 1, Since: began, Uses: []telemetry.CountedUse{{
		Profile: "files", Operation: "HashData", Algorithm: algorithm, Container: "app", Calls: 7, Since: began, Last: began.Add(time.Minute),
	}}}
}

// earlier writes the inventory of a cluster to a file, and returns its name.
func earlier(t *testing.T, cluster brokerstest.Cluster, args ...string) string {
	t.Helper()
	_, stdout, stderr := call(t, "", append([]string{"inventory", "--server", cluster.Serve(t), "-o", "json"}, args...)...)
	file := filepath.Join(t.TempDir(), "earlier.json")
	if err := os.WriteFile(file, []byte(made.ReplaceAllString(stdout, `${1}"2026-05-31T12:00:00Z"`)), 0o600); err != nil || stderr != "" {
		t.Fatalf("%v %s", err, stderr)
	}
	return file
}

func TestTheDifferenceToAnEarlierInventory(t *testing.T) {
	before, now := inventoried(), inventoried()
	before.AddNamespace("bank", nil, nil, map[string]any{"db-0": hashed("sha-256")})
	before.AddNamespace("lab", nil, nil, map[string]any{"one-0": hashed("sha-256")})
	now.AddNamespace("lab", nil, nil, map[string]any{"one-0": hashed("sha3-512")})
	file := earlier(t, before, "-A")
	for name, test := range map[string]struct {
		cluster brokerstest.Cluster
		format  string
		code    int
	}{
		"inventory-diff.txt":      {now, "table", exitNotKnown},
		"inventory-diff.json":     {now, "json", exitNotKnown},
		"inventory-diff-same.txt": {before, "table", program.ExitOK},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := call(t, "", "inventory", "--server", test.cluster.Serve(t), "-A", "--diff", file, "-o", test.format)
			if code != test.code || stderr != "" {
				t.Errorf("exit code %d, expected %d: %s", code, test.code, stderr)
			}
			golden(t, name, laterMade.ReplaceAllString(stdout, `"to": "2026-11-23T12:00:00Z"`))
		})
	}
}

func TestAnEarlierInventoryThatDoesNotFitIsRefused(t *testing.T) {
	cluster := inventoried()
	server := cluster.Serve(t)
	wrong := filepath.Join(t.TempDir(), "wrong.json")
	if err := os.WriteFile(wrong, []byte(`{"version": 9}`), 0o600); err != nil {
		t.Fatal(err)
	}
	all := earlier(t, cluster, "-A")
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"no such file":           {[]string{"-A", "--diff", wrong + "x"}, "no such file or directory"},
		"no inventory":           {[]string{"-A", "--diff", wrong}, "found version 9 of an inventory with 0 uses, expected version 1, as inventory -o json writes it"},
		"of other namespaces":    {[]string{"-n", "shop", "--diff", all}, `--diff: the earlier inventory is of all namespaces, expected namespace "shop"`},
		"of other uses":          {[]string{"-A", "--uses", "sha-1", "--diff", all}, `--diff: the earlier inventory was made with --uses [], expected ["sha-1"]`},
		"of a part of the time":  {[]string{"-A", "--diff", earlier(t, cluster, "-A", "--since", "2026-11-01T00:00:00Z")}, "--diff: an inventory was made with --since, expected none"},
		"as a bill of materials": {[]string{"-A", "--diff", all, "-o", "cyclonedx"}, "--diff is given with --output cyclonedx, expected table, json or yaml"},
	} {
		t.Run(sentence, func(t *testing.T) {
			code, stdout, stderr := call(t, "", append([]string{"inventory", "--server", server}, test.args...)...)
			if code != program.ExitUsage || stdout != "" || !strings.Contains(stderr, test.want) {
				t.Errorf("exit code %d, expected %d and %q: %s%s", code, program.ExitUsage, test.want, stderr, stdout)
			}
		})
	}
}
