// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// Refusal says why a profile of the file is out of service.
type Refusal struct {
	// Problem is the first problem of the profile with its line and field, as part of a
	// sentence. It is empty if not every caller may read it: the profile restricts its
	// callers, or the problem is in the configuration of a key manager and may quote
	// credentials.
	Problem string
}

// Refused returns why the profile with this exact name is out of service. It reports false
// if the file has no profile of this name, or if the profile is served.
func (s *Set) Refused(name string) (Refusal, bool) {
	r, ok := s.refused[name]
	return r, ok
}

// refusals returns the first problem of each profile that is out of service, by the name of
// the profile. It leaves out profiles without a valid name, which no call can name.
func refusals(r *yamlfile.Report, doc *Document, problems Problems) map[string]Refusal {
	refused := map[string]Refusal{}
	private := map[string]bool{}
	for i := range doc.Profiles {
		name := doc.Profiles[i].Name
		if name == "" || len(name) > MaxNameLength || !r.Invalid[i] {
			continue
		}
		refused[strings.Clone(name)] = Refusal{}
		callers := yamlfile.Item(i).Field("Callers")
		private[name] = private[name] || r.Present(callers) || r.Failed[callers]
	}
	seen := map[string]bool{}
	for _, problem := range problems {
		name := problem.Profile
		if _, out := refused[name]; !out || seen[name] {
			continue
		}
		seen[name] = true
		if !private[name] && !mentionsSecrets(problem.Field) {
			text := problem.Field + " " + problem.Message
			if problem.Line != 0 {
				text = fmt.Sprintf("line %d, %s", problem.Line, text)
			}
			refused[name] = Refusal{text}
		}
	}
	return refused
}

func mentionsSecrets(field string) bool { return field == "KMS" || strings.HasPrefix(field, "KMS.") }
