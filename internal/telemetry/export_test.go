package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Describe sends the descriptions of all metrics.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) { m.registry.Describe(to) }
