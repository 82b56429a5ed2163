// SPDX-License-Identifier: Apache-2.0

package kmipspeed

import (
	"fmt"
	"html/template"
	"io"
	"strings"
)

// Sizes of a chart in pixels.
const (
	chartWidth, chartHeight = 640, 320
	chartLeft, chartTop     = 60, 40
	plotWidth, plotHeight   = chartWidth - chartLeft - 20, chartHeight - chartTop - 60
)

var chartTemplate = template.Must(template.New("chart").Parse(`<svg xmlns="http://www.w3.org/2000/svg" width="{{.Width}}" height="{{.Height}}" viewBox="0 0 {{.Width}} {{.Height}}" font-family="sans-serif" font-size="12">
<title>{{.Title}}</title>
<rect width="100%" height="100%" fill="white"/>
<text x="{{.Left}}" y="24" font-size="16">{{.Title}}: operations a minute</text>
{{range .Bars}}<rect x="{{.X}}" y="{{.Y}}" width="{{.Width}}" height="{{.Height}}" fill="{{.Color}}"><title>{{.Text}}</title></rect>
<text x="{{.Middle}}" y="{{.Above}}" text-anchor="middle">{{.Rate}}</text>
<text x="{{.Middle}}" y="{{$.Axis}}" text-anchor="middle">{{.Label}}</text>
{{end}}<text x="{{.Left}}" y="{{.Legend}}">clients; r: connections used again (blue), n: a new connection for each operation (orange)</text>
</svg>
`))

type bar struct {
	X, Y, Width, Height, Middle, Above int
	Color, Text, Rate, Label           string
}

// WriteChart writes the rows of one operation as an SVG picture, a bar for each. A row with
// failures has no bar, and says how many failed.
func WriteChart(to io.Writer, rows []Row) error {
	highest := 1.0
	for i := range rows {
		if rows[i].Failed == 0 {
			highest = max(highest, rows[i].perMinute())
		}
	}
	step := plotWidth / max(1, len(rows))
	var bars []bar
	for i := range rows {
		r := &rows[i]
		b := bar{X: chartLeft + i*step + step/8, Width: step * 3 / 4, Color: "#d95f02", Label: fmt.Sprintf("%d n", r.Clients)}
		if r.Reuse {
			b.Color, b.Label = "#1f78b4", fmt.Sprintf("%d r", r.Clients)
		}
		b.Rate, _, _ = r.figures()
		b.Text = fmt.Sprintf("%s a minute with %d clients, %s", b.Rate, r.Clients, r.connections())
		if r.Failed > 0 {
			b.Rate = fmt.Sprintf("%d failed", r.Failed)
		} else {
			b.Height = int(float64(plotHeight) * r.perMinute() / highest)
		}
		b.Y, b.Middle = chartTop+plotHeight-b.Height, b.X+b.Width/2
		b.Above = b.Y - 4
		bars = append(bars, b)
	}
	title := ""
	if len(rows) > 0 {
		title = rows[0].Operation
	}
	return chartTemplate.Execute(to, map[string]any{
		"Title": title, "Bars": bars, "Width": chartWidth, "Height": chartHeight, "Left": chartLeft,
		"Axis": chartTop + plotHeight + 18, "Legend": chartHeight - 14,
	})
}

// ChartName returns the file name of the chart of an operation.
func ChartName(operation string) string {
	return strings.ToLower(strings.ReplaceAll(operation, " ", "-")) + ".svg"
}
