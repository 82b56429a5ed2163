// SPDX-License-Identifier: Apache-2.0

//go:build pkcs11

package pkcs11

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/miekg/pkcs11"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// module is the library of a device. It stays loaded until the process ends, because all
// providers share the state of the library, and its threads may still run.
type module struct {
	*pkcs11.Ctx

	// mu guards pins. A goroutine holds it while it logs in.
	mu sync.Mutex
	// pins are digests of the PINs that the process is logged in with, by slots. Either all
	// sessions of a process are logged in or none, so without pins a provider could use the login
	// of another one.
	pins map[uint][sha256.Size]byte
}

var modules = struct {
	sync.Mutex
	loaded map[string]*module
}{loaded: map[string]*module{}}

// load loads a library, or returns it if it is loaded.
func load(path string) (*module, error) {
	modules.Lock()
	defer modules.Unlock()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("PKCS11.Module cannot be read: %w", err)
	}
	if m := modules.loaded[real]; m != nil {
		return m, nil
	}
	if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("PKCS11.Module is %q, which is not a file", path)
	}
	ctx := pkcs11.New(real)
	if ctx == nil {
		return nil, fmt.Errorf("PKCS11.Module is %q, which cannot be loaded, expected a library for PKCS #11 of this system, with all libraries that it needs", path)
	}
	if err := ctx.Initialize(); err != nil && !isCode(err, pkcs11.CKR_CRYPTOKI_ALREADY_INITIALIZED) {
		ctx.Destroy()
		return nil, fmt.Errorf("PKCS11.Module is %q, which cannot be initialized: %w", path, typed(err))
	}
	m := &module{Ctx: ctx, pins: map[uint][sha256.Size]byte{}}
	modules.loaded[real] = m
	return m, nil
}

// slot returns the slot of the token with a label.
func (m *module) slot(label string) (uint, pkcs11.TokenInfo, error) {
	slots, err := m.GetSlotList(true)
	if err != nil {
		return 0, pkcs11.TokenInfo{}, typed(err)
	}
	var found []uint
	var token pkcs11.TokenInfo
	for _, slot := range slots {
		if info, err := m.GetTokenInfo(slot); err == nil && info.Label == label {
			found, token = append(found, slot), info
		}
	}
	switch len(found) {
	case 0:
		return 0, token, fmt.Errorf("%w: no token has the label %q", keys.ErrUnavailable, label)
	case 1:
		return found[0], token, nil
	}
	return 0, token, fmt.Errorf("%w: %d tokens have the label %q, expected one", keys.ErrUnusable, len(found), label)
}

// errOtherPIN means that the process is logged in with another PIN.
var errOtherPIN = fmt.Errorf("%w: another provider is logged in to the token with another PIN", keys.ErrDenied)

// login logs the process in, unless it is logged in.
func (m *module) login(session pkcs11.SessionHandle, slot uint, pin []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	info, err := m.GetSessionInfo(session)
	if err != nil {
		return typed(err)
	}
	digest := sha256.Sum256(pin)
	if info.State == pkcs11.CKS_RO_USER_FUNCTIONS || info.State == pkcs11.CKS_RW_USER_FUNCTIONS {
		if m.pins[slot] != digest {
			return errOtherPIN
		}
		return nil
	}
	if err := m.Login(session, pkcs11.CKU_USER, string(pin)); err != nil {
		return typed(err)
	}
	m.pins[slot] = digest
	return nil
}

// isCode reports whether a library returned one of these codes.
func isCode(err error, codes ...pkcs11.Error) bool {
	var found pkcs11.Error
	return errors.As(err, &found) && slices.Contains(codes, found)
}
