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

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/auditlog"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/policy"
)

// keyAccessAudit says where audit records of decisions are.
type keyAccessAudit struct {
	// File is empty for standard error.
	File    string `json:"file"`
	KeyFile string `json:"keyFile"`
}

// Files of audit records: the size at which one is full, and how many full ones are kept.
const keyAccessAuditBytes, keyAccessAuditFiles = 64 << 20, 10

// rules returns the rules of the configuration, or nil if policies alone decide.
func (c *keyAccessFile) rules() *policy.Rules {
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
		problems = append(problems, errors.New("access: found allowAllAuthenticated beside policies, expected one or the other"))
	}
	if c.PolicyDir != "" && c.Cluster != nil {
		problems = append(problems, errors.New("policyDir: found it beside cluster, expected policies of one place"))
	}
	if c.PolicyDir != "" && !filepath.IsAbs(c.PolicyDir) {
		problems = append(problems, fmt.Errorf("policyDir: found %.200q, expected the absolute path of the directory of policies", c.PolicyDir))
	}
	return errors.Join(problems...)
}

// newAuthorizer returns what decides who may have a data key. end ends the audit records.
func (k *keyAccess) newAuthorizer(stderr io.Writer) (*accesspolicy.Authorizer, error) {
	a := &accesspolicy.Authorizer{Rules: k.config.rules(), Now: time.Now}
	if k.cluster != nil {
		a.Policies = k.cluster.Set
	}
	if k.config.PolicyDir != "" {
		var err error
		if k.policies, err = accesspolicy.Open(k.config.PolicyDir, k.config.rego, k.policiesChanged); err != nil {
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
	}
	return a, nil
}

func (a *keyAccessAudit) open(stderr io.Writer, logger *slog.Logger) (*audit.Log, func() error, error) {
	settings := auditlog.Settings{File: a.File, FileSize: keyAccessAuditBytes, Files: keyAccessAuditFiles, Sync: auditlog.SyncSecond, Key: a.KeyFile}
	return auditlog.Open(settings, stderr, [][2]string{{"service.name", "crypto-broker-key-access"}, {"service.version", version}}, logger)
}

// policiesChanged hears of changes of policies, which are in a directory or resources.
func (k *keyAccess) policiesChanged(set *accesspolicy.Set, err error) {
	if err != nil {
		k.logger.Error("a change of the policies does not count; the last good ones are in use", "error", err)
		return
	}
	k.managers.forget()
	k.logger.Info("policies changed", "policies", set.Len())
}
