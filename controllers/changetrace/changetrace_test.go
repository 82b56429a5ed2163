// SPDX-License-Identifier: Apache-2.0

package changetrace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

// span is a span as the exporter console writes it.
type span struct {
	Name        string
	SpanContext struct{ TraceID, SpanID string }
	Parent      struct{ SpanID string }
	Status      struct{ Code string }
	Attributes  []struct {
		Key   string
		Value struct{ Value any }
	}
}

func (s span) is(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return fmt.Sprint(a.Value.Value)
		}
	}
	return ""
}

// start returns a tracer for a part of the changes, and a function that ends it and returns its spans.
func start(t *testing.T, ratio string) (*Tracer, func() []span) {
	t.Helper()
	c := tracing.NewConfig()
	values := map[string]string{"OTEL_TRACES_EXPORTER": "console", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": ratio}
	for _, v := range c.Variables() {
		if value := values[v.Name]; value != "" {
			if err := v.Set(value); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out bytes.Buffer
	spans, err := tracing.New(t.Context(), c, tracing.Options{Stdout: &out, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return New(spans), func() (all []span) {
		t.Helper()
		if err := spans.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		for decoder := json.NewDecoder(&out); ; {
			var s span
			if err := decoder.Decode(&s); errors.Is(err, io.EOF) {
				return all
			} else if err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
	}
}

func named(all []span, name string) (found []span) {
	for _, s := range all {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

var change = Change{Kind: "ClusterCryptoProfile", Name: "orders", UID: "b7a9c1b2", Generation: 3}

// brokers returns brokers of a namespace that have confirmed nothing.
func brokers(namespace string, n int) []Broker {
	all := make([]Broker, n)
	for i := range all {
		all[i] = Broker{Pod: types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("app-%d", i)}, Written: time.Now()}
	}
	return all
}

// write puts a change into the set of a namespace with these brokers.
func write(traces *Tracer, namespace string, brokers []Broker) {
	pass := traces.Begin(namespace)
	pass.Compiled()
	pass.Written("sha256:00", 7)
	pass.Done(brokers)
}

func confirm(traces *Tracer, brokers []Broker) {
	for _, b := range brokers {
		traces.Annotated(b.Pod, time.Now())
		b.Confirmed = time.Now()
		traces.Confirmed(b)
	}
}

func TestAChangeHasFewSpansHoweverManyPodsAndNamespacesItReaches(t *testing.T) {
	traces, spans := start(t, "1")
	var namespaces []string
	for i := range 100 {
		namespaces = append(namespaces, fmt.Sprintf("shop-%d", i))
	}
	traces.Seen(change, namespaces)
	for _, name := range namespaces {
		pods := brokers(name, 100)
		write(traces, name, pods)
		confirm(traces, pods)
	}
	all := spans()
	if len(all) > 1+4*maxSpans {
		t.Errorf("the change has %d spans", len(all))
	}
	pods := named(all, "serve set")
	if len(pods) != maxSpans || pods[maxSpans-1].is("k8s.pod.name") != "app-99" {
		t.Errorf("got %d spans of pods, expected %d with the last one, app-99", len(pods), maxSpans)
	}
	whole := named(all, "propagate profile")
	if len(whole) != 1 || whole[0].is("crypto_broker.pods.confirmed") != "10000" || whole[0].is("crypto_broker.pods.last") != "shop-99/app-99" || whole[0].Status.Code == "Error" {
		t.Errorf("the propagation is %+v", whole)
	}
	if len(traces.changes) != 0 || len(traces.parts) != 0 {
		t.Errorf("%d changes and %d namespaces are remembered", len(traces.changes), len(traces.parts))
	}
}

func TestATraceWaitsForTheLastPod(t *testing.T) {
	for sentence, test := range map[string]struct {
		last            func(*Tracer, Broker)
		confirmed, gone string
	}{
		"that confirms":            {func(traces *Tracer, b Broker) { confirm(traces, []Broker{b}) }, "3", "0"},
		"that is deleted":          {func(traces *Tracer, b Broker) { traces.Left(b.Pod) }, "2", "1"},
		"of a namespace that goes": {func(traces *Tracer, b Broker) { traces.Forget(b.Pod.Namespace) }, "2", "1"},
	} {
		t.Run(sentence, func(t *testing.T) {
			traces, spans := start(t, "1")
			traces.Seen(change, []string{"shop"})
			pods := brokers("shop", 3)
			write(traces, "shop", pods)
			confirm(traces, pods[:2])
			if len(traces.changes) != 1 {
				t.Fatal("the change ended before the last pod")
			}
			test.last(traces, pods[2])
			whole := named(spans(), "propagate profile")
			if len(whole) != 1 || whole[0].is("crypto_broker.pods.confirmed") != test.confirmed || whole[0].is("crypto_broker.pods.gone") != test.gone || whole[0].Status.Code == "Error" {
				t.Errorf("the propagation is %+v", whole)
			}
		})
	}
}

func TestAChangeThatReachesNotAllPodsEndsWithAnErrorAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		traces, spans := start(t, "1")
		traces.Seen(change, []string{"shop", "stuck"})
		write(traces, "shop", brokers("shop", 2))
		<-time.After(limit)
		synctest.Wait()
		whole := named(spans(), "propagate profile")
		if len(whole) != 1 || whole[0].Status.Code != "Error" || whole[0].is("crypto_broker.namespaces.undecided") != "1" || whole[0].is("crypto_broker.pods.unconfirmed") != "2" {
			t.Errorf("the propagation is %+v", whole)
		}
		if len(traces.parts) != 0 {
			t.Errorf("%d namespaces are remembered", len(traces.parts))
		}
	})
}

func TestMoreChangesThanAreFollowedAreNotRemembered(t *testing.T) {
	traces, spans := start(t, "1")
	for i := range 2 * maxChanges {
		c := change
		c.Generation = int64(i + 1)
		traces.Seen(c, []string{"shop"})
	}
	if len(traces.changes) != maxChanges {
		t.Errorf("%d changes are followed, expected %d", len(traces.changes), maxChanges)
	}
	traces.Close()
	if whole := named(spans(), "propagate profile"); len(whole) != maxChanges {
		t.Errorf("%d changes have a span at the end of the process, expected %d", len(whole), maxChanges)
	}
}

func TestARefusedChangeIsNotInTheTraceOfTheNextOne(t *testing.T) {
	traces, spans := start(t, "1")
	traces.Admitted(change, Admission{Request: "1", Result: "refused", Reason: "weaker"})
	traces.Admitted(change, Admission{Request: "2", Result: "refused", Reason: "invalid"})
	traces.Admitted(change, Admission{Request: "3", Result: "accepted", Accepted: true})
	traces.Seen(change, nil)
	of := map[string]int{}
	all := spans()
	for _, s := range all {
		of[s.SpanContext.TraceID]++
	}
	if accepted := all[2].SpanContext.TraceID; len(of) != 3 || of[accepted] != 2 {
		t.Errorf("the spans are in the traces %v, expected three, and two spans in %s", of, accepted)
	}
}

func TestWebhookAndLeaderSampleTheSameChanges(t *testing.T) {
	webhook, admissions := start(t, "0.5")
	leader, propagations := start(t, "0.5")
	for i := range 100 {
		c := change
		c.Generation = int64(i + 1)
		webhook.Admitted(c, Admission{Result: "accepted", Accepted: true})
		leader.Seen(c, nil)
	}
	admitted, propagated := admissions(), propagations()
	if len(admitted) != len(propagated) || len(admitted) == 0 || len(admitted) == 100 {
		t.Fatalf("%d admissions and %d propagations have spans, expected as many, and a part of 100", len(admitted), len(propagated))
	}
	for i, s := range propagated {
		if s.SpanContext.TraceID != admitted[i].SpanContext.TraceID || s.Parent.SpanID != admitted[i].SpanContext.SpanID {
			t.Errorf("a propagation is no child of its admission: %+v and %+v", s, admitted[i])
		}
	}
}

func TestWithoutTracesNothingIsDone(t *testing.T) {
	traces := New(nil)
	if n := testing.AllocsPerRun(10, func() {
		traces.Admitted(change, Admission{})
		traces.Seen(change, nil)
		write(traces, "shop", nil)
		traces.Confirmed(Broker{})
		traces.Close()
	}); n != 0 {
		t.Errorf("%v allocations, expected none", n)
	}
}
