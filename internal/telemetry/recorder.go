package telemetry

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/steps"
)

// Recorder keeps the spans of recent runs in memory, for their traces in a user
// interface. It needs neither an exporter nor declared telemetry. What it holds is
// bounded: the oldest runs are removed first. It is safe for concurrent use.
type Recorder struct {
	maxRuns  int
	maxBytes int64

	mu    sync.Mutex
	runs  map[string]*recordedRun
	order []string // the ids of the runs, oldest first
	bytes int64
}

// recordedRun is what the recorder has of one run.
type recordedRun struct {
	spans     []*recordedSpan // in the order of their starts
	bytes     int64
	truncated bool // later spans are missing, because the run was too large
}

// maxRunShare is the part of Recorder.maxBytes that one run may use: 1/maxRunShare.
const maxRunShare = 4

// NewRecorder returns a recorder for the newest maxRuns runs, with at most maxBytes
// bytes of inputs and outputs in all (approximately). One run has at most a quarter of
// that; its further spans are not recorded.
func NewRecorder(maxRuns int, maxBytes int64) *Recorder {
	return &Recorder{maxRuns: max(maxRuns, 1), maxBytes: max(maxBytes, maxRunShare), runs: map[string]*recordedRun{}}
}

// Context returns a context whose runs are recorded under the id of a run. A Tracer
// must be added to ctx before, so that the recorded spans have its ids.
func (r *Recorder) Context(ctx context.Context, run string) context.Context {
	return steps.WithObserver(ctx, &runRecorder{r, run})
}

// Spans returns the spans of a run, also open ones, in the order of their starts.
// complete is false if some are missing because the run was too large; ok is false if the
// recorder does not have the run.
func (r *Recorder) Spans(run string) (spans []Span, complete, ok bool) {
	r.mu.Lock()
	recorded, ok := r.runs[run]
	if !ok {
		r.mu.Unlock()
		return nil, false, false
	}
	copies := make([]recordedSpan, len(recorded.spans))
	for i, s := range recorded.spans {
		copies[i] = *s
		if s.parent != nil {
			copies[i].above = s.parent.id.String()
		}
	}
	complete = !recorded.truncated
	r.mu.Unlock()
	spans = make([]Span, len(copies))
	for i := range copies {
		spans[i] = copies[i].render()
	}
	return spans, complete, true
}

// Remove removes a run. It does nothing for an unknown one.
func (r *Recorder) Remove(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, id := range r.order {
		if id == run {
			r.order = append(r.order[:i], r.order[i+1:]...)
			r.drop(run)
			return
		}
	}
}

// drop removes a run that is not in order any more.
func (r *Recorder) drop(run string) {
	if recorded := r.runs[run]; recorded != nil {
		r.bytes -= recorded.bytes
		delete(r.runs, run)
	}
}

// add adds a span to its run, and reports whether there was room for it.
func (r *Recorder) add(run string, s *recordedSpan) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	recorded := r.runs[run]
	if recorded == nil {
		recorded = &recordedRun{}
		r.runs[run] = recorded
		r.order = append(r.order, run)
	}
	if !r.charge(recorded, s.size()) {
		return false
	}
	recorded.spans = append(recorded.spans, s)
	return true
}

// charge adds n bytes to a run, and removes old runs until they have room.
func (r *Recorder) charge(recorded *recordedRun, n int64) bool {
	if recorded.bytes+n > r.maxBytes/maxRunShare {
		recorded.truncated = true
		return false
	}
	recorded.bytes += n
	r.bytes += n
	for len(r.order) > r.maxRuns || r.bytes > r.maxBytes && len(r.order) > 1 {
		oldest := r.order[0]
		r.order = r.order[1:]
		r.drop(oldest)
	}
	return true
}

// runRecorder observes one run.
type runRecorder struct {
	recorder *Recorder
	run      string
}

// recordedKey is the key of the enclosing span of one owner: a run may have several.
type recordedKey struct{ owner spanOwner }

// Observes reports whether operations of a kind are recorded.
func (r *runRecorder) Observes(kind steps.OperationKind) bool { return isRecorded(kind) }

// isRecorded reports whether operations of a kind are recorded. Steps as a whole are left out, because their rows are
// below the flow, and so are operations of stores, which have no part in an answer.
func isRecorded(kind steps.OperationKind) bool {
	return kind != steps.OperationStep && kind != steps.OperationStore
}

// Start records an operation.
func (r *runRecorder) Start(ctx context.Context, op *steps.Operation) steps.Span {
	if !r.Observes(op.Kind) {
		return nil
	}
	s := newRecordedSpan(ctx, r, op)
	if !r.recorder.add(r.run, s) {
		return nil
	}
	return s
}

// traceOf returns the id of the enclosing trace, a new one without a trace.
func traceOf(ctx context.Context) string {
	if id := steps.TraceIDOf(ctx); id != nil {
		return id.Trace
	}
	return newSpanID().String() + newSpanID().String()
}

// Context returns ctx with the span as the enclosing one. If a Tracer has set an id
// for the operation, the span takes it.
func (s *recordedSpan) Context(ctx context.Context) context.Context {
	outside := steps.TraceIDOf(ctx)
	s.adopt(outside)
	ctx = context.WithValue(ctx, recordedKey{s.owner}, s)
	if s.op.Kind == steps.OperationFlow && (outside == nil || outside.Span != s.id.String()) {
		ctx = steps.WithTraceID(ctx, steps.TraceID{Trace: s.trace, Span: s.id.String()})
	}
	return ctx
}

// adopt takes the id of the operation in a trace of a Tracer, unless it is that of an
// enclosing operation.
func (s *recordedSpan) adopt(id *steps.TraceID) {
	s.owner.Lock()
	defer s.owner.Unlock()
	if s.named {
		return
	}
	s.named = true
	if id == nil {
		return
	}
	own := parseSpanID(id.Span)
	for above := s.parent; above != nil; above = above.parent {
		if above.id == own {
			return
		}
	}
	s.id, s.trace = own, id.Trace
}

// End records the end of the operation.
func (s *recordedSpan) End(result *steps.OperationResult) {
	s.owner.Lock()
	s.end = result.Ended
	if s.end.IsZero() {
		s.end = time.Now()
	}
	s.result = *result
	s.owner.ended(s)
	s.owner.Unlock()
	s.owner.release()
}

// Lock locks the recorder.
func (r *runRecorder) Lock() { r.recorder.mu.Lock() }

// Unlock unlocks the recorder.
func (r *runRecorder) Unlock() { r.recorder.mu.Unlock() }

// ended removes the result of a span if there is no room for it.
func (r *runRecorder) ended(s *recordedSpan) {
	if recorded := r.recorder.runs[r.run]; recorded != nil && !r.recorder.charge(recorded, resultSize(&s.result)) {
		s.dropResult()
	}
}

// release does nothing: spans are read when they are requested.
func (r *runRecorder) release() {}

// maxCollected is the approximate number of bytes of inputs and outputs that a RowCollector
// holds; beyond it, rows are passed on before their last step.
const maxCollected = 64 << 20

// RowSpans are spans of one row, or of the run itself.
type RowSpans struct {
	Run   int    // the number of the run, from 1: each call of App.Run is one
	Flow  string // the id of the flow that is run
	Row   int64  // the number of the input row; 0 for the run itself, for batches, and for rows that came from several
	Spans []Span // in the order of their starts
}

// RowCollector passes the spans of runs on as soon as a row has ended, so that it holds few
// rows of a long run. Its spans are those of a Recorder. It is a steps.Observer.
type RowCollector struct {
	emit     func(*RowSpans) // not called concurrently
	emitting sync.Mutex      // is locked before mu

	mu    sync.Mutex
	count int // runs that have begun
	runs  []*collectedRun
	bytes int64
	due   bool // something can be passed on
}

// collectedRun is a run that has not ended.
type collectedRun struct {
	number int
	root   *recordedSpan
	groups []*spanGroup // in the order of their starts
	byRow  map[int64]*spanGroup
	passed int64 // rows with a smaller number have ended
	ended  bool
}

// spanGroup are the spans of one row.
type spanGroup struct {
	run    *collectedRun
	row    int64
	ready  bool // no further spans are expected
	open   int  // spans that have not ended
	bytes  int64
	spans  []*recordedSpan
	isRoot bool
}

// NewRowCollector returns a collector that passes spans to emit.
func NewRowCollector(emit func(*RowSpans)) *RowCollector { return &RowCollector{emit: emit} }

// Observes reports whether operations of a kind are collected.
func (c *RowCollector) Observes(kind steps.OperationKind) bool { return isRecorded(kind) }

// Start collects an operation.
func (c *RowCollector) Start(ctx context.Context, op *steps.Operation) steps.Span {
	if !c.Observes(op.Kind) {
		return nil
	}
	s := newRecordedSpan(ctx, c, op)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.group = c.groupOf(s)
	s.group.spans = append(s.group.spans, s)
	s.group.open++
	c.charge(s.group, s.size())
	return s
}

// groupOf returns the group of a span that begins.
func (c *RowCollector) groupOf(s *recordedSpan) *spanGroup {
	switch {
	case s.parent == nil:
		c.count++
		run := &collectedRun{number: c.count, root: s, byRow: map[int64]*spanGroup{}}
		c.runs = append(c.runs, run)
		return &spanGroup{run: run, isRoot: true}
	case !s.parent.group.isRoot:
		return s.parent.group
	}
	run := s.parent.group.run
	if g := run.byRow[s.op.Row]; g != nil && s.op.Kind != steps.OperationBatch {
		return g
	}
	g := &spanGroup{run: run, row: s.op.Row, ready: s.op.Kind == steps.OperationBatch}
	run.groups = append(run.groups, g)
	if !g.ready {
		run.byRow[g.row] = g
	}
	return g
}

func (c *RowCollector) charge(g *spanGroup, n int64) {
	g.bytes += n
	c.bytes += n
}

// Lock locks the collector.
func (c *RowCollector) Lock() { c.mu.Lock() }

// Unlock unlocks the collector.
func (c *RowCollector) Unlock() { c.mu.Unlock() }

// ended notes the end of a span.
func (c *RowCollector) ended(s *recordedSpan) {
	s.group.open--
	c.charge(s.group, resultSize(&s.result))
	s.group.run.ended = s.group.run.ended || s.parent == nil
	c.due = c.due || s.parent == nil || s.group.ready && s.group.open == 0 || c.bytes > maxCollected
}

// release passes on what is complete.
func (c *RowCollector) release() {
	c.mu.Lock()
	due := c.due
	c.mu.Unlock()
	if due {
		c.flush(false)
	}
}

// RowDone notes that a result of the only run was received. Results come in the order of
// rows, so that those with smaller numbers have ended.
func (c *RowCollector) RowDone(number int64) {
	c.mu.Lock()
	for _, run := range c.runs {
		run.passed = max(run.passed, number)
		if g := run.byRow[0]; g != nil && number == 0 {
			g.ready = true
		}
	}
	c.due = true
	c.mu.Unlock()
	c.release()
}

// Close passes on the spans of runs that have not ended.
func (c *RowCollector) Close() { c.flush(true) }

// flush passes on the groups that are complete; all of them if whole is set.
func (c *RowCollector) flush(whole bool) {
	c.emitting.Lock()
	defer c.emitting.Unlock()
	for _, g := range c.take(whole) {
		c.emit(g.render())
	}
}

// take removes the groups that are passed on.
func (c *RowCollector) take(whole bool) []*spanGroup {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = false
	room := int64(maxCollected)
	if c.bytes > room {
		room /= 2
	}
	var taken []*spanGroup
	c.runs = slices.DeleteFunc(c.runs, func(run *collectedRun) bool {
		over := whole || run.ended
		run.groups = slices.DeleteFunc(run.groups, func(g *spanGroup) bool {
			if !over && !g.complete(c.bytes > room) {
				return false
			}
			if run.byRow[g.row] == g {
				delete(run.byRow, g.row)
			}
			c.bytes -= g.bytes
			taken = append(taken, g)
			return true
		})
		if over {
			c.bytes -= run.root.group.bytes
			taken = append(taken, run.root.group)
		}
		return over
	})
	for _, g := range taken {
		g.nameParents()
	}
	return taken
}

// complete reports whether the group can be passed on. If there is no room, later spans of
// its row are another group.
func (g *spanGroup) complete(noRoom bool) bool {
	return g.open == 0 && (noRoom || g.ready || g.row > 0 && g.row < g.run.passed)
}

// nameParents sets the ids of the enclosing spans, which may change until these have begun.
func (g *spanGroup) nameParents() {
	for _, s := range g.spans {
		if s.parent != nil {
			s.above = s.parent.id.String()
		}
	}
}

// render returns the spans of the group. Nothing else uses them any more, unless the run has
// not ended.
func (g *spanGroup) render() *RowSpans {
	out := &RowSpans{Run: g.run.number, Flow: g.run.root.op.ID, Row: g.row, Spans: make([]Span, len(g.spans))}
	for i, s := range g.spans {
		s.owner.Lock()
		copied := *s
		s.owner.Unlock()
		out.Spans[i] = copied.render()
	}
	return out
}
