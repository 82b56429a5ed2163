// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Mounted serves a certificate from two files, which another program makes and renews. It reads
// the files again when they change, and at least every ten seconds. It writes nothing. The other
// program also has to write the caBundles of the webhook configurations.
type Mounted struct {
	watcher   *certwatcher.CertWatcher
	directory string
}

var (
	_ manager.Runnable               = &Mounted{}
	_ manager.LeaderElectionRunnable = &Mounted{}
	_ healthz.Checker                = (&Mounted{}).Ready
)

// NewMounted reads the certificate tls.crt and the key tls.key of a directory. A volume of a
// Secret of the type kubernetes.io/tls has these files.
func NewMounted(directory string) (*Mounted, error) {
	watcher, err := certwatcher.New(filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("certificates: read tls.crt and tls.key of %s: %w", directory, err)
	}
	return &Mounted{watcher: watcher, directory: directory}, nil
}

// TLSOption makes a TLS server use the current certificate, and only TLS 1.3.
func (m *Mounted) TLSOption(config *tls.Config) {
	config.MinVersion = tls.VersionTLS13
	config.GetCertificate = m.watcher.GetCertificate
}

// Ready returns nil while the certificate is valid. It does not know whether the API server
// trusts it.
func (m *Mounted) Ready(*http.Request) error {
	certificate, err := m.watcher.GetCertificate(nil)
	if err != nil {
		return err
	}
	if certificate == nil || certificate.Leaf == nil {
		return errors.New("certificates: not read yet")
	}
	if now := time.Now(); now.Before(certificate.Leaf.NotBefore) || expired(certificate.Leaf, now) {
		return fmt.Errorf("certificates: found tls.crt of %s valid from %s to %s, expected one that is valid now: see who renews it",
			m.directory, certificate.Leaf.NotBefore.UTC().Format(time.RFC3339), certificate.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// NeedLeaderElection returns false: every replica serves.
func (m *Mounted) NeedLeaderElection() bool { return false }

// Start reads the files again when they change, until ctx ends.
func (m *Mounted) Start(ctx context.Context) error { return m.watcher.Start(ctx) }
