// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import "testing"

func TestVariablesWithoutAnEffectAreNamed(t *testing.T) {
	at := newPlace(t, "sha-256")
	broker := startWith(t, environment("OTEL_METRICS_INTERVAL=30s", "OTEL_LOG_LEVEL=debug", "OTEL_TRACES_EXPORTER=none"), at.args()...)
	found, _ := broker.logged("some variables of OpenTelemetry have no effect on this broker", 1)["variables"].([]any)
	if len(found) != 2 || found[0] != "OTEL_LOG_LEVEL" || found[1] != "OTEL_METRICS_INTERVAL" {
		t.Errorf("got %v", found)
	}
	broker.listening()
}

func TestDisabledMeansThatNothingElseCounts(t *testing.T) {
	at := newPlace(t, "sha-256")
	broker := startWith(t, environment("OTEL_SDK_DISABLED=true", "OTEL_TRACES_EXPORTER=zipkin", "OTEL_METRICS_EXPORTER=otlp"), at.args()...)
	broker.listening()
}
