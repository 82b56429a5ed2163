// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
)

// asOTLP returns lines as a request of OTLP in JSON, in one line.
func asOTLP(t *testing.T, lines ...string) string {
	t.Helper()
	var records []any
	for _, line := range lines {
		records = append(records, map[string]any{"eventName": "crypto_broker.audit.call", "body": map[string]any{"stringValue": strings.TrimSuffix(line, "\n")}})
	}
	text, err := json.Marshal(map[string]any{"resourceLogs": []any{map[string]any{"scopeLogs": []any{map[string]any{"logRecords": records}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func TestLinesOfManyBrokersInAnyOrderAreChecked(t *testing.T) {
	lines := slices.Concat(written(t), written(t), written(t))
	lines = append(lines, lines[3], lines[10], `{"msg":"profiles changed"}`+"\n")
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same order each time
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	for name, files := range map[string][]string{
		"as lines":            {strings.Join(lines, "")},
		"as lines of files":   {strings.Join(lines[:9], ""), strings.Join(lines[9:], "")},
		"as requests of OTLP": {asOTLP(t, lines[:7]...) + asOTLP(t, lines[7:]...)},
		"as both":             {asOTLP(t, lines[:7]...), strings.Join(lines[7:], "")},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := collected(files...)
			if err != nil {
				t.Fatal(err)
			}
			if r.Records != 15 || r.Chains != 3 || r.Checkpoints != 3 || r.Unsigned != 0 {
				t.Errorf("the report is %+v, expected 15 records in 3 chains that are signed", r)
			}
			if want := []string{"1 lines of other logs", "2 lines are copies"}; len(r.Notes) != 2 || !strings.Contains(r.Notes[0], want[0]) || !strings.Contains(r.Notes[1], want[1]) {
				t.Errorf("the notes are %q, expected %q", r.Notes, want)
			}
		})
	}
}

func TestDamageOfCollectedLinesIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(lines []string) []string
		want   string
	}{
		"a record was removed":       {func(l []string) []string { return append(l[:2], l[3:]...) }, "lines are missing"},
		"the first line was removed": {func(l []string) []string { return l[1:] }, "whose beginning is missing"},
		"a record was changed":       {func(l []string) []string { l[2] = strings.Replace(l[2], "Orders", "Ordera", 1); return l }, "was changed"},
		"a copy of a record was changed": {func(l []string) []string {
			return append(l, strings.Replace(l[2], "Orders", "Ordera", 1))
		}, "but another text"},
		"numbers of records were swapped": {func(l []string) []string {
			l[2] = strings.Replace(l[2], `"audit.sequence":2`, `"audit.sequence":3`, 1)
			l[3] = strings.Replace(l[3], `"audit.sequence":3`, `"audit.sequence":2`, 1)
			return l
		}, "was changed"},
		"a record was moved into another chain": {func(l []string) []string {
			chain := written(t)
			l[2] = strings.Replace(l[2], chainOf(t, l[2]), chainOf(t, chain[2]), 1)
			return append(l, chain...)
		}, "lines are missing"},
		"a record was made to look like another log": {func(l []string) []string { l[2] = `{"msg":"hello"}` + "\n"; return l }, "lines are missing"},
		"a record was cut":                           {func(l []string) []string { l[2] = l[2][:len(l[2])-9] + "\n"; return l }, "is not a line of an audit log"},
		"the signature was changed": {func(l []string) []string {
			l[6] = strings.Replace(l[6], `"signature":"`, `"signature":"AAAA`, 1)
			return l
		}, "was changed"},
		"a record follows the end": {func(l []string) []string {
			return append(l, strings.Replace(l[2], `"audit.sequence":2`, `"audit.sequence":7`, 1))
		}, "follows the end"},
	} {
		for form, write := range map[string]func(*testing.T, ...string) string{
			"lines": func(_ *testing.T, lines ...string) string { return strings.Join(lines, "") },
			"OTLP":  asOTLP,
		} {
			t.Run(name+", as "+form, func(t *testing.T) {
				var found *audit.DamageError
				_, err := collected(write(t, test.damage(written(t))...))
				if !errors.As(err, &found) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("the error is %v, expected %q in it", err, test.want)
				}
			})
		}
	}
}

func chainOf(t *testing.T, line string) string {
	t.Helper()
	var fields struct {
		Chain string `json:"audit.chain"`
	}
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		t.Fatal(err)
	}
	return fields.Chain
}

func TestALineOfACollectorThatIsNoRequestIsDamage(t *testing.T) {
	if _, err := collected(`{"resourceLogs":[{"scopeLogs":` + "\n"); err == nil || !strings.Contains(err.Error(), "line 1 of collected is not a request of OTLP in JSON") {
		t.Errorf("the error is %v, expected the line", err)
	}
}
