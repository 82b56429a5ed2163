// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/test/prometheus"
)

// ExpectAnswers asks a Prometheus all queries of a dashboard, and those for the values of its variables. The error names each
// one that has no answer, or an answer that is no number.
func (b *Board) ExpectAnswers(ctx context.Context, server *prometheus.Server) error {
	substitute := b.Substitute()
	var problems []error
	for _, v := range b.Templating.List {
		if v.Type != "query" {
			continue
		}
		series, label, err := v.Values()
		if err != nil {
			return err
		}
		values, err := server.LabelValues(ctx, label, substitute(series))
		if err != nil {
			return err
		}
		if len(values) == 0 {
			problems = append(problems, fmt.Errorf("%s: the variable %s has no values: %s", b.Name, v.Name, v.Definition))
		}
	}
	for i := range b.Panels {
		for _, target := range b.Panels[i].Targets {
			if err := expectAnswer(ctx, server, substitute(target.Expr)); err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w: %s", b.Name, b.Panels[i].Title, err, substitute(target.Expr)))
			}
		}
	}
	return errors.Join(problems...)
}

// rare are metrics that have series only during a problem. The tests of dashboards have none.
var rare = []string{"crypto_broker_operator_sets_held", "crypto_broker_operator_baselines_missing"}

func expectAnswer(ctx context.Context, server *prometheus.Server, expression string) error {
	// An expression that falls back to zero has an answer even if no such metric exists.
	for _, metric := range Metrics(expression) {
		if slices.Contains(rare, metric) {
			continue
		}
		if _, err := Ask(ctx, server, "count("+metric+")"); err != nil {
			return fmt.Errorf("the metric %s: %w", metric, err)
		}
	}
	_, err := Ask(ctx, server, expression)
	return err
}

// Ask evaluates an expression. An empty answer, or one with a value that is no number, is an error.
func Ask(ctx context.Context, server *prometheus.Server, expression string) ([]prometheus.Sample, error) {
	samples, err := server.Query(ctx, expression)
	if err != nil {
		return nil, err
	}
	if len(samples) == 0 {
		return nil, errors.New("the answer is empty")
	}
	for _, each := range samples {
		if math.IsNaN(each.Value) {
			return nil, fmt.Errorf("the answer is NaN for %v", each.Labels)
		}
	}
	return samples, nil
}
