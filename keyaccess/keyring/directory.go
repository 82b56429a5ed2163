// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
)

const (
	suffix      = ".key"
	refSuffix   = ".ref"
	currentFile = "current"
	// maxFile is the size of the largest file in bytes.
	maxFile = 64 << 10
	// maxKeys is the largest number of keys.
	maxKeys = 256
)

// Directory has the ring of a directory.
type Directory struct {
	dir     string
	finder  wrapping.Finder // nil without key managers
	observe func(*Ring, error)
	current atomic.Pointer[Ring]

	// Only the goroutine that reads the directory uses the fields below.
	parsed  map[[sha256.Size]byte]wrapping.Key
	managed map[keys.Name]wrapping.Key
	told    string
}

// Open reads a directory of keys. The path is absolute. finder has the keys of key managers, and may be nil if there are none. observe
// is called once for each change: with the new ring, or with the error because of which the previous ring stays in use. It is not
// called before Open returns.
//
// Open waits for key managers for five seconds. The keys that it has not got then are pending, see [Ring.Pending].
func Open(dir string, finder wrapping.Finder, observe func(*Ring, error)) (*Directory, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("key directory %q: expected an absolute path", dir)
	}
	d := &Directory{dir: filepath.Clean(dir), finder: finder, observe: observe, parsed: map[[sha256.Size]byte]wrapping.Key{}}
	ring, digest, err := d.read()
	if err != nil {
		return nil, fmt.Errorf("key directory %s: %w", d.dir, err)
	}
	d.told = digest
	d.current.Store(ring)
	return d, nil
}

// Ring returns the keys that are in use.
func (d *Directory) Ring() *Ring { return d.current.Load() }

// Run follows the directory until ctx ends.
func (d *Directory) Run(ctx context.Context) {
	watch.New(watch.Config{
		Dir: d.dir,
		Matters: func(name string) bool {
			return name == currentFile || strings.HasSuffix(name, suffix) || strings.HasSuffix(name, refSuffix)
		},
		Look:     d.look,
		Interval: 10 * time.Second,
	}).Run(ctx)
}

// look implements the function of [watch.Config].
func (d *Directory) look() bool {
	before := watch.Links(d.dir)
	ring, digest, err := d.read()
	if errors.Is(err, regularfile.ErrBeingWritten) || watch.Links(d.dir) != before {
		return false
	}
	if err != nil {
		digest = err.Error()
	}
	if digest == d.told {
		return true
	}
	d.told = digest
	if err != nil {
		d.observe(nil, fmt.Errorf("key directory %s: %w", d.dir, err))
		return true
	}
	d.current.Store(ring)
	d.observe(ring, nil)
	return true
}

// read reads the directory. It returns a text that differs for different content.
func (d *Directory) read() (*Ring, string, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, "", err
	}
	found := map[string]wrapping.Key{}
	parsed := map[[sha256.Size]byte]wrapping.Key{}
	refs := map[string]keys.Name{}
	var current []string
	var digest strings.Builder
	for _, entry := range entries {
		name, isKey := strings.CutSuffix(entry.Name(), suffix)
		ref, isRef := strings.CutSuffix(entry.Name(), refSuffix)
		switch {
		case strings.HasPrefix(entry.Name(), "."): // links of a kubelet
		case entry.Name() == currentFile:
			text, _, err := regularfile.Read(filepath.Join(d.dir, currentFile), maxFile)
			if err != nil {
				return nil, "", err
			}
			current = strings.Fields(string(text))
			fmt.Fprintf(&digest, "%q\n", current)
		case !isKey && !isRef || isKey && !id.MatchString(name) || isRef && !id.MatchString(ref):
			return nil, "", fmt.Errorf("%.70q: expected a name such as rsa-1.key or rsa-1.ref, with 1 to 64 letters, digits and . _ - before .key or .ref, or %s", entry.Name(), currentFile)
		case len(found)+len(refs) == maxKeys:
			return nil, "", fmt.Errorf("found more than %d keys", maxKeys)
		case isRef:
			if refs[ref], err = d.readRef(entry.Name()); err != nil {
				return nil, "", err
			}
			fmt.Fprintf(&digest, "%s %q %q\n", ref, refs[ref].ID, refs[ref].Version)
		default:
			key, sum, err := d.readKey(entry.Name())
			if err != nil {
				return nil, "", err
			}
			found[name], parsed[sum] = key, key
			fmt.Fprintf(&digest, "%s %x\n", name, sum)
		}
	}
	for name := range refs {
		if found[name] != nil {
			return nil, "", fmt.Errorf("found %s%s and %s%s, expected one of them", name, suffix, name, refSuffix)
		}
	}
	managed := d.manage(refs)
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		key := managed[refs[name]]
		found[name] = key
		fmt.Fprintf(&digest, "%s %v\n", name, wrapping.WhyPending(key))
	}
	ring, err := NewRing(found, current)
	if err != nil {
		return nil, "", err
	}
	d.parsed, d.managed = parsed, managed
	return ring, digest.String(), nil
}

// readKey reads a key, unless it was read before: the check of an RSA key takes time.
func (d *Directory) readKey(name string) (wrapping.Key, [sha256.Size]byte, error) {
	text, _, err := regularfile.Read(filepath.Join(d.dir, name), maxFile)
	if err != nil {
		return nil, [sha256.Size]byte{}, err
	}
	defer clear(text)
	if len(text) > maxFile {
		return nil, [sha256.Size]byte{}, fmt.Errorf("%s: has more than %d bytes", name, maxFile)
	}
	sum := sha256.Sum256(text)
	if key := d.parsed[sum]; key != nil {
		return key, sum, nil
	}
	key, err := wrapping.ParseKey(text)
	if err != nil {
		return nil, sum, fmt.Errorf("%s %w", name, err)
	}
	return key, sum, nil
}
