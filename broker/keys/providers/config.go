// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Types of key providers.
const (
	KMIP    = "kmip"
	OpenBao = "openbao"
	AWSKMS  = "aws-kms"
	PKCS11  = "pkcs11"
)

// allTypes are the types of key providers.
var allTypes = []string{KMIP, OpenBao, AWSKMS, PKCS11}

// Config says how to reach a key manager. The zero value of a field stands for its default.
type Config struct {
	// Name is the part of a key id before the slash: a DNS label (RFC 1123) of at most 32 bytes.
	Name string `yaml:"Name"`
	// Type is one of allTypes.
	Type string `yaml:"Type"`
	// Endpoints are the servers: host or host:port for KMIP, URLs for OpenBao and AWS KMS. All
	// serve the same keys. The first one is the master, if there is one. PKCS #11 and AWS KMS
	// need none.
	Endpoints []string `yaml:"Endpoints,omitempty"`
	// ServerName is the name in the certificates of the servers, if it is not the host of the
	// endpoint.
	ServerName  string      `yaml:"ServerName,omitempty"`
	Connections Connections `yaml:"Connections,omitempty"`
	// CacheTime is how long keys and their properties are used without asking again. One minute
	// is the default and the maximum. A negative duration turns the cache off.
	CacheTime time.Duration `yaml:"CacheTime,omitempty"`

	// ActsAsProgram permits the provider to use what the program itself has: its identity at AWS,
	// its service account at OpenBao, and libraries for PKCS #11 among its files. Whoever opens the
	// provider sets it. No configuration can.
	ActsAsProgram bool `yaml:"-"`

	// OpenBao, AWSKMS and PKCS11 are the settings of one type.
	OpenBao *OpenBaoSettings `yaml:"OpenBao,omitempty"`
	AWSKMS  *AWSKMSSettings  `yaml:"AWSKMS,omitempty"`
	PKCS11  *PKCS11Settings  `yaml:"PKCS11,omitempty"`
}

// Connections are the settings of the connections to each endpoint.
type Connections struct {
	// Min and Max are the smallest number of connections that stay open, and the largest number
	// that may be open. The defaults are 1 and 8, and at most 64 are allowed.
	Min int `yaml:"Min,omitempty"`
	Max int `yaml:"Max,omitempty"`
	// Lifetime is how long a connection is used. The default is 30 minutes.
	Lifetime time.Duration `yaml:"Lifetime,omitempty"`
	// IdleTime is how long a connection may be idle. The default is one minute.
	IdleTime time.Duration `yaml:"IdleTime,omitempty"`
	// ConnectTimeout and RequestTimeout bound how long an endpoint may take to connect and to
	// answer. The defaults are 5 and 10 seconds.
	ConnectTimeout time.Duration `yaml:"ConnectTimeout,omitempty"`
	RequestTimeout time.Duration `yaml:"RequestTimeout,omitempty"`
	// RoundRobin makes requests that change nothing go to all endpoints in turn, instead of
	// to the less loaded of two.
	RoundRobin bool `yaml:"RoundRobin,omitempty"`
}

// OpenBaoSettings are the settings of a provider of type openbao.
type OpenBaoSettings struct {
	// Engine is "kv" for version 2 of the key-value engine, whose keys the broker reads, or
	// "transit", whose keys stay there. The default is transit.
	Engine string `yaml:"Engine,omitempty"`
	// Mount is the path of the engine. The default is its usual one, "secret" or "transit".
	Mount string `yaml:"Mount,omitempty"`
	// Namespace is the namespace in the key manager, if it has namespaces.
	Namespace string `yaml:"Namespace,omitempty"`
	// Role is the role for the login with the Kubernetes method. If it is empty, the credentials
	// have a token.
	Role string `yaml:"Role,omitempty"`
}

// AWSKMSSettings are the settings of a provider of type aws-kms.
type AWSKMSSettings struct {
	Region string `yaml:"Region"`
}

// PKCS11Settings are the settings of a provider of type pkcs11.
type PKCS11Settings struct {
	// Module is the absolute path of the library of the device.
	Module string `yaml:"Module"`
	// TokenLabel is the label of the token that has the keys.
	TokenLabel string `yaml:"TokenLabel"`
}

// Limits of a configuration.
const (
	maxNameLength  = 32
	maxEndpoints   = 16
	maxConnections = 64
	// MaxCacheTime is the longest time in which a change of a key is not noticed.
	MaxCacheTime = time.Minute
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	// Field is the path of the field, such as Connections.Max.
	Field string
	// Message continues a sentence that begins with the field.
	Message string
}

// Error implements error.
func (p Problem) Error() string { return p.Field + " " + p.Message }

// Check returns everything that is wrong with a configuration, apart from the credentials. The
// types of key managers check their endpoints when they are opened.
func (c *Config) Check() []Problem {
	var problems []Problem
	add := func(field, format string, args ...any) {
		problems = append(problems, Problem{field, fmt.Sprintf(format, args...)})
	}
	if !validName(c.Name) {
		add("Name", "is %q, expected 1 to %d lower-case letters, digits and hyphens, with a letter or digit at both ends", c.Name, maxNameLength)
	}
	if !slices.Contains(allTypes, c.Type) {
		add("Type", "is %q, expected one of %s", c.Type, strings.Join(allTypes, ", "))
	}
	switch n := len(c.Endpoints); {
	case n > maxEndpoints:
		add("Endpoints", "has %d entries, expected at most %d", n, maxEndpoints)
	case n == 0 && (c.Type == KMIP || c.Type == OpenBao):
		add("Endpoints", "is empty, expected at least one server")
	case n > 0 && c.Type == PKCS11:
		add("Endpoints", "has %d entries, expected none for the type %s", n, c.Type)
	}
	seen := map[string]bool{}
	for i, endpoint := range c.Endpoints {
		field := fmt.Sprintf("Endpoints[%d]", i)
		if endpoint == "" || strings.ContainsFunc(endpoint, func(r rune) bool { return r <= ' ' || r > '~' }) {
			add(field, "is %q, expected the address of a server in printable ASCII without spaces", endpoint)
		}
		if seen[endpoint] {
			add(field, "is %q, which is already in the list", endpoint)
		}
		seen[endpoint] = true
	}
	c.Connections.check(add)
	if c.CacheTime > MaxCacheTime {
		add("CacheTime", "is %s, expected at most %s", c.CacheTime, MaxCacheTime)
	}
	c.checkSettings(add)
	return problems
}

func (c *Connections) check(add func(field, format string, args ...any)) {
	if c.Max < 0 || c.Max > maxConnections {
		add("Connections.Max", "is %d, expected 1 to %d", c.Max, maxConnections)
	}
	if c.Max > 0 && c.Min > c.Max {
		add("Connections.Min", "is %d, expected at most %d, which is the maximum", c.Min, c.Max)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"Lifetime", c.Lifetime}, {"IdleTime", c.IdleTime}, {"ConnectTimeout", c.ConnectTimeout}, {"RequestTimeout", c.RequestTimeout},
	} {
		if d.value < 0 || d.value > 24*time.Hour {
			add("Connections."+d.field, "is %s, expected more than 0 and at most 24h", d.value)
		}
	}
}

func (c *Config) checkSettings(add func(field, format string, args ...any)) {
	for _, s := range []struct {
		field, of string
		present   bool
	}{
		{"OpenBao", OpenBao, c.OpenBao != nil}, {"AWSKMS", AWSKMS, c.AWSKMS != nil}, {"PKCS11", PKCS11, c.PKCS11 != nil},
	} {
		if s.present && c.Type != s.of {
			add(s.field, "has settings of the type %s, expected none because the type is %q", s.of, c.Type)
		}
	}
	if o := c.OpenBao; o != nil && o.Engine != "" && o.Engine != "kv" && o.Engine != "transit" {
		add("OpenBao.Engine", "is %q, expected kv or transit", o.Engine)
	}
	if c.Type == AWSKMS && (c.AWSKMS == nil || c.AWSKMS.Region == "") {
		add("AWSKMS.Region", "is empty, expected a region, such as eu-central-1")
	}
	if c.Type == PKCS11 {
		if c.PKCS11 == nil || !strings.HasPrefix(c.PKCS11.Module, "/") {
			add("PKCS11.Module", "is not set, expected the absolute path of a library")
		}
		if c.PKCS11 == nil || c.PKCS11.TokenLabel == "" {
			add("PKCS11.TokenLabel", "is empty, expected the label of a token")
		}
	}
}

// validName reports whether a name is a label of DNS of at most maxNameLength bytes.
func validName(name string) bool {
	if name == "" || len(name) > maxNameLength || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' })
}
