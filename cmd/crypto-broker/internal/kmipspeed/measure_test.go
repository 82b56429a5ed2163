// SPDX-License-Identifier: Apache-2.0

package kmipspeed

import (
	"context"
	"errors"
	"strconv"
	"testing"
)

func TestDestroyGivesUpOnlyIfNoKeyCanBeDestroyed(t *testing.T) {
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	for sentence, test := range map[string]struct {
		fails func(i int) bool
		tries int
		want  string
	}{
		"all are destroyed":            {func(int) bool { return false }, 1000, ""},
		"every second one fails":       {func(i int) bool { return i%2 == 1 }, 1000, "500 of the 1000 keys that were made are left: 1"},
		"the key manager is gone":      {func(int) bool { return true }, maxFailures, "1000 of the 1000 keys that were made are left: 0"},
		"the key manager ends halfway": {func(i int) bool { return i >= 500 }, 500 + maxFailures, "500 of the 1000 keys that were made are left: 500"},
	} {
		t.Run(sentence, func(t *testing.T) {
			tries := 0
			err := destroy(ids, func(ctx context.Context, id string) error {
				i, err := strconv.Atoi(id)
				if err != nil || ctx.Err() != nil {
					t.Fatal(err, ctx.Err())
				}
				tries++
				if test.fails(i) {
					return errors.New(id)
				}
				return nil
			})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.want || tries != test.tries {
				t.Errorf("found %q after %d tries, expected %q after %d", got, tries, test.want, test.tries)
			}
		})
	}
}
