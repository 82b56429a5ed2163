// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

const (
	// attempt is how long the collector has to acknowledge a request.
	attempt = 5 * time.Second
	// maxRequest is the approximate size in bytes of the lines of a request. Collectors take 4
	// MiB by default.
	maxRequest = 256 << 10
	// maxMessage is the maximum size in bytes of a collector's message in an error.
	maxMessage = 200
	// scope is the name of the instrumentation scope, and eventPrefix begins the name of an event.
	scope       = "github.com/crypto-broker/crypto-broker-operator/broker/audit"
	eventPrefix = "crypto_broker.audit."
	// traceIDSize is the size in bytes of an id of a trace (W3C Trace Context, section 3.2.2.3).
	traceIDSize = 16
)

// Options are the settings of an [Output].
type Options struct {
	// Address is the host and the port of the collector, see [ParseEndpoint].
	Address string
	// TLS makes the connections, nil for connections without TLS.
	TLS *tlsprovider.Client
	// Attributes are pairs of a name and a value that the resource of all lines has.
	Attributes [][2]string
}

// Output implements [audit.Output]. After an error of Write the collector may or may not have the
// lines, so the log needs the option Resend.
type Output struct {
	connection *grpc.ClientConn
	client     collector.LogsServiceClient
	resource   *resource.Resource
}

// New returns an output. It makes no connection before the first lines.
func New(o Options) (*Output, error) {
	transport := insecure.NewCredentials()
	if o.TLS != nil {
		transport = o.TLS.Credentials()
	}
	reconnect := backoff.DefaultConfig
	reconnect.BaseDelay, reconnect.MaxDelay = 100*time.Millisecond, attempt
	connection, err := grpc.NewClient(o.Address, grpc.WithTransportCredentials(transport),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: attempt}))
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the collector of audit records: %w", err)
	}
	from := &resource.Resource{}
	for _, a := range o.Attributes {
		from.Attributes = append(from.Attributes, textAttribute(a[0], strings.ToValidUTF8(a[1], "\ufffd")))
	}
	return &Output{connection, collector.NewLogsServiceClient(connection), from}, nil
}

// Close closes the connection.
func (o *Output) Close() error { return o.connection.Close() }

// Write implements [audit.Output].
func (o *Output) Write(lines []byte) error {
	var request []*logs.LogRecord
	size := 0
	for line := range bytes.Lines(lines) {
		record, err := recordOf(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return err
		}
		if request, size = append(request, record), size+len(line); size < maxRequest {
			continue
		}
		if err := o.send(request); err != nil {
			return err
		}
		request, size = nil, 0
	}
	if len(request) == 0 {
		return nil
	}
	return o.send(request)
}

// Sync implements [audit.Output]. It does nothing, because Write waits for the collector.
func (*Output) Sync() error { return nil }

// Full implements [audit.Output].
func (*Output) Full() bool { return false }

// Rotate implements [audit.Output].
func (*Output) Rotate() error { return nil }

// Previous implements [audit.Output]. It returns nothing, because a collector cannot be asked for
// earlier lines.
func (*Output) Previous() string { return "" }

// send returns once the collector has acknowledged all records.
func (o *Output) send(records []*logs.LogRecord) error {
	ctx, cancel := context.WithTimeout(context.Background(), attempt)
	defer cancel()
	reply, err := o.client.Export(ctx, &collector.ExportLogsServiceRequest{ResourceLogs: []*logs.ResourceLogs{{
		Resource:  o.resource,
		ScopeLogs: []*logs.ScopeLogs{{Scope: &common.InstrumentationScope{Name: scope}, LogRecords: records}},
	}}})
	if err != nil {
		return fmt.Errorf("send audit records to the collector: %w", err)
	}
	if partial := reply.GetPartialSuccess(); partial.GetRejectedLogRecords() > 0 {
		message := partial.GetErrorMessage()
		return fmt.Errorf("the collector rejected %d of %d audit records: %q", partial.GetRejectedLogRecords(), len(records), message[:min(len(message), maxMessage)])
	}
	return nil
}

// recordOf returns a line as a log record.
func recordOf(line []byte) (*logs.LogRecord, error) {
	var fields struct {
		Time     time.Time `json:"time"`
		Event    string    `json:"event"`
		Chain    string    `json:"audit.chain"`
		Sequence int64     `json:"audit.sequence"`
		TraceID  string    `json:"trace_id"`
	}
	if err := json.Unmarshal(line, &fields); err != nil {
		return nil, fmt.Errorf("read a line of the audit log: %w", err)
	}
	traceID, err := hex.DecodeString(fields.TraceID)
	if err != nil || len(traceID) != traceIDSize {
		traceID = nil
	}
	at := uint64(fields.Time.UnixNano()) //nolint:gosec // after 1970
	return &logs.LogRecord{
		TimeUnixNano: at, ObservedTimeUnixNano: at, TraceId: traceID, EventName: eventPrefix + fields.Event,
		SeverityNumber: logs.SeverityNumber_SEVERITY_NUMBER_INFO, SeverityText: "INFO",
		Body: text(string(line)),
		Attributes: []*common.KeyValue{
			textAttribute("audit.chain", fields.Chain),
			{Key: "audit.sequence", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: fields.Sequence}}},
		},
	}, nil
}

func textAttribute(name, value string) *common.KeyValue {
	return &common.KeyValue{Key: name, Value: text(value)}
}

func text(value string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}
}
