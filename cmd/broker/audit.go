// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ed25519"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// auditConfig has the settings of the audit log.
type auditConfig struct {
	file     string
	fileSize int64
	files    uint32
	sync     string
	key      string
}

// The values of --audit-sync.
const (
	syncEach   = "each"
	syncSecond = "second"
)

// minAuditFile is the smallest size of an audit file in bytes.
const minAuditFile = 64 << 10

func (a *auditConfig) settings() []setting {
	return []setting{
		{
			name: "audit-file", env: "CRYPTO_BROKER_AUDIT_FILE", kind: "path", set: absolutePath(&a.file),
			usage: "file for the audit records that profiles ask for; without it they are lines of standard error",
		},
		{
			name: "audit-file-size", env: "CRYPTO_BROKER_AUDIT_FILE_SIZE", kind: "size", initial: "64Mi", set: byteSize(&a.fileSize, minAuditFile),
			usage: "size of the audit file at which it gets the ending .1 and another one begins",
		},
		{
			name: "audit-files", env: "CRYPTO_BROKER_AUDIT_FILES", kind: "number", initial: "10", set: positive(&a.files),
			usage: "how many full audit files are kept; the oldest is deleted",
		},
		{
			name: "audit-sync", env: "CRYPTO_BROKER_AUDIT_SYNC", kind: "when", initial: syncSecond, set: oneOf(&a.sync, syncEach, syncSecond),
			usage: "each or second: whether a record counts as written once it is on the disk, or records are brought to the disk each second; a record survives the end of the broker in both cases, and the end of the machine in the first",
		},
		{
			name: "audit-key", env: "CRYPTO_BROKER_AUDIT_KEY", kind: "path", set: absolutePath(&a.key),
			usage: "file with the private key in PEM, Ed25519 or ECDSA, that signs the audit records; without it the broker makes one at each start, so that who can write the file can replace all of it",
		},
	}
}

// largestRSA is the size in bits up to which an RSA key is read, which is refused then.
const largestRSA = 4096

// useAudit starts the audit log. close ends it.
func (c *config) useAudit(stderr io.Writer, logger *slog.Logger) (log *audit.Log, end func() error, err error) {
	a := &c.audit
	signer, err := a.signer()
	if err != nil {
		return nil, nil, err
	}
	options := audit.Options{
		Output: audit.Stream(stderr), Attributes: c.auditAttributes(), Signer: signer, SyncEach: a.sync == syncEach, Logger: logger,
	}
	closeFile := func() error { return nil }
	if a.file != "" {
		file, err := audit.OpenFile(a.file, a.fileSize, int(a.files))
		if err != nil {
			return nil, nil, err
		}
		options.Output, closeFile = file, file.Close
	}
	if log, err = audit.New(options); err != nil {
		return nil, nil, program.Usagef("--audit-key: %v", err)
	}
	return log, func() error {
		log.Close()
		return closeFile()
	}, nil
}

// signer returns the key that signs checkpoints.
func (a *auditConfig) signer() (crypto.Signer, error) {
	if a.key == "" {
		_, key, err := ed25519.GenerateKey(nil)
		return key, err
	}
	text, err := os.ReadFile(a.key)
	if err != nil {
		return nil, fmt.Errorf("read the key of --audit-key: %w", err)
	}
	defer clear(text)
	signer, err := keys.ParsePrivateKey(text, largestRSA)
	if err != nil {
		return nil, program.Usagef("--audit-key: %s %v", a.key, err)
	}
	return signer, nil
}

// auditAttributes are what each record says of the broker.
func (c *config) auditAttributes() [][2]string {
	host, _ := os.Hostname() // without a name, the attribute is missing
	var known [][2]string
	for _, attribute := range [][2]string{
		{"service.version", program.Version(version)}, {"host.name", host},
		{"service.instance.id", c.instance}, {"profiles.audience", c.trust.Audience},
	} {
		if attribute[1] != "" {
			known = append(known, attribute)
		}
	}
	return known
}
