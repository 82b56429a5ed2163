// SPDX-License-Identifier: Apache-2.0

// Package textlimits bounds the text of an answer of admission: the number of problems and warnings,
// the length of each sentence, and the length of a quotation.
package textlimits

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of the text of an answer. The author of a pod decides how many problems it has, and the
// answer goes to the client, the log and the audit log.
const (
	// MaxProblems is the maximum number of problems that an answer lists.
	MaxProblems = 10

	// maxNames is the maximum number of names that a list in a sentence has.
	maxNames = 10

	// MaxText is the maximum total size in bytes of all problems, and of all warnings.
	MaxText = 4 << 10

	// MaxSentence is the longest sentence in bytes.
	MaxSentence = 1 << 10

	// MaxQuoted is the maximum number of bytes of a value that a sentence quotes.
	MaxQuoted = 100
)

// Warnings returns the first of these warnings, and a sentence with the number of the others.
func Warnings(warnings []string) []string {
	first := warnings[:min(len(warnings), MaxProblems)]
	for i, text := range first {
		first[i] = Cut(text, MaxSentence)
	}
	first = Fitting(first, MaxText)
	if more := len(warnings) - len(first); more > 0 {
		return append(first[:len(first):len(first)], fmt.Sprintf("and %d more warnings", more))
	}
	return first
}

// Fitting returns as many texts from the first on as there is room for, in bytes,
// beside the number of the others.
func Fitting(texts []string, room int) []string {
	room -= len("; and 18446744073709551615 more problems like these")
	for i, text := range texts {
		if room -= len("; ") + len(text); room < 0 {
			return texts[:i]
		}
	}
	return texts
}

// Cut returns at most size bytes of a text. A longer text ends with … instead of its rest.
func Cut(text string, size int) string {
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

// Quoted is a value from a pod that a sentence quotes.
type Quoted string

// String quotes the value, or its beginning.
func (q Quoted) String() string {
	if len(q) <= MaxQuoted {
		return fmt.Sprintf("%q", string(q))
	}
	end := MaxQuoted
	for end > 0 && !utf8.RuneStart(q[end]) {
		end--
	}
	return fmt.Sprintf("%q… (%d bytes)", string(q[:end]), len(q))
}

// Names is a list of names in a sentence.
type Names []string

// String lists the first names, and the number of the others.
func (n Names) String() string {
	if len(n) == 0 {
		return "(none)"
	}
	first := make([]string, 0, maxNames)
	for _, name := range n[:min(len(n), maxNames)] {
		first = append(first, Cut(name, MaxQuoted))
	}
	if more := len(n) - len(first); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(first, ", "), more)
	}
	return strings.Join(first, ", ")
}
