package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/qtype-dev/qtype/runtime"
)

const (
	showAfter  = 400 * time.Millisecond // runs that are shorter show no progress
	redraw     = 100 * time.Millisecond // between two drawings of the bars
	logEvery   = 10 * time.Second       // between two lines in a log
	barColumns = 30                     // columns of a bar
)

// display shows how far a run has come: bars on a terminal, now and then a line
// in a log.
type display struct {
	done   chan struct{}
	wait   sync.WaitGroup
	mu     sync.Mutex
	bars   *mpb.Progress // nil while none are drawn
	shared bool          // results go to the terminal that the bars are on
}

// showProgress starts the display; stop ends it.
func (j *runJob) showProgress(ctx context.Context, p *runtime.Progress) *display {
	d := &display{done: make(chan struct{}), shared: j.outTerminal && j.errTerminal}
	if _, plain := j.results.(*recordSink); plain && d.shared && j.output == "" {
		return d // JSON lines and bars on one terminal would garble each other
	}
	if j.quiet || j.clients.interactive(j.app.Spec()) || (j.in.file == nil && len(j.in.memory) < 2) {
		return d
	}
	m := &progressBars{progress: p, total: j.in.total, begin: time.Now(), gathers: j.gathers}
	if j.log != nil && m.total >= 0 {
		m.total -= j.log.before
	}
	d.wait.Go(func() {
		if j.errTerminal {
			d.draw(ctx, j.err, m)
			return
		}
		d.log(ctx, j.err, m)
	})
	return d
}

// stop takes the bars away.
func (d *display) stop() {
	close(d.done)
	d.wait.Wait()
}

// over is where a line of results goes: above the bars where they share a
// terminal, else to out.
func (d *display) over(out io.Writer) io.Writer {
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

// aboveBars writes over the bars, and without them once they are gone.
type aboveBars struct {
	bars *mpb.Progress
	out  io.Writer
}

// Write hands the text to the bars' writer.
func (a aboveBars) Write(p []byte) (int, error) {
	if n, err := a.bars.Write(p); err == nil {
		return n, nil
	}
	return a.out.Write(p)
}

// pause waits for d; false when the run ends meanwhile.
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

// log writes a line now and then.
func (d *display) log(ctx context.Context, out io.Writer, m *progressBars) {
	for d.pause(ctx, logEvery) {
		fmt.Fprintln(out, m.line())
	}
}

// draw keeps one bar a step up to date.
func (d *display) draw(ctx context.Context, out io.Writer, m *progressBars) {
	if !d.pause(ctx, showAfter) {
		return
	}
	bars := mpb.New(mpb.WithOutput(out), mpb.WithWidth(barColumns), mpb.WithRefreshRate(redraw), mpb.WithAutoRefresh())
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

// progressBars reads a run's progress.
type progressBars struct {
	progress *runtime.Progress
	total    int64 // rows in all, -1 where that is not known
	begin    time.Time
	gathers  bool // what comes out are no rows of the input
}

// rows is how many rows of the input are done, and how many results have failed. Where
// a step gathers rows those count that the first step has taken.
func (m *progressBars) rows() (done, failed int64) {
	_, done, failed = m.progress.Rows()
	if all := m.progress.Steps(); m.gathers && len(all) > 0 {
		done = all[0].In
	}
	return done, failed
}

// addBars makes a bar for each step and a line for the time that is left.
func (m *progressBars) addBars(bars *mpb.Progress) []*mpb.Bar {
	all := m.progress.Steps()
	widest := 0
	for _, s := range all {
		widest = max(widest, min(len(s.Step), 20))
	}
	var drawn []*mpb.Bar
	for i, s := range all {
		name := pad(s.Step, widest)
		drawn = append(drawn, bars.New(0, mpb.BarStyle().Lbound("").Rbound("").Filler("█").Tip("█").Padding(" "),
			mpb.BarFillerTrim(),
			mpb.PrependDecorators(decor.Name(name+"  ")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return m.step(i) }))))
	}
	return append(drawn, bars.New(0, mpb.NopStyle(), mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return m.eta() }))))
}

// update sets the bars to where the steps are.
func (m *progressBars) update(drawn []*mpb.Bar) {
	read, _, _ := m.progress.Rows()
	for i, s := range m.progress.Steps() {
		drawn[i].SetTotal(max(m.total, read, s.In, 1), false)
		drawn[i].SetCurrent(s.In)
	}
}

// step is the numbers behind a step's bar.
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

// rate is rows a second since the run began.
func (m *progressBars) rate(rows int64) float64 {
	return float64(rows) / max(time.Since(m.begin).Seconds(), 0.001)
}

// eta is how long the rest will take at the speed so far; empty where unknown.
func (m *progressBars) eta() string {
	done, _ := m.rows()
	if m.total < 0 || done == 0 || done >= m.total {
		return ""
	}
	left := time.Duration(float64(m.total-done) / m.rate(done) * float64(time.Second))
	return "eta " + max(left, time.Second).Round(time.Second).String()
}

// line is the progress in a log.
func (m *progressBars) line() string {
	done, failed := m.rows()
	parts := []string{count(done, "row")}
	if m.total >= 0 {
		parts[0] = fmt.Sprintf("%d of %s", done, count(m.total, "row"))
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
