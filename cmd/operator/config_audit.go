// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit/otlp"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/auditlog"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// auditConfig has the settings of the audit log.
type auditConfig struct {
	enabled  bool
	settings auditlog.Settings
	fileSize string
}

func (c *auditConfig) flags(f *pflag.FlagSet) {
	f.BoolVar(&c.enabled, "audit", false, "write audit records of injections, of changes of profiles and key providers, of rollouts, of weaker profiles, of signing keys and of certificates of key gateways, as lines of standard error")
	f.StringVar(&c.settings.File, "audit-file", "", "`path` of a file for the audit records, instead of standard error; each replica needs its own")
	f.StringVar(&c.fileSize, "audit-file-size", "64Mi", "`size` at which the audit file is renamed to end in .1 and a new file begins")
	f.Uint32Var(&c.settings.Files, "audit-files", 10, "how many full audit files are kept; the oldest is deleted")
	f.StringVar(&c.settings.Sync, "audit-sync", auditlog.SyncSecond, "`when` audit records are synced to the disk: each, or all once a second")
	to := &c.settings.Collector
	f.StringVar(&to.Endpoint, "audit-otlp-endpoint", "", "`url` of an OpenTelemetry collector that gets the audit records of the operator by OTLP over gRPC, instead of standard error: http:// or https://, a host and a port")
	f.StringVar(&to.Authorities, "audit-otlp-ca-bundle", "", "certificate authorities of an --audit-otlp-endpoint that begins with https://, as `PEM`; without it, the authorities of the system")
	f.StringVar(&c.settings.Key, "audit-key", "", "`path` of the private key in PEM, Ed25519 or ECDSA, that signs the audit records; without it the operator makes a key at each start, and anybody who can write the records can replace all of them")
}

func (c *auditConfig) check(problem func(flag, found, expected string), oneOf func(flag, found string, allowed ...string)) {
	oneOf("audit-sync", c.settings.Sync, auditlog.SyncEach, auditlog.SyncSecond)
	size, err := resource.ParseQuantity(c.fileSize)
	if err != nil || size.CmpInt64(auditlog.MinFileSize) < 0 {
		problem("audit-file-size", c.fileSize, `a quantity such as "64Mi", at least 64Ki`)
	}
	c.settings.FileSize = size.Value()
	if c.settings.Files == 0 {
		problem("audit-files", "0", "at least 1")
	}
	to := c.settings.Collector
	if _, secured, err := otlp.ParseEndpoint(to.Endpoint); to.Endpoint != "" && err != nil {
		problem("audit-otlp-endpoint", to.Endpoint, strings.TrimPrefix(err.Error(), "expected "))
	} else if to.Authorities != "" && !secured {
		problem("audit-otlp-ca-bundle", "set", "nothing, because --audit-otlp-endpoint does not begin with https://")
	}
	if c.settings.File != "" && to.Endpoint != "" {
		problem("audit-otlp-endpoint", to.Endpoint, "nothing beside --audit-file")
	}
	if c.enabled {
		return
	}
	for flag, found := range map[string]string{"audit-file": c.settings.File, "audit-key": c.settings.Key, "audit-otlp-endpoint": to.Endpoint} {
		if found != "" {
			problem(flag, found, "nothing without --audit")
		}
	}
}

var auditDescription = prometheus.NewDesc("crypto_broker_operator_audit_records_total",
	"Audit records of the operator, by result: written, or lost.", []string{"result"}, nil)

// useAudit starts the audit log. The result is nil if there is none. end ends the log.
func (c *config) useAudit(stderr io.Writer, registry prometheus.Registerer) (log *audit.Log, end func() error, err error) {
	if !c.audit.enabled {
		return nil, func() error { return nil }, nil
	}
	host, _ := os.Hostname() // without a name, the attribute is missing
	attributes := [][2]string{{"service.name", "crypto-broker-operator"}, {"service.version", program.Version(version)}, {"host.name", host}}
	if log, end, err = auditlog.Open(c.audit.settings, stderr, attributes, slog.Default()); err != nil {
		return nil, nil, fmt.Errorf("start the audit log: %w", err)
	}
	return log, end, registry.Register(auditlog.Metrics(auditDescription, log.Stats))
}
