package batch

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

const (
	showAfter   = 400 * time.Millisecond // shorter runs show no progress
	redraw      = 100 * time.Millisecond // the interval between two drawings of the bars
	logInterval = 10 * time.Second       // the interval between two lines in a log
	barWidth    = 30                     // terminal columns of a bar
)

// display shows the progress of a run: bars on a terminal, lines in a log.
type display struct {
	done   chan struct{}
	wait   sync.WaitGroup
	mu     sync.Mutex
	bars   *mpb.Progress // nil while none are drawn
	shared bool          // results go to the terminal with the bars
}

// showProgress starts the display.
func (j *job) showProgress(ctx context.Context, p *runtime.Progress) *display {
	d := &display{done: make(chan struct{}), shared: j.Streams.OutTerminal && j.Streams.ErrTerminal}
	if _, plain := j.results.(*recordSink); plain && d.shared && j.Output == "" {
		return d // records and bars on one terminal would garble each other
	}
	if j.Quiet || j.Prompts || j.Trace.OnTerminal() && j.Streams.ErrTerminal || (j.in.file == nil && len(j.in.values) < 2) {
		return d
	}
	m := &progressBars{progress: p, total: j.in.total, begin: time.Now(), manyResults: j.batches || makesManyRows(j.flow)}
	if j.journal != nil && m.total >= 0 {
		m.total -= j.journal.before
	}
	d.wait.Go(func() {
		if j.Streams.ErrTerminal {
			d.draw(ctx, j.Streams.Err, m)
			return
		}
		d.log(ctx, j.Streams.Err, m)
	})
	return d
}

// stop removes the bars.
func (d *display) stop() {
	close(d.done)
	d.wait.Wait()
}

// above returns a writer for a line of results: above the bars if these are on the
// same terminal, else out.
func (d *display) above(out io.Writer) io.Writer {
	if d == nil {
		return out
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shared && d.bars != nil {
		return aboveBars{d.bars, out}
	}
	return out
}

// aboveBars writes above the bars, and directly once they are removed.
type aboveBars struct {
	bars *mpb.Progress
	out  io.Writer
}

// Write writes the text.
func (a aboveBars) Write(p []byte) (int, error) {
	if n, err := a.bars.Write(p); err == nil {
		return n, nil
	}
	return a.out.Write(p)
}

// pause waits; it returns false if the run ends meanwhile.
func (d *display) pause(ctx context.Context, span time.Duration) bool {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.done:
	case <-ctx.Done():
	}
	return false
}

// log writes a line at each interval.
func (d *display) log(ctx context.Context, out io.Writer, m *progressBars) {
	for d.pause(ctx, logInterval) {
		fmt.Fprintln(out, m.line())
	}
}

// draw draws a bar for each step.
func (d *display) draw(ctx context.Context, out io.Writer, m *progressBars) {
	if !d.pause(ctx, showAfter) {
		return
	}
	// Bars need the terminal itself, and have no texts of rows.
	bars := mpb.New(mpb.WithOutput(redact.Unwrap(out)), mpb.WithWidth(barWidth), mpb.WithRefreshRate(redraw), mpb.WithAutoRefresh())
	d.mu.Lock()
	d.bars = bars
	d.mu.Unlock()
	drawn := m.addBars(bars)
	for d.pause(ctx, redraw) {
		m.update(drawn)
	}
	d.mu.Lock()
	d.bars = nil
	d.mu.Unlock()
	for _, b := range drawn {
		b.Abort(true)
	}
	bars.Wait()
}

// progressBars formats the progress of a run.
type progressBars struct {
	progress *runtime.Progress
	total    int64 // rows in all, -1 if unknown
	begin    time.Time
	// manyResults is set if a row of the input may have any number of results.
	manyResults bool
}

// makesManyRows reports whether a step of a flow makes several rows of one.
func makesManyRows(flow *spec.Flow) bool {
	return slices.ContainsFunc(flow.Plan().Steps, func(p *spec.StepPlan) bool { return p.Rows != spec.RowsOne })
}

// rows returns how many rows of the input are done, and how many results failed. If rows
// have any number of results, it counts the rows that the first step has taken.
func (m *progressBars) rows() (done, failed int64) {
	_, done, failed = m.progress.Rows()
	if all := m.progress.Steps(); m.manyResults && len(all) > 0 {
		done = all[0].In
	}
	return done, failed
}

// addBars adds a bar for each step and a line for the remaining time.
func (m *progressBars) addBars(bars *mpb.Progress) []*mpb.Bar {
	all := m.progress.Steps()
	widest := 0
	for _, s := range all {
		widest = max(widest, min(len(s.Step), 20))
	}
	var drawn []*mpb.Bar
	for i, s := range all {
		name := terminal.Pad(s.Step, widest)
		drawn = append(drawn, bars.New(0, mpb.BarStyle().Lbound("").Rbound("").Filler("█").Tip("█").Padding(" "),
			mpb.BarFillerTrim(),
			mpb.PrependDecorators(decor.Name(name+"  ")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return m.step(i) }))))
	}
	return append(drawn, bars.New(0, mpb.NopStyle(), mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return m.eta() }))))
}

// update sets the bars to the progress of the steps.
func (m *progressBars) update(drawn []*mpb.Bar) {
	read, _, _ := m.progress.Rows()
	for i, s := range m.progress.Steps() {
		drawn[i].SetTotal(max(m.total, read, s.In, 1), false)
		drawn[i].SetCurrent(s.In)
	}
}

// step returns the numbers next to a step's bar.
func (m *progressBars) step(i int) string {
	all := m.progress.Steps()
	if i >= len(all) {
		return ""
	}
	s := all[i]
	text := fmt.Sprintf("  %d", s.In)
	if m.total >= 0 {
		text += fmt.Sprintf("/%d", m.total)
	}
	text += fmt.Sprintf("   %.1f rows/s", m.rate(s.In))
	if s.Failed > 0 {
		text += fmt.Sprintf("   %d failed", s.Failed)
	}
	if s.Hits > 0 {
		text += fmt.Sprintf("   %d cached", s.Hits)
	}
	return text
}

// rate returns the rows per second since the run began.
func (m *progressBars) rate(rows int64) float64 {
	return float64(rows) / max(time.Since(m.begin).Seconds(), 0.001)
}

// eta estimates the remaining time from the average rate; empty if it is unknown.
func (m *progressBars) eta() string {
	done, _ := m.rows()
	if m.total < 0 || done == 0 || done >= m.total {
		return ""
	}
	left := time.Duration(float64(m.total-done) / m.rate(done) * float64(time.Second))
	return "eta " + max(left, time.Second).Round(time.Second).String()
}

// line returns the progress for a log.
func (m *progressBars) line() string {
	done, failed := m.rows()
	parts := []string{textfmt.Count(done, "row")}
	if m.total >= 0 {
		parts[0] = fmt.Sprintf("%d of %s", done, textfmt.Count(m.total, "row"))
	}
	if _, results, _ := m.progress.Rows(); m.manyResults {
		parts = append(parts, textfmt.Count(results, "result"))
	}
	parts = append(parts, fmt.Sprintf("%.1f rows/s", m.rate(done)))
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", failed))
	}
	for _, s := range m.progress.Steps() {
		if s.Hits > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d cached", s.Step, s.Hits))
		}
	}
	if eta := m.eta(); eta != "" {
		parts = append(parts, eta)
	}
	return strings.Join(parts, ", ")
}
