package temporal

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// formatVersion is part of the name of task queues: workers of another version do not
// take part in a run.
const formatVersion = 11

// chunk is a sequence of rows that one worker runs.
type chunk struct {
	Rows [][]byte // as runtime.RowCodec encodes them
}

// output is what a chunk has made.
type output struct {
	Results [][]byte // as runtime.RowCodec encodes them, in order
	Stats   stats
	Folder  string // of further results, each blob with a resultPart; empty if there are none
	Parts   int    // the number of these blobs

	Waves *batch.WaveState // of a run in batches
}

// resultPart is a part of the results of the last steps of a flow with batch steps.
type resultPart struct {
	Results [][]byte // as runtime.RowCodec encodes them, in order
}

// finishedRow is a row of a chunk that is finished.
type finishedRow struct {
	Key     checkpoint.Key
	Results [][]byte // as checkpoint.Store gets them
	Failed  bool
	Events  []event // of the row
}

// servedRequest is what a run of a server has besides its rows.
type servedRequest struct {
	Start []byte // as runs.EncodeStart returns it
}

// streamed is a part of the events of a chunk, in order.
type streamed struct {
	Events []streamedEvent
}

// streamedEvent is an event of a step, or requests to the client that belong together.
type streamedEvent struct {
	Event    steps.Event // without Err
	Err      string      // its text; empty for none
	Requests []streamedRequest
}

// streamedRequest is a tool.Request.
type streamedRequest struct {
	Kind   durable.RequestKind
	Tool   streamedTool
	Args   []byte
	Caller tool.Caller
	By     []string `json:",omitempty"` // who may decide: spec.Approval.By
}

// streamedTool is the part of a tool.Info that people see.
type streamedTool struct{ ID, Set, Name, Description string }

// place is where a value is: here, or in a blob.
type place struct {
	Inline []byte      `json:"inline,omitempty"`
	Blob   string      `json:"blob,omitempty"`
	Alone  int         `json:"alone,omitempty"` // the number in its chunk of the row that runs alone; 0 for none
	Steps  []stepStats `json:"steps,omitempty"` // what the last steps of a flow with batch steps have done

	Waves *batch.WaveState `json:"waves,omitempty"` // of a run in batches
}

// stats is what the progress and the summary of a run show.
type stats struct {
	Rows   int64       // results
	Failed int64       // those that failed
	Steps  []stepStats // in the order of the flow
	Events []event     // the tokens, turns and fallbacks

	HasFailed bool // a row has failed in a step, also if the step dropped it

	Outages int    // the last rows that have failed for a reason for which all would
	Outage  string // the reason
}

// stepStats counts the rows of a step; see runtime.StepProgress.
type stepStats struct {
	Step   string        `json:"step"`
	In     int64         `json:"in"`
	Done   int64         `json:"done"`
	Failed int64         `json:"failed,omitempty"`
	Hits   int64         `json:"hits,omitempty"`
	Misses int64         `json:"misses,omitempty"`
	Time   time.Duration `json:"time,omitempty"`

	Index *steps.IndexCounts `json:"index,omitempty"`
}

// stepsOf returns the counts of a run in this process.
func stepsOf(p *runtime.Progress) []stepStats {
	var all []stepStats
	for _, s := range p.Steps() {
		all = append(all, stepStats{Step: s.Step, In: s.In, Done: s.Done, Failed: s.Failed, Hits: s.Hits, Misses: s.Misses, Time: s.Time, Index: s.Index})
	}
	return all
}

// progressOf is the reverse of stepsOf.
func progressOf(all []stepStats) []runtime.StepProgress {
	var list []runtime.StepProgress
	for _, s := range all {
		list = append(list, runtime.StepProgress{Step: s.Step, In: s.In, Done: s.Done, Failed: s.Failed, Hits: s.Hits, Misses: s.Misses, Time: s.Time, Index: s.Index})
	}
	return list
}

// addSteps returns the sums of two lists of counts of one flow.
func addSteps(a, b []stepStats) []stepStats {
	sum := make([]stepStats, max(len(a), len(b)))
	copy(sum, a)
	for i, s := range b {
		t := &sum[i]
		t.Step = s.Step
		t.In, t.Done, t.Failed = t.In+s.In, t.Done+s.Done, t.Failed+s.Failed
		t.Hits, t.Misses, t.Time = t.Hits+s.Hits, t.Misses+s.Misses, t.Time+s.Time
		t.Index = addIndexCounts(t.Index, s.Index)
	}
	return sum
}

// addIndexCounts returns the sum of what a step did to an index; nil if it writes to none.
func addIndexCounts(a, b *steps.IndexCounts) *steps.IndexCounts {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &steps.IndexCounts{Written: a.Written + b.Written, Unchanged: a.Unchanged + b.Unchanged, Removed: a.Removed + b.Removed, Kept: cmp.Or(b.Kept, a.Kept)}
}

// event is the sum of some steps.Events.
type event struct {
	Kind                   steps.EventKind
	Memory, Session, Model string
	Failed                 *model.Failure
	Input, Output, Cached  int
	Estimated              bool // whether some of them are estimates
	Flushes                int
	Calls                  int // of models and tools
	Repeated               int // calls of What
	What                   string
	Cost, Saved            float64
}

// eventSums are sums of events: one of the tokens, and one of the turns of each session with a memory.
type eventSums struct {
	all   []event
	known map[eventKind]int // the indexes of those that are sums
}

// eventKind identifies a sum of events.
type eventKind struct {
	kind            steps.EventKind
	memory, session string
	what            string
}

// add adds an event.
func (s *eventSums) add(ev event) {
	if ev.Failed != nil {
		s.all = append(s.all, ev)
		return
	}
	key := eventKind{ev.Kind, ev.Memory, ev.Session, ev.What}
	at, ok := s.known[key]
	if !ok {
		if s.known == nil {
			s.known = map[eventKind]int{}
		}
		s.known[key] = len(s.all)
		s.all = append(s.all, ev)
		return
	}
	sum := &s.all[at]
	sum.Input, sum.Output, sum.Cached = sum.Input+ev.Input, sum.Output+ev.Output, sum.Cached+ev.Cached
	sum.Estimated = sum.Estimated || ev.Estimated
	sum.Cost, sum.Saved, sum.Flushes, sum.Calls = sum.Cost+ev.Cost, sum.Saved+ev.Saved, sum.Flushes+ev.Flushes, sum.Calls+ev.Calls
	sum.Repeated += ev.Repeated
}

// addAll adds events.
func (s *eventSums) addAll(all []event) {
	for _, ev := range all {
		s.add(ev)
	}
}

// eventOf returns what is kept of an event.
func eventOf(ev steps.Event) event {
	kept := event{Kind: ev.Kind, Input: ev.Input, Output: ev.Output, Cached: ev.Cached, Estimated: ev.Estimated, Cost: ev.Cost, Saved: ev.Saved, Flushes: ev.Flushes, Memory: ev.Memory, Failed: ev.Failed}
	if ev.Kind == steps.EventUsage || ev.Kind == steps.EventToolCall {
		kept.Calls = 1
	}
	if ev.Kind == steps.EventTurn {
		kept.Session = ev.Session
	}
	if ev.Kind == steps.EventFallback {
		kept.Model = ev.Model
	}
	if ev.Kind == steps.EventRepeated {
		kept.Repeated, kept.What = ev.Repeated, ev.Text
	}
	return kept
}

// event is the reverse of eventOf.
func (e event) event() steps.Event {
	return steps.Event{Kind: e.Kind, Input: e.Input, Output: e.Output, Cached: e.Cached, Estimated: e.Estimated, Cost: e.Cost, Saved: e.Saved, Flushes: e.Flushes,
		Memory: e.Memory, Session: e.Session, Model: e.Model, Failed: e.Failed, Text: e.What, Repeated: e.Repeated}
}

// repeatedOf returns how many calls of events were repeated.
func repeatedOf(events []event) (n int64) {
	for _, ev := range events {
		n += int64(ev.Repeated)
	}
	return n
}

// The names of the blobs of a run.
func inputName(run string, partition, number int) string {
	return fmt.Sprintf("%s/in/%d/%d", run, partition, number)
}
func outputName(run string, partition, number int) string {
	return fmt.Sprintf("%s/out/%d/%d", run, partition, number)
}
func callsName(run string, partition, number int) string {
	return fmt.Sprintf("%s/calls/%d/%d", run, partition, number)
}
func attemptsName(run string) string         { return run + "/attempts" }
func attemptName(run, segment string) string { return attemptsName(run) + "/" + segment }
func requestName(run string) string          { return run + "/request" }
func eventsName(run string, partition, number, part int) string {
	return fmt.Sprintf("%s/events/%d/%d/%d", run, partition, number, part)
}
func askedName(run string, partition, number int, keys string) string {
	return fmt.Sprintf("%s/asked/%d/%d/%x", run, partition, number, sha256.Sum256([]byte(keys)))
}
func answerName(run string) string                  { return run + "/answers/" + rand.Text() }
func resultPartName(folder string, part int) string { return fmt.Sprintf("%s/%d", folder, part) }
