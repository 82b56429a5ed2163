// SPDX-License-Identifier: Apache-2.0

package defect

import (
	"errors"
	"strings"
	"testing"
)

// broken panics with a key on its stack.
//
//go:noinline
func broken(key [4]uint64, failure func(key [4]uint64)) (cause, stack string) {
	defer func() { cause, stack = Describe(recover()) }()
	failure(key)
	return "", ""
}

func TestADescriptionHasFunctionsAndLinesAndNoValues(t *testing.T) {
	key := [4]uint64{0x5ec2e7000000cafe, 0x5ec2e7000000cafe, 0x5ec2e7000000cafe, 0x5ec2e7000000cafe}
	for sentence, test := range map[string]struct {
		failure func(key [4]uint64)
		cause   string
	}{
		"an error of the runtime has its text":      {func([4]uint64) { _ = make([]int, 0)[zero()] }, "runtime error: index out of range [0] with length 0"},
		"an error of other code has only its type":  {func([4]uint64) { panic(errors.New("the key is 5ec2e7000000cafe")) }, "*errors.errorString"},
		"a text that quotes a key is a type, too":   {func(key [4]uint64) { panic("the key is 5ec2e7000000cafe") }, "string"},
		"a value that is a part of the key as well": {func(key [4]uint64) { panic(key) }, "[4]uint64"},
	} {
		t.Run(sentence, func(t *testing.T) {
			cause, stack := broken(key, test.failure)
			if cause != test.cause {
				t.Errorf("found the cause %q, expected %q", cause, test.cause)
			}
			if !strings.Contains(stack, "defect.broken") || !strings.Contains(stack, "defect_test.go:") {
				t.Errorf("found the stack %q, expected the function that failed and its line", stack)
			}
			if strings.Contains(stack, "5ec2e7") {
				t.Errorf("the stack %q has a value of the call", stack)
			}
		})
	}
}

//go:noinline
func zero() int { return 0 }
