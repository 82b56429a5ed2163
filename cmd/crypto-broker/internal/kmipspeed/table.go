// SPDX-License-Identifier: Apache-2.0

package kmipspeed

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// WriteTable writes rows as a table for people. A row with failed operations has no times,
// because the times of the others would be misleading.
func WriteTable(to io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "operation\tclients\tconnections\toperations/min\tmedian\tp99\tfailed\t")
	for i := range rows {
		r := &rows[i]
		rate, median, p99 := r.figures()
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%d\t\n", r.Operation, r.Clients, r.column(), rate, median, p99, r.Failed)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range rows {
		if r := &rows[i]; r.Failed > 0 {
			if _, err := fmt.Fprintf(to, "%s, %d clients, %s: %v\n", r.Operation, r.Clients, r.column(), r.First); err != nil {
				return err
			}
		}
	}
	return nil
}

// column returns how the row used connections, in one word.
func (r *Row) column() string {
	if r.Reuse {
		return "reused"
	}
	return "new"
}

// figures returns the numbers of a row as text, a dash for each if operations failed.
func (r *Row) figures() (rate, median, p99 string) {
	if r.Failed > 0 || r.Done == 0 {
		return "–", "–", "–"
	}
	return fmt.Sprintf("%.0f", r.perMinute()), r.Median.Round(10 * time.Microsecond).String(), r.P99.Round(10 * time.Microsecond).String()
}

// WriteCSV writes rows as CSV (RFC 4180), with a header. Times are in milliseconds. Where
// operations failed, the rate and the times are empty.
func WriteCSV(to io.Writer, rows []Row) error {
	out := csv.NewWriter(to)
	records := [][]string{{"operation", "clients", "connections", "operations_per_minute", "median_ms", "p99_ms", "failed"}}
	for i := range rows {
		r := &rows[i]
		record := []string{r.Operation, strconv.Itoa(r.Clients), r.column(), "", "", "", strconv.Itoa(r.Failed)}
		if r.Failed == 0 && r.Done > 0 {
			record[3] = fmt.Sprintf("%.0f", r.perMinute())
			record[4], record[5] = milliseconds(r.Median), milliseconds(r.P99)
		}
		records = append(records, record)
	}
	return out.WriteAll(records)
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d)/1e6) }
