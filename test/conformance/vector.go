// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/test/conformance/wire"
)

// row groups vectors whose results are counted together.
type row struct{ operation, algorithm, source string }

// vector is one published example of an input with its expected output.
type vector struct {
	row
	name string // where it is in its source
	run  func(context.Context, *wire.Client) verdict
}

// verdict is the result of a vector. Its zero value means that the vector passed.
type verdict struct {
	refused  string    // why the broker refuses on purpose
	failed   string    // what is wrong
	exempted []finding // findings that do not fail the certificate
}

func passed() verdict                   { return verdict{} }
func refused(reason string) verdict     { return verdict{refused: reason} }
func failed(f string, a ...any) verdict { return verdict{failed: fmt.Sprintf(f, a...)} }

// refusal is a refusal on purpose, with words of the broker's message.
type refusal struct{ reason, saying string }

// sayingUnserved is in the message of calls with a profile that the broker refused to load.
const sayingUnserved = "the profile is in the file, but the broker refused it when it loaded the file"

// code returns the status code that the refusal has to have. Clients repeat no call with
// such a code.
func (r refusal) code() codes.Code {
	if r.saying == sayingUnserved {
		return codes.FailedPrecondition
	}
	return codes.InvalidArgument
}

// judgeRefusal judges an answer that has to be one of the refusals.
func judgeRefusal(err error, due []refusal) verdict {
	if err == nil {
		return failed("was not refused, expected: %s", due[0].reason)
	}
	for _, r := range due {
		if !strings.Contains(status.Convert(err).Message(), r.saying) {
			continue
		}
		if v, wrong := wrongCode(err, r.code()); wrong {
			return v
		}
		return refused(r.reason)
	}
	if v, wrong := wrongCode(err, due[0].code()); wrong {
		return v
	}
	return failed("refused for another reason (%v), expected: %s", err, due[0].reason)
}

func wrongCode(err error, want codes.Code) (verdict, bool) {
	if code := status.Code(err); code != want {
		return failed("code %s (%v), expected %s", code, err, want), true
	}
	return verdict{}, false
}

// judgeEqual compares the output with the expected one.
func judgeEqual(what string, got, want []byte) verdict {
	if !bytes.Equal(got, want) {
		return failed("%s is %s, expected %s", what, short(got), short(want))
	}
	return passed()
}

func short(data []byte) string {
	const most = 40
	if len(data) > most {
		return fmt.Sprintf("%s… (%d bytes)", hex.EncodeToString(data[:most]), len(data))
	}
	return hex.EncodeToString(data)
}

// first returns the first verdict that is a failure, else the last one.
func first(verdicts ...verdict) verdict {
	for _, v := range verdicts {
		if v.failed != "" {
			return v
		}
	}
	return verdicts[len(verdicts)-1]
}
