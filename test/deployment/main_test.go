// SPDX-License-Identifier: Apache-2.0

// Package deployment runs what docs/deployment describes: containers by a real
// engine, and processes as Cloud Foundry starts them. That needs root and Linux,
// and the network once, for the engine's packages.
package deployment_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const (
	// waitLimit is far above what anything here takes; only a failure reaches it.
	waitLimit = time.Minute
	// digest is the SHA3-512 of "Welcome", which the examples compute.
	digest = "793e98cc21671f496e974bda43f19cc78c8428222cb0c7d95dcc210e6e2b405f5f87b1c3f73823a6f1cc99a1151a452ec4080c84617b5b531ea624f3484028a2"
)

// repository is the root of the repository, and guides is the folder of the tested pages.
var repository, guides string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if repository, err = filepath.Abs(filepath.Join("..", "..")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		guides = filepath.Join(repository, "docs", "deployment")
		if os.Geteuid() != 0 {
			fmt.Fprintln(os.Stderr, "these tests run containers, which needs root")
			return 1
		}
		return m.Run()
	}())
}

// cache is the folder of everything that is built or downloaded.
func cache() string {
	if folder := os.Getenv("CRYPTO_BROKER_CACHE"); folder != "" {
		return folder
	}
	return filepath.Join(repository, ".cache")
}

// programs puts the broker and the command line, as they are released, into a
// folder.
func programs(t *testing.T, folder string) {
	t.Helper()
	if err := built(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(cache(), "deployment", "programs"))); err != nil {
		t.Fatal(err)
	}
}

// built builds the programs once.
var built = sync.OnceValue(func() error {
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(cache(), "deployment", "programs")+"/", "./cmd/broker", "./cmd/crypto-broker")
	build.Dir = repository
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFIPS140=v1.0.0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, output)
	}
	return nil
})

// temporary makes a folder whose path is short enough for sockets, and which is
// not below /tmp, as namespaces of the tests have a /tmp of their own.
func temporary(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/var/tmp", "crypto-broker-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// eventually waits until a check succeeds.
func eventually(t *testing.T, what string, check func(context.Context) bool) {
	t.Helper()
	// The test may have ended, and its cleanup may wait.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitLimit)
	defer cancel()
	for tick := time.NewTicker(100 * time.Millisecond); !check(ctx); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited %s: %s", waitLimit, what)
		}
	}
}
