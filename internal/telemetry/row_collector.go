package telemetry

import (
	"context"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/steps"
)

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
