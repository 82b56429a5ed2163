// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit/otlp"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/auditlog"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// auditSettings are the settings of the audit log.
func auditSettings(a *auditlog.Settings) []setting {
	to := &a.Collector
	return []setting{
		{
			name: "audit-file", env: "CRYPTO_BROKER_AUDIT_FILE", kind: "path", set: absolutePath(&a.File),
			usage: "file for the audit records that profiles ask for; without it they are lines of standard error",
		},
		{
			name: "audit-file-size", env: "CRYPTO_BROKER_AUDIT_FILE_SIZE", kind: "size", initial: "64Mi", set: byteSize(&a.FileSize, auditlog.MinFileSize),
			usage: "size at which the audit file is renamed to end in .1 and a new file begins",
		},
		{
			name: "audit-files", env: "CRYPTO_BROKER_AUDIT_FILES", kind: "number", initial: "10", set: positive(&a.Files),
			usage: "how many full audit files are kept; the oldest is deleted",
		},
		{
			name: "audit-sync", env: "CRYPTO_BROKER_AUDIT_SYNC", kind: "when", initial: auditlog.SyncSecond, set: oneOf(&a.Sync, auditlog.SyncEach, auditlog.SyncSecond),
			usage: "each or second: sync every record to the disk before it counts as written, or all records once a second; records survive a crash of the broker in both cases, but a crash of the machine only with each",
		},
		{
			name: "audit-otlp-endpoint", env: contract.AuditEndpointVariable, kind: "url", secret: true, set: collectorURL(&to.Endpoint),
			usage: "URL of an OpenTelemetry Collector that gets the audit records by OTLP over gRPC, instead of standard error: http:// or https://, a host and a port (4317 without one)",
		},
		{
			name: "audit-otlp-certificate", env: "CRYPTO_BROKER_AUDIT_OTLP_CERTIFICATE", kind: "path", set: absolutePath(&to.Certificate),
			usage: "PEM file with the certificate authorities that verify the certificate of that collector (default the authorities of the system)",
		},
		{
			env: contract.AuditAuthoritiesVariable, kind: "pem", secret: true, set: someText(&to.Authorities),
			usage: "certificate authorities that verify the certificate of the collector of audit records, as PEM text instead of a path; instead of --audit-otlp-certificate",
		},
		{
			name: "audit-otlp-client-certificate", env: "CRYPTO_BROKER_AUDIT_OTLP_CLIENT_CERTIFICATE", kind: "path", set: absolutePath(&to.ClientCertificate),
			usage: "PEM file with the client certificate that the broker presents to the collector of audit records",
		},
		{
			name: "audit-otlp-client-key", env: "CRYPTO_BROKER_AUDIT_OTLP_CLIENT_KEY", kind: "path", set: absolutePath(&to.ClientKey),
			usage: "PEM file with the private key of that client certificate",
		},
		{
			name: "audit-key", env: "CRYPTO_BROKER_AUDIT_KEY", kind: "path", set: absolutePath(&a.Key),
			usage: "file with the private key in PEM, Ed25519 or ECDSA, that signs the audit records; without it the broker makes a key at each start, and anybody who can write the file can replace all of it",
		},
	}
}

// collectorURL sets the URL of a collector of audit records.
func collectorURL(into *string) func(string) error {
	return func(text string) error {
		if _, _, err := otlp.ParseEndpoint(text); err != nil {
			return err
		}
		*into = text
		return nil
	}
}

// readAudit checks settings that depend on each other.
func (c *config) readAudit() error {
	if err := c.audit.Check(); err != nil {
		return program.Usagef("%v", err)
	}
	return nil
}

var auditDescription = prometheus.NewDesc("crypto_broker_audit_records_total",
	"Audit records, by result: written, or lost. Calls whose record was lost were answered, unless their profile requires the record.",
	[]string{"result"}, nil)

// useAudit starts the audit log and its metrics. end ends the log.
func (c *config) useAudit(stderr io.Writer, metrics *telemetry.Metrics, logger *slog.Logger) (log *audit.Log, end func() error, err error) {
	if log, end, err = auditlog.Open(c.audit, stderr, c.auditAttributes(), logger); err != nil {
		return nil, nil, err
	}
	metrics.Register(auditlog.Metrics(auditDescription, log.Stats))
	return log, end, nil
}

// auditAttributes are the attributes of the broker in each record. Unknown ones are left out.
func (c *config) auditAttributes() [][2]string {
	host, _ := os.Hostname() // without a name, the attribute is missing
	return [][2]string{
		{"service.version", program.Version(version)}, {"host.name", host},
		{"service.instance.id", c.instance}, {"profiles.audience", c.trust.Audience},
	}
}
