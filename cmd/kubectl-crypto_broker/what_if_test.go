// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers/brokerstest"
)

func TestWhatIfSaysWithItsExitCodeWhetherCallsWouldBreak(t *testing.T) {
	began := time.Date(2026, 11, 20, 9, 12, 0, 0, time.UTC)
	counted := telemetry.Uses{Version: 1, Since: began, Uses: []telemetry.CountedUse{
		{Profile: "orders", Operation: "HashData", Algorithm: "sha-256", Container: "app", Calls: 42, Since: began, Last: began.Add(time.Hour)},
	}}
	served := v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	served.Spec.API.HashData = &v1alpha1.HashData{HashAlg: "sha-256"}
	tooOld := http.NotFoundHandler()
	for sentence, test := range map[string]struct {
		pods map[string]any
		api  string
		code int
		want []string
	}{
		"nothing would change": {map[string]any{"web-0": counted}, "{hashData: {hashAlg: sha-256}}", program.ExitOK, []string{"Nothing that brokers serve would change.\n"}},
		"no call would break": {map[string]any{"web-0": counted}, "{hashData: {hashAlg: sha-256}, encryptData: {encryptAlg: aes-gcm, keySize: 256, nonceStrategy: random}}", program.ExitOK,
			[]string{"What is served would change in 1 namespace. 1 of 1 broker there answered; the first began to count at 2026-11-20 09:12Z, the last at 2026-11-20 09:12Z.\n", "No call that they have counted would break.\n"}},
		"calls would break, and a broker did not answer": {map[string]any{"web-0": counted, "web-1": tooOld}, "{hashData: {hashAlg: sha-512}}", exitBreaks,
			[]string{"1 of 2 brokers there answered", "shop        statefulset/web   1      app         orders    HashData sha-256   42      2026-11-20 09:12Z   2026-11-20 10:12Z   changed   sha-512 instead of sha-256\n",
				"\nNot known:\n  1 pod: the broker is too old to count what calls used: restart the workload after an upgrade (shop/web-1)\n"}},
		"no broker answered": {map[string]any{"web-0": tooOld, "web-1": tooOld, "web-2": tooOld, "web-3": tooOld}, "{hashData: {hashAlg: sha-512}}", exitNotKnown,
			[]string{"0 of 4 brokers there answered.\n", "  4 pods: the broker is too old to count what calls used: restart the workload after an upgrade (shop/web-0, shop/web-1, shop/web-2 and 1 more)\n"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := brokerstest.Cluster{}
			cluster.AddNamespace("shop", []v1alpha1.CryptoProfile{served}, nil, test.pods)
			var stdout, stderr bytes.Buffer
			manifest := "apiVersion: cryptobroker.io/v1alpha1\nkind: CryptoProfile\nmetadata: {name: orders}\nspec: {api: " + test.api + "}\n"
			code := run(t.Context(), []string{"what-if", "-f", "-", "-n", "shop", "--server", cluster.Serve(t)}, strings.NewReader(manifest), &stdout, &stderr)
			if code != test.code || stderr.Len() > 0 {
				t.Errorf("exit code %d, expected %d: %s", code, test.code, stderr.String())
			}
			for _, want := range test.want {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("found\n%s\nexpected %q", stdout.String(), want)
				}
			}
		})
	}
}
