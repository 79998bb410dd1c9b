package batch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

const (
	maxReasons   = 1000        // how many different reasons of failed rows are counted
	shownReasons = 3           // how many of them the summary lists
	shownSteps   = 4           // how many steps the summary lists with their times
	minTimedRun  = time.Second // shorter runs have no times of steps
)

// summary counts what a run did.
type summary struct {
	job       *job
	progress  *runtime.Progress
	begin     time.Time
	done      int64
	failed    int64
	before    int64                 // results of an earlier run, part of done and failed
	written   bool                  // the output file is complete
	reasons   map[string]int        // failed rows by reason
	memories  map[string]*memoryUse // by the ids of memories
	input     atomic.Int64          // tokens
	output    atomic.Int64          // tokens
	cached    atomic.Int64          // tokens
	estimated atomic.Bool           // whether some tokens are estimates
	shortened atomic.Int64          // requests that were sent again without messages
	mu        sync.Mutex
	cost      float64
	saved     float64        // by batches
	fallbacks map[string]int // answers of fallbacks, by the models and the reason
	dropped   map[string]int // what was not sent to models, by what and why
	repeated  map[string]int // calls that were made again, by what was called
	tools     map[string]int // failed calls of tools by models, by the tool and the reason
}

// memoryUse is what a run did to a memory.
type memoryUse struct {
	sessions map[string]bool
	flushes  int
}

func newSummary(j *job, p *runtime.Progress) *summary {
	return &summary{job: j, progress: p, begin: time.Now(), reasons: map[string]int{}, memories: map[string]*memoryUse{}, fallbacks: map[string]int{}, dropped: map[string]int{}, repeated: map[string]int{}, tools: map[string]int{}}
}

// addTurn counts a turn of a memory.
func (s *summary) addTurn(ev steps.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.memories[ev.Memory]
	if used == nil {
		used = &memoryUse{sessions: map[string]bool{}}
		s.memories[ev.Memory] = used
	}
	used.sessions[ev.Session] = true
	used.flushes += ev.Flushes
}

// event counts tokens, turns of memories, shortened requests, fallbacks and failed calls of tools. It is called by several goroutines.
func (s *summary) event(ev steps.Event) {
	if ev.Kind == steps.EventUsage {
		s.input.Add(int64(ev.Input))
		s.output.Add(int64(ev.Output))
		s.cached.Add(int64(ev.Cached))
		if ev.Estimated {
			s.estimated.Store(true)
		}
		s.addCost(ev.Cost, ev.Saved)
	}
	if ev.Kind == steps.EventShortened {
		s.shortened.Add(1)
	}
	if ev.Kind == steps.EventTurn {
		s.addTurn(ev)
	}
	if ev.Kind == steps.EventFallback {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fallbacks[fmt.Sprintf("%s → %s: %s", ev.Failed.Model, ev.Model, ev.Failed.Reason())]++
	}
	if ev.Kind == steps.EventRepeated {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.repeated[terminal.Clean(ev.Text)] += ev.Repeated
	}
	if ev.Kind == steps.EventDropped {
		s.addDropped(ev)
	}
	if ev.Kind == steps.EventToolResult && ev.Err != nil && ev.CallID != "" { // otherwise a step called the tool, and its row has failed
		s.addToolFailure(ev)
	}
}

// addCost adds the cost of a call.
func (s *summary) addCost(cost, saved float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cost += cost
	s.saved += saved
}

// costText returns the cost of the run; empty if no model has prices.
func (s *summary) costText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cost == 0 {
		return ""
	}
	text := "cost " + textfmt.Amount(s.cost)
	for step := range s.job.flow.Plan().All() {
		if slices.ContainsFunc(step.Models(), func(m spec.ModelEntity) bool { return m.Base().HasListPrices() }) {
			return text + " (with built-in prices of " + catalogue.Date + ", in US dollars)"
		}
	}
	return text
}

// add counts a result.
func (s *summary) add(res *runtime.Result) {
	if res.Replayed && !s.job.batches && s.job.Waves == nil {
		s.before++
	}
	if res.Err == nil {
		s.done++
		return
	}
	s.failed++
	reason := terminal.Clean(res.Err.Error())
	if s.reasons[reason] > 0 || len(s.reasons) < maxReasons {
		s.reasons[reason]++
	}
}

// print writes the summary; if the run is quiet, only what failed.
func (s *summary) print() {
	j, out := s.job, s.job.Streams.Err
	if j.Quiet && s.failed == 0 {
		s.printLines(s.handled(), s.toolFailures(), s.rejections())
		return
	}
	rows := textfmt.Count(s.done+s.failed, "row")
	if j.in.file != nil && (j.batches || j.remote == nil && makesManyRows(j.flow)) { // an engine counts results
		rows += fmt.Sprintf(" made of %s", textfmt.Thousands(j.rowsRead(s.progress)))
	}
	fmt.Fprintf(out, "%s: %s\n", rows, s.outcome())
	s.printLines(s.reasonLines()...)
	s.printLines(s.handled(), s.toolFailures(), s.rejections())
	if !j.Quiet {
		s.printLines(s.usage(), s.frequent("made again after the end of a worker", s.repeated), s.waves(), s.outages(), s.reasoningDropped(), s.caches(), s.indexes(), s.times())
	}
	switch {
	case s.failed == 0:
	case j.ErrorFile != "":
		file := terminal.Clean(j.ErrorFile)
		fmt.Fprintf(out, "failed rows: written to %s, run again with -I %s\n", file, file)
	case j.in.file != nil:
		fmt.Fprintln(out, "failed rows: write them with --errors failed.jsonl, run again with -I failed.jsonl")
	}
}

// printLines writes the lines that are not empty.
func (s *summary) printLines(lines ...string) {
	for _, line := range lines {
		if line != "" {
			fmt.Fprintln(s.job.Streams.Err, line)
		}
	}
}

// outcome returns "203 done, 1 failed (draft: …) in 5.1 s".
func (s *summary) outcome() string {
	text := fmt.Sprintf("%s done", textfmt.Thousands(s.done))
	if s.failed > 0 {
		text += fmt.Sprintf(", %s failed", textfmt.Thousands(s.failed))
	}
	if len(s.reasons) == 1 {
		for reason := range s.reasons {
			text += " (" + reason + ")"
		}
	}
	if s.before > 0 {
		text += fmt.Sprintf(", %s of them before", textfmt.Thousands(s.before))
	}
	if s.written {
		text += ", written to " + terminal.Clean(s.job.Output) + ","
	}
	return text + " in " + textfmt.Duration(time.Since(s.begin))
}

// reasonLines returns the most frequent reasons if there are several.
func (s *summary) reasonLines() []string {
	if len(s.reasons) < 2 {
		return nil
	}
	lines, more := mostFrequent(s.reasons)
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("  and %s more", textfmt.Count(more, "reason")))
	}
	return lines
}

// mostFrequent returns the most frequent reasons with their numbers, and how many are left out.
func mostFrequent(counts map[string]int) (shown []string, more int) {
	all := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	more = max(0, len(all)-shownReasons)
	for _, reason := range all[:len(all)-more] {
		shown = append(shown, fmt.Sprintf("%s × %s", textfmt.Thousands(counts[reason]), reason))
	}
	return shown, more
}

// usage returns a line with tokens and memories; empty if there are none.
func (s *summary) usage() string {
	var parts []string
	if in, out := s.input.Load(), s.output.Load(); in+out > 0 {
		parts = append(parts, fmt.Sprintf("tokens %s in, %s out", textfmt.Thousands(in), textfmt.Thousands(out)))
		if n := s.cached.Load(); n > 0 {
			parts[0] = strings.Replace(parts[0], " in,", fmt.Sprintf(" in (%s cached),", textfmt.Thousands(n)), 1)
		}
		if s.estimated.Load() {
			parts[0] += " (estimated: a server reports no usage)"
		}
		if cost := s.costText(); cost != "" {
			parts = append(parts, cost)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.memories)) {
		used := s.memories[id]
		flushed := textfmt.Thousands(used.flushes) + " flushes"
		if used.flushes == 1 {
			flushed = "1 flush"
		}
		parts = append(parts, fmt.Sprintf("memory %s: %s, %s", id, textfmt.Count(len(used.sessions), "session"), flushed))
	}
	return strings.Join(parts, " · ")
}

// caches returns a line with the cache hits of steps; empty if no step has a cache.
func (s *summary) caches() string {
	var parts []string
	for _, step := range s.progress.Steps() {
		if rows := step.Hits + step.Misses; rows > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s of %s from cache", step.Step, textfmt.Thousands(step.Hits), textfmt.Count(rows, "row")))
		}
	}
	return strings.Join(parts, ", ")
}

// indexes returns a line with what steps did to indexes; empty if none did anything.
func (s *summary) indexes() string {
	var parts []string
	for _, step := range s.progress.Steps() {
		n := step.Index
		if n == nil || *n == (steps.IndexCounts{}) {
			continue
		}
		text := fmt.Sprintf("%s: %s written, %s unchanged", step.Step, textfmt.Thousands(n.Written), textfmt.Thousands(n.Unchanged))
		if n.Removed > 0 {
			text += fmt.Sprintf(", %s removed", textfmt.Thousands(n.Removed))
		}
		if n.Kept != "" {
			text += ", nothing removed because " + n.Kept
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " · ")
}

// times returns a line with the slowest steps; empty for a short run.
func (s *summary) times() string {
	all := s.progress.Steps()
	total := time.Duration(0)
	for _, step := range all {
		total += step.Time
	}
	if time.Since(s.begin) < minTimedRun || total == 0 {
		return ""
	}
	slices.SortStableFunc(all, func(a, b runtime.StepProgress) int { return cmp.Compare(b.Time, a.Time) })
	var parts []string
	for i, step := range all {
		if i == shownSteps || step.Time*100 < total {
			break // steps below one percent do not matter
		}
		parts = append(parts, fmt.Sprintf("%s %d %% (%s per row)", step.Step, step.Time*100/total, textfmt.ShortDuration(step.Time/time.Duration(max(step.In, 1)))))
	}
	return "time " + strings.Join(parts, ", ")
}
