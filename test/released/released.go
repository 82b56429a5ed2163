// SPDX-License-Identifier: Apache-2.0

// Package released has the released versions of this project, and their sources.
package released

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Versions is the file that names the versions, in the repository.
const Versions = "hack/release/versions"

// Version is a released version.
type Version struct {
	// Name has a v in front.
	Name string
	// Commit is the commit it was built from.
	Commit string
}

// line matches a line of the file.
var line = regexp.MustCompile(`^(v\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?) ([0-9a-f]{40})$`)

// fullID matches the whole id of a commit.
var fullID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// All returns the supported versions, oldest first.
func All(repository string) ([]Version, error) {
	path := filepath.Join(repository, filepath.FromSlash(Versions))
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(string(content))
}

func parse(content string) ([]Version, error) {
	var all []Version
	for text := range strings.Lines(content) {
		text = strings.TrimSuffix(text, "\n")
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		found := line.FindStringSubmatch(text)
		if found == nil {
			return nil, fmt.Errorf("%s has the line %q, expected a version and its commit, such as v1.2.3 and 40 digits in hexadecimal", Versions, text)
		}
		all = append(all, Version{found[1], found[2]})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s names no version", Versions)
	}
	return all, nil
}

// Checkout clones the repository into a folder, an absolute path that is not there yet, and checks out a commit, which may also have another
// name, such as HEAD~1. It returns the commit's id. The clone is a repository of its own, so that the other one stays as it is. If the
// repository is a shallow clone without a commit whose id is known, its origin is cloned instead.
func Checkout(ctx context.Context, repository, commit, folder string) (id string, err error) {
	from := "."
	id, err = git(ctx, repository, "rev-parse", "--verify", "--quiet", commit+"^{commit}")
	if err != nil {
		err = fmt.Errorf("found no commit %s, expected the history of the repository; \"git fetch --unshallow\" gets it: %w", commit, err)
		shallow, _ := git(ctx, repository, "rev-parse", "--is-shallow-repository") // without an answer, the error above is returned
		origin, noOrigin := git(ctx, repository, "remote", "get-url", "origin")
		if shallow != "true" || noOrigin != nil || !fullID.MatchString(commit) {
			return "", err
		}
		from, id = origin, commit
	}
	if _, cloneError := git(ctx, repository, "clone", "--quiet", "--shared", "--no-checkout", from, folder); cloneError != nil {
		return "", errors.Join(err, cloneError)
	}
	if _, checkoutError := git(ctx, folder, "checkout", "--quiet", "--detach", id); checkoutError != nil {
		return "", errors.Join(err, checkoutError)
	}
	return id, nil
}

// git runs git in a folder and returns what it prints.
func git(ctx context.Context, folder string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir = folder
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		err = errors.Join(fmt.Errorf("git %s: %w", strings.Join(arguments, " "), err), errors.New(stderr.String()))
	}
	return strings.TrimSpace(string(output)), err
}
