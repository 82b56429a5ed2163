// SPDX-License-Identifier: Apache-2.0

package auditlog

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

// MinFileSize is the smallest size of an audit file in bytes.
const MinFileSize = 64 << 10

// The values of --audit-sync.
const (
	SyncEach   = "each"
	SyncSecond = "second"
)

// Settings are the values of the flags.
type Settings struct {
	// File is the path of the audit file, empty for standard error. It is rotated at FileSize
	// bytes, and Files full files are kept.
	File     string
	FileSize int64
	Files    uint32
	// Sync is SyncEach or SyncSecond.
	Sync string
	// Collector receives the records instead of a file or standard error.
	Collector Collector
	// Key is the path of the private key that signs, empty for a new key.
	Key string
}

// Check returns settings that contradict each other, in one sentence.
func (s *Settings) Check() error { return s.Collector.check(s.File) }

// Open starts the log. Its lines have all attributes that are not empty. end ends the log.
func Open(s Settings, stderr io.Writer, attributes [][2]string, logger *slog.Logger) (log *audit.Log, end func() error, err error) {
	signer, err := s.signer()
	if err != nil {
		return nil, nil, err
	}
	options := audit.Options{Output: audit.Stream(stderr), Signer: signer, SyncEach: s.Sync == SyncEach, Logger: logger}
	for _, attribute := range attributes {
		if attribute[1] != "" {
			options.Attributes = append(options.Attributes, attribute)
		}
	}
	closeOutput := func() error { return nil }
	switch {
	case s.Collector.Endpoint != "":
		collector, err := s.Collector.open(resourceOf(options.Attributes))
		if err != nil {
			return nil, nil, err
		}
		options.Output, options.Resend, closeOutput = collector, true, collector.Close
	case s.File != "":
		file, err := audit.OpenFile(s.File, s.FileSize, int(s.Files))
		if err != nil {
			return nil, nil, err
		}
		options.Output, closeOutput = file, file.Close
	}
	if log, err = audit.New(options); err != nil {
		return nil, nil, program.Usagef("--audit-key: %v", err)
	}
	return log, func() error {
		log.Close()
		return closeOutput()
	}, nil
}

// resourceOf returns the attributes of the program for a collector, which expects a service.name.
func resourceOf(attributes [][2]string) [][2]string {
	for _, attribute := range attributes {
		if attribute[0] == serviceName {
			return attributes
		}
	}
	return append([][2]string{{serviceName, brokerName}}, attributes...)
}

// serviceName is the name of an attribute in OpenTelemetry's conventions. brokerName is its value for a
// broker, as in the spans of brokers.
const serviceName, brokerName = "service.name", "crypto-broker-server"

// largestRSA is the largest size in bits of an RSA key that is read. RSA keys are read only to
// refuse them with a clear error.
const largestRSA = 4096

// signer returns the key that signs checkpoints.
func (s *Settings) signer() (crypto.Signer, error) {
	if s.Key == "" {
		_, key, err := ed25519.GenerateKey(nil)
		return key, err
	}
	text, err := os.ReadFile(s.Key)
	if err != nil {
		return nil, fmt.Errorf("read the key of --audit-key: %w", err)
	}
	defer clear(text)
	signer, err := keys.ParsePrivateKey(text, largestRSA)
	if err != nil {
		return nil, program.Usagef("--audit-key: %s %v", s.Key, err)
	}
	return signer, nil
}
