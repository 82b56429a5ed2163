// SPDX-License-Identifier: Apache-2.0

package measurement

import "testing"

func TestAMedianFavoursNeitherSide(t *testing.T) {
	for name, test := range map[string]struct {
		values []float64
		want   Spread
	}{
		"of an odd number it is the one in the middle":            {[]float64{5, 1, 3, 2, 4}, Spread{2, 3, 4}},
		"of an even number it is halfway between the two of them": {[]float64{4, 1, 2, 9}, Spread{2, 3, 4}},
		"of one it is that":     {[]float64{7}, Spread{7, 7, 7}},
		"of none it is nothing": {nil, Spread{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := SpreadOf(test.values); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
