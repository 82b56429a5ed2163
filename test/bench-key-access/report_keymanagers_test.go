// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package benchkeyaccess

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

const introduction = "# Key access\n\n" + `What the [key access service](../key-access.md) takes when its private keys are in a key manager far away. This page is what the command wrote:

` + "```sh\nmake bench-key-access\n```" + `

* **Services** are processes of their own, each with its own RSA key in AWS KMS, for which moto stands. A proxy in front of it adds 50 to 70 ms to each request, and counts.
* **The load**: %d requests of one caller, %d at a time, for %d files, each read %d times in random order. So at most %d of 1,000 data keys of a service can come from its cache. Nothing of these files was read before; %d other
  requests are the warm-up. A file has a data key, or a share for each service. Each request has its own DPoP proof, made before its time begins.
* **Before**: no caches. The service keeps no data keys (` + "`dataKeyCache: false`" + `) and nothing that it knows of a key (` + "`CacheTime: -1s`" + `), so that it asks for the key before each data key. Identical questions at one time are one, also then. The client asks the services one after the
  other. **Data keys not kept**: the same, but the service knows its key for a minute. **After**: as it comes; the client asks one service, which asks the others.
* The client shares the processors with all of that. Where requests failed, there are no times.

`

// busy is more than the load average that this measurement causes by itself.
const busy = 6

// document returns the report as Markdown.
func (r *results) document() string {
	var text strings.Builder
	fmt.Fprintf(&text, introduction, requests, atOnce, differentFiles, requests/differentFiles, 1000-1000*differentFiles/requests, warmUp)
	fmt.Fprintf(&text, "%s, load %s at the end, %s UTC, %s in all.\n\n", measurement.Machine(), measurement.Load(), r.began.UTC().Format("2 January 2006 15:04"), r.took.Round(time.Second))
	if raised, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil && raised != 20 {
		fmt.Fprintf(&text, "All processes of this measurement ran with the priority of `nice -n %d`.\n\n", 20-raised)
	}
	if load, err := strconv.ParseFloat(measurement.Load(), 64); err == nil && load > busy {
		fmt.Fprintf(&text, "**Other programs used the processors meanwhile**: this measurement makes a load of %d at most. Times are longer by what requests waited for a processor.\n\n", busy)
	}
	r.writeTargets(&text)
	r.writeRuns(&text)
	r.writeParts(&text)
	return text.String()
}

// find returns a measurement, or nil if requests of it failed.
func (r *results) find(name string, services int) *run {
	for _, found := range r.runs {
		if found.name == name && found.services == services && found.failed == 0 {
			return found
		}
	}
	return nil
}

// target is a row of the table of targets.
func target(text *strings.Builder, what, wanted string, measured bool, found string, met bool) {
	verdict := "**missed**"
	switch {
	case !measured:
		found, verdict = "–", "not measured: requests failed"
	case met:
		verdict = "met"
	}
	fmt.Fprintf(text, "| %s | %s | %s | %s |\n", what, wanted, found, verdict)
}

func (r *results) writeTargets(text *strings.Builder) {
	text.WriteString("## Targets\n\n| target | wanted | found | verdict |\n|---|---|---|---|\n")
	for i, limit := range []float64{80, 280, 380} {
		n := i + 1
		before, after := r.find("before", n), r.find("after", n)
		p95 := 0.0
		if after != nil {
			p95 = after.at(95)
		}
		target(text, counted(n)+", p95", fmt.Sprintf("≤ %.0f ms", limit), after != nil, fmt.Sprintf("%.1f ms", p95), p95 <= limit)
		if n == 1 {
			less := 0.0
			if before != nil && after != nil {
				less = 100 * (1 - p95/before.at(95))
			}
			target(text, "1 service, p95 below before", "≥ 47 %", before != nil && after != nil, fmt.Sprintf("%.0f %%", less), less >= 47)
			continue
		}
		slowest, failed := 0.0, after == nil
		if after != nil {
			for _, alone := range after.alone {
				slowest, failed = max(slowest, alone.at(95)), failed || alone.failed > 0
			}
		}
		target(text, counted(n)+", p95 over the slowest one's alone", "≤ +10 %", !failed, fmt.Sprintf("%+.0f %% of %.1f ms", 100*(p95/slowest-1), slowest), p95 <= 1.1*slowest)
	}
	perSecond := float64(hitRequests) / r.hits.wall.Seconds()
	target(text, "hits a second, with 10 at a time", "≥ 1,000", r.hits.failed == 0, fmt.Sprintf("%.0f", perSecond), perSecond >= 1000)
	for n := 1; n <= 3; n++ {
		after := r.find("after", n)
		calls := 0.0
		if after != nil {
			calls = float64(after.provider) / float64(requests*n) * 1000
		}
		target(text, counted(n)+", requests to the key manager for 1,000 data keys", "≤ 120", after != nil, fmt.Sprintf("%.0f", calls), calls <= 120)
	}
	target(text, "a hit in the service, from its first byte to its reply, mean", "≤ 0.2 ms", true, fmt.Sprintf("%.2f ms", r.inside), r.inside <= 0.2)
	fmt.Fprintf(text, "\nA hit took %.2f ms of a processor in the service, with 10 at a time. %s", r.cpu, whereTheTimeGoes)
}

func counted(services int) string {
	if services == 1 {
		return "1 service"
	}
	return fmt.Sprintf("%d services", services)
}

func (r *results) writeRuns(text *strings.Builder) {
	text.WriteString("## Requests\n\nTimes are of the client, in milliseconds. The caches are those of data keys; a coalesced request waits for another one that asks for the same.\n\n" +
		"| services | | p50 | p95 | p99 | mean | max | a second | errors | requests to key managers | hits | misses | coalesced |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, found := range r.runs {
		times := "– | – | – | – | – | –"
		if found.failed == 0 {
			times = fmt.Sprintf("%.1f | %.1f | %.1f | %.1f | %.1f | %.0f", found.at(50), found.at(95), found.at(99), found.mean(), found.at(100), requests/found.wall.Seconds())
		}
		fmt.Fprintf(text, "| %d | %s | %s | %.1f %% | %d | %.0f | %.0f | %.0f |\n", found.services, found.name, times, float64(found.failed)/requests*100, found.provider, found.hits, found.misses, found.coalesced)
		for i, alone := range found.alone {
			times = "– | – | – | – | – | –"
			if alone.failed == 0 {
				times = fmt.Sprintf("%.1f | %.1f | %.1f | %.1f | %.1f | %.0f", alone.at(50), alone.at(95), alone.at(99), alone.mean(), alone.at(100), requests/alone.wall.Seconds())
			}
			fmt.Fprintf(text, "| %d | number %d alone | %s | %.1f %% | | | | |\n", found.services, i+1, times, float64(alone.failed)/requests*100)
		}
	}
	text.WriteString("\n")
	for _, found := range r.runs {
		if found.failed > 0 {
			fmt.Fprintf(text, "%s, %s: %d requests failed, for example: %s\n\n", counted(found.services), found.name, found.failed, found.reason)
		}
	}
}

func (r *results) writeParts(text *strings.Builder) {
	text.WriteString("## Parts of the time\n\nMeans in milliseconds. The key manager's part is all time of its requests, with the delay, divided by the requests of the client. A request to a peer is as long as the peer takes.\n\n" +
		"| services | | client | first service | a request to a peer | key managers | a request to a key manager |\n|---|---|---|---|---|---|---|\n")
	for _, found := range r.runs {
		if found.failed > 0 {
			continue
		}
		peers, each := "", 0.0
		if found.peers > 0 {
			peers = fmt.Sprintf("%.1f", found.peers)
		}
		if found.provider > 0 {
			each = milliseconds(found.providerTook) / float64(found.provider)
		}
		fmt.Fprintf(text, "| %d | %s | %.1f | %.1f | %s | %.1f | %.1f |\n", found.services, found.name, found.mean(), found.service, peers, milliseconds(found.providerTook)/requests, each)
	}
}

// whereTheTimeGoes is what a profile of the service showed (go test -bench AKeptDataKey -benchtime 2000x -cpuprofile, in keyaccess).
const whereTheTimeGoes = `Half of it are three signatures on P-256: of the token, of the proof and of the request. A sixth is RSA, which wraps to the client's key, and an eighth is JSON of tokens. The policy's two
decisions and the cache of data keys are less than a twentieth. So the target for a hit would need signatures that are remembered, which the service does not do: each request is checked as if it were the first.

A request to several services ends with the slowest of them, so its p95 is above the p95 of each one alone, also if the services do not disturb each other: of three times between 50 and 70 ms, the longest is 65 ms in the middle, and
one alone is 60 ms.

`

func TestAReportWithErrorsHasNoTimes(t *testing.T) {
	good := func(name string, services int) *run {
		s := &sample{wall: time.Second}
		for range requests {
			s.took = append(s.took, 50*time.Millisecond)
		}
		return &run{name: name, services: services, sample: s, provider: 100}
	}
	r := &results{hits: &sample{wall: time.Second, failed: 1}, inside: 0.1, cpu: 0.1}
	for n := 1; n <= 3; n++ {
		r.runs = append(r.runs, good("before", n), good("after", n))
	}
	r.runs[1].failed, r.runs[1].reason = 3, "away"
	r.runs[3].alone = []*sample{good("", 1).sample}
	text := r.document()
	for _, want := range []string{
		"| 1 service, p95 | ≤ 80 ms | – | not measured: requests failed |",
		"| 1 service, p95 below before | ≥ 47 % | – | not measured: requests failed |",
		"| 2 services, p95 | ≤ 280 ms | 50.0 ms | met |",
		"| 2 services, p95 over the slowest one's alone | ≤ +10 % | +0 % of 50.0 ms | met |",
		"| hits a second, with 10 at a time | ≥ 1,000 | – | not measured: requests failed |",
		"| 2 services, requests to the key manager for 1,000 data keys | ≤ 120 | 50 | met |",
		"| 1 | after | – | – | – | – | – | – | 0.3 % | 100 | 0 | 0 | 0 |",
		"1 service, after: 3 requests failed, for example: away",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
}
