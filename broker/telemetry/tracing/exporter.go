// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// exporter returns an exporter, which has not sent anything yet. It sets all options, so that the
// library does not read unchecked variables from the environment.
func (c *Config) exporter(ctx context.Context, name string, stdout io.Writer) (sdk.SpanExporter, error) {
	if name == exporterConsole {
		return stdouttrace.New(stdouttrace.WithWriter(stdout))
	}
	t, err := c.target(name)
	if err != nil {
		return nil, err
	}
	to := c.collector
	var secure *tlsprovider.Client
	if !t.plain {
		if secure, err = to.tls(); err != nil {
			return nil, err
		}
	}
	if to.timeout == 0 {
		to.timeout = defaultTimeout
	}
	to.headers = maps.Clone(to.headers)
	if to.authorization != "" {
		if to.headers == nil {
			to.headers = map[string]string{}
		}
		to.headers["Authorization"] = to.authorization
	}
	if t.protocol == protocolGRPC {
		return to.overGRPC(ctx, t, secure)
	}
	return to.overHTTP(ctx, t, secure)
}

// secrets returns the values of headers.
func (c *collector) secrets() [][]byte {
	values := [][]byte{[]byte(c.authorization)}
	for _, value := range c.headers {
		values = append(values, []byte(value))
	}
	return values
}

func (c *collector) overGRPC(ctx context.Context, t target, secure *tlsprovider.Client) (sdk.SpanExporter, error) {
	transport := insecure.NewCredentials()
	if secure != nil {
		transport = secure.Credentials()
	}
	options := []otlptracegrpc.Option{
		otlptracegrpc.WithEndpoint(t.endpoint), otlptracegrpc.WithTLSCredentials(transport),
		otlptracegrpc.WithHeaders(c.headers), otlptracegrpc.WithTimeout(c.timeout),
	}
	if c.compression == "gzip" {
		options = append(options, otlptracegrpc.WithCompressor("gzip"))
	}
	return otlptracegrpc.New(ctx, options...)
}

func (c *collector) overHTTP(ctx context.Context, t target, secure *tlsprovider.Client) (sdk.SpanExporter, error) {
	compression, encoding := otlptracehttp.NoCompression, otlptracehttp.EncodingProtobuf
	if c.compression == "gzip" {
		compression = otlptracehttp.GzipCompression
	}
	if t.protocol == protocolJSON {
		encoding = otlptracehttp.EncodingJSON
	}
	options := []otlptracehttp.Option{
		otlptracehttp.WithEndpointURL(t.endpoint), otlptracehttp.WithCompression(compression), otlptracehttp.WithEncoding(encoding),
		otlptracehttp.WithHeaders(c.headers), otlptracehttp.WithTimeout(c.timeout),
	}
	if secure != nil {
		transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forbidigo // broker/tlsprovider makes its connections from the next line on
		if err := secure.Secure(transport, t.endpoint); err != nil {
			return nil, err
		}
		options = append(options, otlptracehttp.WithHTTPClient(&http.Client{Transport: transport, Timeout: c.timeout}))
	}
	return otlptracehttp.New(ctx, options...)
}

// maxPEM is the maximum number of bytes that are read of a file with certificates or a key. A
// larger file is cut, and fails when its content is parsed or used.
const maxPEM = 1 << 20

// tls returns a client with the certificates and the key from the files.
func (c *collector) tls() (*tlsprovider.Client, error) {
	var config tlsprovider.Config
	for _, f := range []struct {
		variable, file string
		content        *[]byte
	}{
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", c.certificate, &config.Authorities},
		{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", c.clientCertificate, &config.Certificate},
		{"OTEL_EXPORTER_OTLP_CLIENT_KEY", c.clientKey, &config.Key},
	} {
		if f.file == "" {
			continue
		}
		var err error
		if *f.content, _, err = regularfile.Read(f.file, maxPEM); err != nil {
			return nil, fmt.Errorf("read %s: %w", f.variable, err)
		}
	}
	defer clear(config.Key)
	source := c.certificate
	if c.authorities != "" {
		config.Authorities, source = []byte(c.authorities), contract.TracesAuthoritiesVariable
	}
	if c.certificate != "" && len(config.Authorities) == 0 {
		return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CERTIFICATE: %s is empty, expected PEM", c.certificate)
	}
	client, err := tlsprovider.New(config)
	switch {
	case errors.Is(err, tlsprovider.ErrAuthorities):
		return nil, fmt.Errorf("read the certificate authorities of the collector: %s has no certificate in PEM", source)
	case err != nil:
		return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY: %w", err)
	}
	return client, nil
}
