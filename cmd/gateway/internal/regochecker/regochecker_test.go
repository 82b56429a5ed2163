// SPDX-License-Identifier: Apache-2.0

package regochecker_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/regochecker"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/regocheck"
)

// Arguments by which this program compiles one module instead of running tests, and then takes a GiB of memory.
const (
	compileOne     = "compile-one"
	compileAndFill = "compile-and-fill"
)

// filled is memory that was taken.
var filled []byte

func TestMain(m *testing.M) {
	if len(os.Args) != 2 || os.Args[1] != compileOne && os.Args[1] != compileAndFill {
		os.Exit(m.Run())
	}
	if err := regochecker.CompileOne(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Args[1] == compileAndFill {
		filled = make([]byte, 1<<30)
		select {} // until the server notices
	}
}

// serve runs a server with processes of a program, and returns a client of it.
func serve(t *testing.T, command ...string) *regocheck.Client {
	t.Helper()
	dir := t.TempDir()
	var network net.ListenConfig
	listener, err := network.Listen(t.Context(), "unix", filepath.Join(dir, contract.SocketFile))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- (&regochecker.Server{Command: command, Logger: slog.New(slog.DiscardHandler)}).Serve(ctx, listener)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return regocheck.NewClient(dir)
}

// expect checks a module.
func expect(t *testing.T, client *regocheck.Client, module string, want ...string) {
	t.Helper()
	if found, err := client.Check(t.Context(), module); err != nil || !slices.Equal(found, want) {
		t.Errorf("%.60s: found %q and %v, expected %q", module, found, err, want)
	}
}

func TestAModuleIsCheckedInAProcessOfItsOwn(t *testing.T) {
	client := serve(t, os.Args[0], compileOne)
	expect(t, client, "package keyaccess\nallow if input.caller.bound")
	expect(t, client, "package keyaccess\nallow if {\n  input.caller.isuer == 1\n  input.now == input.then\n}",
		"line 3, column 3 of the module: undefined ref: input.caller.isuer", "line 4, column 16 of the module: undefined ref: input.then")
	expect(t, client, "package keyaccess\nallow := true\n#"+strings.Repeat("x", accesspolicy.MaxSource), "found a module of 16417 characters, expected at most 16384")
	if _, err := client.Check(t.Context(), strings.Repeat("x", regocheck.MaxModule+1)); err == nil || !strings.Contains(err.Error(), "the module cannot be read, or has more than 65536 bytes") {
		t.Errorf("found %v", err)
	}
}

// OPA's parser takes twice as long for each level of these terms: for 20 levels, it would take a minute.
func TestAModuleThatTakesLongIsEndedAndTheNextOneIsChecked(t *testing.T) {
	client := serve(t, os.Args[0], compileOne)
	expect(t, client, "package keyaccess\nallow if "+strings.Repeat("count([1|", 24)+"1"+strings.Repeat("])==1", 24),
		"line 1, column 1 of the module: it takes longer than 2.5s to compile; nest terms less deeply")
	expect(t, client, "package keyaccess\nallow := true")
}

func TestAModuleThatTakesTooMuchMemoryIsRefused(t *testing.T) {
	expect(t, serve(t, os.Args[0], compileAndFill), "package keyaccess\nallow := true",
		"line 1, column 1 of the module: OPA cannot compile it with 256 MiB of memory; nest terms less deeply")
}

func TestAModuleIsNotCheckedWithoutAProcess(t *testing.T) {
	for name, c := range map[string]struct {
		client *regocheck.Client
		want   string
	}{
		"nobody at the socket": {regocheck.NewClient(t.TempDir()), "gateway rego-check, which checks modules for the operator, did not answer: dial unix"},
		"no program":           {serve(t, filepath.Join(t.TempDir(), "none")), "status 503, run a process that compiles: fork/exec"},
		"another program":      {serve(t, "true"), "status 503, a process that compiles has written no answer"},
	} {
		if found, err := c.client.Check(t.Context(), "package keyaccess\nallow := true"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: found %q and %v, expected %s", name, found, err, c.want)
		}
	}
}
