// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// The heights of panels, in units of the grid. A row of the grid is 24 units wide.
const (
	statHeight  = 4
	graphHeight = 8
)

// level is the color of values from a threshold on.
type level struct {
	from  float64
	color string
}

var green = dashboard.Threshold{Color: "green"}

func thresholds(base dashboard.Threshold, levels []level) *dashboard.ThresholdsConfigBuilder {
	steps := []dashboard.Threshold{base}
	for _, l := range levels {
		steps = append(steps, dashboard.Threshold{Value: new(l.from), Color: l.color})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// above returns the levels that are red from a value on.
func above(value float64) []level { return []level{{value, "red"}} }

// number is a panel with one value. Its color is green, unless the levels say another one.
func number(title, unit string, span uint32, description, expr string, levels ...level) *stat.PanelBuilder {
	return figure(title, unit, span, description, query{expr: expr}, green, levels)
}

// atLeast is a panel with one value that is red below the first level.
func atLeast(title, unit string, span uint32, description, expr string, levels ...level) *stat.PanelBuilder {
	return figure(title, unit, span, description, query{expr: expr}, dashboard.Threshold{Color: "red"}, levels)
}

func figure(title, unit string, span uint32, description string, q query, base dashboard.Threshold, levels []level) *stat.PanelBuilder {
	return stat.NewPanelBuilder().Title(title).Description(description).Unit(unit).Datasource(source).
		Span(span).Height(statHeight).
		ColorMode(common.BigValueColorModeValue).GraphMode(common.BigValueGraphModeNone).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		Thresholds(thresholds(base, levels)).
		WithTarget(target(0, q).Instant())
}

// lines is a panel with values over time.
func lines(title, unit string, span uint32, description string, queries ...query) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().Title(title).Description(description).Unit(unit).Datasource(source).
		Span(span).Height(graphHeight).
		LineWidth(1).FillOpacity(10).ShowPoints(common.VisibilityModeNever).
		Min(0).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	for i, q := range queries {
		p.WithTarget(target(i, q).Range())
	}
	return p
}

// areas is a panel with values over time, one above the other.
func areas(title, unit string, span uint32, description string, queries ...query) *timeseries.PanelBuilder {
	return lines(title, unit, span, description, queries...).FillOpacity(40).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
}

// heat is a panel with the counts of the buckets of a histogram over time.
func heat(title, unit string, span uint32, description, buckets string) *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().Title(title).Description(description).Datasource(source).
		Span(span).Height(graphHeight).
		Calculate(false).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(unit).AxisPlacement(common.AxisPlacementLeft)).
		WithTarget(target(0, query{sum("le", increase(buckets, "$__rate_interval")), "{{le}}"}).
			Format(prometheus.PromQueryFormatHeatmap).Range())
}

// list is a panel with a row for each series, whose labels are columns.
func list(title, unit string, span uint32, description, valueName, expr string) *table.PanelBuilder {
	return table.NewPanelBuilder().Title(title).Description(description).Unit(unit).Datasource(source).
		Span(span).Height(graphHeight).NoValue("none").
		WithTarget(target(0, query{expr: expr}).Format(prometheus.PromQueryFormatTable).Instant()).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]any{"Time": true}, "renameByName": map[string]any{"Value": valueName}}}).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{})).
		SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName(valueName).Desc(true)})
}

// target is a query of a panel. Grafana names the queries A, B and so on.
func target(index int, q query) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Datasource(source).RefId(string(rune('A' + index))).
		EditorMode(prometheus.QueryEditorModeCode).Expr(q.expr).LegendFormat(q.legend)
}
