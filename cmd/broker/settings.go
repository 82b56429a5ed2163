// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// setting is a value that a flag or an environment variable can set. A setting without
// a name has no flag.
type setting struct {
	name, env string
	secret    bool   // whether no message may quote its value
	kind      string // what --help calls its value
	usage     string
	initial   string // the default, as text
	set       func(string) error
}

// value makes a setting a flag. It keeps the text only for --help.
type value struct {
	*setting
	text string
}

// String implements pflag.Value.
func (v *value) String() string { return v.text }

// Type implements pflag.Value.
func (v *value) Type() string { return v.kind }

// Set implements pflag.Value.
func (v *value) Set(text string) error {
	v.text = text
	return v.set(text)
}

// newFlags returns the flags of a command. pflag itself prints nothing.
func newFlags(command string, settings []setting) (*pflag.FlagSet, error) {
	flags := program.Flags(command)
	for i := range settings {
		s := &settings[i]
		if s.name == "" {
			continue
		}
		if s.initial != "" {
			if err := s.set(s.initial); err != nil {
				return nil, fmt.Errorf("default of --%s: %w", s.name, err)
			}
		}
		usage := s.usage
		if s.env != "" {
			usage += " [" + s.env + "]"
		}
		flags.Var(&value{s, s.initial}, s.name, usage)
		if s.kind == "bool" {
			flags.Lookup(s.name).NoOptDefVal = "true" // the flag alone
		}
	}
	return flags, nil
}

// parse reads the flags and, for flags that are not given, the environment. An empty
// variable counts as not set.
func parse(flags *pflag.FlagSet, settings []setting, args []string, lookup func(string) (string, bool)) error {
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		var invalid *pflag.InvalidValueError
		if errors.As(err, &invalid) && slices.ContainsFunc(settings, func(s setting) bool { return s.secret && s.name == invalid.GetFlag().Name }) {
			return program.Usagef("invalid argument for %q flag: %v", "--"+invalid.GetFlag().Name, invalid.Unwrap())
		}
		return program.Usagef("%v", err)
	}
	if flags.NArg() > 0 {
		return program.Usagef("unexpected argument %q", flags.Arg(0))
	}
	for _, s := range settings {
		if s.env == "" || (s.name != "" && flags.Changed(s.name)) {
			continue
		}
		if text, ok := lookup(s.env); ok && text != "" {
			if err := s.set(text); err != nil {
				if s.secret {
					return program.Usagef("invalid value of the environment variable %s: %v", s.env, err)
				}
				return program.Usagef("invalid value %q of the environment variable %s: %v", text, s.env, err)
			}
		}
	}
	return nil
}

// The kinds of values.

func absolutePath(into *string) func(string) error {
	return func(text string) error {
		if !filepath.IsAbs(text) {
			return errors.New("expected an absolute path")
		}
		*into = filepath.Clean(text)
		return nil
	}
}

func names(into *[]string) func(string) error {
	return func(text string) error {
		list := strings.Split(text, ",")
		if slices.Contains(list, "") {
			return errors.New("expected names separated by single commas")
		}
		*into = list
		return nil
	}
}

func groupID(into *int) func(string) error {
	return func(text string) error {
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil || id == 1<<32-1 {
			return errors.New("expected a group id from 0 to 4294967294")
		}
		*into = int(id)
		return nil
	}
}

func address(into *string) func(string) error {
	return func(text string) error {
		const want = "expected [host]:port such as :9470, with a port from 0 to 65535"
		_, port, err := net.SplitHostPort(text)
		if err != nil {
			return errors.New(want)
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return errors.New(want)
		}
		*into = text
		return nil
	}
}

func boolean(into *bool) func(string) error {
	return func(text string) error {
		value, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("expected true or false")
		}
		*into = value
		return nil
	}
}

func positive(into *uint32) func(string) error {
	return func(text string) error {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n == 0 {
			return errors.New("expected a number from 1 to 4294967295")
		}
		*into = uint32(n)
		return nil
	}
}

// minMemoryLimit is the lowest value of --memory-limit, in bytes.
const minMemoryLimit = 16 << 20

// byteSize parses a number of bytes in the notation of Kubernetes or of GOMEMLIMIT. The number
// has to be a multiple of 1Ki, and not below least.
func byteSize(into *int64, least int64) func(string) error {
	return func(text string) error {
		smallest := fmt.Sprintf("%dKi", least>>10)
		if least >= 1<<20 {
			smallest = fmt.Sprintf("%dMi", least>>20)
		}
		want := "expected a number of bytes of at least " + smallest + ", such as 134217728, 128Mi or 1GiB"
		digits, shift := strings.TrimSuffix(text, "B"), 0
		for suffix, n := range map[string]int{"Ki": 10, "Mi": 20, "Gi": 30} {
			if rest, found := strings.CutSuffix(digits, suffix); found {
				digits, shift = rest, n
				break
			}
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n > math.MaxInt64>>shift || n<<shift < least {
			return errors.New(want)
		}
		*into = n << shift
		return nil
	}
}

// oneOf accepts one of some names, in upper or lower case, as released brokers do.
func oneOf(into *string, allowed ...string) func(string) error {
	return func(text string) error {
		text = strings.ToLower(text)
		if !slices.Contains(allowed, text) {
			return fmt.Errorf("expected one of %s", strings.Join(allowed, ", "))
		}
		*into = text
		return nil
	}
}

func positiveDuration(into *time.Duration) func(string) error {
	return func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return errors.New("expected a duration above 0 such as 500ms, 10s or 2m")
		}
		*into = d
		return nil
	}
}
