package temporal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// publishPause is the shortest time between two blobs with events.
const publishPause = 50 * time.Millisecond

// publisher stores the events of a chunk of a run of a server as blobs, which the server reads. Events that
// an earlier attempt has stored are not stored again.
type publisher struct {
	ctx   context.Context // of the activity
	blobs *blobs
	task  task
	start *runs.Start
	fail  func(error) // ends the chunk, which Temporal repeats

	mu      sync.Mutex
	seen    seenEvents
	pending []streamedEvent
	next    int // the number of the next blob
	wake    chan struct{}
	ending  chan struct{} // is closed by close
	closed  bool
	err     error
	writing sync.WaitGroup
}

// served returns the publisher of a chunk of a run of a server, nil for a run of a file.
func (w *chunkRunner) served(ctx context.Context, c *chunkRun) (*publisher, error) {
	t := c.task
	if t.Request == nil {
		return nil, nil
	}
	var req servedRequest
	if err := w.blobs.readPlace(ctx, *t.Request, &req); err != nil {
		return nil, err
	}
	start, err := runs.DecodeStart(w.app, req.Start)
	if err != nil {
		return nil, err
	}
	p := &publisher{ctx: ctx, blobs: w.blobs, task: t, start: start, fail: c.fail, wake: make(chan struct{}, 1), ending: make(chan struct{})}
	for ; ; p.next++ {
		var part streamed
		err := w.blobs.read(ctx, eventsName(t.Run, t.Partition, t.Number, p.next), &part)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i := range part.Events {
			p.seen.add(&part.Events[i])
		}
	}
	p.writing.Go(p.write)
	return p, nil
}

// options returns the options of the run of the chunk.
func (p *publisher) options() []runtime.RunOption {
	if !p.start.Events {
		return nil
	}
	return []runtime.RunOption{runtime.WithEvents(p.event, runs.EventKinds()...)}
}

// event takes an event of a step.
func (p *publisher) event(ev steps.Event) {
	s := streamedEvent{Event: ev}
	if ev.Err != nil {
		s.Event.Err, s.Err = nil, ev.Err.Error()
	}
	p.add(s)
}

// requests returns the func that shows requests to the client; nil if p is nil.
func (p *publisher) requests() func([]streamedRequest) {
	if p == nil {
		return nil
	}
	return func(all []streamedRequest) { p.add(streamedEvent{Requests: all}) }
}

func (p *publisher) add(ev streamedEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stopped := p.ctx.Err() != nil && ev.Requests == nil // steps report how they were interrupted
	if p.closed || stopped || !p.seen.takeNew(&ev) {
		return
	}
	p.pending = append(p.pending, ev)
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// write stores events as they come until the publisher is closed. The first one is stored at once.
func (p *publisher) write() {
	for range p.wake {
		p.mu.Lock()
		part, closed := streamed{Events: p.pending}, p.closed
		p.pending = nil
		p.mu.Unlock()
		if len(part.Events) > 0 {
			// Another attempt must find what clients may have seen, so the end of the chunk does not stop it.
			if err := p.blobs.store(context.WithoutCancel(p.ctx), eventsName(p.task.Run, p.task.Partition, p.task.Number, p.next), part, true); err != nil {
				p.err = err
				p.fail(err)
				return
			}
			p.next++
		}
		if closed {
			return
		}
		select {
		case <-time.After(publishPause):
		case <-p.ctx.Done():
		case <-p.ending:
		}
	}
}

// close stores the last events. Further calls, and those of a nil publisher, do nothing.
func (p *publisher) close() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.ending)
		close(p.wake) // the buffered value, or none, is followed by the end
	}
	p.mu.Unlock()
	p.writing.Wait()
	if p.err != nil || len(p.pending) == 0 {
		return p.err
	}
	part := streamed{Events: p.pending}
	p.pending = nil
	p.err = p.blobs.store(context.WithoutCancel(p.ctx), eventsName(p.task.Run, p.task.Partition, p.task.Number, p.next), part, true)
	p.next++
	return p.err
}

// seenEvents are the events of earlier attempts that this one has not repeated yet. A recorded answer of a model
// is reported as one delta, so texts are compared without regard to their parts.
type seenEvents struct {
	counts map[string]int
	texts  map[string]string // by steps and rows
}

// textKey identifies the text of a step in a row; ok is false for other events.
func textKey(ev *streamedEvent) (key string, ok bool) {
	return fmt.Sprintf("%d %q", ev.Event.Row, ev.Event.Step), ev.Requests == nil && ev.Event.Kind == steps.EventText
}

// eventKey identifies an event.
func eventKey(ev *streamedEvent) string {
	if ev.Requests != nil {
		var key strings.Builder
		for _, r := range ev.Requests {
			fmt.Fprintf(&key, "%s-%s ", r.Kind, r.Caller.Key)
		}
		return key.String()
	}
	e := ev.Event
	source := ""
	if e.Source != nil {
		source = e.Source.ID
	}
	return fmt.Sprintf("%s %q %d %q %q %q %q %d %d %q", e.Kind, e.Step, e.Row, e.Tool, e.CallID, e.Text, ev.Err, e.Input, e.Output, source)
}

// isUnrecorded reports whether an event is a delta of reasoning or commentary. A recorded answer does not
// report them again, so each one comes from another call of the model.
func isUnrecorded(ev *streamedEvent) bool {
	return ev.Requests == nil && (ev.Event.Kind == steps.EventReasoning || ev.Event.Kind == steps.EventCommentary)
}

// add adds an event of an earlier attempt.
func (s *seenEvents) add(ev *streamedEvent) {
	if s.counts == nil {
		s.counts, s.texts = map[string]int{}, map[string]string{}
	}
	if key, ok := textKey(ev); ok {
		s.texts[key] += ev.Event.Text
		return
	}
	s.counts[eventKey(ev)]++
}

// takeNew reports whether an event is new, and reduces a text to its new part. If a model gives another answer
// than that whose beginning was stored, its text is new.
func (s *seenEvents) takeNew(ev *streamedEvent) bool {
	if s.counts == nil {
		return true
	}
	key, isText := textKey(ev)
	if !isText {
		key = eventKey(ev)
		if isUnrecorded(ev) || s.counts[key] == 0 {
			return true
		}
		s.counts[key]--
		return false
	}
	before := s.texts[key]
	if rest, ok := strings.CutPrefix(before, ev.Event.Text); ok {
		s.texts[key] = rest
		return false
	}
	delete(s.texts, key)
	ev.Event.Text = strings.TrimPrefix(ev.Event.Text, before)
	return true
}
