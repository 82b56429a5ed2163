// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// callerSettings say who the callers are and what they may use.
func (c *config) callerSettings() []setting {
	return []setting{
		{
			name: contract.CallersFlag, env: "CRYPTO_BROKER_CALLERS", kind: "names", set: names(&c.callers),
			usage: "names separated by commas: each gets a directory of its name in the socket directory with a socket of its own, by which profiles know it",
		},
		{
			name: contract.CallerProfilesFlag, env: "CRYPTO_BROKER_CALLER_PROFILES", kind: "lists", set: lists(&c.callerProfiles),
			usage: "profiles that callers may use, such as app=Default,Signing;worker=Default; a caller that is not in here may use all",
		},
		{
			name: contract.SharedIdentityFlag, env: "CRYPTO_BROKER_SHARED_IDENTITY", kind: "bool", set: boolean(&c.sharedIdentity),
			usage: "callers see the processes of each other and so can call by the sockets of each other: refuse profiles that name containers",
		},
	}
}

// sharesProcesses reports whether a program in a pod is not the first one that it
// sees: then containers of the pod see the processes of each other. The operator tells
// a broker of that, but a pod may be a copy that the operator has not seen.
func sharesProcesses(lookup func(string) (string, bool), processID int) bool {
	_, isInPod := lookup("KUBERNETES_SERVICE_HOST")
	return isInPod && processID != 1
}

// lists reads names by caller. The name of a profile that is listed has no comma
// and no semicolon.
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
