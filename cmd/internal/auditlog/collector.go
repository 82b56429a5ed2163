// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"errors"
	"fmt"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit/otlp"
	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// Collector is an OpenTelemetry Collector that receives the records.
type Collector struct {
	// Endpoint is the URL of the collector, which otlp.ParseEndpoint accepts, empty for none.
	Endpoint string
	// Certificate is the path of a file with the certificate authorities of the collector in PEM.
	// Authorities has their PEM text instead. Without both, the authorities of the system are
	// trusted.
	Certificate, Authorities string
	// ClientCertificate and ClientKey are the paths of the files with the program's certificate
	// and its key in PEM, empty for none.
	ClientCertificate, ClientKey string
}

// check returns settings that contradict each other.
func (c *Collector) check(file string) error {
	certificates := c.Certificate != "" || c.Authorities != "" || c.ClientCertificate != "" || c.ClientKey != ""
	if c.Endpoint == "" {
		if certificates {
			return errors.New("--audit-otlp-endpoint: found none together with certificates for the collector, expected its URL")
		}
		return nil
	}
	_, secured, err := otlp.ParseEndpoint(c.Endpoint)
	switch {
	case err != nil:
		return fmt.Errorf("--audit-otlp-endpoint: found %q, %w", c.Endpoint, err)
	case file != "":
		return errors.New("--audit-file and --audit-otlp-endpoint: found both, expected one of the two")
	case certificates && !secured:
		return fmt.Errorf("--audit-otlp-endpoint: found %q together with certificates for the collector, expected a URL that begins with https://", c.Endpoint)
	case c.Certificate != "" && c.Authorities != "":
		return errors.New("--audit-otlp-certificate: found a file and authorities in PEM, expected one of the two")
	case (c.ClientCertificate == "") != (c.ClientKey == ""):
		return errors.New("--audit-otlp-client-certificate and --audit-otlp-client-key: found only one of the two, expected both or none")
	}
	return nil
}

// open returns an output to the collector.
func (c *Collector) open(attributes [][2]string) (*otlp.Output, error) {
	address, secured, err := otlp.ParseEndpoint(c.Endpoint)
	if err != nil {
		return nil, err
	}
	options := otlp.Options{Address: address, Attributes: attributes}
	if secured {
		if options.TLS, err = c.tls(); err != nil {
			return nil, err
		}
	}
	return otlp.New(options)
}

// maxPEM is the maximum number of bytes that are read of a file with certificates or a key.
const maxPEM = 1 << 20

func (c *Collector) tls() (*tlsprovider.Client, error) {
	config := tlsprovider.Config{Authorities: []byte(c.Authorities)}
	for _, f := range []struct {
		flag, file string
		content    *[]byte
	}{
		{"--audit-otlp-certificate", c.Certificate, &config.Authorities},
		{"--audit-otlp-client-certificate", c.ClientCertificate, &config.Certificate},
		{"--audit-otlp-client-key", c.ClientKey, &config.Key},
	} {
		if f.file == "" {
			continue
		}
		var err error
		if *f.content, _, err = regularfile.Read(f.file, maxPEM); err != nil {
			return nil, fmt.Errorf("read the file of %s: %w", f.flag, err)
		}
	}
	defer clear(config.Key)
	if c.Certificate != "" && len(config.Authorities) == 0 {
		return nil, fmt.Errorf("--audit-otlp-certificate: %s is empty, expected PEM", c.Certificate)
	}
	client, err := tlsprovider.New(config)
	switch {
	case errors.Is(err, tlsprovider.ErrAuthorities):
		return nil, errors.New("the certificate authorities of the collector of audit records have no certificate in PEM")
	case err != nil:
		return nil, fmt.Errorf("--audit-otlp-client-certificate and --audit-otlp-client-key: %w", err)
	}
	return client, nil
}
