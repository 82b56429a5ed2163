// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"math"
	"testing"
)

func TestConnectionsLeaveTheBrokerTheDescriptorsOfItsFiles(t *testing.T) {
	for sentence, test := range map[string]struct {
		limit   uint64
		callers int
		want    int
		err     string
	}{
		"a low limit":                {256, 1, 85, ""},
		"the limit that is usual":    {1024, 1, 853, ""},
		"a socket for each caller":   {1024, 10, 835, ""},
		"none at all":                {math.MaxUint64, 1, math.MaxInt32, ""},
		"just enough":                {175, 1, 4, ""},
		"not enough":                 {174, 1, 0, "found a limit of 174 open files for the process, expected at least 175: raise it, by ulimit -n, LimitNOFILE= of systemd or the container engine"},
		"not enough for all callers": {256, 20, 0, "found a limit of 256 open files for the process, expected at least 289: raise it, by ulimit -n, LimitNOFILE= of systemd or the container engine"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := connectionLimit(test.limit, test.callers)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}
