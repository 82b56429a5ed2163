// SPDX-License-Identifier: Apache-2.0

package rewrap

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/connection"
)

func TestALineThatIsTooLongFailsAloneAndIsPrintedUnchanged(t *testing.T) {
	long := strings.Repeat("0", 3*maxLine)
	for name, input := range map[string]string{
		"between others": "x\n" + long + "\ny\n",
		"at the end":     "x\ny\n" + long + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			var output, stderr bytes.Buffer
			var jobs []string
			r := &Run{Broker: &connection.Broker{Stderr: &stderr}}
			err := r.lines(strings.NewReader(strings.TrimSuffix(input, "\n")), &output)(func(j job) bool {
				jobs = append(jobs, j.name)
				_, err := j.do(context.Background())
				return err != nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if output.String() != input {
				t.Errorf("the output has %d bytes and begins with %.20q, expected the %d bytes of the input", output.Len(), output.String(), len(input))
			}
			before, _, _ := strings.Cut(input, long)
			number := fmt.Sprintf("line %d", 1+strings.Count(before, "\n"))
			if want := number + ": the line has more than"; !strings.HasPrefix(stderr.String(), want) || r.failed.Load() != 1 {
				t.Errorf("%d failures, standard error %q, expected one that begins with %q", r.failed.Load(), stderr.String(), want)
			}
			if len(jobs) != 2 || slices.Contains(jobs, number) {
				t.Errorf("keys of %q were rewrapped, expected two without %s", jobs, number)
			}
		})
	}
}
