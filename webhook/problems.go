// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of what an answer tells. Whoever makes a pod chooses how much is wrong
// with it, and the answer goes to the client, the log and the audit log.
const (
	// maxProblems is how many problems are told.
	maxProblems = 10

	// maxNames is how many names a list in a sentence has.
	maxNames = 10

	// maxText is how long all problems are together, and so all warnings, in bytes.
	maxText = 4 << 10

	// maxSentence is the longest sentence in bytes.
	maxSentence = 1 << 10

	// maxQuoted is what a sentence quotes of a value at most, in bytes.
	maxQuoted = 100
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
	p.kept = append(p.kept, problem{cut(fmt.Sprintf(format, arguments...), maxSentence), wayOut})
}

func (p *problems) none() bool { return len(p.kept) == 0 }
func (p *problems) full() bool { return len(p.kept) == maxProblems }

// refusal returns a *Refusal, or nil if there is no problem.
func (p *problems) refusal() error {
	if p.none() {
		return nil
	}
	texts, room := make([]string, len(p.kept)), maxText
	var waysOut []string
	for i, kept := range p.kept {
		texts[i] = kept.text
		if kept.wayOut != "" && !slices.Contains(waysOut, kept.wayOut) {
			waysOut = append(waysOut, kept.wayOut)
			room -= len("; " + kept.wayOut)
		}
	}
	texts = fitting(texts, room)
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

// warned returns the first of these warnings, with how many more there are.
func warned(warnings []string) []string {
	first := warnings[:min(len(warnings), maxProblems)]
	for i, text := range first {
		first[i] = cut(text, maxSentence)
	}
	first = fitting(first, maxText)
	if more := len(warnings) - len(first); more > 0 {
		return append(first[:len(first):len(first)], fmt.Sprintf("and %d more warnings", more))
	}
	return first
}

// fitting returns as many texts from the first on as there is room for, in bytes,
// beside the number of the others.
func fitting(texts []string, room int) []string {
	room -= len("; and 18446744073709551615 more problems like these")
	for i, text := range texts {
		if room -= len("; ") + len(text); room < 0 {
			return texts[:i]
		}
	}
	return texts
}

// cut returns at most size bytes of a text, with … in the place of the rest.
func cut(text string, size int) string {
	if len(text) <= size {
		return text
	}
	const ellipsis = "…"
	end := size - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// quoted is a value out of a pod, which a sentence has in quotes.
type quoted string

// String quotes the value, or what it begins with.
func (q quoted) String() string {
	if len(q) <= maxQuoted {
		return fmt.Sprintf("%q", string(q))
	}
	end := maxQuoted
	for end > 0 && !utf8.RuneStart(q[end]) {
		end--
	}
	return fmt.Sprintf("%q… (%d bytes)", string(q[:end]), len(q))
}

// names are a list of names in a sentence.
type names []string

// String lists the first names, and says how many more there are.
func (n names) String() string {
	if len(n) == 0 {
		return "(none)"
	}
	first := make([]string, 0, maxNames)
	for _, name := range n[:min(len(n), maxNames)] {
		first = append(first, cut(name, maxQuoted))
	}
	if more := len(n) - len(first); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(first, ", "), more)
	}
	return strings.Join(first, ", ")
}
