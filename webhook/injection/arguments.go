// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// maxArgument is the longest argument that Linux starts a process with, in bytes: MAX_ARG_STRLEN
// without the NUL at its end. The names of the containers with their profiles are one argument of
// the broker.
const maxArgument = 128<<10 - 1

// allowed returns the value of the argument with the profiles that callers may use. It has an
// item for each caller that may not use all profiles.
func (o *podOptions) allowed(callers []string) string {
	var items []string
	for _, caller := range callers {
		if profiles := o.profilesOf(caller); profiles != nil {
			items = append(items, caller+"="+strings.Join(profiles, ","))
		}
	}
	return strings.Join(items, ";")
}

// profilesOf returns the profiles that a caller may use. It is nil if the caller may use all.
func (o *podOptions) profilesOf(caller string) []string {
	if single, found := o.by[caller]; found {
		return single
	}
	return o.profiles
}

// checkArguments finds arguments that are too long for a process. With them, the broker of these
// callers would not start.
func (o *podOptions) checkArguments(callers []string, found *problems) {
	names, lists := len(contract.Argument(contract.CallersFlag, "")), len(contract.Argument(contract.CallerProfilesFlag, ""))
	for _, caller := range callers {
		names += len(caller) + len(",")
		if profiles := o.profilesOf(caller); profiles != nil {
			lists += len(caller) + len("=;")
			for _, profile := range profiles {
				lists += len(profile) + len(",")
			}
		}
	}
	for _, argument := range []struct {
		what string
		size int
	}{
		{"the names of the containers with a socket", names},
		{"the lists of profiles that the containers may use, one for each of them,", lists},
	} {
		if argument.size > maxArgument {
			found.add("spec.containers: %s take %d bytes, expected at most %d, the longest argument of a process; name fewer containers in the annotation %s",
				argument.what, argument.size, maxArgument, contract.ContainersAnnotation)
		}
	}
}
