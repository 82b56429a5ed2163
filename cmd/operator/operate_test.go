// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"log"
	"log/slog"
	"testing"

	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// The loggers are the process's, so the cases run one after the other.
func TestEveryLibraryWritesTheOneStructuredLog(t *testing.T) {
	var output bytes.Buffer
	setLogger(&config{level: slog.LevelInfo, logFormat: "json"}, &output)

	for sentence, write := range map[string]func(message string){
		"the reconcilers":                 func(message string) { ctrllog.Log.Info(message) },
		"client-go":                       func(message string) { klog.Background().Info(message) },
		"the standard library's log":      func(message string) { log.Print(message) },
		"the standard library's log/slog": func(message string) { slog.Info(message) },
	} {
		t.Run(sentence, func(t *testing.T) {
			output.Reset()
			write("TLS handshake error")
			var line struct{ Level, Msg string }
			if err := json.Unmarshal(output.Bytes(), &line); err != nil {
				t.Fatalf("found the line %q, expected JSON: %v", output.String(), err)
			}
			if line.Msg == "" || line.Level != "INFO" {
				t.Errorf("found the line %q, expected a message of level INFO", output.String())
			}
		})
	}
}
