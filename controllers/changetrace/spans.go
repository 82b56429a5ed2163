// SPDX-License-Identifier: Apache-2.0

package changetrace

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

// finish makes the spans of a change and stops to follow it. The caller holds t.mu.
func (t *Tracer) finish(p *progress) {
	if _, followed := t.changes[p]; !followed {
		return // the change reached its time limit just before it ended
	}
	delete(t.changes, p)
	if p.timer != nil {
		p.timer.Stop()
	}
	undecided, unconfirmed := 0, 0
	for one := range p.parts {
		if one.decided {
			unconfirmed += len(one.waiting)
			p.sets = last(p.sets, one.set)
		} else {
			undecided++
		}
		t.drop(one)
	}
	end := p.seen
	for _, s := range p.sets {
		end = latest(end, t.setSpans(p, s))
	}
	for _, b := range p.brokers {
		end = latest(end, b.Confirmed)
		t.add(p, "serve set", b.Written, b.Confirmed, semconv.K8SNamespaceName(b.Pod.Namespace), semconv.K8SPodName(b.Pod.Name),
			semconv.K8SPodUID(string(b.UID)), attribute.Int("crypto_broker.annotations", b.Tries))
	}
	failed := undecided > 0 || unconfirmed > 0
	if failed {
		end = time.Now()
	}
	attributes := append(p.change.attributes(),
		attribute.Int("crypto_broker.namespaces", p.namespaces), attribute.Int("crypto_broker.namespaces.written", p.written),
		attribute.Int("crypto_broker.namespaces.undecided", undecided),
		attribute.Int("crypto_broker.pods", p.pods), attribute.Int("crypto_broker.pods.confirmed", p.confirmed),
		attribute.Int("crypto_broker.pods.gone", p.gone), attribute.Int("crypto_broker.pods.unconfirmed", unconfirmed))
	if n := len(p.brokers); n > 0 {
		attributes = append(attributes, attribute.String("crypto_broker.pods.last", p.brokers[n-1].Pod.String()))
	}
	t.spans.Add(&tracing.Span{
		Trace: p.ids.trace, ID: p.ids.propagation, Parent: p.ids.admission, Name: "propagate profile", Kind: trace.SpanKindInternal,
		Started: p.seen, Ended: end, Attributes: attributes, Failed: failed,
	})
}

// setSpans makes the spans of the set of a namespace and returns when the last of them ended.
func (t *Tracer) setSpans(p *progress, s set) time.Time {
	attributes := []attribute.KeyValue{semconv.K8SNamespaceName(s.namespace)}
	if s.written.IsZero() {
		return s.began // the change made no difference to the set
	}
	attributes = append(attributes, attribute.String("crypto_broker.set.digest", s.digest), attribute.Int64("crypto_broker.set.revision", s.revision))
	t.add(p, "compile set", s.began, s.compiled, attributes...)
	t.add(p, "write ConfigMap", s.compiled, s.written, attributes...)
	if s.annotated == 0 {
		return s.written
	}
	t.add(p, "annotate pods", s.written, s.lastAnnotated, append(attributes, attribute.Int("crypto_broker.annotations", s.annotated))...)
	return s.lastAnnotated
}

// add makes a span below the propagation of a change.
func (t *Tracer) add(p *progress, name string, started, ended time.Time, attributes ...attribute.KeyValue) {
	t.spans.Add(&tracing.Span{Trace: p.ids.trace, Parent: p.ids.propagation, Name: name, Kind: trace.SpanKindInternal, Started: started, Ended: ended, Attributes: attributes})
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
