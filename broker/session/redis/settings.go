// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
)

// Names of files in the directory of settings. The files for TLS have the same names as for key providers:
// [providers.Authorities], [providers.ClientCertificate] and [providers.ClientKey].
const (
	FileName = "Redis.yaml"
	// Password and SentinelPassword are the passwords of User and SentinelUser, without a line break.
	Password         = "password"
	SentinelPassword = "sentinel-password"
)

// Settings say where Redis is, and how keys of sessions are protected there.
type Settings struct {
	// Addresses are host:port of one server, of Sentinels, or of some servers of a cluster.
	Addresses []string `yaml:"Addresses"`
	// SentinelMaster is the name of the master at the Sentinels. Without it, Addresses are servers.
	SentinelMaster string `yaml:"SentinelMaster,omitempty"`
	// Cluster reports whether the servers are a Redis Cluster.
	Cluster bool `yaml:"Cluster,omitempty"`
	// Database is the number of the database. A cluster has one, 0.
	Database int `yaml:"Database,omitempty"`
	// User and SentinelUser are users of ACLs. Without them, the passwords are for the default user.
	User         string `yaml:"User,omitempty"`
	SentinelUser string `yaml:"SentinelUser,omitempty"`
	// WithoutTLS makes connections that are neither encrypted nor authenticated.
	WithoutTLS bool `yaml:"WithoutTLS,omitempty"`
	// ServerName is the name in the certificates of the servers, if it is not the host of the address.
	ServerName string `yaml:"ServerName,omitempty"`
	// Timeout bounds each question to Redis, and each connection. The default is one second.
	Timeout time.Duration `yaml:"Timeout,omitempty"`
	// MaxSessions is the maximum number of sessions that a caller may have at one time, over all
	// brokers. The default is 131,072.
	MaxSessions int `yaml:"MaxSessions,omitempty"`
	// WrappingKey is the id of the AES key of 256 bits that wraps the keys of sessions.
	WrappingKey string `yaml:"WrappingKey,omitempty"`
	// KeysInClear stores keys of sessions as they are: anybody who reads Redis reads all requests.
	KeysInClear bool `yaml:"KeysInClear,omitempty"`

	dir string
}

// Bounds of the settings.
const (
	maxFileSize     = 64 << 10
	maxAddresses    = 64
	maxDatabase     = 1<<15 - 1
	defaultTimeout  = time.Second
	minTimeout      = 10 * time.Millisecond
	maxTimeout      = 10 * time.Second
	defaultSessions = 1 << 17
	// minSessions lets each part have so many that the parts are about equal.
	minSessions = 1 << 10
	maxSessions = 1 << 24
)

// unknownField is how the YAML library says that it does not know a field. It names the Go type.
var unknownField = regexp.MustCompile(`field (\S+) not found in type \S+`)

// Read reads the settings of a directory, and checks them and the credentials. Warnings are about files
// with secrets that too many users may read or change.
func Read(dir string) (s *Settings, warnings []string, err error) {
	name := filepath.Join(dir, FileName)
	data, _, err := regularfile.Read(name, maxFileSize)
	if err != nil {
		return nil, nil, err
	}
	if len(data) > maxFileSize {
		return nil, nil, fmt.Errorf("%s has more than %d bytes", name, maxFileSize)
	}
	s = &Settings{}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(s); err != nil {
		return nil, nil, fmt.Errorf("%s is not a file of settings for Redis: %s", name, unknownField.ReplaceAllString(strings.Join(strings.Fields(err.Error()), " "), "found the unknown field $1"))
	}
	if err := s.check(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	s.dir, s.Timeout, s.MaxSessions = dir, cmp.Or(s.Timeout, defaultTimeout), cmp.Or(s.MaxSessions, defaultSessions)
	credentials, err := s.credentials()
	if err != nil {
		return nil, nil, err
	}
	defer credentials.Forget()
	for _, secret := range []string{Password, SentinelPassword, providers.ClientKey} {
		if warning := keys.WarnOfMode(filepath.Join(dir, secret)); warning != "" {
			warnings = append(warnings, filepath.Join(dir, secret)+" "+warning)
		}
	}
	return s, warnings, nil
}

func wrong(field, format string, values ...any) error {
	return providers.Problem{Field: field, Message: fmt.Sprintf(format, values...)}
}

// check returns the first thing that is wrong.
func (s *Settings) check() error {
	if n := len(s.Addresses); n == 0 || n > maxAddresses {
		return wrong("Addresses", "has %d entries, expected 1 to %d", n, maxAddresses)
	}
	for i, address := range s.Addresses {
		host, port, err := net.SplitHostPort(address)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
			return wrong(fmt.Sprintf("Addresses[%d]", i), "is %q, expected host:port such as redis.example:6379", address)
		}
	}
	switch {
	case s.Cluster && s.SentinelMaster != "":
		return wrong("Cluster", "and SentinelMaster are both set, expected one of them: a cluster has no Sentinels")
	case !s.Cluster && s.SentinelMaster == "" && len(s.Addresses) > 1:
		return wrong("Addresses", "has %d entries, expected one, unless Cluster or SentinelMaster is set", len(s.Addresses))
	case s.SentinelMaster == "" && s.SentinelUser != "":
		return wrong("SentinelUser", "is set, expected SentinelMaster as well")
	case s.Database < 0 || s.Database > maxDatabase:
		return wrong("Database", "is %d, expected 0 to %d", s.Database, maxDatabase)
	case s.Cluster && s.Database != 0:
		return wrong("Database", "is %d, expected 0, the only one of a cluster", s.Database)
	case s.WithoutTLS && s.ServerName != "":
		return wrong("ServerName", "is set, expected it without WithoutTLS")
	case s.Timeout != 0 && (s.Timeout < minTimeout || s.Timeout > maxTimeout):
		return wrong("Timeout", "is %s, expected %s to %s", s.Timeout, minTimeout, maxTimeout)
	case s.MaxSessions != 0 && (s.MaxSessions < minSessions || s.MaxSessions > maxSessions):
		return wrong("MaxSessions", "is %d, expected %d to %d", s.MaxSessions, minSessions, maxSessions)
	case s.WrappingKey == "" && !s.KeysInClear:
		return wrong("WrappingKey", "is missing, expected the id of an AES key of 256 bits that wraps the keys of sessions; or set KeysInClear, so that whoever reads Redis can read all requests")
	case s.WrappingKey != "" && s.KeysInClear:
		return wrong("WrappingKey", "and KeysInClear are both set, expected one of them")
	}
	return nil
}

// credentials reads and checks the files beside the settings. The caller overwrites them.
func (s *Settings) credentials() (providers.Credentials, error) {
	credentials, err := providers.ReadCredentials(s.dir)
	if err != nil {
		return nil, err
	}
	for password, user := range map[string]string{Password: s.User, SentinelPassword: s.SentinelUser} {
		text, present := credentials[password]
		switch {
		case !present && user != "":
			err = fmt.Errorf("%s has no file %s, which the user %q needs", s.dir, password, user)
		case present && (len(text) == 0 || bytes.ContainsAny(text, "\r\n")):
			err = fmt.Errorf("%s is empty or has a line break, expected a password and nothing else", filepath.Join(s.dir, password))
		}
	}
	if err == nil && !s.WithoutTLS {
		_, err = credentials.TLS(s.ServerName, 0)
	}
	if err != nil {
		credentials.Forget()
		return nil, err
	}
	return credentials, nil
}
