// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"errors"
	"fmt"
	"io"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

func TestAnErrorOfTheCommandLineIsKnownWhateverWrapsIt(t *testing.T) {
	err := fmt.Errorf("read the flags: %w", program.Usagef("found %q", "x"))
	if !program.IsUsage(err) || err.Error() != `read the flags: found "x"` {
		t.Errorf("got %v", err)
	}
	if program.IsUsage(errors.New("another")) || program.IsUsage(nil) {
		t.Error("other errors count as errors of the command line")
	}
}

func TestAReleaseHasTheVersionOfItsBuild(t *testing.T) {
	want := "broker v1.2.3 " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	if got := program.VersionLine("broker", "v1.2.3"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if program.Version("") == "" {
		t.Error("a build without a release has no version")
	}
}

func TestASignalEndsTheContext(t *testing.T) {
	send := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(syscall.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		ctx := program.Context()
		if send(s); s == syscall.SIGHUP && signal.Ignored(s) { // where the tests run below nohup
			if ctx.Err() != nil {
				t.Error("SIGHUP ended the context although it is ignored")
			}
			send(syscall.SIGTERM)
		}
		<-ctx.Done()
	}
}

func TestALastSentenceThatNobodyReadsDoesNotStopTheProgram(t *testing.T) {
	reader, writer := io.Pipe()
	defer func() { _ = reader.Close() }()
	program.LastSentence(writer, "broker: %s\n", "nobody reads it")
	var text strings.Builder
	program.LastSentence(&text, "broker: %s\n", "the port is taken")
	if text.String() != "broker: the port is taken\n" {
		t.Errorf("got %q", text.String())
	}
}

func TestFlagsPrintNothingByThemselvesAndKeepTheirOrder(t *testing.T) {
	flags := program.Flags("test")
	flags.Bool("second", false, "")
	flags.Bool("first", false, "")
	if err := flags.Parse([]string{"--third"}); err == nil || err.Error() != "unknown flag: --third" {
		t.Errorf("got %v", err)
	}
	if got := flags.FlagUsages(); got != "      --second   \n      --first    \n" {
		t.Errorf("got %q", got)
	}
}
