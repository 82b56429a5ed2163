// SPDX-License-Identifier: Apache-2.0

package defect

import (
	"fmt"
	"runtime"
	"strings"
)

// maxFrames is the maximum number of functions that a description has.
const maxFrames = 64

// Describe returns attributes for a line of the log: why the calling goroutine panicked, and its
// stack. The cause is the text of an error of the Go runtime. For any other value the cause is
// only its type, because a text could quote an input. The stack has functions and lines. It does
// not have the arguments of functions, which [runtime/debug.Stack] prints, because a key can be
// among them.
func Describe(recovered any) (cause, stack string) {
	cause = fmt.Sprintf("%T", recovered)
	if err, ok := recovered.(runtime.Error); ok {
		cause = err.Error()
	}
	callers := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	var text strings.Builder
	for {
		frame, more := frames.Next()
		fmt.Fprintf(&text, "%s\n\t%s:%d\n", frame.Function, frame.File, frame.Line)
		if !more {
			return cause, text.String()
		}
	}
}
