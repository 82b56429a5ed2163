// SPDX-License-Identifier: Apache-2.0

package sessionbench

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// WriteTable writes rows as a table for people.
func WriteTable(to io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "measured\tphase\tconnections\tper second\tmean\tp50\tp95\tp99\tmax\tdone\tfailed\t")
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t", r.Measurement, r.Phase, r.Connections, r.ofTotal("%.0f", r.PerSecond))
		for _, t := range r.times() {
			fmt.Fprintf(table, "%s\t", r.text(t))
		}
		fmt.Fprintf(table, "%d\t%s\t\n", r.Done, r.ofTotal("%d", r.Failed))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range rows {
		if r := &rows[i]; r.Failed > 0 {
			if _, err := fmt.Fprintf(to, "%s failed %d times, for example: %s\n", r.Measurement, r.Failed, r.First); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Row) times() []time.Duration { return []time.Duration{r.Mean, r.P50, r.P95, r.P99, r.Max} }

// text returns a time, or a dash if there is none.
func (r *Row) text(t time.Duration) string {
	if r.Done == 0 {
		return "–"
	}
	return t.Round(100 * time.Nanosecond).String()
}

// ofTotal returns a number that only the row of all phases has.
func (r *Row) ofTotal(format string, value any) string {
	if r.Phase != Total {
		return ""
	}
	return fmt.Sprintf(format, value)
}

// WriteCSV writes rows as CSV (RFC 4180), with a header. Times are in milliseconds. They are empty if
// nothing was done.
func WriteCSV(to io.Writer, rows []Row) error {
	records := [][]string{{"measured", "phase", "connections", "per_second", "mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms", "done", "failed"}}
	for i := range rows {
		r := &rows[i]
		record := []string{r.Measurement, r.Phase, strconv.Itoa(r.Connections), r.ofTotal("%.1f", r.PerSecond)}
		for _, t := range r.times() {
			text := ""
			if r.Done > 0 {
				text = strconv.FormatFloat(milliseconds(t), 'f', 4, 64)
			}
			record = append(record, text)
		}
		records = append(records, append(record, strconv.Itoa(r.Done), r.ofTotal("%d", r.Failed)))
	}
	return csv.NewWriter(to).WriteAll(records)
}

// Record is a row as JSON. Times are in milliseconds, and 0 if nothing was done.
type Record struct {
	Measured    string  `json:"measured"`
	Phase       string  `json:"phase"`
	Connections int     `json:"connections"`
	PerSecond   float64 `json:"perSecond,omitempty"`
	Mean        float64 `json:"meanMs"`
	P50         float64 `json:"p50Ms"`
	P95         float64 `json:"p95Ms"`
	P99         float64 `json:"p99Ms"`
	Max         float64 `json:"maxMs"`
	Done        int     `json:"done"`
	Failed      int     `json:"failed"`
	// Error is the error of one failed operation.
	Error string `json:"error,omitempty"`
}

// WriteJSON writes rows as one array of [Record].
func WriteJSON(to io.Writer, rows []Row) error {
	records := make([]Record, len(rows))
	for i := range rows {
		r := &rows[i]
		records[i] = Record{
			r.Measurement, r.Phase, r.Connections, r.PerSecond, milliseconds(r.Mean), milliseconds(r.P50), milliseconds(r.P95), milliseconds(r.P99),
			milliseconds(r.Max), r.Done, r.Failed, r.First,
		}
	}
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(records)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
