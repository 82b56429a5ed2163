// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestABrokerKnowsFromItsCommandLineWhatCallersMayUse(t *testing.T) {
	for sentence, test := range map[string]struct {
		env, args []string
		want      map[string]codes.Code
	}{
		"nothing said": {
			nil, nil, map[string]codes.Code{"app": codes.OK, "side": codes.OK, "other": codes.OK},
		},
		"lists for two": {
			nil, []string{"--caller-profiles", "app=Default,Another;side=Another"},
			map[string]codes.Code{"app": codes.OK, "side": codes.PermissionDenied, "other": codes.OK},
		},
		"a list in the environment": {
			[]string{"CRYPTO_BROKER_CALLER_PROFILES=app=Another"}, nil,
			map[string]codes.Code{"app": codes.PermissionDenied, "side": codes.OK, "other": codes.OK},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			at := newPlace(t, "sha-256")
			startWith(t, environment(test.env...), at.args(append(test.args, "--callers", "app,side,other")...)...).listening()
			for caller, want := range test.want {
				if _, err := hashes(t, connect(t, at.socket(caller))); status.Code(err) != want {
					t.Errorf("%s: got %v, want %s", caller, err, want)
				}
			}
		})
	}
}

func TestABrokerWhoseCallersShareTheirProcessesTrustsNoSocket(t *testing.T) {
	for sentence, test := range map[string]struct {
		env, args []string
		want      codes.Code
	}{
		"callers apart":                                   {nil, nil, codes.OK},
		"callers that can mix":                            {nil, []string{"--shared-identity"}, codes.PermissionDenied},
		"the same, but not true":                          {nil, []string{"--shared-identity=false"}, codes.OK},
		"callers in a pod whose first process is another": {[]string{"KUBERNETES_SERVICE_HOST=10.0.0.1"}, nil, codes.PermissionDenied},
	} {
		t.Run(sentence, func(t *testing.T) {
			at := newPlace(t, "")
			at.write("- Name: Default\n  API: {HashData: {HashAlg: sha-256}}\n  Callers: {Containers: [app]}\n")
			startWith(t, environment(test.env...), at.args(append(test.args, "--callers", "app")...)...).listening()
			if _, err := hashes(t, connect(t, at.socket("app"))); status.Code(err) != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
