package steps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/rowcounts"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// CallLog records the results of the calls of models and tools in a run, so that the
// run can be repeated after an interruption without repeating the calls. It is safe
// for concurrent use.
type CallLog interface {
	// Recorded returns the result that was recorded under a key, nil if there is none.
	Recorded(key string) []byte
	// Record records a result. It returns when the result is stored. ctx ends some seconds after the run.
	Record(ctx context.Context, key string, result []byte) error
}

// CallGate is a CallLog that decides when calls begin.
type CallGate interface {
	CallLog
	// Begin returns when the call with a key may be made, and what the caller calls when the call has ended and its
	// result is recorded. before is how many earlier attempts have begun the call, so that it may have had an effect. The
	// error is not nil if ctx ends before.
	Begin(ctx context.Context, key string) (end func(), before int, err error)
	// Repeats returns how many attempts had begun a recorded call before the one that has its result.
	Repeats(key string) int
}

// callRecorder is a CallLog with the number of equal calls of the run.
type callRecorder struct {
	log    CallLog
	counts rowcounts.Counts[[16]byte]
}

type callLogKey struct{}

// WithCallLog returns a context in which calls recorded in log are not repeated: their
// recorded results are used. Calls that fail are not recorded. A key consists of the
// steps around the call, the ordinal of the row, and what is sent.
func WithCallLog(ctx context.Context, log CallLog) context.Context {
	return context.WithValue(ctx, callLogKey{}, &callRecorder{log: log})
}

// callRecorderFrom returns the recorder of a run, nil for none.
func callRecorderFrom(ctx context.Context) *callRecorder {
	r, _ := ctx.Value(callLogKey{}).(*callRecorder)
	return r
}

// key returns the key of a call: equal calls of one row have different keys.
func (r *callRecorder) key(ctx context.Context, kind string, parts ...any) string {
	h, ordinal := sha256.New(), int64(noRow)
	for s := callContextFrom(ctx); s != nil; s = s.outer {
		fmt.Fprintf(h, "%q %d ", s.step, s.ordinal)
		ordinal = s.ordinal // at last that of the input row
	}
	fmt.Fprintf(h, "%s %q", kind, parts)
	digest := [16]byte(h.Sum(nil))
	return fmt.Sprintf("%x-%d", digest, r.counts.Next(ordinal, digest))
}

// recorded calls f, or returns its recorded result. replayed reports which. what is called, for the event of a repeated
// call; empty for what has no effect.
func recorded[T any](ctx context.Context, key, what string, f func(context.Context) (T, error)) (result T, replayed bool, err error) {
	log := callRecorderFrom(ctx).log
	if raw := log.Recorded(key); raw != nil {
		if err := json.Unmarshal(raw, &result); err != nil {
			return result, true, fmt.Errorf("the recorded result of a call is damaged: %w", err)
		}
		noteLogged(ctx, key)
		if gate, ok := log.(CallGate); ok {
			reportRepeats(ctx, what, gate.Repeats(key)) // the attempt that has made the call has not finished the row
		}
		return result, true, nil
	}
	ctx, end, err := beginCall(ctx, log, key, what)
	if err != nil {
		return result, false, err
	}
	defer end()
	if result, err = f(ctx); err != nil {
		return result, false, err
	}
	raw, err := json.Marshal(result)
	if err == nil { // also if the run has ended meanwhile: the call may have had an effect
		storing, cancel := outlasting(ctx)
		defer cancel()
		err = log.Record(storing, key, raw)
	}
	if err != nil {
		return result, false, fmt.Errorf("the result of a call could not be recorded: %w", err)
	}
	noteLogged(ctx, key)
	return result, false, nil
}

type openCallKey struct{}

// beginCall begins a call at the gate of a log, and returns its context. A call that makes calls itself,
// such as that of a sub-agent, lasts for the gate until it makes the first of them.
func beginCall(ctx context.Context, log CallLog, key, what string) (inner context.Context, end func(), err error) {
	gate, ok := log.(CallGate)
	if !ok {
		return ctx, func() {}, nil
	}
	if endOuter, ok := ctx.Value(openCallKey{}).(func()); ok {
		endOuter()
	}
	end, before, err := gate.Begin(ctx, key)
	if err != nil {
		return ctx, nil, err
	}
	reportRepeats(ctx, what, before)
	end = sync.OnceFunc(end)
	return context.WithValue(ctx, openCallKey{}, end), end, nil
}

// reportRepeats reports how often a call was made before.
func reportRepeats(ctx context.Context, what string, before int) {
	if before > 0 && what != "" {
		Report(ctx, Event{Kind: EventRepeated, Row: inputRow(ctx), Text: what, Repeated: before})
	}
}

// outlasting returns a context that ends abortTimeout after ctx.
func outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(abortTimeout, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// withCallKey returns the context of a tool call with its key in the log.
func withCallKey(ctx context.Context, key string) context.Context {
	caller := tool.CallerOf(ctx)
	caller.Key = key
	run := ""
	if o, ok := ctx.Value(idempotencyKeysKey{}).(*idempotencyKeys); ok {
		run = o.run
	}
	if run != "" { // keys of a log are unique within its run
		sum := sha256.Sum256([]byte(run + " " + key))
		caller.Repeat = hex.EncodeToString(sum[:16])
	}
	return tool.WithCaller(ctx, caller)
}

// requestParts returns what identifies a request to a model: ids of messages differ
// in a run that is repeated.
func requestParts(req *model.Request) []any {
	parts := make([]any, 0, len(req.Messages)+len(req.Tools))
	for _, m := range req.Messages {
		m.ID = ""
		raw, err := m.MarshalJSON()
		if err != nil { // only a message that no model can get
			raw = []byte(err.Error())
		}
		parts = append(parts, raw)
	}
	for _, t := range req.Tools {
		parts = append(parts, t.Name)
	}
	if req.NoCalls {
		parts = append(parts, "no calls")
	}
	return parts
}

// callContext identifies the step, the row and the memory turn of a call of a model
// or a tool. It travels in the context.Context, for tools that set values of a memory
// and for the models that a memory itself calls.
type callContext struct {
	step    string
	session string
	row     int64
	ordinal int64          // of the row; see Ordinal
	memory  *memory.Memory // nil outside of a turn
	turn    *memory.Turn   // nil outside of a turn
	outer   *callContext   // the enclosing call: a turn may call a tool that runs a flow
}

type callContextKey struct{}

// withCallContext returns a context for the calls of a step on a row.
func withCallContext(ctx context.Context, step string, row *Row) context.Context {
	return enterTurn(ctx, callContext{step: step, session: row.Session, row: row.Number, ordinal: row.Ordinal})
}

// withTurn returns a context for the calls within the conversation's turn.
func (s *llmStep) withTurn(ctx context.Context, row *Row, d *conversation) context.Context {
	if d.turn == nil {
		return ctx
	}
	return enterTurn(ctx, callContext{step: s.id, session: row.Session, row: row.Number, ordinal: row.Ordinal, memory: s.memory, turn: d.turn})
}

func enterTurn(ctx context.Context, s callContext) context.Context {
	s.outer = callContextFrom(ctx)
	return context.WithValue(ctx, callContextKey{}, &s)
}

// callContextFrom returns the innermost call context, nil for none.
func callContextFrom(ctx context.Context) *callContext {
	s, _ := ctx.Value(callContextKey{}).(*callContext)
	return s
}

// inputRow returns the number of the row of the run around a call, 0 for none.
func inputRow(ctx context.Context) (number int64) {
	for s := callContextFrom(ctx); s != nil; s = s.outer {
		number = s.row
	}
	return number
}

// activeTurn returns the turn of a memory's session that is in progress around a
// call, nil for none. Waiting for another turn of that session would deadlock.
func activeTurn(ctx context.Context, m *memory.Memory, session string) *memory.Turn {
	if s := turnCallContext(ctx, m, session); s != nil {
		return s.turn
	}
	return nil
}

// turnCallContext returns the call context of that turn.
func turnCallContext(ctx context.Context, m *memory.Memory, session string) *callContext {
	for s := callContextFrom(ctx); s != nil; s = s.outer {
		if s.memory == m && m.Conversation(s.session) == m.Conversation(session) && s.turn != nil {
			return s
		}
	}
	return nil
}

// reportUsage reports the cost of a model that a memory called, as the cost of the
// step that used the memory.
func reportUsage(ctx context.Context, ev Event) {
	ev.Kind = EventUsage
	if s := callContextFrom(ctx); s != nil {
		ev.Step, ev.Session, ev.Row = s.step, s.session, s.row
	}
	Report(ctx, ev)
}

// toolSession returns the session of the step that calls a tool of a memory.
func toolSession(ctx context.Context, id string) (string, error) {
	at := callContextFrom(ctx)
	if at == nil {
		return "", &tool.Error{Tool: id, Message: "called outside of a step: there is no session"}
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return at.session, nil
}

// sessionArguments returns the session of the step that calls a tool, and the arguments converted
// to their declared types.
func sessionArguments(ctx context.Context, info tool.Info, args map[string]any) (session string, given map[string]any, err error) {
	if session, err = toolSession(ctx, info.ID); err != nil {
		return "", nil, err
	}
	given, err = tool.ConvertArgs(info, args, value.Assign)
	return session, given, err
}

// idempotencyKeys makes keys for the turns of a run: a resumed run finds turns that were
// committed just before the interruption.
type idempotencyKeys struct {
	run    string                   // the run's id, the same after a resume
	counts rowcounts.Counts[string] // of equal turns
}

type idempotencyKeysKey struct{}

// WithRunID returns a context in which turns have idempotency keys. A resumed run with
// the same id makes the same keys.
func WithRunID(ctx context.Context, run string) context.Context {
	return context.WithValue(ctx, idempotencyKeysKey{}, &idempotencyKeys{run: run})
}

// idempotencyKey returns the key of a turn of a row that adds msgs; empty in a run
// without an id.
func idempotencyKey(ctx context.Context, row *Row, msgs inputMessages) string {
	o, _ := ctx.Value(idempotencyKeysKey{}).(*idempotencyKeys)
	if o == nil {
		return ""
	}
	parts, ordinal := make([]byte, 0, 512), row.Ordinal
	for s := callContextFrom(ctx); s != nil; s = s.outer {
		parts = append(strconv.AppendQuote(parts, s.step), ' ')
		ordinal = s.ordinal // the outermost call: that of the input row, of which a tool runs this row's flow
	}
	for i := range msgs { // without the ids, which may be new each time
		parts = appendDigestParts(parts, &msgs[i].Message)
	}
	sum := sha256.Sum256(parts)
	digest := hex.EncodeToString(sum[:])
	key := strconv.AppendInt(append(append(parts[:0], o.run...), ' '), ordinal, 10)
	key = append(append(append(key, ' '), digest...), ' ')
	return string(strconv.AppendInt(key, int64(o.counts.Next(ordinal, digest)), 10))
}

// appendDigestParts appends the quoted parts of a message. The form of keys never changes:
// a later version must find the keys of a run that it resumes.
func appendDigestParts(b []byte, m *chat.Message) []byte {
	b = append(b, '\n')
	for _, text := range [...]string{string(m.Role), m.Name, m.ToolCallID} {
		b = append(strconv.AppendQuote(b, text), ' ')
	}
	if calls := m.Calls(); len(calls) == 0 {
		b = append(b, "[]"...)
	} else {
		b = fmt.Appendf(b, "%q", calls)
	}
	for i := range m.Blocks {
		block := &m.Blocks[i]
		if block.Call != nil {
			continue
		}
		b = strconv.AppendQuote(append(b, ' '), block.Type)
		b = strconv.AppendQuote(append(b, ' '), block.Text)
		b = fmt.Appendf(append(b, ' '), "%q", block.Data)
		b = strconv.AppendQuote(append(b, ' '), block.MimeType)
	}
	return b
}

// replayedAnswer returns the answer that an earlier run committed for this turn, nil
// if the turn has to be run. With an answer, the turn adds no messages.
func (d *conversation) replayedAnswer(ctx context.Context, row *Row, added inputMessages) (*chat.Message, error) {
	if d.turn == nil {
		return nil, nil
	}
	key := idempotencyKey(ctx, row, added)
	if key == "" || !d.turn.SetIdempotencyKey(key) {
		return nil, nil
	}
	msgs, err := d.turn.PriorMessages(ctx)
	if err != nil {
		return nil, err
	}
	if n := len(msgs); n > 0 && msgs[n-1].Role == chat.Assistant {
		handBackFrom(ctx).reread(msgs)
		return &msgs[n-1], nil
	}
	return nil, fmt.Errorf("an earlier run committed the turn, but its answer is no longer in the history")
}
