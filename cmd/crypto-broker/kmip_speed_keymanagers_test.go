// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers || interop

package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/kmipspeed"
	"github.com/crypto-broker/crypto-broker-operator/test/keymanagers"
)

func TestKMIPSpeedMeasuresAKeyManagerAndLeavesNoKeys(t *testing.T) {
	keymanagers.EachKMIP(t, func(t *testing.T, product keymanagers.KMIP) {
		count := 1
		if product.WritesTogether {
			count = 2
		}
		servers := product.Start(t, count)
		charts := t.TempDir()
		call := func(args ...string) (code int, stdout, stderr string) {
			var out, problems strings.Builder
			args = append([]string{"kmip-speed", "-server", strings.Join(servers.Addresses, ","), "-cert", servers.Certificate, "-key", servers.Key, "-ca", servers.Authority}, args...)
			return run(t.Context(), args, strings.NewReader(""), &out, &problems), out.String(), problems.String()
		}
		code, stdout, stderr := call("-repeat", "5", "-get", "-wrap", "-create", "-create_rsa", "--concurrency", "1,3", "--compare", "--output", "csv", "--charts", charts)
		if code != 0 {
			t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
		}
		records, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
		if err != nil || len(records) != 1+4*2*2 {
			t.Fatalf("%d lines of CSV, want a header and 16: %v\n%s", len(records), err, stdout)
		}
		for _, record := range records[1:] {
			if record[3] == "" || record[6] != "0" {
				t.Errorf("a measurement has failures or no rate: %q", record)
			}
		}
		for _, operation := range kmipspeed.Operations[:4] {
			picture, err := os.ReadFile(filepath.Join(charts, kmipspeed.ChartName(operation.Name)))
			if err != nil || !strings.Contains(string(picture), operation.Name) {
				t.Errorf("the chart of %s: %v", operation.Name, err)
			}
		}
		if got := servers.CountKeys(t); got != 0 {
			t.Errorf("%d keys are left, want none", got)
		}

		code, stdout, _ = call("-repeat", "2", "-create_ecc")
		if product.EllipticCurves {
			if code != 0 {
				t.Errorf("exit code %d, want 0:\n%s", code, stdout)
			}
		} else if code != 1 || !strings.Contains(stdout, "create EC P-256        1       reused               –       –    –       2") {
			t.Errorf("exit code %d, want 1, and no rate beside failures:\n%s", code, stdout)
		}

		if code, stdout, stderr = call("-versions"); code != 0 || !strings.Contains(stdout, servers.Addresses[count-1]+": ") || !strings.Contains(stdout, "1.4") {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
	})
}
