// SPDX-License-Identifier: Apache-2.0

// Command krew builds the kubectl plugin for each platform, packs an archive for each, and
// writes the manifest by which krew installs them:
//
//	go run ./hack/krew --version v0.2.0 --url https://example.com/releases/v0.2.0 --out dist/krew
package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "krew: %v\n", err)
		os.Exit(1)
	}
}

// semantic matches a version as krew expects it: semantic versioning behind a v.
var semantic = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

func run(ctx context.Context, arguments []string) error {
	flags := pflag.NewFlagSet("krew", pflag.ContinueOnError)
	version := flags.String("version", "", "version of the release, such as v0.2.0")
	at := flags.String("url", "", "https URL of the folder from which users download the archives")
	out := flags.String("out", "dist/krew", "folder for the archives and the manifest")
	only := flags.StringSlice("platforms", nil, "platforms to build for, such as linux/amd64 (default all)")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if !semantic.MatchString(*version) {
		return fmt.Errorf("--version is %q, expected one such as v0.2.0", *version)
	}
	if parsed, err := url.Parse(*at); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
		return fmt.Errorf("--url is %q, expected the https URL of a folder", *at)
	}
	all, err := chosen(*only)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return fmt.Errorf("run this in the folder of the repository: %w", err)
	}
	var archives []archive
	for _, p := range all {
		binary, err := build(ctx, p, *version)
		if err != nil {
			return fmt.Errorf("build for %s: %w", p, err)
		}
		a, err := pack(*out, p, *version, binary, license)
		if err != nil {
			return fmt.Errorf("pack for %s: %w", p, err)
		}
		fmt.Println(filepath.Join(*out, a.name), a.sha256)
		archives = append(archives, a)
	}
	text, err := manifest(*version, strings.TrimSuffix(*at, "/"), archives)
	if err != nil {
		return err
	}
	target := filepath.Join(*out, pluginName+".yaml")
	if err := os.WriteFile(target, text, 0o644); err != nil {
		return err
	}
	fmt.Println(target)
	return nil
}

// platform is an operating system and an architecture, as Go and krew name them.
type platform struct{ os, arch string }

// String returns the platform as Go writes it.
func (p platform) String() string { return p.os + "/" + p.arch }

// binary is the name of the program in the archive.
func (p platform) binary() string {
	if p.os == "windows" {
		return programName + ".exe"
	}
	return programName
}

// platforms are the platforms of a release.
var platforms = []platform{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}}

// chosen returns the platforms with these names, or all.
func chosen(names []string) (some []platform, err error) {
	if len(names) == 0 {
		return platforms, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("--platforms has %q, expected some of %v", name, platforms)
		}
		some = append(some, platforms[i])
	}
	return some, nil
}

// build compiles the plugin, and returns the program.
func build(ctx context.Context, p platform, version string) (content []byte, err error) {
	folder, err := os.MkdirTemp("", "krew")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	target := filepath.Join(folder, p.binary())
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+version, "-o", target, "./cmd/kubectl-crypto_broker")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, output)
	}
	return os.ReadFile(target)
}
