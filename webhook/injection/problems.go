// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/limits"
)

// problems collects what is wrong with a pod: the first of them as sentences, and
// how many more there are. A sentence that is not kept is not made either.
type problems struct {
	kept []problem
	more int
}

// problem is a sentence, and the way out of it where others have the same, which
// is said once.
type problem struct{ text, wayOut string }

// add adds a sentence that begins with the place in the pod.
func (p *problems) add(format string, arguments ...any) {
	p.keep("", format, arguments)
}

// addReserved adds a sentence about a reserved name.
func (p *problems) addReserved(format string, arguments ...any) {
	p.keep(wayOut, format, arguments)
}

// addUnknown adds a sentence about an annotation that does not exist.
func (p *problems) addUnknown(name string) {
	p.keep(knownAnnotations(), "%s", []any{unknownAnnotation(name)})
}

// keep adds a sentence with a way out, which is added to the last of those that
// have the same.
func (p *problems) keep(wayOut, format string, arguments []any) {
	if p.full() {
		p.more++
		return
	}
	p.kept = append(p.kept, problem{limits.Cut(fmt.Sprintf(format, arguments...), limits.MaxSentence), wayOut})
}

func (p *problems) none() bool { return len(p.kept) == 0 }
func (p *problems) full() bool { return len(p.kept) == limits.MaxProblems }

// refusal returns a *Refusal, or nil if there is no problem.
func (p *problems) refusal() error {
	if p.none() {
		return nil
	}
	texts, room := make([]string, len(p.kept)), limits.MaxText
	var waysOut []string
	for i, kept := range p.kept {
		texts[i] = kept.text
		if kept.wayOut != "" && !slices.Contains(waysOut, kept.wayOut) {
			waysOut = append(waysOut, kept.wayOut)
			room -= len("; " + kept.wayOut)
		}
	}
	texts = limits.Fitting(texts, room)
	for i := len(texts) - 1; i >= 0; i-- {
		if at := slices.Index(waysOut, p.kept[i].wayOut); at >= 0 {
			texts[i] += "; " + waysOut[at]
			waysOut = slices.Delete(waysOut, at, at+1)
		}
	}
	if more := len(p.kept) - len(texts) + p.more; more > 0 {
		texts = append(texts[:len(texts):len(texts)], fmt.Sprintf("and %d more problems like these", more))
	}
	return &Refusal{Problems: texts}
}
