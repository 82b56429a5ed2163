// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers/brokerstest"
)

// inventoried is a cluster with a use of each kind.
func inventoried() brokerstest.Cluster {
	began := time.Date(2026, 11, 20, 9, 12, 0, 0, time.UTC)
	use := func(name, operation, algorithm string, keys ...telemetry.CountedKey) telemetry.CountedUse {
		return telemetry.CountedUse{Profile: name, Operation: operation, Algorithm: algorithm, Keys: keys, Container: "app", Calls: 42, Since: began, Last: began.Add(time.Hour)}
	}
	rsa := telemetry.CountedKey{Algorithm: "RSA", Bits: 2048, ID: "orders"}
	aes := telemetry.CountedKey{Algorithm: "AES", Bits: 256, ID: "kek"}
	p256 := telemetry.CountedKey{Algorithm: "ECDSA", Bits: 256}
	c := brokerstest.Cluster{}
	c.AddNamespace("shop", nil, nil, map[string]any{
		"web-0": telemetry.Uses{Version: 1, Since: began, Uses: []telemetry.CountedUse{
			use("payments", "SignData", "rsa-with-sha-256", rsa),
			use("payments", "EncryptData", "aes-gcm", aes),
		}},
		"web-1": telemetry.Uses{Version: 1, Since: began.Add(time.Hour), Uses: []telemetry.CountedUse{use("payments", "SignData", "rsa-with-sha-256", rsa)}},
		"audit": telemetry.Uses{Version: 1, Since: began, Uses: []telemetry.CountedUse{
			use("archive", "SignCertificate", "ecdsa-with-sha-384", telemetry.CountedKey{Algorithm: "ECDSA", Bits: 384, ID: "ca"}, p256),
			use("archive", "SignData", "ecdsa-with-sha-384+ml-dsa-87", telemetry.CountedKey{Algorithm: "ECDSA", Bits: 384}, telemetry.CountedKey{Algorithm: "ML-DSA-87"}),
			use("archive", "RewrapKey", "aes-kwp", telemetry.CountedKey{Algorithm: "rsa-oaep-sha-1", ID: "old"}, telemetry.CountedKey{Algorithm: "AES", ID: "new"}),
			use("archive", "HashData", "sha3-256"),
			use("archive", "OpenRequest", "session-v2"),
			use("archive", "EncryptStream", "aes-gcm", aes),
		}},
	})
	c.AddNamespace("bank", nil, nil, map[string]any{"db-0": http.NotFoundHandler()})
	return c
}

// made is when an inventory was made.
var made = regexp.MustCompile(`("made": |"timestamp": )"[^"]*"`)

// serial matches the serial number of a CBOM, which is derived from its time.
var serial = regexp.MustCompile(`urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

func TestTheInventoryOfACluster(t *testing.T) {
	server := inventoried().Serve(t)
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"inventory.txt":       {[]string{"-A"}, exitNotKnown},
		"inventory-uses.txt":  {[]string{"-A", "--uses", "SHA-1", "--uses", "rsa-2048", "--uses", "p-256"}, exitNotKnown},
		"inventory-none.txt":  {[]string{"-n", "shop", "--uses", "ml-kem-1024"}, program.ExitOK},
		"inventory-since.txt": {[]string{"-n", "shop", "--since", "2026-11-20T11:00:00+01:00"}, program.ExitOK},
		"inventory.cdx.json":  {[]string{"-A", "-o", "cyclonedx"}, exitNotKnown},
		"inventory.json":      {[]string{"-n", "shop", "-o", "json"}, program.ExitOK},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := call(t, "", append([]string{"inventory", "--server", server}, test.args...)...)
			if code != test.code || stderr != "" {
				t.Errorf("exit code %d, expected %d: %s", code, test.code, stderr)
			}
			head := "$ kubectl crypto-broker inventory " + strings.Join(test.args, " ") + "\n"
			if strings.HasSuffix(name, ".json") {
				head = ""
			}
			stdout = serial.ReplaceAllString(stdout, "urn:uuid:00000000-0000-8000-8000-000000000000")
			golden(t, name, head+made.ReplaceAllString(stdout, `${1}"2026-11-23T12:00:00Z"`))
		})
	}
}

func TestAnInventoryThatCannotBeMadeIsRefusedWithASentence(t *testing.T) {
	cluster := inventoried()
	cluster["/api/v1/namespaces/nowhere/pods"] = corev1.PodList{}
	server := cluster.Serve(t)
	for sentence, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a name that no algorithm has": {[]string{"--uses", "rsa-2084x"}, program.ExitUsage, `--uses: found "rsa-2084x", expected one of aes, `},
		"a time that is none":          {[]string{"--since", "yesterday"}, program.ExitUsage, `--since is "yesterday", expected a duration such as 24h, or a time such as `},
		"a duration below zero":        {[]string{"--since", "-1h"}, program.ExitUsage, `--since is "-1h", expected`},
		"a format that there is not":   {[]string{"-o", "xml"}, program.ExitUsage, `--output is "xml", expected`},
		"an argument":                  {[]string{"shop"}, program.ExitUsage, `unexpected argument "shop"`},
		"a namespace that is not":      {[]string{"-n", "nowhere"}, program.ExitFailed, `there is no namespace "nowhere"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			code, stdout, stderr := call(t, "", append([]string{"inventory", "--server", server}, test.args...)...)
			if code != test.code || stdout != "" || !strings.Contains(stderr, test.want) {
				t.Errorf("exit code %d, expected %d and %q: %s%s", code, test.code, test.want, stderr, stdout)
			}
		})
	}
}

func TestADurationIsATimeBeforeNow(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for flag, want := range map[string]string{"24h": "2026-11-22T12:00:00Z", "90m": "2026-11-23T10:30:00Z", "2026-11-23T06:00:00Z": "2026-11-23T06:00:00Z", "": "0001-01-01T00:00:00Z"} {
		if at, err := timeOf(flag, now); err != nil || fmt.Sprint(at.Format(time.RFC3339)) != want {
			t.Errorf("%q: found %s, %v, expected %s", flag, at, err, want)
		}
	}
}
