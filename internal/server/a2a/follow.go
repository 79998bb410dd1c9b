package a2a

import (
	"context"
	"strconv"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
)

// remotePeriod is how often the state of a run of another process is read.
const remotePeriod = 250 * time.Millisecond

// settle waits until a run has ended or waits for requests other than answered. It returns
// the run, or a newer snapshot of one of another process.
func (q *requests) settle(ctx context.Context, run *runs.Run, answered map[string]bool) (*runs.Run, error) {
	if !run.Remote() {
		_, err := run.Settle(ctx)
		return run, err
	}
	return q.poll(ctx, run, func(s *runs.State) bool {
		if s.Status != runs.Waiting {
			return s.Status.Ended()
		}
		for _, r := range s.Pending {
			if !answered[r.ID] {
				return true
			}
		}
		return false
	})
}

// end waits until a run has ended.
func (q *requests) end(ctx context.Context, run *runs.Run) (*runs.Run, error) {
	if !run.Remote() {
		return run, run.Wait(ctx)
	}
	return q.poll(ctx, run, func(s *runs.State) bool { return s.Status.Ended() })
}

// poll reads the run of another process until its state is the wanted one.
func (q *requests) poll(ctx context.Context, run *runs.Run, wanted func(*runs.State) bool) (*runs.Run, error) {
	ticker := time.NewTicker(remotePeriod)
	defer ticker.Stop()
	for {
		state := run.State()
		if wanted(&state) {
			return run, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		var err error
		if run, err = q.find(ctx, sdk.TaskID(run.ID)); err != nil {
			return nil, err
		}
		if !run.Remote() {
			return q.settle(ctx, run, nil)
		}
	}
}

// follow yields a task and its changes until it has ended or waits. The run goes on if the
// client stops listening.
func (q *requests) follow(ctx context.Context, s *sent, yield func(sdk.Event, error) bool) {
	run := s.run
	if run.State().Status.Ended() && (run.Remote() || run.Count() <= s.seen) {
		yield(q.task(run, true), nil)
		return
	}
	u := newUpdates(q, run)
	for _, ev := range run.Events(s.seen) {
		_ = u.of(&ev)
	}
	if !yield(u.task(s), nil) {
		return
	}
	if run.Remote() {
		q.followRemote(ctx, s, u, yield)
		return
	}
	for n := s.seen; ; {
		events, ended, err := run.Follow(ctx, n, nil)
		if err != nil || ended {
			return // the client has gone, or knows the end
		}
		n += len(events)
		for i := range events {
			for _, out := range u.of(&events[i]) {
				if !yield(out, nil) {
					return
				}
			}
		}
		if u.open > 0 && run.State().Status == runs.Waiting && run.Count() == n {
			yield(u.status(), nil)
			return
		}
	}
}

// followRemote yields the end of a run of another process, whose events are not known here.
func (q *requests) followRemote(ctx context.Context, s *sent, u *updates, yield func(sdk.Event, error) bool) {
	run, err := q.settle(ctx, s.run, s.answered)
	if err != nil {
		return // the client has gone
	}
	u.run = run
	for _, res := range run.State().Results {
		for _, a := range artifactsOf(u.flow, res) {
			if !yield(u.artifact(a, false, true), nil) {
				return
			}
		}
	}
	yield(u.status(), nil)
}

// updates converts the events of a run to those of its task.
type updates struct {
	run     *runs.Run
	flow    *schema.Flow
	info    sdk.TaskInfo
	answer  map[string]bool // steps whose text is the answer; nil: all
	text    string          // of the answer so far
	comment string          // commentary that no status has yet
	notes   int             // statuses with commentary
	open    int             // requests without an answer
}

func newUpdates(q *requests, run *runs.Run) *updates {
	u := &updates{run: run, flow: schema.NewFlow(run.Flow), info: q.info(run)}
	if u.flow.Answer != nil {
		u.answer = u.flow.Spec.Writers(u.flow.Answer.ID)
	}
	return u
}

// task returns the task with which a stream begins.
func (u *updates) task(s *sent) *sdk.Task {
	state := u.run.State()
	t := &sdk.Task{ID: u.info.TaskID, ContextID: u.info.ContextID, Metadata: map[string]any{"skill": u.run.Flow.ID}}
	switch {
	case s.seen == 0:
		t.Status = sdk.TaskStatus{State: sdk.TaskStateSubmitted, Timestamp: &u.run.Created}
	case s.answered == nil && state.Status == runs.Waiting:
		t.Status = status(u.info, u.run, &state)
	default:
		t.Status = sdk.TaskStatus{State: sdk.TaskStateWorking, Timestamp: &state.Updated}
	}
	if u.text != "" {
		t.Artifacts = []*sdk.Artifact{{ID: answerArtifact, Name: u.flow.Answer.ID, Parts: sdk.ContentParts{sdk.NewTextPart(u.text)}}}
	}
	return t
}

// of returns the events of the task for an event of the run. Commentary is the message of a status
// when it is complete.
func (u *updates) of(ev *runs.Event) []sdk.Event {
	if ev.Type == runs.CommentaryDelta {
		u.comment += ev.Text
		return nil
	}
	if u.comment == "" || ev.Type == runs.UsageReported {
		return u.next(ev)
	}
	note := u.working(ev.Time)
	u.notes++
	note.Status.Message = message(u.info, u.run, "commentary_"+strconv.Itoa(u.notes), sdk.NewTextPart(u.comment))
	u.comment = ""
	return append([]sdk.Event{note}, u.next(ev)...)
}

// next returns the events of the task for an event of the run that is not commentary.
func (u *updates) next(ev *runs.Event) []sdk.Event {
	switch ev.Type {
	case runs.RunStarted:
		return []sdk.Event{u.working(ev.Time)}
	case runs.TextDelta:
		return u.delta(ev)
	case runs.RequestOpened:
		u.open++
	case runs.RequestAnswered:
		u.open--
		return []sdk.Event{u.working(ev.Time)}
	case runs.RowFinished:
		return u.row(ev.Result)
	case runs.RunFinished:
		return []sdk.Event{u.status()}
	}
	return nil
}

// delta returns the text of an answer as it is written.
func (u *updates) delta(ev *runs.Event) []sdk.Event {
	if u.answer == nil || !u.answer[ev.Step] || ev.Text == "" {
		return nil
	}
	first := u.text == ""
	u.text += ev.Text
	a := &sdk.Artifact{ID: answerArtifact, Name: u.flow.Answer.ID, Parts: sdk.ContentParts{sdk.NewTextPart(ev.Text)}}
	return []sdk.Event{u.artifact(a, !first, false)}
}

// row returns the artifacts of a row, without an answer that was written before.
func (u *updates) row(res *runs.Result) []sdk.Event {
	var out []sdk.Event
	for _, a := range artifactsOf(u.flow, res) {
		if a.ID == answerArtifact && u.text != "" && len(a.Parts) == 1 && a.Parts[0].Text() == u.text {
			continue
		}
		out = append(out, u.artifact(a, false, true))
	}
	return out
}

func (u *updates) artifact(a *sdk.Artifact, more, last bool) *sdk.TaskArtifactUpdateEvent {
	return &sdk.TaskArtifactUpdateEvent{TaskID: u.info.TaskID, ContextID: u.info.ContextID, Artifact: a, Append: more, LastChunk: last}
}

func (u *updates) working(at time.Time) *sdk.TaskStatusUpdateEvent {
	at = at.UTC()
	return &sdk.TaskStatusUpdateEvent{TaskID: u.info.TaskID, ContextID: u.info.ContextID, Status: sdk.TaskStatus{State: sdk.TaskStateWorking, Timestamp: &at}}
}

// status returns the state of the run now.
func (u *updates) status() *sdk.TaskStatusUpdateEvent {
	state := u.run.State()
	return &sdk.TaskStatusUpdateEvent{TaskID: u.info.TaskID, ContextID: u.info.ContextID, Status: status(u.info, u.run, &state)}
}
