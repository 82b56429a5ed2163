// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package collector_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// waitLimit is far above what anything here takes; only a failure reaches it.
const waitLimit = time.Minute

// tlsProvider is the TLS provider of the brokers, "openssl" for a run with the other build of the broker.
var tlsProvider = os.Getenv("TRACES_TLS_PROVIDER")

// The programs.
var brokerProgram, collectorProgram string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "traces")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := build(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// build builds the broker as it is released, and the collector unless it was built
// before.
func build(dir string) error {
	brokerProgram = filepath.Join(dir, "broker")
	broker := exec.Command("go", "build", "-trimpath", "-ldflags", "-X main.version=v1.2.3", "-o", brokerProgram, "../../cmd/broker")
	broker.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFIPS140=v1.0.0")
	if tlsProvider == tlsprovider.OpenSSL {
		brokerProgram = filepath.Join(dir, "openssl", "broker")
		broker = exec.Command("make", "--no-print-directory", "-C", "../..", "build-openssl", "BIN="+dir)
	}
	if output, err := broker.CombinedOutput(); err != nil {
		return fmt.Errorf("build the broker: %w\n%s", err, output)
	}
	collector := exec.Command("../../hack/tools/build", "collector")
	var path bytes.Buffer
	collector.Stdout, collector.Stderr = &path, os.Stderr
	if err := collector.Run(); err != nil {
		return fmt.Errorf("build the collector: %w", err)
	}
	collectorProgram = strings.TrimSpace(path.String())
	return nil
}
