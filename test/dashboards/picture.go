// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"context"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/prometheus"
)

// A unit of the grid in pixels, and the space between two panels.
const (
	unitWidth  = 50
	unitHeight = 30
	gap        = 6
)

// moments is the number of moments that a graph has.
const moments = 60

// picture is an SVG picture that is being drawn.
type picture struct {
	strings.Builder
	server     *prometheus.Server
	from, to   time.Time
	step       time.Duration
	substitute func(string) string
}

// Draw returns a picture of a dashboard as SVG, from the answers of a Prometheus for the time
// between from and to.
func Draw(ctx context.Context, server *prometheus.Server, board *Board, from, to time.Time) (string, error) {
	p := &picture{server: server, from: from, to: to, step: max(time.Second, (to.Sub(from) / moments).Round(time.Second)), substitute: board.Substitute()}
	height := 0
	for i := range board.Panels {
		height = max(height, (board.Panels[i].GridPos.Y+board.Panels[i].GridPos.H)*unitHeight)
	}
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="Helvetica,Arial,sans-serif" font-size="11">`+"\n", 24*unitWidth, height+40)
	fmt.Fprintf(p, `<rect width="100%%" height="100%%" fill="#f4f5f5"/>`+"\n")
	p.text(gap, 24, `font-size="18" fill="#1f2328"`, board.Title)
	fmt.Fprintln(p, `<g transform="translate(0 36)">`)
	for i := range board.Panels {
		if err := p.panel(ctx, &board.Panels[i]); err != nil {
			return "", fmt.Errorf("%s: %w", board.Panels[i].Title, err)
		}
	}
	fmt.Fprintln(p, "</g>\n</svg>")
	return p.String(), nil
}

func (p *picture) panel(ctx context.Context, panel *Panel) error {
	grid := panel.GridPos
	box := area{gap / 2, gap / 2, float64(grid.W*unitWidth - gap), float64(grid.H*unitHeight - gap)}
	fmt.Fprintf(p, `<svg x="%d" y="%d" width="%d" height="%d">`+"\n", grid.X*unitWidth, grid.Y*unitHeight, grid.W*unitWidth, grid.H*unitHeight)
	defer fmt.Fprintln(p, "</svg>")
	if panel.Type == "row" {
		p.text(box.x+gap, box.y+16, `font-size="13" font-weight="bold" fill="#1f2328"`, panel.Title)
		return nil
	}
	fmt.Fprintf(p, `<rect x="%g" y="%g" width="%g" height="%g" fill="#fff" stroke="#d8dadd"/>`+"\n", box.x, box.y, box.width, box.height)
	p.text(box.x+8, box.y+16, `font-size="12" font-weight="bold" fill="#24292e"`, cut(panel.Title, box.width))
	inside := area{box.x + 8, box.y + 26, box.width - 16, box.height - 34}
	switch panel.Type {
	case "stat":
		return p.number(ctx, panel, inside)
	case "table":
		return p.table(ctx, panel, inside)
	case "timeseries":
		return p.graph(ctx, panel, inside)
	case "heatmap":
		return p.heat(ctx, panel, inside)
	}
	return fmt.Errorf("found a panel of the type %q, expected stat, table, timeseries or heatmap", panel.Type)
}

// area is a part of a panel.
type area struct{ x, y, width, height float64 }

func (p *picture) text(x, y float64, style, content string) {
	fmt.Fprintf(p, `<text x="%.0f" y="%.0f" %s>%s</text>`+"\n", x, y, style, html.EscapeString(content))
}

// cut shortens a text to a width in pixels.
func cut(content string, width float64) string {
	const character = 5.8
	runes := []rune(content)
	if limit := max(2, int(width/character)); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return content
}

// colors are the colors of series. The colors of levels have names.
var colors = []string{"#3274d9", "#e0752d", "#56a64b", "#a352cc", "#e02f44", "#37a2b5", "#b8860b", "#8f8f8f", "#c15c9a", "#1f60c4"}

var named = map[string]string{"green": "#2f8f3a", "yellow": "#b8860b", "red": "#d1232f"}

func (p *picture) number(ctx context.Context, panel *Panel, inside area) error {
	samples, err := p.server.Query(ctx, p.substitute(panel.Targets[0].Expr))
	if err != nil {
		return err
	}
	if len(samples) == 0 {
		return fmt.Errorf("found no answer, expected one")
	}
	color := ""
	for _, step := range panel.FieldConfig.Defaults.Thresholds.Steps {
		if step.Value == nil || samples[0].Value >= *step.Value {
			color = named[step.Color]
		}
	}
	p.text(inside.x+inside.width/2, inside.y+inside.height/2+12, `font-size="30" text-anchor="middle" fill="`+color+`"`, format(samples[0].Value, panel.FieldConfig.Defaults.Unit))
	return nil
}

func (p *picture) table(ctx context.Context, panel *Panel, inside area) error {
	samples, err := p.server.Query(ctx, p.substitute(panel.Targets[0].Expr))
	if err != nil {
		return err
	}
	slices.SortStableFunc(samples, func(a, b prometheus.Sample) int { return int(b.Value*1e6 - a.Value*1e6) })
	columns := labelNames(samples)
	width := inside.width / float64(len(columns)+1)
	for i, name := range append(columns, panel.Transformations[0].Options.RenameByName["Value"]) {
		p.text(inside.x+float64(i)*width, inside.y+10, `font-weight="bold" fill="#57606a"`, cut(name, width-8))
	}
	const line = 16
	for row, sample := range samples {
		y := inside.y + 28 + float64(row*line)
		if y > inside.y+inside.height-line && row < len(samples)-1 {
			p.text(inside.x, y, `fill="#57606a"`, fmt.Sprintf("and %d more", len(samples)-row))
			break
		}
		for i, name := range columns {
			p.text(inside.x+float64(i)*width, y, `fill="#24292e"`, cut(sample.Labels[name], width-8))
		}
		p.text(inside.x+float64(len(columns))*width, y, `fill="#24292e"`, format(sample.Value, panel.FieldConfig.Defaults.Unit))
	}
	return nil
}

func labelNames(samples []prometheus.Sample) []string {
	var names []string
	for _, sample := range samples {
		for name := range sample.Labels {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
