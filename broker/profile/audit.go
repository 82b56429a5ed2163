// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// Audit says which calls are recorded.
type Audit struct {
	// Level is "none", "sampled", "sensitive" or "all".
	Level string `yaml:"Level"`
	// Required refuses a call whose record cannot be written.
	Required bool `yaml:"Required,omitempty"`
}

// AuditLevel says which calls are recorded. Each level includes the calls of the level before it.
type AuditLevel int

// The levels. All but the first record calls that fail.
const (
	// AuditNone records no call.
	AuditNone AuditLevel = iota
	// AuditSampled records one of [AuditSample] calls.
	AuditSampled
	// AuditSensitive records all calls that use a key.
	AuditSensitive
	// AuditAll records all calls.
	AuditAll
)

// AuditSample is the number of calls of which the level "sampled" records one.
const AuditSample = 100

// auditLevels are the names of the levels.
var auditLevels = []string{AuditNone: "none", AuditSampled: "sampled", AuditSensitive: "sensitive", AuditAll: "all"}

// AuditPolicy says which calls of a profile are recorded.
type AuditPolicy struct {
	Level AuditLevel
	// Required reports whether a call must be refused if its record cannot be written.
	Required bool
}

func compileAudit(a *Audit) AuditPolicy {
	if a == nil {
		return AuditPolicy{}
	}
	level := slices.IndexFunc(auditLevels, func(name string) bool { return strings.EqualFold(name, a.Level) })
	return AuditPolicy{AuditLevel(level), a.Required}
}

func (v validator) audit(at yamlfile.Place, a *Audit) {
	if a == nil {
		return
	}
	v.Enum(at.Field("Level"), at, a.Level, auditLevels)
	if a.Required && strings.EqualFold(a.Level, "none") {
		v.Add(at.Field("Required"), at, "is true while Level is \"none\", so that no call could ever be recorded")
	}
}
