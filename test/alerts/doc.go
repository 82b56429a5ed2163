// SPDX-License-Identifier: Apache-2.0

// Package alerts tests the alerts of the chart: with promtool, and against the pages about
// metrics and runbooks.
package alerts
