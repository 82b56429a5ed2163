// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"

	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/textlimits"
)

// Estimates of the memory that a request takes during the decision.
const (
	// perByte counts the body, twice because it is read in steps, the object that is
	// copied out of it, the strings of that object, and the answer.
	perByte = 6

	// perValue is the memory that one value of a list takes once it is read. The largest is a
	// container, with 408 bytes. A list that grows is in memory twice, as is the pod before and
	// after injection, and the answer has a mount and a variable.
	perValue = 2 << 10
)

// measured has the properties of a request that are known before it is decoded.
type measured struct {
	// bytes is its length.
	bytes int
	// values is the number of commas, brackets and braces that its JSON has outside of strings:
	// at least as many as it has values. Few bytes can have many values, and "null" in the list
	// of a pod's containers becomes a container.
	values int
	// namespace is the namespace of the object, or clusterScope if it has none.
	namespace string
}

// memory estimates the bytes that the request takes during the decision.
func (m measured) memory() int64 {
	return int64(m.bytes)*perByte + int64(m.values)*perValue
}

// clusterScope stands for the namespace of an object that has none. No namespace can
// have this name.
const clusterScope = "(cluster)"

// measure scans an AdmissionReview without decoding it: in one pass, and without allocating more
// than the namespace. It accepts any text, because the decoder refuses texts that are no
// AdmissionReview.
func measure(review []byte) measured {
	m := measured{bytes: len(review), namespace: clusterScope}
	depth := 0
	named := false // the last string was the key "namespace" of the request
	for i := 0; i < len(review); i++ {
		switch review[i] {
		case '{', '[':
			depth++
			m.values++
		case '}', ']':
			depth--
		case ',':
			m.values++
		case '"':
			end := endOfString(review, i)
			if depth == 2 {
				text := review[i:min(end+1, len(review))]
				var namespace string
				if named && json.Unmarshal(text, &namespace) == nil && namespace != "" {
					m.namespace = textlimits.Cut(namespace, textlimits.MaxQuoted)
				}
				named = string(text) == `"namespace"` && isKey(review[end:])
			}
			i = end
		}
	}
	return m
}

// isKey reports whether a string that ends here is the key of a value.
func isKey(end []byte) bool {
	end = bytes.TrimLeft(end[min(1, len(end)):], " \t\r\n")
	return len(end) > 0 && end[0] == ':'
}

// isObject reports whether a text may be an object in JSON. The decoder reads other
// formats too, which need more memory than measure estimates.
func isObject(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{"))
}

// endOfString returns where the string ends that begins at start, or the end of the
// text.
func endOfString(text []byte, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(text)
}
