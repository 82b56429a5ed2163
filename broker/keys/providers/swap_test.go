// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

// A kubelet replaces a mounted Secret by renaming a link. Otherwise the new token of another key manager could get to the old one.
func TestAProviderIsNotOpenedWithTheCredentialsOfAnotherConfiguration(t *testing.T) {
	dir := t.TempDir()
	do := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	const count = 32
	for _, server := range []string{"old", "new"} {
		text := strings.Builder{}
		text.WriteString("Providers:\n")
		for i := range count {
			fmt.Fprintf(&text, "- {Name: p%d, Type: kmip, Endpoints: [%s]}\n", i, server)
			folder := filepath.Join(dir, ".."+server, fmt.Sprintf("p%d", i))
			do(errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, Token), []byte(server), 0o600)))
		}
		do(os.WriteFile(filepath.Join(dir, ".."+server, FileName), []byte(text.String()), 0o600))
	}
	versions := 0
	replace := func(server string) {
		versions++ // the folders of a kubelet never have the same name again
		version, link := fmt.Sprintf("..version-%d", versions), filepath.Join(dir, "..tmp")
		do(errors.Join(os.Symlink(".."+server, filepath.Join(dir, version)), os.Symlink(version, link), os.Rename(link, filepath.Join(dir, watch.DataLink))))
		if versions > 1 {
			do(os.Remove(filepath.Join(dir, fmt.Sprintf("..version-%d", versions-1))))
		}
	}
	replace("old")
	do(os.Symlink(filepath.Join(watch.DataLink, FileName), filepath.Join(dir, FileName)))
	for i := range count {
		name := fmt.Sprintf("p%d", i)
		do(os.Symlink(filepath.Join(watch.DataLink, name), filepath.Join(dir, name)))
	}
	tries := 0
	f := &Followed{dir: dir, use: func(map[string]keys.Provider) {}, observe: func(Event) {}, open: map[string]opened{}}
	f.types = Types{KMIP: func(c *Config, given Credentials) (Provider, error) {
		tries++
		if token := string(given[Token]); token != c.Endpoints[0] {
			t.Errorf("the server %s gets the token %s", c.Endpoints[0], token)
		}
		return nil, errors.New("none is needed")
	}}
	stop := make(chan struct{})
	var replacing sync.WaitGroup
	replacing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				replace([]string{"new", "old"}[i%2])
			}
		}
	})
	for range 50 {
		f.look()
	}
	close(stop)
	replacing.Wait()
	if tries = 0; !f.look() || tries != count {
		t.Errorf("afterwards, %d providers were opened, expected %d", tries, count)
	}
}
