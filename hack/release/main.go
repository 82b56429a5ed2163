// SPDX-License-Identifier: Apache-2.0

// Command release builds everything that a release has into one folder: programs, images, the chart, the packages of the
// clients, the kubectl plugin, a bill of materials for each program, the provenance, and the checksums of all. The same
// commit gives the same bytes, whatever the folder is that it was checked out to.
//
// docs/releases.md says what the files are and how users check them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const usage = `Usage: hack/release/release [--out DIR] [--parts PARTS] [--key FILE] [--url URL]

Builds the files of a release from the commit that is checked out. Chart.yaml says which version it is.

`

// options are the settings of the command line.
type options struct {
	out, key, url, builder string
	parts                  []string
}

// release is the input of the parts.
type release struct {
	options
	// root is the checkout, and cache the folder of tools.
	root, cache string
	// version has a v in front, as tags have it.
	version, commit string
	// at is when the commit was made. Formats that demand a time get this one.
	at time.Time
	// debian are the packages of Debian in the images, if images are built.
	debian []debianPackage
}

// parts are what a release consists of, in the order in which they are made.
var parts = []struct {
	name string
	make func(*release, context.Context) error
}{
	{"programs", (*release).programs},
	{"images", (*release).images},
	{"chart", (*release).chart},
	{"plugin", (*release).plugin},
	{"clients", (*release).clients},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	r := &release{options: o}
	if err := r.checkout(ctx); err != nil {
		return err
	}
	released, err := os.ReadFile(filepath.Join(r.root, "hack", "release", "versions"))
	if err != nil {
		return err
	}
	if other := releasedFrom(string(released), r.version); other != "" && other != r.commit {
		progress("%s was released from the commit %s; these files are not that release", r.version, other)
	}
	if err := emptyFolder(r.out); err != nil {
		return err
	}
	for _, part := range parts {
		if !slices.Contains(r.parts, part.name) {
			continue
		}
		progress("%s of %s", part.name, r.version)
		if err := part.make(r, ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if err := r.describe(ctx); err != nil {
		return err
	}
	progress("%s is in %s", r.version, r.out)
	return nil
}

func parseOptions(arguments []string) (options, error) {
	var names []string
	for _, part := range parts {
		names = append(names, part.name)
	}
	var o options
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.out, "out", "dist/release", "folder for the files; it must be empty or missing")
	flags.StringVar(&o.key, "key", "", "file with a private key, ECDSA in PKCS #8 and PEM, that signs the checksums")
	flags.StringVar(&o.url, "url", "", "https URL of the folder from which users download the files, for krew (default: the release of the version at the project's home)")
	flags.StringVar(&o.builder, "builder", home+"/blob/main/docs/releases.md#built-by-hand", "URI of the builder, for the provenance")
	some := flags.String("parts", strings.Join(names, ","), "parts to build; commas separate them")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("found the argument %q, expected options only; --help shows them", flags.Arg(0))
	}
	for name := range strings.SplitSeq(*some, ",") {
		if !slices.Contains(names, name) {
			return o, fmt.Errorf("--parts names %q, expected some of %s", name, strings.Join(names, ", "))
		}
		o.parts = append(o.parts, name)
	}
	if at, err := url.Parse(o.url); o.url != "" && (err != nil || at.Scheme != "https" || at.Host == "") {
		return o, fmt.Errorf("--url is %q, expected the https URL of a folder", o.url)
	}
	var err error
	o.out, err = filepath.Abs(o.out)
	return o, err
}

// home is the address of the project.
const home = "https://github.com/crypto-broker/crypto-broker-operator"

// checkout finds the root, the commit and the version of the source. It refuses a checkout with files that are not committed,
// because nobody could build them again.
func (r *release) checkout(ctx context.Context) error {
	var err error
	if r.root, err = output(ctx, ".", "git", "rev-parse", "--show-toplevel"); err != nil {
		return err
	}
	changed, err := output(ctx, r.root, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("found files that differ from the commit, expected none:\n%s", changed)
	}
	if r.version, err = statedVersion(r.root); err != nil {
		return err
	}
	tags, err := output(ctx, r.root, "git", "tag", "--points-at", "HEAD", "--list", "v*")
	if err != nil {
		return err
	}
	if tags != "" && !slices.Contains(strings.Fields(tags), r.version) {
		return fmt.Errorf("the commit has the tag %s, and its files state %s, expected the same", strings.Join(strings.Fields(tags), ", "), r.version)
	}
	if r.commit, err = output(ctx, r.root, "git", "rev-parse", "HEAD"); err != nil {
		return err
	}
	at, err := output(ctx, r.root, "git", "log", "-1", "--format=%cI")
	if err != nil {
		return err
	}
	if r.at, err = time.Parse(time.RFC3339, at); err != nil {
		return fmt.Errorf("the time of the commit: %w", err)
	}
	r.at = r.at.UTC()
	if r.cache = os.Getenv("CRYPTO_BROKER_CACHE"); r.cache == "" {
		r.cache = filepath.Join(r.root, ".cache")
	}
	if r.url == "" {
		r.url = home + "/releases/download/" + r.version
	}
	return nil
}

// emptyFolder makes a folder. It refuses one with files, which would be taken for a part of the release.
func emptyFolder(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("--out is %s, which has %d files, expected an empty folder", path, len(entries))
	}
	return err
}

// output runs a command in a folder and returns what it prints.
func output(ctx context.Context, folder, name string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = folder
	return printed(command)
}

// printed runs a command and returns what it prints. Its error has what the command wrote to standard error.
func printed(command *exec.Cmd) (string, error) {
	text, err := command.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(command.Args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(text)), err
}

func progress(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "%s release: %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, arguments...))
}
