// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// Refusal tells why a profile of the file is out of service.
type Refusal struct {
	// Problem is the first one, with its line and field: part of a sentence. It is
	// empty where that is not for every caller: in a profile that restricts its
	// callers, and about the configuration of a key manager, which may quote
	// credentials.
	Problem string
}

// Refused tells about a profile that is in the file and out of service because of
// a problem, by its exact name; false where the file has no profile of this name,
// or serves it.
func (s *Set) Refused(name string) (Refusal, bool) {
	r, ok := s.refused[name]
	return r, ok
}

// refusals finds the first problem of each profile that is out of service. Those
// without a readable name cannot be called anyway.
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
	told := map[string]bool{}
	for _, problem := range problems {
		name := problem.Profile
		if _, out := refused[name]; !out || told[name] {
			continue
		}
		told[name] = true
		if !private[name] && !mentionsSecrets(problem.Field) {
			said := problem.Field + " " + problem.Message
			if problem.Line != 0 {
				said = fmt.Sprintf("line %d, %s", problem.Line, said)
			}
			refused[name] = Refusal{said}
		}
	}
	return refused
}

func mentionsSecrets(field string) bool { return field == "KMS" || strings.HasPrefix(field, "KMS.") }
