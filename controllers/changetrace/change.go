// SPDX-License-Identifier: Apache-2.0

package changetrace

import (
	"crypto/sha256"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Change is a change of the spec of a profile.
type Change struct {
	// Kind is CryptoProfile or ClusterCryptoProfile. Namespace is empty for the latter.
	Kind, Namespace, Name string
	UID                   types.UID
	// Generation is the generation of the profile after the change, 0 for a deletion.
	Generation int64
}

// Of returns the last change of an object, or its deletion.
func Of(kind string, object metav1.Object, deleted bool) Change {
	c := Change{kind, object.GetNamespace(), object.GetName(), object.GetUID(), object.GetGeneration()}
	if deleted {
		c.Generation = 0
	}
	return c
}

// ids are the ids that all replicas compute for a change.
type ids struct {
	trace trace.TraceID
	// admission and propagation are the ids of the spans that are parents of other spans.
	admission, propagation trace.SpanID
}

// ids returns the ids of a change. request is the UID of a request that was not admitted. Without
// it, the next request for the same generation would have the same ids.
func (c Change) ids(request types.UID) ids {
	sum := sha256.Sum256(fmt.Appendf(nil, "crypto-broker change\n%s\n%d\n%s", c.UID, c.Generation, request))
	return ids{trace.TraceID(sum[:16]), trace.SpanID(sum[16:24]), trace.SpanID(sum[24:])}
}

func (c Change) attributes() []attribute.KeyValue {
	list := []attribute.KeyValue{
		attribute.String("crypto_broker.profile.kind", c.Kind),
		attribute.String("crypto_broker.profile", c.Name),
	}
	if c.Namespace != "" {
		list = append(list, semconv.K8SNamespaceName(c.Namespace))
	}
	if c.Generation == 0 {
		return append(list, attribute.Bool("crypto_broker.profile.deleted", true))
	}
	return append(list, attribute.Int64("crypto_broker.profile.generation", c.Generation))
}
