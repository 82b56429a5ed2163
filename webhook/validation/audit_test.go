// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
)

// digestOfStrong is `jq -jcS .spec | sha256sum` of the object strong.
const (
	strong         = `{"metadata":{"name":"orders"},"spec":{"profileName":"a<b","api":{"hashData":{"hashAlg":"sha3-512"}}}}`
	strongOtherWay = `{"spec": {"api": {"hashData": {"hashAlg": "sha3-512"}}, "profileName": "a<b"}, "metadata": {"name": "orders", "labels": {"a": "b"}}}`
	digestOfStrong = "sha256:bdb517116fd55861520ee07fd69dd4b3c9fc693d5e83ef0308a0f7d57cb3a7e7"
	weak           = `{"metadata":{"name":"orders"},"spec":{"profileName":"a<b","api":{"hashData":{"hashAlg":"sha-256"}}}}`
	permitted      = `{"metadata":{"name":"orders","annotations":{"cryptobroker.io/allow-weaker":"sha256:1"}},"spec":{"profileName":"a<b","api":{"hashData":{"hashAlg":"sha3-512"}}}}`
)

func TestARequestHasARecordIfItChangesSomethingOrIsRefused(t *testing.T) {
	for sentence, test := range map[string]struct {
		before, after string
		dryRun        bool
		response      admission.Response
		want          map[string]any // nil for no record
	}{
		"a new object": {
			"", strong, false, admission.Allowed(""),
			map[string]any{"result": "accepted", "object.name": "orders", "spec.digest.before": nil, "spec.digest": digestOfStrong, "weaker": nil, "reason": nil},
		},
		"a deletion":                  {strongOtherWay, "", false, admission.Allowed(""), map[string]any{"result": "accepted", "spec.digest.before": digestOfStrong, "spec.digest": nil}},
		"another label":               {strong, strongOtherWay, false, admission.Allowed(""), nil},
		"a dry run":                   {"", strong, true, admission.Allowed(""), nil},
		"a dry run that is refused":   {strong, weak, true, admission.Denied("no"), nil},
		"an annotation that allows":   {strong, permitted, false, admission.Allowed(""), map[string]any{"allow_weaker": "sha256:1"}},
		"a refusal":                   {strong, weak, false, admission.Denied("too weak"), map[string]any{"result": "refused", "reason": "too weak"}},
		"a refusal by the guard":      {strong, weak, false, marked(admission.Denied("weaker"), weakerRefused), map[string]any{"result": "refused", "weaker": "refused", "reason": "weaker"}},
		"a downgrade that is allowed": {strong, weak, false, marked(admission.Allowed("").WithWarnings("it becomes weaker"), weakerAllowed), map[string]any{"result": "accepted", "weaker": "allowed", "reason": "it becomes weaker"}},
		"an error":                    {strong, strong, false, admission.Errored(http.StatusInternalServerError, http.ErrServerClosed), map[string]any{"result": "error"}},
		"an object that is none":      {"", `[]`, false, admission.Errored(http.StatusBadRequest, http.ErrServerClosed), map[string]any{"result": "error", "spec.digest": nil}},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, key, err := ed25519.GenerateKey(nil)
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			log, err := audit.New(audit.Options{Output: audit.Stream(&text), Signer: key, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			audited(log, admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return test.response })).
				Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
					Operation: admissionv1.Update, Kind: metav1.GroupVersionKind{Kind: "CryptoProfile"}, Namespace: "shop", DryRun: &test.dryRun,
					UserInfo:  authenticationv1.UserInfo{Username: "alice", UID: "4711"},
					OldObject: runtime.RawExtension{Raw: []byte(test.before)}, Object: runtime.RawExtension{Raw: []byte(test.after)},
				}})
			log.Close()
			if test.want == nil {
				if text.Len() > 0 {
					t.Errorf("found %s, expected no record", &text)
				}
				return
			}
			lines := strings.Split(text.String(), "\n")
			if len(lines) != 4 {
				t.Fatalf("found %s, expected one record between the start and the end", &text)
			}
			var found map[string]any
			if err := json.Unmarshal([]byte(lines[1]), &found); err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]any{
				"event": "admission", "operation": "update", "object.kind": "CryptoProfile", "k8s.namespace.name": "shop", "user.name": "alice", "user.id": "4711",
			} {
				test.want[name] = value
			}
			for name, value := range test.want {
				if found[name] != value {
					t.Errorf("%s is %v, expected %v", name, found[name], value)
				}
			}
		})
	}
}
