// SPDX-License-Identifier: Apache-2.0

package unixsocket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/internal/ownedir"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// maxSocketPath is the longest path in bytes that a socket can have: sun_path of
// unix(7) less the NUL that ends it.
const maxSocketPath = 107

// Options says which sockets to make.
type Options struct {
	// Dir is the absolute path of the directory of the sockets.
	Dir string
	// Callers names the callers, each a DNS label. Each has a directory below Dir
	// with a socket of its own. Without any, there is one socket in Dir itself.
	Callers []string
	// Profiles are the names of those that a caller may use. A caller that is not
	// in here may use all.
	Profiles map[string][]string
	// Shared says that callers see the processes of each other, and so can call through
	// the sockets of each other. Profiles that name containers then allow none.
	Shared bool
	// Group is the id of the group that may connect; negative for only the
	// broker's own user.
	Group int
}

// Validate checks the options without touching anything.
func (o *Options) Validate() error {
	if !filepath.IsAbs(o.Dir) {
		return fmt.Errorf("socket directory %q: expected an absolute path", o.Dir)
	}
	seen := map[string]bool{}
	for _, caller := range o.Callers {
		if !profile.IsContainerName(caller) {
			return fmt.Errorf("caller %q: expected the name of a container, at most 63 lower-case letters, digits and inner hyphens", caller)
		}
		if seen[caller] {
			return fmt.Errorf("caller %q is named twice", caller)
		}
		seen[caller] = true
	}
	if err := o.validateProfiles(); err != nil {
		return err
	}
	for _, at := range o.locations() {
		if path := filepath.Join(at.path, contract.SocketFile); len(path) > maxSocketPath {
			return fmt.Errorf("the path of the socket %s has %d bytes, and the system allows at most %d: choose a shorter socket directory or caller name", path, len(path), maxSocketPath)
		}
	}
	return nil
}

// location is the directory of one socket, and whose it is.
type location struct{ path, caller string }

func (o *Options) locations() []location {
	if len(o.Callers) == 0 {
		return []location{{path: filepath.Clean(o.Dir)}}
	}
	locations := make([]location, len(o.Callers))
	for i, caller := range o.Callers {
		locations[i] = location{filepath.Join(o.Dir, caller), caller}
	}
	return locations
}

// Sockets are the sockets a broker listens on. It holds them alone: a second
// broker in the same directory is refused.
type Sockets struct {
	lock      *os.File
	listeners []*Listener
}

// Listen makes the directories and the sockets in them. A directory that is
// there is kept, whatever happens: it may be mounted into the container of its
// caller, which would go on seeing the old one. A socket that a broker left
// behind when it was killed is replaced; one that somebody listens on is not.
func Listen(o Options) (*Sockets, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Sockets{}
	if err := s.listen(o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Sockets) listen(o Options) (err error) {
	dir, err := o.own(socketDirectory.Make(o.Dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if s.lock, err = lock(dir); err != nil {
		return err
	}
	for _, at := range o.locations() {
		if err := s.add(&o, dir, at); err != nil {
			return err
		}
	}
	return nil
}

// add makes the socket at a location in the directory of all.
func (s *Sockets) add(o *Options, dir *ownedir.Dir, at location) (err error) {
	if at.caller != "" {
		if dir, err = o.own(socketDirectory.Open(dir.FD(), at.caller, at.path)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dir.Close()) }()
	}
	l, err := o.bind(dir, at.caller)
	if err != nil {
		return err
	}
	s.listeners = append(s.listeners, l)
	return nil
}

// Listeners returns the sockets, each once.
func (s *Sockets) Listeners() []*Listener { return s.listeners }

// Paths returns the paths of the sockets.
func (s *Sockets) Paths() []string {
	paths := make([]string, len(s.listeners))
	for i, l := range s.listeners {
		paths[i] = l.path
	}
	return paths
}

// Close stops listening and removes the sockets, those alone that are still the
// ones it made.
func (s *Sockets) Close() error {
	var errs []error
	for _, l := range s.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(l.made, now) {
			errs = append(errs, os.Remove(l.path))
		}
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	s.listeners, s.lock = nil, nil
	return errors.Join(errs...)
}
