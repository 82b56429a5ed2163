// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"log"
	"log/slog"
	"sync"
	"testing"

	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// libraryLog returns the log of the libraries. Controller-runtime keeps the first one of a process,
// so the test uses one although it may run several times.
var libraryLog = sync.OnceValue(func() *bytes.Buffer {
	var output bytes.Buffer
	setLogger(&config{level: slog.LevelInfo, logFormat: "json"}, &output)
	return &output
})

// The loggers belong to the process, so the cases run one after the other.
func TestEveryLibraryWritesTheOneStructuredLog(t *testing.T) {
	output := libraryLog()
	for sentence, write := range map[string]func(message string){
		"the reconcilers":                 func(message string) { ctrllog.Log.Info(message) },
		"client-go":                       func(message string) { klog.Background().Info(message) },
		"the standard library's log":      func(message string) { log.Print(message) },
		"the standard library's log/slog": func(message string) { slog.Info(message) },
	} {
		t.Run(sentence, func(t *testing.T) {
			output.Reset()
			write("TLS handshake error: " + rand.Text()) // a unique message, which the limit on repeated lines does not drop
			var line struct{ Level, Msg, Component, Version string }
			if err := json.Unmarshal(output.Bytes(), &line); err != nil {
				t.Fatalf("found the line %q, expected JSON: %v", output.String(), err)
			}
			if line.Msg == "" || line.Level != "INFO" || line.Component != "operator" || line.Version == "" {
				t.Errorf("found the line %q, expected a message of level INFO, of the operator and its version", output.String())
			}
		})
	}
}
