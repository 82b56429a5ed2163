// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"math"
	"strconv"
)

// scale is a unit with its factor to the base unit.
type scale struct {
	factor float64
	name   string
}

// scales are the units of values, the largest first.
var scales = map[string][]scale{
	"s":           {{86400, " d"}, {3600, " h"}, {60, " min"}, {1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}},
	"bytes":       {{1 << 30, " GiB"}, {1 << 20, " MiB"}, {1 << 10, " KiB"}, {1, " B"}},
	"reqps":       {{1e3, " K/s"}, {1, "/s"}},
	"percentunit": {{0.01, " %"}},
	"none":        {{1e6, " M"}, {1e3, " K"}, {1, ""}},
}

// format returns a value with a unit of Grafana.
func format(value float64, unit string) string {
	if math.IsInf(value, 1) {
		return "more"
	}
	all := scales[unit]
	chosen := all[len(all)-1]
	for _, each := range all {
		if math.Abs(value) >= each.factor {
			chosen = each
			break
		}
	}
	if value == 0 && unit == "s" {
		chosen = scale{1, " s"}
	}
	return strconv.FormatFloat(value/chosen.factor, 'g', digits(value/chosen.factor), 64) + chosen.name
}

// digits returns how many digits a number is shown with: three, or all before the point.
func digits(value float64) int {
	if value == 0 {
		return 1
	}
	return max(3, int(math.Floor(math.Log10(math.Abs(value))))+1)
}
