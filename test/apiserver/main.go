// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Run is for the TestMain of a package whose tests share one API server. It starts the API
// server, calls prepare with the access of its administrator, runs the tests and stops the API
// server. It returns the exit code for [os.Exit]. If prepare returns an error, no test runs.
func Run(m *testing.M, prepare func(admin *rest.Config) error) int {
	log.SetLogger(logr.Discard())
	code, err := run(m, prepare)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func run(m *testing.M, prepare func(admin *rest.Config) error) (code int, err error) {
	admin, stop, err := Start()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := prepare(admin); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// StartFor starts an API server for one test and stops it at the end of the test.
func StartFor(t testing.TB) *rest.Config {
	t.Helper()
	admin, stop, err := Start()
	stopAfter(t, stop, err)
	return admin
}

// StartBareFor is [StartFor] without this project's CustomResourceDefinitions.
func StartBareFor(t testing.TB) *rest.Config {
	t.Helper()
	admin, stop, err := start(nil)
	stopAfter(t, stop, err)
	return admin
}

func stopAfter(t testing.TB, stop func() error, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
