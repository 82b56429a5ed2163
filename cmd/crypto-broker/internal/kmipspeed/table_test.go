// SPDX-License-Identifier: Apache-2.0

package kmipspeed

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

var rows = []Row{
	{Operation: "get AES-256", Clients: 1, Done: 100, Took: 10 * time.Second, Median: 98 * time.Millisecond, P99: 131 * time.Millisecond},
	{Operation: "get AES-256", Clients: 5, Reuse: true, Done: 500, Took: 4 * time.Second, Median: 38125 * time.Microsecond, P99: 41 * time.Millisecond},
	{Operation: "create EC P-256", Clients: 5, Reuse: true, Done: 3, Took: time.Second, Median: time.Millisecond, P99: time.Millisecond, Failed: 2, First: errors.New("keys: no")},
}

func TestTheTableHasNoTimesBesideFailures(t *testing.T) {
	const want = `        operation  clients  connections  operations/min    median    p99  failed
      get AES-256        1          new             600      98ms  131ms       0
      get AES-256        5       reused            7500  38.13ms   41ms       0
  create EC P-256        5       reused               –         –      –       2
create EC P-256, 5 clients, reused: keys: no
`
	var got strings.Builder
	if err := WriteTable(&got, rows); err != nil || plain(got.String()) != plain(want) {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got.String(), want)
	}
}

// plain joins the columns of a table with one space.
func plain(table string) string {
	var lines []string
	for line := range strings.Lines(table) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

func TestTheCSVHasNoTimesBesideFailures(t *testing.T) {
	const want = `operation,clients,connections,operations_per_minute,median_ms,p99_ms,failed
get AES-256,1,new,600,98.000,131.000,0
get AES-256,5,reused,7500,38.125,41.000,0
create EC P-256,5,reused,,,,2
`
	var got strings.Builder
	if err := WriteCSV(&got, rows); err != nil || got.String() != want {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got.String(), want)
	}
}

func TestAChartIsAPictureThatSaysWhatFailed(t *testing.T) {
	var got strings.Builder
	if err := WriteChart(&got, rows); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(strings.NewReader(got.String()))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v\n%s", err, got.String())
		}
	}
	for _, part := range []string{"get AES-256: operations a minute", ">600<", ">7500<", ">2 failed<", ">5 r<", ">1 n<"} {
		if !strings.Contains(got.String(), part) {
			t.Errorf("the picture lacks %q:\n%s", part, got.String())
		}
	}
}

func TestAChartHasTheNameOfItsOperation(t *testing.T) {
	if got := ChartName("create EC P-256"); got != "create-ec-p-256.svg" {
		t.Errorf("got %q", got)
	}
}
