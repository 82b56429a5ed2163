// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// query is an expression and the text of its series.
type query struct{ expr, legend string }

// ofBrokers selects a metric of the brokers that the reader has chosen.
func ofBrokers(metric string, matchers ...string) string {
	return selector(metric, append([]string{`cluster=~"$cluster"`, `namespace=~"$namespace"`, `workload=~"$workload"`}, matchers...))
}

// ofOperator selects a metric of the operators that the reader has chosen.
func ofOperator(metric string, matchers ...string) string {
	return selector(metric, append([]string{`cluster=~"$cluster"`}, matchers...))
}

// ofNamespaces selects a metric that operators have for each namespace. Prometheus calls the
// label exported_namespace, because namespace is where the operator runs.
func ofNamespaces(metric string, matchers ...string) string {
	return ofOperator(metric, append([]string{`exported_namespace=~"$namespace"`}, matchers...)...)
}

func selector(metric string, matchers []string) string {
	return metric + "{" + strings.Join(matchers, ",") + "}"
}

func rate(series string) string { return "rate(" + series + "[$__rate_interval])" }

func increase(series, window string) string { return "increase(" + series + "[" + window + "])" }

func sum(by, series string) string { return aggregate("sum", by, series) }

func count(by, series string) string { return aggregate("count", by, series) }

func aggregate(how, by, series string) string {
	if by == "" {
		return how + "(" + series + ")"
	}
	return how + " by (" + by + ") (" + series + ")"
}

// orZero has a panel show 0 if there is no series.
func orZero(expr string) string { return expr + " or on () vector(0)" }

// quantile returns the time within which a part of the calls ended. There is no value while
// there are no calls: a comparison drops NaN.
func quantile(part float64, by, rates string) string {
	if by != "" {
		by = ", " + by
	}
	return fmt.Sprintf("histogram_quantile(%g, sum by (le%s) (%s)) >= 0", part, by, rates)
}

// quantiles are the queries of the percentiles of a histogram.
func quantiles(buckets string) []query {
	var all []query
	for _, part := range []float64{0.5, 0.95, 0.99} {
		all = append(all, query{quantile(part, "", rate(buckets)), fmt.Sprintf("p%g", 100*part)})
	}
	return all
}

// quantilesOfRareEvents are the percentiles of the last hour, or since the start of the operator
// where the hour has no event.
func quantilesOfRareEvents(buckets string) []query {
	var all []query
	for _, part := range []float64{0.5, 0.95, 0.99} {
		all = append(all, query{fmt.Sprintf("(%s) or (%s)", quantile(part, "", "rate("+buckets+"[1h])"), quantile(part, "", buckets)), fmt.Sprintf("p%g", 100*part)})
	}
	return all
}
