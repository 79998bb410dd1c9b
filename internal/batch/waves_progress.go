package batch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/waves"
)

// waveProgress shows how far a run in batches is: what it reports in lines, and a line with its state, which a terminal
// shows all the time, a log now and then. With Config.ProgressJSON, standard output has both as JSON. It is safe for
// concurrent use.
type waveProgress struct {
	job *job

	mu    sync.Mutex
	sum   *summary // nil before the first pass
	done  int      // rows, as of the newest pass
	left  int
	drawn bool // the terminal shows the state, in its last line

	remote *WaveState // what the engine has reported last; nil without an engine, or before that
	shown  int        // lines of the engine that were written
}

// WaveState is how far a run in batches is in another process.
type WaveState struct {
	waves.Status
	Done  int     `json:"rows_done"` // as of the newest pass
	Left  int     `json:"rows_left"`
	Cost  float64 `json:"cost"` // so far
	Saved float64 `json:"saved"`

	First int      `json:"first"` // the number of the first line
	Lines []string `json:"lines,omitempty"`

	Counts waves.Counts `json:"counts"`
}

// take notes what an engine reports, and writes the lines that are new.
func (p *waveProgress) take(s WaveState) {
	p.mu.Lock()
	lines := s.Lines[min(max(p.shown-s.First, 0), len(s.Lines)):]
	p.remote, p.shown = &s, max(p.shown, s.First+len(s.Lines))
	p.done, p.left = s.Done, s.Left
	p.mu.Unlock()
	for _, line := range lines {
		p.report(line)
	}
}

// counts returns what was sent.
func (p *waveProgress) counts() waves.Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.remote != nil:
		return p.remote.Counts
	case p.job.remote != nil:
		return waves.Counts{}
	}
	return p.job.Waves.Counts()
}

// ProgressEvent is a line of the progress in JSON.
type ProgressEvent struct {
	Time    time.Time `json:"time"`
	Message string    `json:"message,omitempty"` // what has happened; none for a look at the state
	waves.Status
	RowsDone int     `json:"rows_done"` // finished ones, as of the newest pass over the rows
	RowsLeft int     `json:"rows_left"`
	Cost     float64 `json:"cost"`  // so far, of this process
	Saved    float64 `json:"saved"` // by batches
}

const (
	lookTerminal = time.Second      // between two drawings of the state
	lookJSON     = time.Minute      // between two looks at the state in JSON
	lookLog      = 10 * time.Minute // between two lines with the state in a log
)

// report writes a line with what has happened.
func (p *waveProgress) report(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	if !p.job.Quiet {
		fmt.Fprintln(p.job.Streams.Err, terminal.Clean(line))
	}
	p.writeJSON(line)
}

// clear removes the state from the terminal. The mutex is locked.
func (p *waveProgress) clear() {
	if p.drawn {
		p.drawn = false
		fmt.Fprint(redact.Unwrap(p.job.Streams.Err), "\r\x1b[K")
	}
}

// pass notes the rows after a pass.
func (p *waveProgress) pass(done, left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.left = done, left
}

// event returns the state of the run. The mutex is locked.
func (p *waveProgress) event(message string) (ProgressEvent, bool) {
	if p.job.remote != nil {
		s := p.remote
		if s == nil {
			return ProgressEvent{}, false
		}
		return ProgressEvent{Time: time.Now(), Message: message, Status: s.Status, RowsDone: s.Done, RowsLeft: s.Left, Cost: s.Cost, Saved: s.Saved}, true
	}
	status, err := p.job.Waves.Status(context.Background())
	if err != nil { // the run reports it
		return ProgressEvent{}, false
	}
	ev := ProgressEvent{Time: time.Now(), Message: message, Status: status, RowsDone: p.done, RowsLeft: p.left}
	if p.sum != nil {
		p.sum.mu.Lock()
		ev.Cost, ev.Saved = p.sum.cost, p.sum.saved
		p.sum.mu.Unlock()
	}
	return ev, true
}

// writeJSON writes an event. The mutex is locked.
func (p *waveProgress) writeJSON(message string) {
	if !p.job.ProgressJSON {
		return
	}
	if ev, ok := p.event(message); ok {
		_ = terminal.WriteJSON(p.job.Streams.Out, ev) // as other progress
	}
}

// show shows the state until stop is called.
func (p *waveProgress) show(sum *summary) (stop func()) {
	p.mu.Lock()
	p.sum = sum
	p.mu.Unlock()
	looks := []func() func(){}
	if p.job.ProgressJSON {
		looks = append(looks, func() func() {
			return every(lookJSON, func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.writeJSON("")
			})
		})
	}
	switch {
	case p.job.Quiet || p.job.Prompts:
	case p.job.Streams.ErrTerminal:
		looks = append(looks, func() func() { return every(lookTerminal, p.draw) })
	default:
		looks = append(looks, func() func() { return every(lookLog, p.log) })
	}
	stops := []func(){}
	for _, begin := range looks {
		stops = append(stops, begin())
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.clear()
	}
}

// every calls do again and again until stop is called.
func every(span time.Duration, do func()) (stop func()) {
	ended := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		ticker := time.NewTicker(span)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				do()
			}
		}
	})
	return func() { close(ended); wait.Wait() }
}

// draw draws the state in the last line of the terminal itself, as it has no texts of rows.
func (p *waveProgress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	ev, ok := p.event("")
	if !ok {
		return
	}
	width := max(p.job.Streams.Width-1, 20)
	line := []rune(terminal.Clean(ev.line(time.Since(p.sum.begin))))
	p.clear()
	fmt.Fprint(redact.Unwrap(p.job.Streams.Err), string(line[:min(len(line), width)]))
	p.drawn = true
}

// log writes a line with the state.
func (p *waveProgress) log() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ev, ok := p.event(""); ok {
		fmt.Fprintln(p.job.Streams.Err, terminal.Clean(ev.line(time.Since(p.sum.begin))))
	}
}

// line returns the state of a run that has worked for a time.
func (ev *ProgressEvent) line(since time.Duration) string {
	parts := []string{fmt.Sprintf("wave %d", ev.Wave)}
	if len(ev.Open) > 0 {
		states := map[string]int{}
		for i := range ev.Open {
			states[ev.Open[i].State]++
		}
		var words []string
		for _, state := range slices.Sorted(maps.Keys(states)) {
			words = append(words, strings.TrimSpace(fmt.Sprintf("%d %s", states[state], state)))
		}
		parts = append(parts, fmt.Sprintf("%s open (%s)", countBatches(len(ev.Open)), strings.Join(words, ", ")), textfmt.Count(int64(ev.Waiting()), "call")+" wait")
	}
	if ev.RowsDone+ev.RowsLeft > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s done", textfmt.Thousands(int64(ev.RowsDone)), textfmt.Count(int64(ev.RowsDone+ev.RowsLeft), "row")))
	}
	if ev.Cost > 0 {
		parts = append(parts, fmt.Sprintf("cost %s, saved %s", textfmt.Amount(ev.Cost), textfmt.Amount(ev.Saved)))
	}
	parts = append(parts, textfmt.Duration(since.Round(time.Second)))
	if !ev.Expected.IsZero() {
		parts = append(parts, "expected "+ev.Expected.Local().Format(time.TimeOnly))
	}
	return strings.Join(parts, " · ")
}
