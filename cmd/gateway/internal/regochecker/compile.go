// SPDX-License-Identifier: Apache-2.0

package regochecker

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/metrics"
	"time"
	"unicode/utf8"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/regocheck"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/regopolicy"
)

const (
	// maxMemory is the maximum memory in bytes of a process that compiles, and memoryInterval is
	// the time between two checks of it. A process with more memory ends itself, because a
	// container that runs out of memory ends as a whole.
	maxMemory      = 256 << 20
	memoryInterval = 10 * time.Millisecond
	// exitMemory is the exit code of a process that has too much memory.
	exitMemory = 9
	// maxProblems is the maximum number of problems in an answer, and maxProblem is the maximum
	// length of a problem in bytes.
	maxProblems, maxProblem = 16, 1000
)

// CompileOne compiles the module of a reader, and writes its problems as a [regocheck.Answer]. It
// limits the memory of this process permanently.
func CompileOne(from io.Reader, to io.Writer) error {
	go limitMemory()
	module, err := io.ReadAll(io.LimitReader(from, regocheck.MaxModule+1))
	if err != nil {
		return fmt.Errorf("read the module: %w", err)
	}
	_, err = regopolicy.Compile(string(module)) // the compiler refuses a module that is too long
	return json.NewEncoder(to).Encode(answerOf(err))
}

// limitMemory ends this process when it has too much memory.
func limitMemory() {
	had := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	for range time.Tick(memoryInterval) {
		if metrics.Read(had); had[0].Value.Uint64() > maxMemory {
			os.Exit(exitMemory)
		}
	}
}

// answerOf returns the answer for an error of [regopolicy.Compile].
func answerOf(err error) regocheck.Answer {
	answer := regocheck.Answer{Problems: []string{}}
	problems := accesspolicy.Problems(err)
	for _, problem := range problems[:min(len(problems), maxProblems)] {
		answer.Problems = append(answer.Problems, cut(problem.Error()))
	}
	return answer
}

// cut returns a text, or its beginning if it is long.
func cut(text string) string {
	if len(text) <= maxProblem {
		return text
	}
	end := maxProblem
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
