// SPDX-License-Identifier: Apache-2.0

//go:build process

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// complete lets bash complete a typed line with the script of the program, without the helpers of the package bash-completion.
const complete = `
COLUMNS=80
_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD; }
__ltrim_colon_completions() { :; }
compopt() { :; }
source <(crypto-broker completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9
cur=${COMP_WORDS[COMP_CWORD]}
$(complete -p crypto-broker | sed 's/.* -F \([^ ]*\) .*/\1/')
printf '%s\n' "${COMPREPLY[@]}"
`

func TestBashCompletesWhatIsTyped(t *testing.T) {
	for sentence, c := range map[string]struct {
		typed []string
		want  string
	}{
		"the begin of a command": {[]string{"crypto-broker", "encrypt-d"}, "encrypt-data"},
		"commands of a group":    {[]string{"crypto-broker", "profiles", ""}, "show validate"},
		"a flag":                 {[]string{"crypto-broker", "sign-certificate", "--caC"}, "--caCert"},
		"the values of a flag":   {[]string{"crypto-broker", "hash-data", "--output-format", ""}, "hex raw"},
	} {
		t.Run(sentence, func(t *testing.T) {
			bash := exec.Command("bash", append([]string{"--norc", "-c", complete, "bash"}, c.typed...)...)
			bash.Env = append(os.Environ(), "PATH="+binaries+":"+os.Getenv("PATH"))
			output, err := bash.CombinedOutput()
			var words []string
			for line := range strings.Lines(string(output)) {
				words = append(words, strings.Fields(line)[0])
			}
			if got := strings.Join(words, " "); err != nil || got != c.want {
				t.Errorf("bash offers %q (%v), want %q\n%s", got, err, c.want, output)
			}
		})
	}
}
