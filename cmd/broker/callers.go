// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// callerSettings returns the settings for callers and their profiles.
func (c *config) callerSettings() []setting {
	return []setting{
		{
			name: contract.CallersFlag, env: "CRYPTO_BROKER_CALLERS", kind: "names", set: names(&c.callers),
			usage: "names separated by commas; each caller gets its own socket, in a directory of its name in the socket directory; profiles refer to these names",
		},
		{
			name: contract.CallerProfilesFlag, env: "CRYPTO_BROKER_CALLER_PROFILES", kind: "lists", set: lists(&c.callerProfiles),
			usage: "profiles that callers may use, such as app=Default,Signing;worker=Default; a caller that is not listed may use all",
		},
		{
			name: contract.SharedIdentityFlag, env: "CRYPTO_BROKER_SHARED_IDENTITY", kind: "bool", set: boolean(&c.sharedIdentity),
			usage: "the containers see each other's processes and so can use each other's sockets: refuse profiles that name containers",
		},
	}
}

// sharesProcesses reports whether the containers of the pod see each other's processes. Then the
// broker is not the first process that it sees. The operator sets --shared-identity for such
// pods, but a pod may be a copy that the operator has not seen.
func sharesProcesses(lookup func(string) (string, bool), processID int) bool {
	_, isInPod := lookup("KUBERNETES_SERVICE_HOST")
	return isInPod && processID != 1
}

// lists reads names of profiles by caller. Such a name has no comma and no semicolon.
func lists(into *map[string][]string) func(string) error {
	return func(text string) error {
		const want = "expected callers with their profiles such as app=Default,Signing;worker=Default"
		found := map[string][]string{}
		for item := range strings.SplitSeq(text, ";") {
			caller, profiles, ok := strings.Cut(item, "=")
			listed := strings.Split(profiles, ",")
			if !ok || caller == "" || slices.Contains(listed, "") {
				return errors.New(want)
			}
			if _, twice := found[caller]; twice {
				return fmt.Errorf("%s, each caller once; %q is there twice", want, caller)
			}
			found[caller] = listed
		}
		*into = found
		return nil
	}
}
