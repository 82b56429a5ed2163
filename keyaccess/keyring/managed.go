// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
)

const (
	// maxRef is the size of the largest file that names a key, in bytes.
	maxRef = 1 << 10
	// findTime is how long the directory waits for key managers.
	findTime = 5 * time.Second
)

// readRef reads a file that names a key of a key manager.
func (d *Directory) readRef(name string) (keys.Name, error) {
	text, _, err := regularfile.Read(filepath.Join(d.dir, name), maxRef)
	if err != nil {
		return keys.Name{}, err
	}
	fields := strings.Fields(string(text))
	if len(fields) == 1 {
		fields = append(fields, "")
	}
	valid := len(fields) == 2
	if valid {
		provider, rest := keys.SplitID(fields[0])
		valid = provider != "" && keyrules.ValidID(rest)
	}
	switch {
	case !valid:
		return keys.Name{}, fmt.Errorf("%s: found %.80q, expected the name of a key provider, a slash and the id of a key, and its version if it has versions, such as hsm/key-access 01", name, text)
	case d.finder == nil:
		return keys.Name{}, fmt.Errorf("%s: names a key of a key manager, expected a directory of key providers in the configuration", name)
	}
	return keys.Name{ID: fields[0], Version: fields[1]}, nil
}

// manage returns the keys of key managers. Those that are there stay as they are. The others are asked for, all at one time.
func (d *Directory) manage(refs map[string]keys.Name) map[keys.Name]wrapping.Key {
	ctx, cancel := context.WithTimeout(context.Background(), findTime)
	defer cancel()
	all := map[keys.Name]wrapping.Key{}
	var mu sync.Mutex // guards all while keys are asked for
	var asking sync.WaitGroup
	for _, name := range refs {
		if known := d.managed[name]; known != nil && wrapping.WhyPending(known) == nil {
			mu.Lock()
			all[name] = known
			mu.Unlock()
			continue
		}
		asking.Go(func() {
			key, err := wrapping.Manage(ctx, d.finder, name)
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("%w: found no answer within %s", keys.ErrUnavailable, findTime)
			}
			if err != nil {
				key = wrapping.Pending(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all[name] = key
		})
	}
	asking.Wait()
	return all
}
