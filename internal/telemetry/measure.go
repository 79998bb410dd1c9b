package telemetry

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/qtype-dev/qtype/steps"
)

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
	used := tokensOf(r)
	if used == nil {
		return
	}
	for direction, n := range map[string]int{"input": used.Input, "output": used.Output, "cached": used.Cached} {
		if n > 0 {
			m.tokens.WithLabelValues(at.flow, at.step, s.id, direction).Add(float64(n))
		}
	}
	if cost := costOf(s.prices, r); cost != nil {
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
