// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package benchkeyaccess

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

const introduction = "# Key access\n\n" + `What the [key access service](../key-access.md) takes when its private keys are in a key manager far away. This page is what the command wrote:

` + "```sh\nmake bench-key-access\n```" + `

* **Services** are processes of their own, each with its own RSA key in an AWS KMS of its own, for which moto stands. A proxy in front of it adds 50 to 70 ms to each request, and counts.
* **The load**: %d requests of one caller, %d at a time, for %d files, each read %d times in random order. So at most %d of 1,000 data keys of a service can come from its cache. Nothing of these files was read before; %d other
  requests are the warm-up. A file has a data key, or a share for each service. Each request has its own DPoP proof, made before its time begins.
* **Before**: no caches. The service keeps no data keys (` + "`dataKeyCache: false`" + `) and nothing that it knows of a key (` + "`CacheTime: -1s`" + `), so that it asks for the key before each data key. Identical questions at one time are one, also then. The client asks the services one after the
  other. **Data keys not kept**: the same, but the service knows its key for a minute. **After**: as it comes; the client asks one service, which asks the others.
* **Alone**: the client asks one of the services of "after" for files that need no other, with the same load, while the others have nothing to do. The target compares the p95 of requests to all services with
  the highest p95 of one alone. **One at a time**: the same with one request at a time.
* **A hit** is a request for a data key that is kept. It has a new proof. The service checks it and the signature of the request, and the data key is encrypted to the client's RSA key. Its time in the service is from its header
  to its reply. **A hit without a proof** comes with a token that is bound to no key (` + "`plainBearer: true`" + `), so the service checks neither.
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
		target(text, measurement.Count(n, "service")+", p95", fmt.Sprintf("≤ %.0f ms", limit), after != nil, fmt.Sprintf("%.1f ms", p95), p95 <= limit)
		if n == 1 {
			less := 0.0
			if before != nil && after != nil {
				less = 100 * (1 - p95/before.at(95))
			}
			target(text, "1 service, p95 below before", "≥ 47 %", before != nil && after != nil, fmt.Sprintf("%.0f %%", less), less >= 47)
			continue
		}
		for _, c := range r.comparisons(n) {
			name := measurement.Count(n, "service") + ", p95 over the slowest one's alone"
			if c.atOnce == 1 {
				name += ", one at a time"
			}
			slowest, measured := c.slowest()
			target(text, name, "≤ +10 %", measured, fmt.Sprintf("%+.0f %% of %.1f ms", 100*(c.together.at(95)/slowest-1), slowest), c.together.at(95) <= 1.1*slowest)
		}
	}
	perSecond := float64(hitRequests) / r.hits.wall.Seconds()
	target(text, "hits a second, with 10 at a time", "≥ 1,000", r.hits.failed == 0, fmt.Sprintf("%.0f", perSecond), perSecond >= 1000)
	for n := 1; n <= 3; n++ {
		after := r.find("after", n)
		calls := 0.0
		if after != nil {
			calls = float64(after.provider) / float64(requests*n) * 1000
		}
		target(text, measurement.Count(n, "service")+", requests to the key manager for 1,000 data keys", "≤ 120", after != nil, fmt.Sprintf("%.0f", calls), calls <= 120)
	}
	target(text, "a hit in the service, mean", "≤ 0.2 ms", true, fmt.Sprintf("%.2f ms", r.hits.inside), r.hits.inside <= 0.2)
	target(text, "a hit without a proof in the service, mean", "≤ 0.2 ms", true, fmt.Sprintf("%.2f ms", r.bearer.inside), r.bearer.inside <= 0.2)
	text.WriteString("\n")
	r.explainHits(text)
	r.explainSeveral(text)
}

// comparisons returns the comparisons of some services.
func (r *results) comparisons(services int) []*comparison {
	for _, found := range r.runs {
		if found.name == "after" && found.services == services {
			return found.compared
		}
	}
	return nil
}

// slowest returns the highest p95 of a service alone, and whether all requests of the comparison have succeeded.
func (c *comparison) slowest() (p95 float64, measured bool) {
	measured = c.together.failed == 0
	for _, alone := range c.alone {
		p95, measured = max(p95, alone.at(95)), measured && alone.failed == 0
	}
	return p95, measured
}

func (r *results) writeRuns(text *strings.Builder) {
	text.WriteString("## Requests\n\nTimes are of the client, in milliseconds. The caches hold data keys; a coalesced request waits for another one that asks for the same.\n\n" +
		"| services | | p50 | p95 | p99 | mean | max | a second | errors | requests to key managers | hits | misses | coalesced |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, found := range r.runs {
		fmt.Fprintf(text, "| %d | %s | %s | %d | %.0f | %.0f | %.0f |\n", found.services, found.name, found.times(), found.provider, found.hits, found.misses, found.coalesced)
		for _, c := range found.compared {
			how := ""
			if c.atOnce == 1 {
				how = ", one at a time"
				row(text, found.services, found.name+how, c.together)
			}
			for i, alone := range c.alone {
				row(text, found.services, fmt.Sprintf("number %d alone%s", i+1, how), alone)
			}
		}
	}
	text.WriteString("\n")
	for _, found := range r.runs {
		if found.failed > 0 {
			fmt.Fprintf(text, "%s, %s: %d requests failed, for example: %s\n\n", measurement.Count(found.services, "service"), found.name, found.failed, found.reason)
		}
	}
}

// row writes a row of the table of requests, with only the counts of the client.
func row(text *strings.Builder, services int, name string, found *sample) {
	fmt.Fprintf(text, "| %d | %s | %s | | | | |\n", services, name, found.times())
}

// times returns the columns of the table of requests that the client measures.
func (s *sample) times() string {
	times := "– | – | – | – | – | –"
	if s.failed == 0 {
		times = fmt.Sprintf("%.1f | %.1f | %.1f | %.1f | %.1f | %.0f", s.at(50), s.at(95), s.at(99), s.mean(), s.at(100), requests/s.wall.Seconds())
	}
	return fmt.Sprintf("%s | %.1f %%", times, float64(s.failed)/requests*100)
}

func (r *results) writeParts(text *strings.Builder) {
	text.WriteString("## Parts of the time\n\nMeans in milliseconds. The key manager's part is all time of its requests, with the delay, divided by the requests of the client. A request to a peer is as long as the peer takes. Processors are those that all services used for a request.\n\n" +
		"| services | | client | first service | a request to a peer | key managers | a request to a key manager | processors |\n|---|---|---|---|---|---|---|---|\n")
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
		fmt.Fprintf(text, "| %d | %s | %.1f | %.1f | %s | %.1f | %.1f | %.1f |\n", found.services, found.name, found.mean(), found.service, peers, milliseconds(found.providerTook)/requests, each, found.cpu)
	}
}

// explainHits says which part of the time of a hit cannot be avoided.
func (r *results) explainHits(text *strings.Builder) {
	needed := 2*r.parts.signature + r.parts.encryption
	fmt.Fprintf(text, `A hit took %.2f ms of a processor in the service, with 10 at a time; without a proof %.2f ms. To check a signature on P-256 took %.3f ms where nothing else was done, and to encrypt with an RSA key of 2,048 bits %.3f ms. A hit needs two such
checks and one encryption: %.2f ms. Nothing saves them, because a proof is new each time, and signatures of requests are not remembered. The signature of the token is checked at its first request only. The rest is HTTP/2, TLS, and reading tokens and
messages.

`, r.hits.cpu, r.bearer.cpu, r.parts.signature, r.parts.encryption, needed)
}

// explainSeveral says how much longer a request to several services takes than a request to the slowest of them, whatever the
// services do.
func (r *results) explainSeveral(text *strings.Builder) {
	one, most := r.find("after", 1), r.find("after", mostServices)
	if one == nil || most == nil {
		return
	}
	shared := func(found *run) float64 { return atOnce * found.cpu / float64(runtime.NumCPU()) }
	fmt.Fprintf(text, `A request to several services ends with the slowest of them. One at a time, a tenth of the requests waits for key managers, so the p95 is the time in the middle of theirs. Of one, two and three times between 50 and 70 ms, the
longest is %.1f, %.1f and %.1f ms in the middle: chance alone makes two services %.1f ms slower than one, and three %.1f ms. With 10 at a time, the processors count as well. A request to %d services took %.1f ms of them in the services, and one to a service
%.1f ms; 10 requests share %d processors. So the mean of all requests cannot be less than %.0f ms with %d services, and %.0f ms with one. Services on machines of their own do not wait for each other's processors.

`, longestOf(1), longestOf(2), longestOf(3), longestOf(2)-longestOf(1), longestOf(3)-longestOf(1), mostServices, most.cpu, one.cpu, runtime.NumCPU(), shared(most), mostServices, shared(one))
}

// longestOf returns the median of the longest of n times of the proxy, in milliseconds.
func longestOf(n int) float64 {
	return milliseconds(shortest) + milliseconds(longest-shortest)*math.Pow(0.5, 1/float64(n))
}

func TestAReportWithErrorsHasNoTimes(t *testing.T) {
	good := func(name string, services int) *run {
		s := &sample{wall: time.Second}
		for range requests {
			s.took = append(s.took, 50*time.Millisecond)
		}
		return &run{name: name, services: services, sample: s, provider: 100}
	}
	r := &results{hits: &hits{sample: &sample{wall: time.Second, failed: 1}, inside: 0.3}, bearer: &hits{sample: &sample{}, inside: 0.1}}
	for n := 1; n <= 3; n++ {
		r.runs = append(r.runs, good("before", n), good("after", n))
	}
	r.runs[1].failed, r.runs[1].reason = 3, "away"
	broken := good("", 1).sample
	broken.failed = 1
	r.runs[3].compared = []*comparison{{10, r.runs[3].sample, []*sample{good("", 1).sample}}, {1, good("", 2).sample, []*sample{good("", 1).sample, broken}}}
	text := r.document()
	for _, want := range []string{
		"| 1 service, p95 | ≤ 80 ms | – | not measured: requests failed |",
		"| 1 service, p95 below before | ≥ 47 % | – | not measured: requests failed |",
		"| 2 services, p95 | ≤ 280 ms | 50.0 ms | met |",
		"| 2 services, p95 over the slowest one's alone | ≤ +10 % | +0 % of 50.0 ms | met |",
		"| 2 services, p95 over the slowest one's alone, one at a time | ≤ +10 % | – | not measured: requests failed |",
		"| a hit in the service, mean | ≤ 0.2 ms | 0.30 ms | **missed** |",
		"| a hit without a proof in the service, mean | ≤ 0.2 ms | 0.10 ms | met |",
		"| 2 | number 2 alone, one at a time | – | – | – | – | – | – | 0.1 % | | | | |",
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
