// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestAWrongSettingOfTheSessionGatewayIsNamed(t *testing.T) {
	const ports = "expected [host:]port:application port such as 8443:8080, with ports from 1 to 65535"
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"one port":               {[]string{"--session-gateway", "8443"}, ports},
		"port 0":                 {[]string{"--session-gateway", "0:8080"}, ports},
		"the application's is 0": {[]string{"--session-gateway", "8443:0"}, ports},
		"a port beyond all":      {[]string{"--session-gateway", "65536:8080"}, ports},
		"a name of a port":       {[]string{"--session-gateway", "https:8080"}, ports},
		"one port twice":         {[]string{"--session-gateway", "8080:8080"}, "found port 8080 twice"},
		"too many ports":         {[]string{"--session-gateway", "1:2:3:4"}, ports},
		"a path with a query":    {[]string{"--session-gateway", "8443:8080", "--session-gateway-plain", "/a?b"}, "expected an absolute path without a query"},
		"a relative path":        {[]string{"--session-gateway", "8443:8080", "--session-gateway-plain", "/a,b"}, `found the path "b"`},
		"a path in another form": {[]string{"--session-gateway", "8443:8080", "--session-gateway-plain", "/a/../b"}, `expected its normal form "/b"`},
		"a path of the protocol": {[]string{"--session-gateway", "8443:8080", "--session-gateway-plain", "/health"}, "which the gateway serves itself"},
		"paths alone":            {[]string{"--session-gateway-plain", "/a"}, "expected --session-gateway as well"},
		"a profile alone":        {[]string{"--session-gateway-profile", "Shop"}, "expected --session-gateway as well"},
		"a caller of its name":   {[]string{"--session-gateway", "8443:8080", "--callers", "crypto-broker"}, "the name of the session gateway"},
	} {
		t.Run(sentence, func(t *testing.T) {
			code, _, stderr := execute(t, nil, append([]string{"--profiles-dir", "/p"}, test.args...)...)
			if code != 2 || !strings.Contains(stderr, test.want) {
				t.Errorf("code %d, %s", code, stderr)
			}
		})
	}
}

func TestTheSessionGatewayListensOnAllAddressesOrOnOne(t *testing.T) {
	for text, want := range map[string]string{"8443:8080": ":8443", "127.0.0.1:0:8080": "127.0.0.1:0", "[::1]:8443:8080": "[::1]:8443"} {
		var g sessionGateway
		if err := g.readPorts(text); err != nil || g.address != want || g.appPort != 8080 {
			t.Errorf("%s: %+v, %v", text, g, err)
		}
	}
}
