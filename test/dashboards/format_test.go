// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"math"
	"testing"
)

func TestValuesHaveTheirUnitAndThreeDigits(t *testing.T) {
	for _, test := range []struct {
		value float64
		unit  string
		want  string
	}{
		{0, "s", "0 s"},
		{0.000025, "s", "25 µs"},
		{0.0123456, "s", "12.3 ms"},
		{7776000, "s", "90 d"},
		{math.Inf(1), "s", "more"},
		{0, "bytes", "0 B"},
		{67108864, "bytes", "64 MiB"},
		{1234.5, "reqps", "1.23 K/s"},
		{0.5, "reqps", "0.5/s"},
		{0.0123, "percentunit", "1.23 %"},
		{1, "percentunit", "100 %"},
		{128, "none", "128"},
	} {
		if found := format(test.value, test.unit); found != test.want {
			t.Errorf("%g %s: found %q, expected %q", test.value, test.unit, found, test.want)
		}
	}
}

func TestALegendHasTheLabelsOfItsSeries(t *testing.T) {
	labels := map[string]string{"namespace": "shop", "code": "NotFound"}
	for format, want := range map[string]string{
		"{{namespace}} {{code}}": "shop NotFound",
		"{{workload}} {{code}}":  "NotFound",
		"{{workload}}":           "none",
		"module {{code}}, p99":   "module NotFound, p99",
	} {
		if found := legendText(format, labels); found != want {
			t.Errorf("%q: found %q, expected %q", format, found, want)
		}
	}
}

func TestTheAxisEndsAboveTheHighestValueAtARoundNumber(t *testing.T) {
	for value, want := range map[float64]float64{0: 1, 0.9: 1, 1.5: 2, 2.2: 2.5, 30: 50, 70: 100} {
		if found := niceStep(value); math.Abs(found-want) > 1e-9 {
			t.Errorf("%g: found %g, expected %g", value, found, want)
		}
	}
}

func TestMetricsOfAnExpressionAreFound(t *testing.T) {
	found := Metrics(`sum by (profile) (rate(crypto_broker_requests_total{cluster=~"demo"}[30s])) / on (instance) go_goroutines`)
	if len(found) != 2 || found[0] != "crypto_broker_requests_total" || found[1] != "go_goroutines" {
		t.Errorf("found %q", found)
	}
}
