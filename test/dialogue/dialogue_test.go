// SPDX-License-Identifier: Apache-2.0

package dialogue

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

type answer struct {
	Sum int `json:"sum"`
}

// shell starts a script of the shell, which reads a line for each question.
func shell(t *testing.T, script string) *Program {
	t.Helper()
	p, err := Start(exec.CommandContext(t.Context(), "sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEachQuestionHasItsAnswer(t *testing.T) {
	p := shell(t, `n=0; while read -r line; do n=$((n + 1)); echo "{\"sum\": $n}"; done`)
	for want := 1; want <= 2; want++ {
		var got answer
		if err := p.Ask("more", &got, time.Minute); err != nil || got.Sum != want {
			t.Errorf("found %+v, %v, want %d", got, err, want)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestAnErrorHasWhatTheProgramWroteToStandardError(t *testing.T) {
	for name, test := range map[string]struct{ script, want string }{
		"without an answer":           {"read -r line; echo trouble >&2; exit 3", "the program wrote no answer"},
		"with another answer":         {`read -r line; echo trouble >&2; echo '{"product": 6}'`, `the program wrote "{\"product\": 6}"`},
		"with something else as JSON": {`read -r line; echo trouble >&2; echo hello`, `the program wrote "hello"`},
	} {
		var got answer
		err := shell(t, test.script).Ask("more", &got, time.Minute)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "trouble") {
			t.Errorf("%s: found %v, want %q and %q", name, err, test.want, "trouble")
		}
	}
}

func TestAProgramThatDoesNotAnswerIsKilled(t *testing.T) {
	var got answer
	if err := shell(t, "read -r line; exec sleep 600").Ask("more", &got, time.Millisecond); err == nil || !strings.Contains(err.Error(), "the program wrote no answer") {
		t.Errorf("found %v", err)
	}
}

func TestABadEndOfTheProgramIsAnError(t *testing.T) {
	if err := shell(t, "read -r line; echo trouble >&2; exit 3").Close(); err == nil || !strings.Contains(err.Error(), "exit status 3\ntrouble") {
		t.Errorf("found %v", err)
	}
}
