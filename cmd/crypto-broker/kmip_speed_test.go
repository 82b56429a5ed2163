// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestKMIPSpeedRefusesWhatItCannotMeasureWithASentence(t *testing.T) {
	complete := []string{"--server", "a", "--cert", "c", "--key", "k"}
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"no server":              {nil, "found no --server, expected at least one"},
		"no certificate":         {[]string{"--server", "a"}, "expected --cert and --key: key managers demand a certificate of the client"},
		"no operations":          {append(complete, "--repeat", "0"), "found --repeat 0, expected 1 to 100000"},
		"too many clients":       {append(complete, "--concurrency", "1,11"), "found --concurrency 11, expected 1 to 10"},
		"no clients":             {append(complete, "--concurrency="), `invalid argument "" for "--concurrency" flag`},
		"an unknown form":        {append(complete, "--output", "xml"), `found --output "xml", expected text or csv`},
		"both ways and one":      {append(complete, "-no_reuse", "--compare"), "found --no-reuse and --compare, expected one of them"},
		"a file that is missing": {complete, "read the client's certificate: open c: no such file or directory"},
		"an argument":            {append(complete, "x"), "found 1 arguments, expected none"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var stdout, stderr strings.Builder
			code := run(t.Context(), append([]string{"kmip-speed"}, test.args...), strings.NewReader(""), &stdout, &stderr)
			if code == 0 || stdout.String() != "" || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("exit code %d, %q, %q, want %q", code, stdout.String(), stderr.String(), test.want)
			}
		})
	}
}

func TestFlagsOfKMIPSpeedMayHaveOneDash(t *testing.T) {
	for _, test := range []struct{ args, want []string }{
		{[]string{"kmip-speed", "-no_reuse", "-repeat", "50"}, []string{"kmip-speed", "--no-reuse", "--repeat", "50"}},
		{[]string{"kmip-speed", "--create_rsa", "-server=a_b:1"}, []string{"kmip-speed", "--create-rsa", "--server=a_b:1"}},
		{[]string{"kmip-speed", "-h", "-"}, []string{"kmip-speed", "-h", "-"}},
		{[]string{"health", "-no_reuse"}, []string{"health", "-no_reuse"}},
		{nil, nil},
	} {
		if got := withTwoDashes(test.args); !slices.Equal(got, test.want) {
			t.Errorf("%q becomes %q, want %q", test.args, got, test.want)
		}
	}
}
