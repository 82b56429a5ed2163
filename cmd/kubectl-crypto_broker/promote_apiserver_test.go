// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

func TestWhyARolloutCannotBePromotedIsSaid(t *testing.T) {
	ns := uncovered(t)
	for name, test := range map[string]struct {
		code int
		args []string
		want string
	}{
		"a profile that there is not":         {program.ExitFailed, []string{"promote", "cprof/nobody"}, `there is no CryptoProfile "nobody" in namespace ` + ns},
		"a cluster profile that there is not": {program.ExitFailed, []string{"abort", "ccprof/nobody"}, `there is no ClusterCryptoProfile "nobody"`},
		"a right that is missing":             {program.ExitFailed, []string{"promote", "cprof/nobody", "--as", "nobody"}, "the right to get cryptoprofiles in namespace " + ns + " is missing (user nobody)"},
		"a name with a path":                  {program.ExitUsage, []string{"promote", "cprof/../configmaps/x"}, `found "cprof/../configmaps/x", expected a profile such as cprof/NAME`},
		"a name that is a path":               {program.ExitUsage, []string{"abort", "cprof/.."}, `found "cprof/..", expected a profile such as cprof/NAME`},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := plugin(t, append(test.args, "-n", ns)...)
			if code != test.code || stdout != "" || !strings.Contains(stderr, test.want) {
				t.Errorf("exit code %d with %q and %q, expected %d with %q", code, stdout, stderr, test.code, test.want)
			}
		})
	}
}
