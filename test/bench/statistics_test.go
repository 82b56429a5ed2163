// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestAMedianFavoursNeitherSide(t *testing.T) {
	for name, test := range map[string]struct {
		values []float64
		want   spread
	}{
		"of an odd number it is the one in the middle":            {[]float64{5, 1, 3, 2, 4}, spread{2, 3, 4}},
		"of an even number it is halfway between the two of them": {[]float64{4, 1, 2, 9}, spread{2, 3, 4}},
		"of one it is that":     {[]float64{7}, spread{7, 7, 7}},
		"of none it is nothing": {nil, spread{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := spreadOf(test.values); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
