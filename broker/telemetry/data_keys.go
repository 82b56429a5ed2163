// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/datakeycache"
)

var (
	unwrapsDescription = prometheus.NewDesc("crypto_broker_data_key_unwraps_total",
		"Lookups of data keys that key managers unwrap, by result: hit if the data key was in the cache, miss if the key manager was asked, coalesced if another call already waited for the same data key.",
		[]string{"result"}, nil)
	dataKeysDescription = prometheus.NewDesc("crypto_broker_data_keys",
		"Data keys in the cache, each for at most a minute.", nil, nil)
)

// dataKeys collects the counters of the cache of data keys.
type dataKeys struct{ stats func() datakeycache.Stats }

// ServeDataKeys adds the metrics of the cache of data keys. It is called once at most.
func (m *Metrics) ServeDataKeys(stats func() datakeycache.Stats) {
	m.registry.MustRegister(dataKeys{stats})
}

// Describe implements prometheus.Collector.
func (dataKeys) Describe(to chan<- *prometheus.Desc) {
	to <- unwrapsDescription
	to <- dataKeysDescription
}

// Collect implements prometheus.Collector.
func (d dataKeys) Collect(to chan<- prometheus.Metric) {
	s := d.stats()
	for result, count := range map[string]uint64{"hit": s.Hits, "miss": s.Misses, "coalesced": s.Coalesced} {
		to <- prometheus.MustNewConstMetric(unwrapsDescription, prometheus.CounterValue, float64(count), result)
	}
	to <- prometheus.MustNewConstMetric(dataKeysDescription, prometheus.GaugeValue, float64(s.Entries))
}
