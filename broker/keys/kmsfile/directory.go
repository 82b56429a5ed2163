// SPDX-License-Identifier: Apache-2.0

package kmsfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/openbao"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
)

const (
	// lookInterval is the shortest time between two checks whether a file has changed.
	lookInterval = time.Second
	// maxFile is the largest size in bytes of a file.
	maxFile = 64 << 10
)

// Directory has the key managers of the files of a directory. It is safe for concurrent use.
type Directory struct {
	dir string

	mu      sync.Mutex
	opened  map[source]*manager
	closing sync.WaitGroup
}

// source identifies a key manager as profiles name it.
type source struct {
	file   string
	cached bool
}

// manager is the key manager of a file, or the reason why there is none.
type manager struct {
	providers.Provider
	err    error
	digest [sha256.Size]byte
	until  time.Time
}

// New returns the key managers of a directory, which may be filled later.
func New(dir string) *Directory {
	return &Directory{dir: dir, opened: map[source]*manager{}}
}

// Provider returns the key manager of a file. file is a name without directories. If cached is
// true, keys are used for [providers.MaxCacheTime] without asking again. Otherwise every call
// asks.
//
// Provider reads the file again if a second has passed since it was read. If the file has
// changed, Provider returns another key manager. If the file cannot be used, there is no key
// manager. The error wraps [keys.ErrUnusable] and has no part of a token.
func (d *Directory) Provider(file string, cached bool) (keys.Provider, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	from := source{file, cached}
	m := d.opened[from]
	if m == nil {
		m = &manager{}
		d.opened[from] = m
	}
	if now := time.Now(); !now.Before(m.until) {
		d.look(from, m)
		m.until = now.Add(lookInterval)
	}
	if m.err != nil {
		return nil, fmt.Errorf("%w: the file %s of the directory --kms-dir %w", keys.ErrUnusable, file, m.err)
	}
	return m.Provider, nil
}

// look opens the key manager of a file, unless it is open and the file has not changed.
func (d *Directory) look(from source, m *manager) {
	text, authorities, err := d.read(from.file)
	defer clear(text)
	if errors.Is(err, regularfile.ErrBeingWritten) && m.Provider != nil {
		return
	}
	digest := sha256.New()
	fmt.Fprintf(digest, "%d ", len(text))
	digest.Write(text)
	digest.Write(authorities)
	sum := [sha256.Size]byte(digest.Sum(nil))
	if err == nil && m.Provider != nil && m.digest == sum {
		return
	}
	if before := m.Provider; before != nil {
		d.closing.Go(before.Close) // waits for requests
	}
	m.Provider, m.digest, m.err = nil, sum, err
	if err == nil {
		m.Provider, m.err = open(text, authorities, from.cached)
	}
}

// read returns the content of a file, and the authorities of the directory, if it has any. Links
// out of the directory are not followed.
func (d *Directory) read(file string) (text, authorities []byte, err error) {
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot be read: %w", err)
	}
	defer func() { _ = root.Close() }() // the file was only read, so an error loses no data
	if text, err = readIn(root, file); err != nil {
		return nil, nil, fmt.Errorf("cannot be read: %w", err)
	}
	authorities, err = readIn(root, providers.Authorities)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		clear(text)
		return nil, nil, fmt.Errorf("has no authorities: %w", err)
	}
	return text, authorities, nil
}

func readIn(root *os.Root, name string) ([]byte, error) {
	data, _, err := regularfile.ReadIn(root, name, maxFile)
	if err == nil && len(data) > maxFile {
		clear(data)
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	return data, err
}

// open opens the key manager that a file describes.
func open(text, authorities []byte, cached bool) (providers.Provider, error) {
	s, err := parse(text)
	if err != nil {
		return nil, err
	}
	config := &providers.Config{Endpoints: []string{s.address}, OpenBao: &providers.OpenBaoSettings{Engine: "kv", Mount: s.mount}}
	if !cached {
		config.CacheTime = -time.Second
	}
	provider, err := openbao.Open(config, providers.Credentials{providers.Token: []byte(s.token), providers.Authorities: authorities})
	if err != nil {
		return nil, fmt.Errorf("names no server that can be used: %w", err)
	}
	return provider, nil
}

// Close ends all connections, once the requests that have begun are done. Provider must not be
// called any more.
func (d *Directory) Close() {
	d.mu.Lock()
	for _, m := range d.opened {
		if m.Provider != nil {
			d.closing.Go(m.Close)
		}
	}
	d.mu.Unlock()
	d.closing.Wait()
}
