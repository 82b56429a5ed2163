// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/textlimits"
)

// problems collects the problems of a pod: the first ones as sentences, and the number of the
// others.
type problems struct {
	listed []problem
	more   int
}

// problem is a sentence, and the advice that follows it. If several problems have the same
// advice, it follows the last of them.
type problem struct {
	text, advice string
	reason       Reason
}

// add adds a sentence that begins with the place in the pod.
func (p *problems) add(format string, arguments ...any) {
	p.list(ReasonPod, "", format, arguments)
}

// addReserved adds a sentence about a reserved name.
func (p *problems) addReserved(format string, arguments ...any) {
	p.list(ReasonReserved, reservedAdvice, format, arguments)
}

// addUnknown adds a sentence about an annotation that does not exist.
func (p *problems) addUnknown(name string) {
	p.list(ReasonAnnotation, knownAnnotations(), "%s", []any{unknownAnnotation(name)})
}

// list adds a sentence with its advice. Beyond [textlimits.MaxProblems] it only counts.
func (p *problems) list(reason Reason, advice, format string, arguments []any) {
	if p.full() {
		p.more++
		return
	}
	p.listed = append(p.listed, problem{textlimits.Cut(fmt.Sprintf(format, arguments...), textlimits.MaxSentence), advice, reason})
}

func (p *problems) none() bool { return len(p.listed) == 0 }
func (p *problems) full() bool { return len(p.listed) == textlimits.MaxProblems }

// refusal returns a *Refusal, or nil if there is no problem.
func (p *problems) refusal() error {
	if p.none() {
		return nil
	}
	texts, room := make([]string, len(p.listed)), textlimits.MaxText
	var advice []string
	for i, problem := range p.listed {
		texts[i] = problem.text
		if problem.advice != "" && !slices.Contains(advice, problem.advice) {
			advice = append(advice, problem.advice)
			room -= len("; " + problem.advice)
		}
	}
	texts = textlimits.Fitting(texts, room)
	for i := len(texts) - 1; i >= 0; i-- {
		if at := slices.Index(advice, p.listed[i].advice); at >= 0 {
			texts[i] += "; " + advice[at]
			advice = slices.Delete(advice, at, at+1)
		}
	}
	if more := len(p.listed) - len(texts) + p.more; more > 0 {
		texts = append(texts[:len(texts):len(texts)], fmt.Sprintf("and %d more problems like these", more))
	}
	return &Refusal{Problems: texts, Reason: p.listed[0].reason}
}
