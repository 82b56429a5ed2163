// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit/otlp"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/auditlog"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
)

// keyAccessAudit says where audit records of decisions are.
type keyAccessAudit struct {
	// File is empty for standard error.
	File    string `json:"file"`
	KeyFile string `json:"keyFile"`
	// Endpoint is the URL of a collector that gets the records instead, empty for none.
	Endpoint string `json:"endpoint"`
	// AuthoritiesFile has the certificate authorities of the collector, empty for the authorities
	// of the system.
	AuthoritiesFile string `json:"authoritiesFile"`
}

// check returns what does not fit together.
func (a *keyAccessAudit) check() error {
	if a.Endpoint == "" {
		if a.AuthoritiesFile != "" {
			return errors.New("audit.authoritiesFile: found it without audit.endpoint, expected both or none")
		}
		return nil
	}
	switch _, secured, err := otlp.ParseEndpoint(a.Endpoint); {
	case err != nil:
		return fmt.Errorf("audit.endpoint: found %.200q, %w", a.Endpoint, err)
	case a.File != "":
		return errors.New("audit.endpoint: found it together with audit.file, expected one of the two")
	case a.AuthoritiesFile != "" && !secured:
		return fmt.Errorf("audit.endpoint: found %.200q together with audit.authoritiesFile, expected a URL that begins with https://", a.Endpoint)
	}
	return nil
}

// Files of audit records: the size at which one is full, and how many full ones are kept.
const keyAccessAuditBytes, keyAccessAuditFiles = 64 << 20, 10

// rules returns the rules of the configuration, or nil if policies alone decide.
func (c *keyAccessFile) rules() *tdfpolicy.Rules {
	if (c.PolicyDir != "" || c.Cluster != nil) && reflect.ValueOf(c.Access).IsZero() {
		return nil
	}
	return &c.Access
}

// checkAccess returns what is wrong with the rules, the directory of policies and the audit records.
func (c *keyAccessFile) checkAccess() error {
	var problems []error
	if rules := c.rules(); rules != nil {
		if err := rules.Check(); err != nil {
			problems = append(problems, fmt.Errorf("access: %w", err))
		}
	}
	if (c.PolicyDir != "" || c.Cluster != nil) && c.Access.AllowAllAuthenticated {
		problems = append(problems, errors.New("access: found allowAllAuthenticated together with policies, expected one or the other"))
	}
	if c.PolicyDir != "" && c.Cluster != nil {
		problems = append(problems, errors.New("policyDir: found it together with cluster, expected policies of one place"))
	}
	if c.PolicyDir != "" && !filepath.IsAbs(c.PolicyDir) {
		problems = append(problems, fmt.Errorf("policyDir: found %.200q, expected the absolute path of the directory of policies", c.PolicyDir))
	}
	if c.Audit != nil {
		problems = append(problems, c.Audit.check())
	}
	return errors.Join(problems...)
}

// newAuthorizer returns what decides who may have a data key, and starts the audit records.
func (k *keyAccess) newAuthorizer(stderr io.Writer, registry prometheus.Registerer) (*accesspolicy.Authorizer, error) {
	a := &accesspolicy.Authorizer{Rules: k.config.rules(), Now: time.Now}
	if k.cluster != nil {
		a.Policies = k.cluster.Set
	}
	if k.config.PolicyDir != "" {
		var err error
		if k.policies, err = accesspolicy.Open(k.config.PolicyDir, k.config.modules, k.policiesChanged); err != nil {
			return nil, err
		}
		a.Policies = k.policies.Set
	}
	k.endAudit = func() error { return nil }
	if k.config.Audit != nil {
		var err error
		if a.Audit, k.endAudit, err = k.config.Audit.open(stderr, k.logger); err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		registry.MustRegister(auditlog.Metrics(auditDescription, a.Audit.Stats))
	}
	return a, nil
}

func (a *keyAccessAudit) open(stderr io.Writer, logger *slog.Logger) (*audit.Log, func() error, error) {
	settings := auditlog.Settings{File: a.File, FileSize: keyAccessAuditBytes, Files: keyAccessAuditFiles, Sync: auditlog.SyncSecond, Key: a.KeyFile}
	settings.Collector = auditlog.Collector{Endpoint: a.Endpoint, Certificate: a.AuthoritiesFile}
	return auditlog.Open(settings, stderr, [][2]string{{"service.name", "crypto-broker-key-access"}, {"service.version", version}}, logger)
}

var auditDescription = prometheus.NewDesc("crypto_broker_gateway_key_access_audit_records_total",
	"Audit records of decisions about data keys, by result: written, or lost.", []string{"result"}, nil)

// policiesChanged is called after a change of policies, which are in a directory or in resources.
func (k *keyAccess) policiesChanged(set *accesspolicy.Set, err error) {
	if err != nil {
		k.logger.Error("a change of the policies has no effect; the last good ones stay in use", "error", err)
		return
	}
	k.managers.forget()
	k.logger.Info("policies changed", "policies", set.Len())
}
