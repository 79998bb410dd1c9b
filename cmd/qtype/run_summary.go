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

	"github.com/qtype-dev/qtype/memory/show"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// maxReasons is how many different reasons of failed rows are counted apart.
const maxReasons = 1000

// shownReasons is how many of them the summary tells.
const shownReasons = 3

// summary counts what a run did.
type summary struct {
	job      *job
	begin    time.Time
	done     int64
	failed   int64
	written  bool // the file of -o stands under its name
	reasons  map[string]int
	sessions map[string]bool
	flushes  map[string]int // by memory and session, before the run
	input    atomic.Int64   // tokens read
	output   atomic.Int64   // tokens written
}

func newSummary(ctx context.Context, j *job) *summary {
	s := &summary{job: j, begin: time.Now(), reasons: map[string]int{}, sessions: map[string]bool{}, flushes: map[string]int{}}
	for _, m := range usedMemories(j.flow) {
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

// usedMemories are the memories of a flow's steps, each once, in their order.
func usedMemories(f *spec.Flow) []string {
	var ids []string
	for _, item := range f.Steps {
		var m *spec.Memory
		switch s := item.Step.(type) {
		case *spec.LLMInference:
			m = s.Memory.To
		case *spec.Agent:
			m = s.Memory.To
		}
		if m != nil && !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
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
	s.sessions[res.Session] = true
	if res.Err == nil {
		s.done++
		return
	}
	s.failed++
	reason := clean(res.Err.Error())
	if s.reasons[reason] > 0 || len(s.reasons) < maxReasons {
		s.reasons[reason]++
	}
}

// print writes the closing lines of a run.
func (s *summary) print(ctx context.Context) {
	j := s.job
	fmt.Fprintf(j.err, "%s: %s\n", count(s.done+s.failed, "row"), s.outcome())
	for _, line := range s.reasonLines() {
		fmt.Fprintln(j.err, line)
	}
	if line := s.usage(ctx); line != "" {
		fmt.Fprintln(j.err, line)
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
	for _, id := range usedMemories(s.job.flow) {
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

// flushCount is "1 flush" or "3 flushes".
func flushCount(n int) string {
	if n == 1 {
		return "1 flush"
	}
	return show.Thousands(n) + " flushes"
}
