// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

// samples lists the lines of /metrics that begin with a name.
func samples(t *testing.T, metrics *telemetry.Metrics, name string) []string {
	t.Helper()
	var found []string
	lines := bufio.NewScanner(get(t, status(metrics), http.MethodGet, "/metrics").Body)
	for lines.Scan() {
		if sample, ok := strings.CutPrefix(lines.Text(), name); ok {
			found = append(found, sample)
		}
	}
	slices.Sort(found)
	return found
}

func TestServedRequestsAreCountedByAlgorithmAndContainer(t *testing.T) {
	metrics := telemetry.NewMetrics("test")
	counters := metrics.Profiles(set(t, "A", "B"))
	for uid := range uint32(telemetry.MaxUses) {
		counters["A"].Used(hashed(uid), time.Now())
	}
	counters["A"].Used(hashed(telemetry.MaxUses), time.Now())
	counters["B"].Used(hashed(0), time.Now())
	want := []string{
		`{algorithm="",container="",operation="HashData",profile="A"} 1`,
		`{algorithm="",container="",operation="HashData",profile="B"} 1`,
		fmt.Sprintf(`{algorithm="sha-256",container="app",operation="HashData",profile="A"} %d`, telemetry.MaxUses),
	}
	if diff := cmp.Diff(want, samples(t, metrics, "crypto_broker_served_requests_total")); diff != "" {
		t.Error(diff)
	}
}

func TestProfilesOfTheSetHaveTheirStrength(t *testing.T) {
	metrics := telemetry.NewMetrics("test")
	metrics.Looked(directory.Event{Result: directory.ResultLoaded, Set: set(t, "A", "B")})
	metrics.Looked(directory.Event{Result: directory.ResultLoaded, Set: set(t, "B")})
	if diff := cmp.Diff([]string{`{profile="B"} 128`}, samples(t, metrics, "crypto_broker_profile_strength_bits")); diff != "" {
		t.Error(diff)
	}
}

// scrape returns the histogram of HashData in the format that Prometheus asks for.
func scrape(t *testing.T, metrics *telemetry.Metrics, format expfmt.Format) (text string, histogram *dto.Histogram) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", string(format))
	recorder := httptest.NewRecorder()
	status(metrics).Server().Handler.ServeHTTP(recorder, request)
	if format.FormatType() != expfmt.TypeProtoDelim {
		return recorder.Body.String(), nil
	}
	decoder := expfmt.NewDecoder(recorder.Body, format)
	for {
		var family dto.MetricFamily
		if err := decoder.Decode(&family); err != nil {
			t.Fatalf("no histogram of HashData: %v", err)
		}
		if family.GetName() != "crypto_broker_request_duration_seconds" {
			continue
		}
		for _, metric := range family.Metric {
			if metric.Label[0].GetValue() == profile.OpHashData.String() {
				return "", metric.Histogram
			}
		}
	}
}

func TestDurationsAreInClassicAndNativeHistogramsWithTheTracesOfSampledCalls(t *testing.T) {
	const traceID = "0af7651916cd43dd8448eb211c80319c"
	metrics := telemetry.NewMetrics("test")
	metrics.Begin()
	metrics.End(profile.OpHashData, nil, codes.OK, 3*time.Millisecond, traceID)
	for _, took := range []time.Duration{12 * time.Microsecond, 7 * time.Second} {
		metrics.Begin()
		metrics.End(profile.OpHashData, nil, codes.OK, took, "")
	}

	text, _ := scrape(t, metrics, expfmt.NewFormat(expfmt.TypeOpenMetrics))
	var exemplars []string
	for line := range strings.Lines(text) {
		if sample, exemplar, found := strings.Cut(line, " # "); found {
			exemplars = append(exemplars, strings.Fields(sample)[0]+" "+strings.Fields(exemplar)[0])
		}
	}
	want := []string{`crypto_broker_request_duration_seconds_bucket{operation="HashData",le="0.005"} {trace_id="` + traceID + `"}`}
	if diff := cmp.Diff(want, exemplars); diff != "" {
		t.Errorf("the exemplars (-want +got):\n%s", diff)
	}

	_, histogram := scrape(t, metrics, expfmt.NewFormat(expfmt.TypeProtoDelim))
	if len(histogram.PositiveDelta) != 3 || histogram.GetSchema() != 3 {
		t.Errorf("the native histogram has schema %d and the buckets %v, expected schema 3 and 3 buckets", histogram.GetSchema(), histogram.PositiveDelta)
	}
	if last := histogram.Bucket[len(histogram.Bucket)-1]; last.GetUpperBound() != 10 || last.GetCumulativeCount() != 3 {
		t.Errorf("the last classic bucket is %v, expected 3 requests of at most 10 s", last)
	}
}
