// Package metrics has the metrics of runs for Prometheus.
package metrics

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/steps"
)

// Metrics counts and measures the operations of runs, in the format of Prometheus. It
// is a telemetry.Metrics. Its labels are names of the document and outcomes, never
// sessions, callers or texts, so their number is bounded by the document; MaxSeries
// bounds it also for a server that loads many documents. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	seen     labelSet

	requests        *prometheus.CounterVec
	requestSeconds  *prometheus.HistogramVec
	runs            *prometheus.CounterVec
	runSeconds      *prometheus.HistogramVec
	active          *prometheus.GaugeVec
	rows            *prometheus.CounterVec
	stepRows        *prometheus.CounterVec
	stepSeconds     *prometheus.HistogramVec
	tokens          *prometheus.CounterVec
	cost            *prometheus.CounterVec
	modelCalls      *prometheus.CounterVec
	modelSeconds    *prometheus.HistogramVec
	firstToken      *prometheus.HistogramVec
	toolCalls       *prometheus.CounterVec
	toolSeconds     *prometheus.HistogramVec
	turns           *prometheus.CounterVec
	windowFill      *prometheus.HistogramVec
	flushes         *prometheus.CounterVec
	evictedMessages *prometheus.CounterVec
	cache           *prometheus.CounterVec
	storeSeconds    *prometheus.HistogramVec
}

// The buckets of histograms.
var (
	callBuckets  = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120} // seconds
	storeBuckets = []float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5} // seconds
	fillBuckets  = []float64{.1, .25, .5, .6, .7, .8, .9, .95, 1}                           // a fraction
)

// New returns metrics that have counted nothing. process adds metrics of the Go
// runtime and of the process.
func New(process bool) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.requests = m.counter("http_requests_total", "HTTP requests, by the pattern of the route and the status.", "route", "method", "status")
	m.requestSeconds = m.histogram("http_request_duration_seconds", "Time until the end of the response.", callBuckets, "route", "method")
	m.runs = m.counter("runs_total", "Runs of flows that have ended, called flows included.", "flow", "status")
	m.runSeconds = m.histogram("run_duration_seconds", "Time of a run of a flow.", callBuckets, "flow")
	m.active = m.gauge("active_runs", "Runs of flows that have not ended, called flows included.", "flow")
	m.rows = m.counter("rows_total", "Rows that came out of flows.", "flow", "status")
	m.stepRows = m.counter("step_rows_total", "Rows that steps have processed, without cached ones and those of batches.", "flow", "step", "status")
	m.stepSeconds = m.histogram("step_duration_seconds", "Time of a step on a row.", callBuckets, "flow", "step")
	m.tokens = m.counter("tokens_total", "Tokens of calls of models. Those of the direction cached are part of input.", "flow", "step", "model", "direction")
	m.cost = m.counter("cost_total", "Cost of calls of models by the prices of the document, in its currency.", "flow", "step", "model")
	m.modelCalls = m.counter("model_calls_total", "Attempts to call models; each retry and fallback is another.", "flow", "step", "model", "status")
	m.modelSeconds = m.histogram("model_call_duration_seconds", "Time of a call of a model.", callBuckets, "model")
	m.firstToken = m.histogram("time_to_first_token_seconds", "Time from a call of a model to the first part of a streamed answer.", callBuckets, "model")
	m.toolCalls = m.counter("tool_calls_total", "Calls of tools.", "flow", "step", "tool", "status")
	m.toolSeconds = m.histogram("tool_call_duration_seconds", "Time of a call of a tool.", callBuckets, "tool")
	m.turns = m.counter("memory_turns_total", "Turns of memories.", "memory", "status")
	m.windowFill = m.histogram("memory_window_fill_ratio", "Used part of the window after a turn.", fillBuckets, "memory")
	m.flushes = m.counter("memory_flushes_total", "Times that messages left a window.", "memory")
	m.evictedMessages = m.counter("memory_evicted_messages_total", "Messages that left a window.", "memory")
	m.cache = m.counter("step_cache_total", "Rows of steps with a cache.", "step", "result")
	m.storeSeconds = m.histogram("store_operation_duration_seconds", "Time of an operation of a store of memories.", storeBuckets, "operation", "status")
	if process {
		registerProcess(m.registry)
	}
	return m
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "qtype", Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "qtype", Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "qtype", Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(v)
	return v
}

// Registry returns where others register metrics.
func (m *Metrics) Registry() prometheus.Registerer { return m.registry }

// Handler returns the handler of /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Request counts an HTTP request. route is the pattern of the route, not the path of
// the request: "POST /flows/{id}".
func (m *Metrics) Request(route, method string, status int, took time.Duration) {
	method = knownMethod(method)
	m.requests.WithLabelValues(m.seen.bounded(route), method, statusLabel(status)).Inc()
	m.requestSeconds.WithLabelValues(m.seen.bounded(route), method).Observe(took.Seconds())
}

type metricsKey struct{}

// place is where in the application an operation is.
type place struct{ flow, step string }

func placeOf(ctx context.Context) place {
	p, _ := ctx.Value(metricsKey{}).(*place)
	if p == nil {
		return place{}
	}
	return *p
}

// Start counts an operation that begins.
func (m *Metrics) Start(ctx context.Context, op *steps.Operation) steps.Span {
	measure, ok := measures[op.Kind]
	if !ok {
		return nil
	}
	s := &measuredSpan{metrics: m, place: placeOf(ctx), id: m.seen.bounded(op.ID), prices: op.Prices, begun: op.Begun, end: measure}
	if s.begun.IsZero() {
		s.begun = time.Now()
	}
	switch op.Kind {
	case steps.OperationFlow:
		s.outermost = s.place == (place{})
		s.place = place{flow: s.id}
		m.active.WithLabelValues(s.id).Inc()
	case steps.OperationRow, steps.OperationStep, steps.OperationBatch:
		s.place.step = s.id
	}
	return s
}

// measuredSpan is an operation that has not ended.
type measuredSpan struct {
	metrics   *Metrics
	place     place
	id        string
	prices    *catalogue.Prices
	begun     time.Time
	outermost bool // a flow that no other one has called
	end       func(*measuredSpan, *steps.OperationResult)
	ended     atomic.Bool
}

// Context returns ctx with the place of the operation.
func (s *measuredSpan) Context(ctx context.Context) context.Context {
	if s.outermost {
		ctx = steps.WithEvents(ctx, s.metrics.countCache(), steps.EventCacheHit, steps.EventCacheMiss)
	}
	return context.WithValue(ctx, metricsKey{}, &s.place)
}

// End counts and measures the operation.
func (s *measuredSpan) End(r *steps.OperationResult) {
	if s.ended.CompareAndSwap(false, true) {
		s.end(s, r)
	}
}

// seconds returns how long the operation took.
func (s *measuredSpan) seconds(r *steps.OperationResult) float64 {
	if r.Ended.IsZero() {
		return time.Since(s.begun).Seconds()
	}
	return r.Ended.Sub(s.begun).Seconds()
}

// The values of the label status.
const (
	statusOK       = "ok"
	statusFailed   = "failed"
	statusCanceled = "canceled"
)

// statusOf returns the label of the outcome of an operation.
func statusOf(err error) string {
	switch {
	case err == nil:
		return statusOK
	case errors.Is(err, context.Canceled):
		return statusCanceled
	}
	return statusFailed
}

// measures is the table of what is counted at the end of operations.
var measures = map[steps.OperationKind]func(*measuredSpan, *steps.OperationResult){
	steps.OperationFlow:      measureFlow,
	steps.OperationStep:      func(*measuredSpan, *steps.OperationResult) {},
	steps.OperationBatch:     func(*measuredSpan, *steps.OperationResult) {},
	steps.OperationRow:       measureRow,
	steps.OperationModel:     measureModel,
	steps.OperationEmbedding: measureModel,
	steps.OperationTool:      measureTool,
	steps.OperationMemory:    measureMemory,
	steps.OperationStore:     measureStore,
}

func measureFlow(s *measuredSpan, r *steps.OperationResult) {
	m := s.metrics
	m.active.WithLabelValues(s.id).Dec()
	m.runs.WithLabelValues(s.id, statusOf(r.Err)).Inc()
	m.runSeconds.WithLabelValues(s.id).Observe(s.seconds(r))
	m.rows.WithLabelValues(s.id, statusOK).Add(float64(r.Done - r.Failed))
	m.rows.WithLabelValues(s.id, statusFailed).Add(float64(r.Failed))
}

func measureRow(s *measuredSpan, r *steps.OperationResult) {
	s.metrics.stepRows.WithLabelValues(s.place.flow, s.id, statusOf(r.Err)).Inc()
	s.metrics.stepSeconds.WithLabelValues(s.place.flow, s.id).Observe(s.seconds(r))
}

func measureModel(s *measuredSpan, r *steps.OperationResult) {
	m, at := s.metrics, s.place
	m.modelCalls.WithLabelValues(at.flow, at.step, s.id, statusOf(r.Err)).Inc()
	m.modelSeconds.WithLabelValues(s.id).Observe(s.seconds(r))
	if !r.FirstDelta.IsZero() {
		m.firstToken.WithLabelValues(s.id).Observe(r.FirstDelta.Sub(s.begun).Seconds())
	}
	used := telemetry.TokensOf(r)
	if used == nil {
		return
	}
	for direction, n := range map[string]int{"input": used.Input, "output": used.Output, "cached": used.Cached} {
		if n > 0 {
			m.tokens.WithLabelValues(at.flow, at.step, s.id, direction).Add(float64(n))
		}
	}
	if cost := telemetry.CostOf(s.prices, r); cost != nil {
		m.cost.WithLabelValues(at.flow, at.step, s.id).Add(*cost)
	}
}

func measureTool(s *measuredSpan, r *steps.OperationResult) {
	s.metrics.toolCalls.WithLabelValues(s.place.flow, s.place.step, s.id, statusOf(r.Err)).Inc()
	s.metrics.toolSeconds.WithLabelValues(s.id).Observe(s.seconds(r))
}

func measureMemory(s *measuredSpan, r *steps.OperationResult) {
	m := s.metrics
	m.turns.WithLabelValues(s.id, statusOf(r.Err)).Inc()
	t := r.Turn
	if t == nil {
		return
	}
	if t.Limit > 0 {
		m.windowFill.WithLabelValues(s.id).Observe(float64(t.Used) / float64(t.Limit))
	}
	m.flushes.WithLabelValues(s.id).Add(float64(max(t.Flushes, 0)))
	m.evictedMessages.WithLabelValues(s.id).Add(float64(t.Evicted))
}

// countCache returns the listener of the caches of steps.
func (m *Metrics) countCache() func(steps.Event) {
	return func(ev steps.Event) {
		result := "miss"
		if ev.Kind == steps.EventCacheHit {
			result = "hit"
		}
		m.cache.WithLabelValues(m.seen.bounded(ev.Step), result).Inc()
	}
}

func measureStore(s *measuredSpan, r *steps.OperationResult) {
	s.metrics.storeSeconds.WithLabelValues(s.id, statusOf(r.Err)).Observe(s.seconds(r))
}

// MaxSeries is the maximum number of different names in labels. Further names are
// counted together, as "other".
const MaxSeries = 2000

// labelSet are the names that labels have had.
type labelSet struct {
	mu    sync.RWMutex
	names map[string]bool
}

// bounded returns a name for a label.
func (l *labelSet) bounded(name string) string {
	l.mu.RLock()
	known, full := l.names[name], len(l.names) >= MaxSeries
	l.mu.RUnlock()
	switch {
	case known:
		return name
	case full:
		return "other"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		l.names = map[string]bool{}
	}
	l.names[name] = true
	return name
}

// knownMethod returns an HTTP method for a label: clients may send any text.
func knownMethod(method string) string {
	if slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method) {
		return method
	}
	return "other"
}

// statusLabel returns an HTTP status for a label.
func statusLabel(status int) string {
	if status < 100 || status > 599 {
		return "other"
	}
	return strconv.Itoa(status)
}

// registerProcess adds metrics of the Go runtime and of the process.
func registerProcess(r *prometheus.Registry) {
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}
