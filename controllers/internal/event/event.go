// SPDX-License-Identifier: Apache-2.0

// Package event writes Kubernetes events with notes of a size that the API
// accepts.
package event

import (
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// maxNote is the API's limit of an event's note in bytes.
const maxNote = 1024

// Record writes an event about an object. kind is corev1.EventTypeNormal or
// corev1.EventTypeWarning. A note that is too long is truncated.
func Record(recorder events.EventRecorder, about runtime.Object, kind, reason, action, note string) {
	recorder.Eventf(about, nil, kind, reason, action, "%s", Truncate(note, maxNote))
}

// Truncate shortens a text to a number of bytes at most, and marks the end of a
// text that it shortened. It does not split characters.
func Truncate(text string, most int) string {
	const mark = " …"
	if len(text) <= most {
		return text
	}
	end := most - len(mark)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
