// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const hashProfiles = "- Name: A\n  API: {HashData: {HashAlg: sha-256}}\n"

// sample returns the value of a line of the metrics.
func (b *broker) sample(t *testing.T, line string) float64 {
	t.Helper()
	found := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(line) + " (.*)$").FindStringSubmatch(b.metricsText(t))
	if found == nil {
		t.Fatalf("the metrics have no %s", line)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestBytesOfMessagesAreCounted(t *testing.T) {
	b := start(t, hashProfiles)
	conn := connect(t, b.socket(""))
	request := message{}.text(requestProfile, "A").text(requestInput, strings.Repeat("a", 1000))
	reply, err := call(t, conn, methodHash, request)
	if err != nil {
		t.Fatal(err)
	}
	refused := message{}.text(requestProfile, "B").text(requestInput, "a")
	if _, err := call(t, conn, methodHash, refused); err == nil {
		t.Fatal("a call of an unknown profile was served")
	}
	for line, want := range map[string]int{
		`crypto_broker_request_bytes_total{operation="HashData"}`: len(request) + len(refused),
		`crypto_broker_reply_bytes_total{operation="HashData"}`:   len(reply),
		`crypto_broker_request_bytes_total{operation="SignData"}`: 0,
	} {
		if got := b.sample(t, line); got < float64(want) || got > float64(want+want/10+100) {
			t.Errorf("%s is %v, expected %d, and its metadata at most", line, got, want)
		}
	}
}

func TestConnectionsAreCountedByContainer(t *testing.T) {
	b := start(t, hashProfiles, "app", "worker")
	for range 3 {
		if _, err := hashes(t, connect(t, b.socket("app")), "A"); err != nil {
			t.Fatal(err)
		}
	}
	for container, want := range map[string]float64{"app": 3, "worker": 0} {
		if got := b.sample(t, fmt.Sprintf(`crypto_broker_connections{container=%q}`, container)); got != want {
			t.Errorf("the container %s has %v connections, expected %v", container, got, want)
		}
	}
}

// maxSeries is a bound for a broker with one profile, two containers and one operation in use. Most
// series belong to the histograms of operations.
const maxSeries = 600

func TestCallsThatFailAreCountedByContainer(t *testing.T) {
	b := start(t, hashProfiles, "app", "worker")
	for container, calls := range map[string]int{"app": 3, "worker": 1} {
		conn := connect(t, b.socket(container))
		for range calls {
			if _, err := hashes(t, conn, "not-there"); status.Code(err) != codes.InvalidArgument {
				t.Fatal(err)
			}
		}
		if _, err := hashes(t, conn, "A"); err != nil {
			t.Fatal(err)
		}
		if found := b.sample(t, fmt.Sprintf(`crypto_broker_failed_requests_total{code="InvalidArgument",container=%q,operation="HashData"}`, container)); found != float64(calls) {
			t.Errorf("found %v failed calls of %s, expected %d", found, container, calls)
		}
	}
}

func TestNamesThatClientsChooseMakeNoSeries(t *testing.T) {
	b := start(t, hashProfiles, "app", "worker")
	conn := connect(t, b.socket("app"))
	ask := func(n int) {
		for _, name := range []string{fmt.Sprint("profile-", n), fmt.Sprintf("\"} %d\n# HELP x", n), strings.Repeat("x", n), fmt.Sprint("é\\", n)} {
			if _, err := hashes(t, conn, name); err == nil {
				t.Fatalf("a call of the profile %q was served", name)
			}
			if _, err := hashes(t, conn, "A"); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask(1)
	before := series(b.metricsText(t))
	for n := range 100 {
		ask(n + 2)
	}
	after := series(b.metricsText(t))
	if after != before {
		t.Errorf("there are %d series after 400 names of profiles, and %d after four", after, before)
	}
	if after > maxSeries {
		t.Errorf("there are %d series, expected at most %d", after, maxSeries)
	}
}

// series returns how many samples metrics have. Metrics of the Go runtime vary.
func series(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "crypto_broker_") {
			n++
		}
	}
	return n
}
