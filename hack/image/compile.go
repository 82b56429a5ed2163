// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// program is what an image runs, and its only content unless it has OpenSSL.
type program struct {
	name    string // of the image
	file    string // of the program, in the image's root
	folder  string // of its module, in the repository
	path    string // of its package, in the module
	summary string
	openssl bool // whether it is built with OpenSSL for TLS, and its image has OpenSSL
}

var programs = []program{
	{"broker", "broker", ".", "./cmd/broker", "Policy-governed cryptography on a Unix socket", false},
	{"operator", "operator", ".", "./cmd/operator", "Puts Crypto Broker into pods and profiles into brokers", false},
	{"gateway", "gateway", ".", "./cmd/gateway", "Uses the keys of key managers for brokers in pods", false},
	{"cli", "crypto-broker", ".", "./cmd/crypto-broker", "Command line that calls a Crypto Broker and checks profiles", false},
	{"demo-app", "demo-app", ".", "./test/app", "Application that calls its Crypto Broker, for the demo and the tests", false},
	{"client-app", "client-app", "clients/go", "./internal/app", "Application that calls its Crypto Broker through the Go client, for the tests", false},
	{"broker-openssl", "broker", ".", "./cmd/broker", "Policy-governed cryptography on a Unix socket, with TLS by OpenSSL", true},
	{"gateway-openssl", "gateway", ".", "./cmd/gateway", "Uses the keys of key managers for brokers in pods, with TLS by OpenSSL", true},
}

func programNames(programs []program) string {
	names := make([]string, len(programs))
	for i, each := range programs {
		names[i] = each.name
	}
	return strings.Join(names, ", ")
}

// choose returns the programs with these names, separated by commas. If names is empty, it returns all programs without
// OpenSSL, whose images need no network.
func choose(names string) ([]program, error) {
	if names == "" {
		return slices.DeleteFunc(slices.Clone(programs), func(each program) bool { return each.openssl }), nil
	}
	var chosen []program
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(programs, func(each program) bool { return each.name == name })
		if i < 0 {
			return nil, fmt.Errorf("--only names %q, expected some of %s", name, programNames(programs))
		}
		chosen = append(chosen, programs[i])
	}
	return chosen, nil
}

// describe returns the version of a checkout: its last tag or its commit, with "-dirty" if files differ from it. A source
// that is no checkout has the version "unknown".
func describe(source string) (string, error) {
	if _, err := os.Stat(filepath.Join(source, ".git")); err != nil {
		if _, err := os.Stat(filepath.Join(source, "go.mod")); err != nil {
			return "", fmt.Errorf("%s is not a checkout of the repository: %w", source, err)
		}
		return "unknown", nil
	}
	output, err := exec.Command("git", "-C", source, "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "", fmt.Errorf("ask git for the version of %s: %w", source, withStderr(err))
	}
	return strings.TrimSpace(string(output)), nil
}

func withStderr(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}

// cryptographicModule is the version of the Go Cryptographic Module that is built in, the one with CMVP certificate
// 5247. With it FIPS 140-3 mode is on unless GODEBUG says otherwise. Go comes with its source.
const cryptographicModule = "v1.0.0"

// openSSL has the workspace and the overlay of programs with OpenSSL, as the Makefile's target build-openssl uses them.
const openSSL = "broker/tlsprovider/openssl"

// buildPrograms compiles the programs and returns their paths by image name. They stay in the out folder, so that Go
// links only what changed.
func buildPrograms(o options, version string) (map[string]string, error) {
	folder := filepath.Join(o.out, "bin", o.arch)
	if o.cover != "" {
		folder += "-cover"
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	binaries := map[string]string{}
	for _, each := range o.programs {
		binary := filepath.Join(folder, each.name)
		// grpcnotrace leaves out the debug pages of gRPC, which nobody serves. They would
		// link HTML templates, and through these every method of every type.
		arguments := []string{"build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace", "-ldflags", "-s -w -X main.version=" + version}
		if o.cover != "" {
			covered := "./..."
			if each.folder == "." {
				covered = "./broker/...,./controllers/...,./webhook/..."
			}
			arguments = append(arguments, "-cover", "-coverpkg="+covered)
		}
		workspace := "off"
		if each.openssl {
			workspace = filepath.Join(o.source, openSSL, "go.work")
			arguments = append(arguments, "-overlay", filepath.Join(openSSL, "overlay.json"))
		}
		command := exec.Command("go", append(arguments, "-o", binary, each.path)...)
		command.Dir = filepath.Join(o.source, each.folder)
		// A workspace file or flags of the caller's environment must not change what is built.
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+o.arch, "GOFLAGS=", "GOWORK="+workspace, "GOFIPS140="+cryptographicModule)
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
		if err := command.Run(); err != nil {
			return nil, fmt.Errorf("compile %s in %s: %w", each.path, o.source, err)
		}
		binaries[each.name] = binary
	}
	return binaries, nil
}

// contentTag returns the version with a hash over the programs and the files of Debian, if there are some.
func contentTag(version string, programs []program, binaries map[string]string, debian []byte) (string, error) {
	sum := sha256.New()
	sum.Write(debian)
	for _, each := range programs {
		data, err := os.ReadFile(binaries[each.name])
		if err != nil {
			return "", err
		}
		one := sha256.Sum256(data)
		sum.Write(one[:])
	}
	return strings.ReplaceAll(version, "+", "_") + "-" + hex.EncodeToString(sum.Sum(nil))[:12], nil
}
