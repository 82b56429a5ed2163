// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/auditlog"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// auditSettings are the settings of the audit log.
func auditSettings(a *auditlog.Settings) []setting {
	return []setting{
		{
			name: "audit-file", env: "CRYPTO_BROKER_AUDIT_FILE", kind: "path", set: absolutePath(&a.File),
			usage: "file for the audit records that profiles ask for; without it they are lines of standard error",
		},
		{
			name: "audit-file-size", env: "CRYPTO_BROKER_AUDIT_FILE_SIZE", kind: "size", initial: "64Mi", set: byteSize(&a.FileSize, auditlog.MinFileSize),
			usage: "size of the audit file at which it gets the ending .1 and another one begins",
		},
		{
			name: "audit-files", env: "CRYPTO_BROKER_AUDIT_FILES", kind: "number", initial: "10", set: positive(&a.Files),
			usage: "how many full audit files are kept; the oldest is deleted",
		},
		{
			name: "audit-sync", env: "CRYPTO_BROKER_AUDIT_SYNC", kind: "when", initial: auditlog.SyncSecond, set: oneOf(&a.Sync, auditlog.SyncEach, auditlog.SyncSecond),
			usage: "each or second: whether a record counts as written once it is on the disk, or records are brought to the disk each second; a record survives the end of the broker in both cases, and the end of the machine in the first",
		},
		{
			name: "audit-key", env: "CRYPTO_BROKER_AUDIT_KEY", kind: "path", set: absolutePath(&a.Key),
			usage: "file with the private key in PEM, Ed25519 or ECDSA, that signs the audit records; without it the broker makes one at each start, so that who can write the file can replace all of it",
		},
	}
}

// useAudit starts the audit log. end ends it.
func (c *config) useAudit(stderr io.Writer, logger *slog.Logger) (log *audit.Log, end func() error, err error) {
	return auditlog.Open(c.audit, stderr, c.auditAttributes(), logger)
}

// auditAttributes are what each record says of the broker, where it is known.
func (c *config) auditAttributes() [][2]string {
	host, _ := os.Hostname() // without a name, the attribute is missing
	return [][2]string{
		{"service.version", program.Version(version)}, {"host.name", host},
		{"service.instance.id", c.instance}, {"profiles.audience", c.trust.Audience},
	}
}
