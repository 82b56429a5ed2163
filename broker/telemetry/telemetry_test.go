// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func status(metrics *telemetry.Metrics) *telemetry.Status {
	return &telemetry.Status{
		Metrics:  metrics,
		Profiles: func() directory.State { return directory.State{Reason: directory.NoProfiles} },
		Ready:    func() string { return "" },
		Logger:   slog.New(slog.DiscardHandler),
	}
}

// get answers a request without a network.
func get(t *testing.T, s *telemetry.Status, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	recorder := httptest.NewRecorder()
	s.Server().Handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return recorder
}

// requests lists the samples of crypto_broker_requests_total.
func requests(t *testing.T, metrics *telemetry.Metrics) []string {
	t.Helper()
	var found []string
	lines := bufio.NewScanner(get(t, status(metrics), http.MethodGet, "/metrics").Body)
	for lines.Scan() {
		if sample, ok := strings.CutPrefix(lines.Text(), "crypto_broker_requests_total"); ok {
			found = append(found, sample)
		}
	}
	return found
}

func set(t *testing.T, names ...string) *profile.Set {
	t.Helper()
	file := "[]"
	if len(names) > 0 {
		file = ""
	}
	for _, name := range names {
		file += fmt.Sprintf("- Name: %q\n  API: {HashData: {HashAlg: sha-256}}\n", name)
	}
	compiled, problems := profile.Compile(profile.FileName, []byte(file))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return compiled
}

func sample(code, name string, n int) string {
	return fmt.Sprintf(`{code=%q,operation="HashData",profile=%q} %d`, code, name, n)
}

func only(operation string, samples []string) []string {
	var found []string
	for _, s := range samples {
		if strings.Contains(s, fmt.Sprintf("operation=%q", operation)) {
			found = append(found, s)
		}
	}
	return found
}

func TestRequestsAreCountedByProfilesThatAreServed(t *testing.T) {
	metrics := telemetry.NewMetrics("test")
	expect := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, only("HashData", requests(t, metrics))); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
	count := func(counters *telemetry.Counters, code codes.Code) {
		metrics.Begin()
		metrics.End(profile.OpHashData, counters, code, time.Millisecond, "")
	}
	expect()
	first := metrics.Profiles(set(t, "A", "B"))
	expect(sample("OK", "A", 0), sample("OK", "B", 0)) // so that a rate over them is never empty
	count(first["A"], codes.OK)
	count(first["A"], codes.OK)
	count(first["B"], codes.PermissionDenied)
	count(nil, codes.InvalidArgument)
	expect(sample("InvalidArgument", "unknown", 1), sample("OK", "A", 2), sample("OK", "B", 0), sample("PermissionDenied", "B", 1))

	// A profile that stays keeps its count. The label of a removed profile disappears.
	second := metrics.Profiles(set(t, "A", "C"))
	count(first["B"], codes.OK) // was under way
	count(second["A"], codes.OK)
	expect(sample("InvalidArgument", "unknown", 1), sample("OK", "A", 3), sample("OK", "C", 0))

	// A profile may have the same name as the placeholder for no profile.
	third := metrics.Profiles(set(t, "unknown"))
	count(third["unknown"], codes.InvalidArgument)
	count(third["unknown"], codes.Code(4711))
	expect(sample("InvalidArgument", "unknown", 2), sample("OK", "unknown", 0), sample("Unknown", "unknown", 1))
}

func TestMetricsOfProfilesFollowWhatIsServed(t *testing.T) {
	metrics := telemetry.NewMetrics("v1.2.3")
	loaded, _ := profile.Compile(profile.FileName, []byte("- Name: A\n  API: {HashData: {HashAlg: sha-256}}\n- Name: B\n"))
	metrics.Looked(directory.Event{Result: directory.ResultLoaded, Set: set(t, "A", "B", "C")})
	metrics.Looked(directory.Event{Result: directory.ResultLoaded, Set: loaded, Revision: 1_700_000_000_000})
	metrics.Looked(directory.Event{Result: directory.ResultRejected, Reason: directory.SignatureRejected})
	metrics.Looked(directory.Event{Result: directory.ResultUnchanged})
	metrics.FIPS("v1.0.0", "on", true)
	body := get(t, status(metrics), http.MethodGet, "/metrics").Body.String()
	for _, want := range []string{
		`crypto_broker_fips_info{enforced="true",mode="on",module="v1.0.0"} 1`,
		`crypto_broker_profiles{state="served"} 1`,
		`crypto_broker_profiles{state="rejected"} 1`,
		`crypto_broker_profiles_info{digest="` + loaded.Digest() + `"} 1`,
		`crypto_broker_profiles_revision 1.7e+12`,
		`crypto_broker_profiles_rejections_total{reason="SignatureRejected"} 1`,
		`crypto_broker_profiles_rejections_total{reason="RevisionRejected"} 0`,
		`crypto_broker_profiles_reloads_total{result="loaded"} 2`,
		`crypto_broker_profiles_reloads_total{result="rejected"} 1`,
		`crypto_broker_profiles_reloads_total{result="unchanged"} 1`,
		`version="v1.2.3"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	if n := strings.Count(body, "crypto_broker_profiles_info{"); n != 1 {
		t.Errorf("%d digests are told, want only the digest of the set that is served", n)
	}
}

func TestMetricsAreInTheFormatOfPrometheus(t *testing.T) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(get(t, status(telemetry.NewMetrics("test")), http.MethodGet, "/metrics").Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"crypto_broker_request_duration_seconds", "crypto_broker_requests_in_flight", "crypto_broker_build_info", "go_goroutines", "process_cpu_seconds_total"} {
		if families[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestTheStatusPortAnswers(t *testing.T) {
	since := time.Date(2026, 11, 20, 13, 0, 0, 123_900_000, time.FixedZone("CET", 3600))
	serving := func(s *telemetry.Status) {
		s.Profiles = func() directory.State {
			return directory.State{Digest: "sha256:ab", Since: since, Reason: directory.ProfilesRejected}
		}
	}
	withdrawn := func(s *telemetry.Status) {
		s.Profiles = func() directory.State {
			state := directory.State{Digest: "sha256:ab", Since: since, Reason: directory.ProfilesRejected}
			for _, name := range strings.Split("ABCDEFGHIJ", "") {
				state.Withdrawn = append(state.Withdrawn, directory.Withdrawn{Profile: name, Since: since})
			}
			return state
		}
	}
	told := make([]string, 0, 8)
	for _, name := range strings.Split("ABCDEFGH", "") {
		told = append(told, `{"profile":"`+name+`","since":"2026-11-20T12:00:00.123Z"}`)
	}
	waiting := func(s *telemetry.Status) { s.Ready = func() string { return "NoProfiles" } }
	for sentence, test := range map[string]struct {
		method, path string
		change       func(*telemetry.Status)
		code         int
		body         string
	}{
		"that it is alive":                   {http.MethodGet, "/healthz", waiting, http.StatusOK, "ok\n"},
		"that it is ready":                   {http.MethodGet, "/readyz", serving, http.StatusOK, "ready\n"},
		"why it is not ready":                {http.MethodGet, "/readyz", waiting, http.StatusServiceUnavailable, "not ready: NoProfiles\n"},
		"which set it serves":                {http.MethodGet, "/profiles", serving, http.StatusOK, `{"digest":"sha256:ab","revision":0,"since":"2026-11-20T12:00:00.123Z","reason":"ProfilesRejected"}` + "\n"},
		"which profiles went out of service": {http.MethodGet, "/profiles", withdrawn, http.StatusOK, `{"digest":"sha256:ab","revision":0,"since":"2026-11-20T12:00:00.123Z","reason":"ProfilesRejected","withdrawn":[` + strings.Join(told, ",") + "]}\n"},
		"that it serves none":                {http.MethodGet, "/profiles", waiting, http.StatusOK, `{"digest":"","revision":0,"since":null,"reason":"NoProfiles"}` + "\n"},
		"nothing to a path it does not have": {http.MethodGet, "/debug/pprof/", serving, http.StatusNotFound, "404 page not found\n"},
		"nothing to other methods":           {http.MethodPost, "/profiles", serving, http.StatusMethodNotAllowed, "Method Not Allowed\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := status(telemetry.NewMetrics("test"))
			test.change(s)
			answer := get(t, s, test.method, test.path)
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			if answer.Code != test.code || string(body) != test.body {
				t.Errorf("got %d %q, want %d %q", answer.Code, body, test.code, test.body)
			}
		})
	}
}

// rollingOut is a set in which the profile A is rolled out to brokers below a place.
func rollingOut(t *testing.T, below int64, digest string) *profile.Set {
	t.Helper()
	file := fmt.Sprintf("FormatVersion: 2\nProfiles:\n- Name: A\n  API: {HashData: {HashAlg: sha-256}}\n- Name: A\n  API: {HashData: {HashAlg: sha-512}}\n  Rollout: {Below: %d, Digest: %q}\n", below, digest)
	set, problems := profile.Compile(profile.FileName, []byte(file))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return set
}

func TestCallsOfARolloutAreThoseSinceTheBrokerCameToItsSide(t *testing.T) {
	metrics := telemetry.NewMetrics("test")
	count := func(set *profile.Set, all ...codes.Code) {
		counters := metrics.Profiles(set)
		for _, code := range all {
			metrics.Begin()
			metrics.End(profile.OpHashData, counters["A"], code, time.Millisecond, "")
		}
	}
	expect := func(want ...telemetry.RolloutCalls) {
		t.Helper()
		if diff := cmp.Diff(want, metrics.Rollouts()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	side := func(digest string, isNew bool) profile.Side {
		return profile.Side{Profile: "A", Digest: digest, New: isNew}
	}
	count(set(t, "A", "B"), codes.OK, codes.Internal)
	expect()
	count(rollingOut(t, 0, "first"), codes.OK, codes.PermissionDenied, codes.Canceled)
	expect(telemetry.RolloutCalls{Side: side("first", false), Calls: 3, Failed: 1})
	// A step that does not reach the broker does not change its side.
	count(rollingOut(t, 5, "first"), codes.OK)
	expect(telemetry.RolloutCalls{Side: side("first", false), Calls: 4, Failed: 1})
	count(rollingOut(t, profile.RolloutPlaces, "first"), codes.InvalidArgument)
	expect(telemetry.RolloutCalls{Side: side("first", true), Calls: 1, Failed: 1})
	// The next change begins with nothing, even where the broker has not seen the set between.
	count(rollingOut(t, profile.RolloutPlaces, "second"), codes.OK)
	expect(telemetry.RolloutCalls{Side: side("second", true), Calls: 1})
	count(set(t, "A"), codes.OK)
	expect()
}

func TestCallsOfARolloutBeginAnewForAProfileThatWasOutOfService(t *testing.T) {
	metrics := telemetry.NewMetrics("test")
	count := func(set *profile.Set, calls int) {
		counters := metrics.Profiles(set)["A"]
		for range calls {
			metrics.Begin()
			metrics.End(profile.OpHashData, counters, codes.Internal, time.Millisecond, "")
		}
	}
	count(set(t, "A"), 5)
	count(rollingOut(t, 0, "first"), 1)
	invalid, _ := profile.Compile(profile.FileName, []byte(`FormatVersion: 2
Profiles:
- {Name: A, API: {HashData: {HashAlg: sha-0}}}
- {Name: A, API: {HashData: {HashAlg: sha-512}}, Rollout: {Below: 0, Digest: first}}
- {Name: B, API: {HashData: {HashAlg: sha-256}}}
`))
	metrics.Profiles(invalid)
	if found := metrics.Rollouts(); len(found) != 0 {
		t.Errorf("the profile is out of service, and its calls are %+v", found)
	}
	count(rollingOut(t, 0, "first"), 2)
	want := []telemetry.RolloutCalls{{Side: profile.Side{Profile: "A", Digest: "first"}, Calls: 2, Failed: 2}}
	if diff := cmp.Diff(want, metrics.Rollouts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheStatusPortTellsTheSideOfTheBroker(t *testing.T) {
	metrics := telemetry.NewMetrics("test")
	counters := metrics.Profiles(rollingOut(t, profile.RolloutPlaces, "first"))
	metrics.Begin()
	metrics.End(profile.OpHashData, counters["A"], codes.PermissionDenied, time.Millisecond, "")
	body := get(t, status(metrics), http.MethodGet, "/profiles").Body.String()
	if want := `"rollouts":[{"profile":"A","digest":"first","new":true,"calls":1,"failed":1}]`; !strings.Contains(body, want) {
		t.Errorf("found %s, want %s", body, want)
	}
}

func TestCountingARequestAllocatesNothing(t *testing.T) {
	metrics := telemetry.NewMetrics("test")
	counters := metrics.Profiles(set(t, "A"))["A"]
	if n := testing.AllocsPerRun(100, func() {
		metrics.Begin()
		metrics.End(profile.OpHashData, counters, codes.OK, time.Millisecond, "")
		metrics.Transferred(profile.OpHashData, 100, 50)
	}); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// This many requests take little time from calls. Other tests need current metrics in each request.
func TestMetricsAreNotCollectedAllTheTime(t *testing.T) {
	s := status(telemetry.NewMetrics("test"))
	server := s.Server()
	const requests, rest = 10, 10 * time.Millisecond
	began := time.Now()
	for range requests {
		recorder := httptest.NewRecorder()
		server.Handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if recorder.Code != http.StatusOK {
			t.Fatalf("/metrics answers %d", recorder.Code)
		}
	}
	if took := time.Since(began); took < (requests-1)*rest {
		t.Errorf("%d requests took %s, want at least %s between any two", requests, took, rest)
	}
}
