// SPDX-License-Identifier: Apache-2.0

// Package dashboards reads the Grafana dashboards of the chart, and draws them as pictures from
// the answers of a Prometheus to their queries.
package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Board is a Grafana dashboard.
type Board struct {
	// Name is the name of its file without the ending.
	Name          string     `json:"-"`
	UID           string     `json:"uid"`
	Title         string     `json:"title"`
	SchemaVersion int        `json:"schemaVersion"`
	Panels        []Panel    `json:"panels"`
	Templating    Templating `json:"templating"`
}

// Templating has the variables of a dashboard.
type Templating struct {
	List []Variable `json:"list"`
}

// Variable is a variable of a dashboard. Definition is the query for its values.
type Variable struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Definition string `json:"definition"`
	AllValue   string `json:"allValue"`
}

// Source is a data source.
type Source struct {
	UID string `json:"uid"`
}

// Panel is a panel of a dashboard, or the title of a row of them.
type Panel struct {
	ID              int              `json:"id"`
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Description     string           `json:"description"`
	Datasource      Source           `json:"datasource"`
	GridPos         Grid             `json:"gridPos"`
	Targets         []Target         `json:"targets"`
	FieldConfig     FieldConfig      `json:"fieldConfig"`
	Transformations []Transformation `json:"transformations"`
	Options         struct {
		YAxis struct {
			Unit string `json:"unit"`
		} `json:"yAxis"`
	} `json:"options"`
}

// Grid is the place of a panel. The screen has 24 columns.
type Grid struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

// Target is a query of a panel.
type Target struct {
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
	Instant      bool   `json:"instant"`
	Datasource   Source `json:"datasource"`
}

// FieldConfig says how values look.
type FieldConfig struct {
	Defaults struct {
		Unit       string `json:"unit"`
		Decimals   *int   `json:"decimals"`
		Thresholds struct {
			Steps []Step `json:"steps"`
		} `json:"thresholds"`
		Custom struct {
			Stacking struct {
				Mode string `json:"mode"`
			} `json:"stacking"`
		} `json:"custom"`
	} `json:"defaults"`
}

// Step is the color of values from a threshold on. The first step has no threshold.
type Step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// Transformation changes the answer of a query before the panel shows it.
type Transformation struct {
	Options struct {
		RenameByName map[string]string `json:"renameByName"`
	} `json:"options"`
}

// Read returns the dashboards of a chart, by the names of their files.
func Read(chart string) ([]Board, error) {
	files, err := filepath.Glob(filepath.Join(chart, "dashboards", "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: found no dashboard", chart)
	}
	var boards []Board
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		board := Board{Name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if err := json.Unmarshal(content, &board); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		boards = append(boards, board)
	}
	return boards, nil
}

var labelValues = regexp.MustCompile(`^label_values\((.*), ([a-z_]+)\)$`)

// Values returns the series and the label whose values a variable has.
func (v *Variable) Values() (series, label string, err error) {
	parts := labelValues.FindStringSubmatch(v.Definition)
	if parts == nil {
		return "", "", fmt.Errorf("variable %s: found the query %q, expected label_values(SERIES, LABEL)", v.Name, v.Definition)
	}
	return parts[1], parts[2], nil
}

// Substitute returns a function that replaces the variables in an expression, as Grafana does
// while all values are chosen. The windows are for a Prometheus that scrapes each second.
func (b *Board) Substitute() func(string) string {
	replacements := []string{"$__rate_interval", "30s", "$__range", "10m"}
	for _, v := range b.Templating.List {
		replacements = append(replacements, "$"+v.Name, v.AllValue)
	}
	return strings.NewReplacer(replacements...).Replace
}

// metric finds metrics in an expression. The labels of a metric are not among them.
var metric = regexp.MustCompile(`\b(?:crypto_broker|controller_runtime|process|go|workqueue)_[a-z_]+\b`)

// Metrics returns the metrics that an expression uses.
func Metrics(expression string) []string { return metric.FindAllString(expression, -1) }
