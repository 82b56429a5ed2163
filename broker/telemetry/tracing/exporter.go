// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/crypto-broker/crypto-broker-operator/broker/regular"
)

// exporter returns an exporter, which has not sent anything yet. It sets all options, so
// that the library does not read variables from the environment that nobody has checked.
func (c *Config) exporter(ctx context.Context, name string, stdout io.Writer) (sdk.SpanExporter, error) {
	if name == exporterConsole {
		return stdouttrace.New(stdouttrace.WithWriter(stdout))
	}
	t, err := c.target(name)
	if err != nil {
		return nil, err
	}
	to := c.collector
	secure, err := to.tls()
	if err != nil {
		return nil, err
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

func (c *collector) overGRPC(ctx context.Context, t target, secure *tls.Config) (sdk.SpanExporter, error) {
	transport := insecure.NewCredentials()
	if !t.plain {
		transport = credentials.NewTLS(secure)
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

func (c *collector) overHTTP(ctx context.Context, t target, secure *tls.Config) (sdk.SpanExporter, error) {
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
	if !t.plain {
		options = append(options, otlptracehttp.WithTLSClientConfig(secure))
	}
	return otlptracehttp.New(ctx, options...)
}

// maxPEM is how many bytes of a file with certificates or a key are read. A larger file is
// cut, and fails when its content is parsed or used.
const maxPEM = 1 << 20

// tls returns the configuration of TLS, with the certificates and the key from the files.
func (c *collector) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.certificate != "" {
		authorities, _, err := regular.Read(c.certificate, maxPEM)
		if err != nil {
			return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CERTIFICATE: %s has no certificate in PEM", c.certificate)
		}
	}
	if c.clientCertificate != "" {
		certificate, _, err := regular.Read(c.clientCertificate, maxPEM)
		if err != nil {
			return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: %w", err)
		}
		key, _, err := regular.Read(c.clientKey, maxPEM)
		if err != nil {
			return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CLIENT_KEY: %w", err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
