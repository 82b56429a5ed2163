// SPDX-License-Identifier: Apache-2.0

package providerreport

import (
	"strings"
	"testing"
	"time"
)

func TestALatencyIsRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		0: 0, -time.Second: 0, time.Microsecond: time.Millisecond, time.Millisecond: time.Millisecond, 1001 * time.Microsecond: 2 * time.Millisecond,
		3 * time.Millisecond: 5 * time.Millisecond, 40 * time.Millisecond: 50 * time.Millisecond, 7 * time.Second: 10 * time.Second, 1000 * time.Hour: 24 * time.Hour,
	} {
		if found := RoundLatency(d); found != want {
			t.Errorf("%s is rounded to %s, expected %s", d, found, want)
		}
	}
}

func TestOnlyWhatAGatewayWritesIsRead(t *testing.T) {
	for sentence, test := range map[string]struct {
		document string
		valid    bool
	}{
		"no provider":             {`{"providers":[]}`, true},
		"a provider that is open": {`{"providers":[{"uid":"1-a","generation":2,"secretVersion":"7","endpoints":[{"reached":true,"version":"KMIP 1.4","latency":1000000,"connections":1}]}]}`, true},
		"one that is closed":      {`{"providers":[{"uid":"1-a","generation":2,"problem":"Invalid","detail":"ca.crt has no certificate"}]}`, true},
		"no JSON":                 {`<html>secret</html>`, false},
		"another type":            {`{"providers":[{"uid":7}]}`, false},
		"no UID":                  {`{"providers":[{"generation":2}]}`, false},
		"a UID with a slash":      {`{"providers":[{"uid":"secret/x"}]}`, false},
		"a problem of two words":  {`{"providers":[{"uid":"1","problem":"secret secret"}]}`, false},
		"a version in two lines":  {`{"providers":[{"uid":"1","endpoints":[{"version":"secret\nsecret"}]}]}`, false},
		"less than no connection": {`{"providers":[{"uid":"1","endpoints":[{"connections":-1}]}]}`, false},
		"a detail without end":    {`{"providers":[{"uid":"1","detail":"` + strings.Repeat("secret", 1000) + `"}]}`, false},
		"endpoints without end":   {`{"providers":[{"uid":"1","endpoints":[` + strings.Repeat("{},", 16) + `{}]}]}`, false},
	} {
		_, err := Parse([]byte(test.document))
		if (err == nil) != test.valid || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v, expected valid %t, and no quotation", sentence, err, test.valid)
		}
	}
}
