// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// tag marks all dashboards, so that each one links to the others.
const tag = "crypto-broker"

// variable is a list of values of a label, from which the reader chooses.
type variable struct{ name, label, query string }

// The variables of dashboards. The value "All" also selects series without the label: a
// Prometheus with one cluster has no label cluster.
var (
	cluster   = variable{"cluster", "Cluster", `label_values(crypto_broker_build_info, cluster)`}
	namespace = variable{"namespace", "Namespace", `label_values(crypto_broker_build_info{cluster=~"$cluster"}, namespace)`}
	workload  = variable{"workload", "Workload", `label_values(crypto_broker_build_info{cluster=~"$cluster",namespace=~"$namespace"}, workload)`}

	operatorCluster   = variable{"cluster", "Cluster", `label_values(crypto_broker_operator_certificate_expiry_timestamp_seconds, cluster)`}
	operatorNamespace = variable{"namespace", "Namespace", `label_values(crypto_broker_operator_pods{cluster=~"$cluster"}, exported_namespace)`}
)

var source = common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}

// newDashboard begins a dashboard with its variables.
func newDashboard(uid, title, description string, variables ...variable) *dashboard.DashboardBuilder {
	b := dashboard.NewDashboardBuilder("Crypto Broker / "+title).
		Uid("crypto-broker-"+uid).
		Description(description).
		Tags([]string{tag}).
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Time("now-1h", "now").
		Refresh("30s").
		Link(dashboard.NewDashboardLinkBuilder("Crypto Broker").Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{tag}).AsDropdown(true).IncludeVars(true).KeepTime(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"))
	all := dashboard.VariableOption{Selected: new(true),
		Text: dashboard.StringOrArrayOfString{String: new("All")}, Value: dashboard.StringOrArrayOfString{String: new("$__all")}}
	for _, v := range variables {
		b.WithVariable(dashboard.NewQueryVariableBuilder(v.name).Label(v.label).Datasource(source).
			Definition(v.query).Query(dashboard.StringOrMap{Map: map[string]any{"query": v.query, "refId": v.name}}).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).
			Multi(true).IncludeAll(true).AllValue(".*").Current(all))
	}
	return b
}

// row begins a row of panels.
func row(title string) *dashboard.RowBuilder { return dashboard.NewRowBuilder(title) }
