// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAFileChangesTheLevelOfARunningBroker(t *testing.T) {
	at := newPlace(t, "sha-256")
	file := filepath.Join(t.TempDir(), "log-level")
	broker := start(t, at.args("--log-level-file", file)...)
	broker.listening()
	if err := errors.Join(os.WriteFile(file+".new", []byte("debug\n"), 0o600), os.Rename(file+".new", file)); err != nil {
		t.Fatal(err)
	}
	if l := broker.logged("changed the level of the log", 1); l["logLevel"] != "DEBUG" || l["logLevelBefore"] != "INFO" || l["path"] != file {
		t.Errorf("logged %v", l)
	}
}
