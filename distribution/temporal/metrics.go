package temporal

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	"github.com/qtype-dev/qtype/internal/telemetry"
)

// metricLabels are the tags of the SDK that are labels. Others have too many values, or none.
var metricLabels = []string{
	"activity_type", "failure_reason", "namespace", "operation", "poller_type", "status_code", "task_queue", "worker_type", "workflow_type",
}

// metricBuckets are the upper limits of times in seconds.
var metricBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

// metrics are what the SDK counts, for Prometheus. It is a client.MetricsHandler, and safe for concurrent use.
type metrics struct {
	*metricVectors
	tags map[string]string
}

// metricVectors are the metrics by their names.
type metricVectors struct {
	registry prometheus.Registerer

	mu         sync.Mutex
	counters   map[string]*prometheus.CounterVec
	gauges     map[string]*prometheus.GaugeVec
	histograms map[string]*prometheus.HistogramVec
}

// registryOf returns where metrics of the client are registered; nil if others cannot register theirs.
func registryOf(m telemetry.Metrics) prometheus.Registerer {
	if open, ok := m.(interface{ Registry() prometheus.Registerer }); ok {
		return open.Registry()
	}
	return nil
}

// newMetrics returns the handler of a client, which registers its metrics.
func newMetrics(registry prometheus.Registerer) client.MetricsHandler {
	return &metrics{metricVectors: &metricVectors{registry: registry, counters: map[string]*prometheus.CounterVec{},
		gauges: map[string]*prometheus.GaugeVec{}, histograms: map[string]*prometheus.HistogramVec{}}}
}

// WithTags returns a handler with more tags.
func (m *metrics) WithTags(tags map[string]string) client.MetricsHandler {
	all := maps.Clone(m.tags)
	if all == nil {
		all = map[string]string{}
	}
	for name, value := range tags {
		if slices.Contains(metricLabels, name) && value != "none" { // the SDK's word for no value
			all[name] = value
		}
	}
	return &metrics{m.metricVectors, all}
}

// values returns the values of the labels.
func (m *metrics) values() []string {
	all := make([]string, len(metricLabels))
	for i, name := range metricLabels {
		all[i] = m.tags[name]
	}
	return all
}

// Counter returns a metric of the SDK.
func (m *metrics) Counter(name string) client.MetricsCounter {
	return counter{vector(m, m.counters, name, func() *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name + "_total", Help: help(name)}, metricLabels)
	}).WithLabelValues(m.values()...)}
}

// Gauge returns a metric of the SDK.
func (m *metrics) Gauge(name string) client.MetricsGauge {
	return gauge{vector(m, m.gauges, name, func() *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help(name)}, metricLabels)
	}).WithLabelValues(m.values()...)}
}

// Timer returns a metric of the SDK, in seconds.
func (m *metrics) Timer(name string) client.MetricsTimer {
	return timer{vector(m, m.histograms, name, func() *prometheus.HistogramVec {
		opts := prometheus.HistogramOpts{Name: name + "_seconds", Help: help(name), Buckets: metricBuckets}
		return prometheus.NewHistogramVec(opts, metricLabels)
	}).WithLabelValues(m.values()...)}
}

// help is the description of a metric.
func help(name string) string {
	return "Of the SDK of Temporal: " + strings.ReplaceAll(name, "_", " ") + "."
}

// vector returns the metric with a name, which it makes and registers once.
func vector[V prometheus.Collector](m *metrics, known map[string]V, name string, create func() V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := known[name]
	if !ok {
		v = create()
		_ = m.registry.Register(v) // a name that is in use is not shown
		known[name] = v
	}
	return v
}

type counter struct{ prometheus.Counter }

func (c counter) Inc(n int64) { c.Add(float64(n)) }

type gauge struct{ prometheus.Gauge }

func (g gauge) Update(v float64) { g.Set(v) }

type timer struct{ prometheus.Observer }

func (t timer) Record(took time.Duration) { t.Observe(took.Seconds()) }
