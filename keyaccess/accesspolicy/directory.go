// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

// suffix is the end of the names of files with policies.
const suffix = ".yaml"

// Directory has the policies of a directory.
type Directory struct {
	dir     string
	modules CompileModule
	observe func(*Set, error)
	current atomic.Pointer[Set]
	told    string // only the goroutine that reads the directory uses it
}

// Open reads a directory of policies, as [Parse] does. The path is absolute. observe is called with a new set, and with the reason
// why a change does not count, once for each. It is not called before Open returns.
func Open(dir string, modules CompileModule, observe func(*Set, error)) (*Directory, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("policy directory %q: expected an absolute path", dir)
	}
	d := &Directory{dir: filepath.Clean(dir), modules: modules, observe: observe}
	set, content, err := d.read()
	if err != nil {
		return nil, fmt.Errorf("policy directory: %w", err)
	}
	d.told = content
	d.current.Store(set)
	return d, nil
}

// Set returns the policies that are in use.
func (d *Directory) Set() *Set { return d.current.Load() }

// Run follows the directory until ctx ends.
func (d *Directory) Run(ctx context.Context) {
	watch.New(watch.Config{
		Dir:      d.dir,
		Matters:  func(name string) bool { return strings.HasSuffix(name, suffix) },
		Look:     d.look,
		Interval: 10 * time.Second,
	}).Run(ctx)
}

// look implements the function of [watch.Config].
func (d *Directory) look() bool {
	before := watch.Links(d.dir)
	set, content, err := d.read()
	if errors.Is(err, regularfile.ErrBeingWritten) || watch.Links(d.dir) != before {
		return false
	}
	if err != nil {
		content = "error " + err.Error()
	}
	if content == d.told {
		return true
	}
	d.told = content
	if err != nil {
		d.observe(nil, err)
		return true
	}
	d.current.Store(set)
	d.observe(set, nil)
	return true
}

// read reads the directory. It returns a text that differs for different content.
func (d *Directory) read() (*Set, string, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, "", err
	}
	var policies []*Policy
	var content strings.Builder
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") { // links of a kubelet
			continue
		}
		if !strings.HasSuffix(name, suffix) {
			return nil, "", fmt.Errorf("%s: found %.80q, expected names that end in %s", d.dir, name, suffix)
		}
		found, text, err := ReadFile(filepath.Join(d.dir, name), d.modules)
		if err != nil {
			return nil, "", err
		}
		if policies = append(policies, found...); len(policies) > maxPolicies {
			return nil, "", fmt.Errorf("%s: found more than %d policies", d.dir, maxPolicies)
		}
		fmt.Fprintf(&content, "%q %q\n", name, text)
	}
	if len(policies) == 0 {
		return nil, "", fmt.Errorf("%s: found no file that ends in %s", d.dir, suffix)
	}
	set, err := NewSet(policies)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", d.dir, err)
	}
	return set, content.String(), nil
}

// ReadFile reads the policies of a file, as [Parse] does. It returns its text as well.
func ReadFile(name string, modules CompileModule) ([]*Policy, []byte, error) {
	text, _, err := regularfile.Read(name, maxDocuments+1)
	if err != nil {
		return nil, nil, err
	}
	policies, err := Parse(name, text, modules)
	return policies, text, err
}
