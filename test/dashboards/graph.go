// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/prometheus"
)

// line is one line of a graph: a value for each moment, NaN where there is none.
type line struct {
	name   string
	values []float64
}

func (p *picture) graph(ctx context.Context, panel *Panel, inside area) error {
	all, err := p.lines(ctx, panel)
	if err != nil {
		return err
	}
	legend := legendOf(all, inside.width)
	plot := area{inside.x + 58, inside.y, inside.width - 62, inside.height - 22 - 15*float64(len(legend))}
	stacked := panel.FieldConfig.Defaults.Custom.Stacking.Mode == "normal"
	below := make([]float64, p.moments())
	highest := 0.0
	for i := range all {
		for n, value := range all[i].values {
			if math.IsNaN(value) {
				continue
			}
			if stacked {
				value += below[n]
				below[n], all[i].values[n] = value, value
			}
			highest = max(highest, value)
		}
	}
	top := p.yAxis(plot, highest, panel.FieldConfig.Defaults.Unit)
	p.xAxis(plot)
	// The highest of stacked areas is the last one; drawn first, the others cover it.
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
		if stacked {
			order[i] = len(all) - 1 - i
		}
	}
	for _, i := range order {
		p.line(plot, all[i].values, top, colors[i%len(colors)], stacked)
	}
	for row, entries := range legend {
		x := inside.x
		y := plot.y + plot.height + 30 + 15*float64(row)
		for _, e := range entries {
			fmt.Fprintf(p, `<rect x="%.0f" y="%.0f" width="10" height="4" fill="%s"/>`, x, y-6, colors[e.index%len(colors)])
			p.text(x+14, y, `fill="#24292e"`, e.text)
			x += e.width
		}
	}
	return nil
}

// lines asks the queries of a panel.
func (p *picture) lines(ctx context.Context, panel *Panel) ([]line, error) {
	var all []line
	for _, target := range panel.Targets {
		series, err := p.server.QueryRange(ctx, p.substitute(target.Expr), p.from, p.to, p.step)
		if err != nil {
			return nil, err
		}
		for _, each := range series {
			all = append(all, line{legendText(target.LegendFormat, each.Labels), p.aligned(each.Points)})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("found no answer, expected one")
	}
	return all, nil
}

func (p *picture) moments() int { return int(p.to.Sub(p.from)/p.step) + 1 }

func (p *picture) aligned(points []prometheus.Point) []float64 {
	values := make([]float64, p.moments())
	for i := range values {
		values[i] = math.NaN()
	}
	for _, point := range points {
		if n := int(math.Round(float64(point.Time.Sub(p.from)) / float64(p.step))); n >= 0 && n < len(values) && !math.IsInf(point.Value, 0) {
			values[n] = point.Value
		}
	}
	return values
}

var placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)

func legendText(format string, labels map[string]string) string {
	text := placeholder.ReplaceAllStringFunc(format, func(name string) string { return labels[strings.Trim(name, "{}")] })
	return cmp.Or(strings.Join(strings.Fields(text), " "), "none")
}

type entry struct {
	index int
	text  string
	width float64
}

// legendOf arranges the names of lines in at most three rows.
func legendOf(all []line, width float64) [][]entry {
	rows := [][]entry{nil}
	used := 0.0
	for i, each := range all {
		text := cut(each.name, width-20)
		e := entry{i, text, 28 + 5.8*float64(len([]rune(text)))}
		if used+e.width > width && used > 0 {
			if len(rows) == 3 {
				last := &rows[2][len(rows[2])-1]
				last.text = cut(fmt.Sprintf("and %d more", len(all)-i+1), width)
				return rows
			}
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
		used += e.width
	}
	return rows
}

func (p *picture) line(plot area, values []float64, top float64, color string, filled bool) {
	var path strings.Builder
	next, first, last := "M", 0.0, 0.0
	for n, value := range values {
		if math.IsNaN(value) {
			next = "M"
			continue
		}
		x := plot.x + plot.width*float64(n)/float64(max(1, len(values)-1))
		if path.Len() == 0 {
			first = x
		}
		last = x
		fmt.Fprintf(&path, "%s%.0f %.1f", next, x, plot.y+plot.height*(1-value/top))
		next = "L"
	}
	if filled && path.Len() > 0 {
		bottom := plot.y + plot.height
		fmt.Fprintf(p, `<path d="%sL%.0f %.0fL%.0f %.0fZ" fill="#fff"/>`+"\n", path.String(), last, bottom, first, bottom)
		fmt.Fprintf(p, `<path d="%sL%.0f %.0fL%.0f %.0fZ" fill="%s" fill-opacity=".4"/>`+"\n", path.String(), last, bottom, first, bottom, color)
	}
	fmt.Fprintf(p, `<path d="%s" fill="none" stroke="%s" stroke-width="1.3"/>`+"\n", path.String(), color)
}

// yAxis draws the axis from zero and returns its upper end.
func (p *picture) yAxis(plot area, highest float64, unit string) float64 {
	step := niceStep(highest / 4)
	if unit == "bytes" {
		step = math.Exp2(math.Ceil(math.Log2(max(1, highest/4))))
	}
	top := step * max(1, math.Ceil(highest/step))
	for value := 0.0; value <= top*1.001; value += step {
		y := plot.y + plot.height*(1-value/top)
		fmt.Fprintf(p, `<path d="M%.0f %.1fh%.0f" stroke="#e6e8eb"/>`, plot.x, y, plot.width)
		p.text(plot.x-5, y+4, `text-anchor="end" fill="#57606a"`, format(value, unit))
	}
	return top
}

// niceStep returns 1, 2, 2.5 or 5 times a power of ten that is at least a value.
func niceStep(value float64) float64 {
	if value <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(value)))
	for _, factor := range []float64{1, 2, 2.5, 5} {
		if factor*power >= value*0.999 {
			return factor * power
		}
	}
	return 10 * power
}

func (p *picture) xAxis(plot area) {
	parts := max(1, min(4, int(plot.width/90)))
	for n := range parts + 1 {
		anchor := "middle"
		switch n {
		case 0:
			anchor = "start"
		case parts:
			anchor = "end"
		}
		moment := p.from.Add(p.to.Sub(p.from) * time.Duration(n) / time.Duration(parts))
		p.text(plot.x+plot.width*float64(n)/float64(parts), plot.y+plot.height+14, `text-anchor="`+anchor+`" fill="#57606a"`, moment.UTC().Format("15:04:05"))
	}
}

// heat draws a histogram over time: a column for each moment, a cell for each bucket.
func (p *picture) heat(ctx context.Context, panel *Panel, inside area) error {
	series, err := p.server.QueryRange(ctx, p.substitute(panel.Targets[0].Expr), p.from, p.to, p.step)
	if err != nil {
		return err
	}
	if len(series) == 0 {
		return fmt.Errorf("found no answer, expected one")
	}
	bound := func(s prometheus.Series) float64 {
		value, err := strconv.ParseFloat(s.Labels["le"], 64)
		if err != nil {
			return math.Inf(1)
		}
		return value
	}
	slices.SortFunc(series, func(a, b prometheus.Series) int { return cmp.Compare(bound(a), bound(b)) })
	rows := make([][]float64, len(series))
	highest := 0.0
	for i := range series {
		rows[i] = p.aligned(series[i].Points)
	}
	// A bucket of Prometheus has the calls of all smaller ones, too.
	for i := len(rows) - 1; i >= 0; i-- {
		for n := range rows[i] {
			if i > 0 {
				rows[i][n] = max(0, rows[i][n]-rows[i-1][n])
			}
			if !math.IsNaN(rows[i][n]) {
				highest = max(highest, rows[i][n])
			}
		}
	}
	plot := area{inside.x + 58, inside.y, inside.width - 62, inside.height - 22}
	p.xAxis(plot)
	cellHeight, cellWidth := plot.height/float64(len(rows)), plot.width/float64(p.moments())
	for i, row := range rows {
		y := plot.y + plot.height - float64(i+1)*cellHeight
		if i%2 == 0 {
			p.text(plot.x-5, y+cellHeight/2+4, `text-anchor="end" fill="#57606a"`, format(bound(series[i]), panel.Options.YAxis.Unit))
		}
		for n, value := range row {
			if value > 0 && highest > 0 {
				fmt.Fprintf(p, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#d9480f" fill-opacity="%.2f"/>`,
					plot.x+float64(n)*cellWidth, y, cellWidth-0.5, cellHeight-0.5, 0.1+0.9*math.Sqrt(value/highest))
			}
		}
	}
	return nil
}
