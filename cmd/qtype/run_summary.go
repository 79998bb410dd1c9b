package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/memoryview/show"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// maxReasons is how many different reasons of failed rows are counted apart.
const maxReasons = 1000

// shownReasons is how many of them the summary tells.
const shownReasons = 3

// summary counts what a run did.
type summary struct {
	job       *runJob
	progress  *runtime.Progress
	begin     time.Time
	done      int64
	failed    int64
	before    int64           // of those, how many came out of an earlier run
	written   bool            // the file of -o stands under its name
	reasons   map[string]int  // rows by why they failed
	sessions  map[string]bool // those of the rows, where a memory is used
	flushes   map[string]int  // by memory and session, before the run
	remembers bool            // the flow uses a memory
	input     atomic.Int64    // tokens read
	output    atomic.Int64    // tokens written
}

func newSummary(ctx context.Context, j *runJob, p *runtime.Progress) *summary {
	s := &summary{job: j, progress: p, begin: time.Now(), reasons: map[string]int{}, sessions: map[string]bool{}, flushes: map[string]int{}}
	for _, m := range runtime.MemoryIDs(j.flow) {
		s.remembers = true
		// A store that cannot be read shows when the first step needs it.
		infos, _ := j.app.Memory(m).Sessions(ctx)
		for _, info := range infos {
			if info.Flushes > 0 {
				s.flushes[m+"\x00"+info.Session] = info.Flushes
			}
		}
	}
	return s
}

// event counts tokens. It is called from many goroutines at once.
func (s *summary) event(ev steps.Event) {
	if ev.Kind == steps.EventUsage {
		s.input.Add(int64(ev.Input))
		s.output.Add(int64(ev.Output))
	}
}

// add counts a result.
func (s *summary) add(res *runtime.Result) {
	if s.remembers && !res.Replayed {
		s.sessions[res.Session] = true
	}
	if res.Replayed && !s.job.gathers {
		s.before++
	}
	if res.Err == nil {
		s.done++
		return
	}
	s.fail(res.Err.Error())
}

func (s *summary) fail(why string) {
	s.failed++
	reason := clean(why)
	if s.reasons[reason] > 0 || len(s.reasons) < maxReasons {
		s.reasons[reason]++
	}
}

// print writes the closing lines of a run.
func (s *summary) print(ctx context.Context) {
	j := s.job
	rows := count(s.done+s.failed, "row")
	if j.in.file != nil && j.gathers {
		rows += fmt.Sprintf(" made of %s", show.Thousands(int(j.rowsRead(s.progress))))
	}
	fmt.Fprintf(j.err, "%s: %s\n", rows, s.outcome())
	for _, line := range s.reasonLines() {
		fmt.Fprintln(j.err, line)
	}
	for _, line := range []string{s.usage(ctx), s.caches(), s.times()} {
		if line != "" {
			fmt.Fprintln(j.err, line)
		}
	}
	switch {
	case s.failed == 0:
	case j.errors != "":
		fmt.Fprintf(j.err, "failed rows: %s has them, run again with -I %s\n", clean(j.errors), clean(j.errors))
	case j.in.file != nil:
		fmt.Fprintln(j.err, "failed rows: --errors failed.jsonl writes them, run again with -I failed.jsonl")
	}
}

// outcome is "203 done, 1 failed (draft: …) in 5.1 s".
func (s *summary) outcome() string {
	text := fmt.Sprintf("%s done", show.Thousands(int(s.done)))
	if s.failed > 0 {
		text += fmt.Sprintf(", %s failed", show.Thousands(int(s.failed)))
	}
	if len(s.reasons) == 1 {
		for reason := range s.reasons {
			text += " (" + reason + ")"
		}
	}
	if s.before > 0 {
		text += fmt.Sprintf(", %s of them before", show.Thousands(int(s.before)))
	}
	if s.written {
		text += ", written to " + clean(s.job.output) + ","
	}
	return text + " in " + took(time.Since(s.begin))
}

// reasonLines are the most frequent reasons, where there are several.
func (s *summary) reasonLines() []string {
	if len(s.reasons) < 2 {
		return nil
	}
	reasons := slices.Collect(maps.Keys(s.reasons))
	slices.SortFunc(reasons, func(a, b string) int {
		return cmp.Or(s.reasons[b]-s.reasons[a], strings.Compare(a, b))
	})
	var lines []string
	for i, reason := range reasons {
		if i == shownReasons {
			lines = append(lines, fmt.Sprintf("  and %s more", count(len(reasons)-i, "reason")))
			break
		}
		lines = append(lines, fmt.Sprintf("  %s × %s", show.Thousands(s.reasons[reason]), reason))
	}
	return lines
}

// usage is the line of tokens and memories; empty where there are neither.
func (s *summary) usage(ctx context.Context) string {
	var parts []string
	if in, out := s.input.Load(), s.output.Load(); in+out > 0 {
		parts = append(parts, fmt.Sprintf("tokens %s in, %s out", show.Thousands(int(in)), show.Thousands(int(out))))
	}
	for _, id := range runtime.MemoryIDs(s.job.flow) {
		infos, err := s.job.app.Memory(id).Sessions(ctx)
		if err != nil {
			continue // the rows have told
		}
		sessions, flushes := 0, 0
		for _, info := range infos {
			if s.sessions[info.Session] {
				sessions++
				flushes += info.Flushes - s.flushes[id+"\x00"+info.Session]
			}
		}
		if sessions == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("memory %s: %s, %s", id, count(sessions, "session"), flushCount(flushes)))
	}
	return strings.Join(parts, " · ")
}

// caches is the line of what steps found in their caches; empty where no step has one.
func (s *summary) caches() string {
	var parts []string
	for _, step := range s.progress.Steps() {
		if asked := step.Hits + step.Misses; asked > 0 {
			parts = append(parts, fmt.Sprintf("%s had %s of %s", step.Step, show.Thousands(int(step.Hits)), count(asked, "row")))
		}
	}
	if parts == nil {
		return ""
	}
	return "cache of " + strings.Join(parts, ", of ")
}

// timedRun is the shortest run whose steps' times are told.
const timedRun = time.Second

// times is the line of what the steps took, the slowest first; empty for a run
// that took no time to speak of.
func (s *summary) times() string {
	all := s.progress.Steps()
	total := time.Duration(0)
	for _, step := range all {
		total += step.Time
	}
	if time.Since(s.begin) < timedRun || total == 0 {
		return ""
	}
	slices.SortStableFunc(all, func(a, b runtime.StepProgress) int { return cmp.Compare(b.Time, a.Time) })
	var parts []string
	for i, step := range all {
		if i == shownSteps || step.Time*100 < total {
			break // what is below a hundredth is nobody's trouble
		}
		parts = append(parts, fmt.Sprintf("%s %d %% (%s a row)", step.Step, step.Time*100/total, short(step.Time/time.Duration(max(step.In, 1)))))
	}
	return "time " + strings.Join(parts, ", ")
}

// shownSteps is how many steps the summary tells the time of.
const shownSteps = 4

// short is a length of time in three figures.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%.1f µs", float64(d)/1e3)
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	}
	return took(d)
}

// flushCount is "1 flush" or "3 flushes".
func flushCount(n int) string {
	if n == 1 {
		return "1 flush"
	}
	return show.Thousands(n) + " flushes"
}
