package steps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/model"
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
}

// callRecorder is a CallLog with the number of equal calls of the run.
type callRecorder struct {
	log CallLog

	mu     sync.Mutex
	counts map[[16]byte]int32
}

type callLogKey struct{}

// WithCallLog returns a context in which calls recorded in log are not repeated: their
// recorded results are used. Calls that fail are not recorded. A key consists of the
// steps around the call, the ordinal of the row, and what is sent.
func WithCallLog(ctx context.Context, log CallLog) context.Context {
	return context.WithValue(ctx, callLogKey{}, &callRecorder{log: log, counts: map[[16]byte]int32{}})
}

// callRecorderFrom returns the recorder of a run, nil for none.
func callRecorderFrom(ctx context.Context) *callRecorder {
	r, _ := ctx.Value(callLogKey{}).(*callRecorder)
	return r
}

// key returns the key of a call: equal calls of one row have different keys.
func (r *callRecorder) key(ctx context.Context, kind string, parts ...any) string {
	h := sha256.New()
	for s := callContextFrom(ctx); s != nil; s = s.outer {
		fmt.Fprintf(h, "%q %d ", s.step, s.ordinal)
	}
	fmt.Fprintf(h, "%s %q", kind, parts)
	digest := [16]byte(h.Sum(nil))
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.counts[digest]
	r.counts[digest] = n + 1
	return fmt.Sprintf("%x-%d", digest, n)
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
	if before > 0 && what != "" {
		Report(ctx, Event{Kind: EventRepeated, Row: inputRow(ctx), Text: what, Repeated: before})
	}
	end = sync.OnceFunc(end)
	return context.WithValue(ctx, openCallKey{}, end), end, nil
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
