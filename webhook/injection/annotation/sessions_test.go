// SPDX-License-Identifier: Apache-2.0

package annotation_test

import (
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/session"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/annotation"
)

func TestPlainPathsAreTheOnesThatTheBrokerAccepts(t *testing.T) {
	for text, want := range map[string]bool{
		"/healthz":                      true,
		"/healthz,/readyz":              true,
		"/a/b-c_d~e.f/.well":            true,
		"/session":                      true,
		"/health/live":                  true,
		"":                              false,
		"/":                             false,
		"a":                             false,
		"/a/":                           false,
		"/a//b":                         false,
		"/a/./b":                        false,
		"/a/..":                         false,
		"/a%2Fb":                        false,
		"/a?b":                          false,
		"/a,":                           false,
		"/a, /b":                        false,
		"/a,/health":                    false,
		"/session/init,/a":              false,
		"/$(HOME)":                      false,
		strings.Repeat("/a", 9):         true,
		"/" + strings.Repeat("a", 2048): false,
	} {
		if got := annotation.PlainPaths.Fits(text); got != want {
			t.Errorf("%.50q: %t, want %t", text, got, want)
		}
		if want {
			for path := range strings.SplitSeq(text, ",") {
				if normal, ok := session.NormalPath(path); !ok || normal != path {
					t.Errorf("%q is not in normal form", path)
				}
			}
		}
	}
}

func TestSessionPortsAreTwoPorts(t *testing.T) {
	listen, app, ok := annotation.PortsOf("8443:8080")
	if listen != 8443 || app != 8080 || !ok {
		t.Errorf("got %d, %d, %t", listen, app, ok)
	}
	if _, _, ok := annotation.PortsOf("8443:99999"); ok {
		t.Error("99999 is taken for a port")
	}
}
