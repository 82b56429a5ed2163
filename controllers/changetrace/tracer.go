// SPDX-License-Identifier: Apache-2.0

package changetrace

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

const (
	// maxChanges is the maximum number of changes that are followed at a time. Of a further one
	// there is only the span of its admission.
	maxChanges = 64
	// maxSpans is the maximum number of namespaces, and of pods, with spans in a change. The last
	// ones have spans.
	maxSpans = 20
	// limit is how long a change is followed. Even without an annotation, a kubelet brings a set
	// within two minutes.
	limit = 5 * time.Minute
)

// Tracer makes the spans of changes of profiles. Its methods are safe for concurrent use, and do
// nothing if it is nil.
type Tracer struct {
	spans *tracing.Tracer

	mu sync.Mutex
	// changes are the changes that are followed.
	changes map[*progress]struct{}
	// parts are the changes of each namespace that are followed.
	parts map[string][]*part
}

// New returns a Tracer that exports its spans by a tracer of package tracing. It returns nil if
// that is nil.
func New(spans *tracing.Tracer) *Tracer {
	if spans == nil {
		return nil
	}
	return &Tracer{spans: spans, changes: map[*progress]struct{}{}, parts: map[string][]*part{}}
}

// Admission is the webhook's decision about a change.
type Admission struct {
	// Request is the UID of the request.
	Request types.UID
	// Result and Reason are of closed sets. Reason is empty for a change that was accepted.
	Result, Reason string
	// Accepted reports whether the change was accepted. Failed reports whether the webhook has
	// failed.
	Accepted, Failed bool
	Began, Ended     time.Time
}

// Admitted makes the first span of a change. A change that is not accepted has its own trace.
func (t *Tracer) Admitted(c Change, a Admission) {
	if t == nil {
		return
	}
	request := a.Request
	if a.Accepted {
		request = ""
	}
	ids := c.ids(request)
	if !t.spans.Samples(ids.trace) {
		return
	}
	attributes := append(c.attributes(), attribute.String("crypto_broker.admission.result", a.Result))
	if a.Reason != "" {
		attributes = append(attributes, attribute.String("crypto_broker.admission.reason", a.Reason))
	}
	t.spans.Add(&tracing.Span{
		Trace: ids.trace, ID: ids.admission, Name: "admit profile", Kind: trace.SpanKindServer,
		Started: a.Began, Ended: a.Ended, Attributes: attributes, Failed: a.Failed,
	})
}

// Close makes the spans of all changes that are followed, up to their current step.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.changes {
		t.finish(p)
	}
}
