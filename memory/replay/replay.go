// Package replay feeds a transcript through a memory and tells what a model
// would be sent: `qtype memory replay`. It touches no store and no model.
//
// The input is JSON lines. A line is a message in OpenAI's form, appended by
// itself, or an operation:
//
//	{"role": "user", "content": "Where is my parcel?"}
//	{"op": "clear"}                           forgets window and history
//	{"op": "set", "messages": [ … ]}          replaces the window
//	{"op": "limit", "token_limit": 2000}      changes limits from the next message on
package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/chat"
	"github.com/qtype-dev/qtype/memory"
)

// Format is how the outcome is written.
type Format string

// The formats.
const (
	Text Format = "text" // for people
	JSON Format = "json" // one object a line
)

// Options say what is written.
type Options struct {
	Each   bool   // after each line of input, rather than once at the end
	Format Format // empty: Text
}

// LineError is a fault in the input.
type LineError struct {
	Line int   // counted from 1
	Err  error // what is wrong there
}

// Error names the line.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Err) }

// Unwrap is what is wrong.
func (e *LineError) Unwrap() error { return e.Err }

// maxLine bounds one line of input, in bytes: media travel inside messages.
const maxLine = 64 << 20

// session is the one conversation of a replay.
const session = "replay"

// Run replays in and writes to out. Blank lines are passed over, but counted. A
// fault in the input is a *LineError; what came before it has been written.
func Run(ctx context.Context, cfg memory.Config, in io.Reader, out io.Writer, opts Options) error {
	mem, err := memory.New(cfg, memory.NewInProcess())
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(out)
	r := &replay{memory: mem, limits: memory.Limits{TokenLimit: cfg.TokenLimit, ChatShare: cfg.ChatShare, FlushSize: cfg.FlushSize},
		said: map[int64]*utterance{}, print: printer(opts.Format, buffered)}
	err = r.run(ctx, bufio.NewReaderSize(in, 64<<10), opts.Each)
	return errors.Join(err, buffered.Flush())
}

type replay struct {
	memory  *memory.Memory
	limits  memory.Limits
	line    int
	tokens  int                  // of the line's own message
	next    int64                // the Seq of the newest message: how many were said
	oldest  int64                // the oldest Seq that may still be in the window
	said    map[int64]*utterance // what may still be printed, by Seq
	evicted []*utterance         // since the last outcome
	print   func(*outcome) error
}

// utterance is a message as the input gave it.
type utterance struct {
	raw     []byte // compact JSON, without tokens
	message chat.Message
	tokens  int
}

// outcome is where the memory stands after a line.
type outcome struct {
	line    int
	tokens  int
	system  *utterance
	window  []*utterance
	evicted []*utterance
	history int64
	fill    memory.Window // its numbers; for text also its messages
}

func (r *replay) run(ctx context.Context, in *bufio.Reader, each bool) error {
	for {
		raw, err := readLine(in)
		if err != nil && err != io.EOF {
			return &LineError{Line: r.line + 1, Err: err}
		}
		if raw == nil && err == io.EOF {
			break
		}
		r.line++
		if raw = bytes.TrimSpace(raw); len(raw) == 0 {
			continue
		}
		if err := r.do(ctx, raw); err != nil {
			return r.fault(ctx, err)
		}
		if each {
			if err := r.tell(ctx); err != nil {
				return err
			}
		}
	}
	if each {
		return nil
	}
	return r.tell(ctx)
}

// fault blames the line, unless the run was stopped from outside.
func (r *replay) fault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &LineError{Line: r.line, Err: err}
}

// readLine is the next line without its end; nil with io.EOF after the last.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("the line is longer than %d MiB", maxLine>>20)
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(line) > 0:
			return line, nil
		}
		return line, err
	}
}

// do carries out one line.
func (r *replay) do(ctx context.Context, raw []byte) error {
	if r.line == 1 {
		raw = bytes.TrimPrefix(raw, []byte("\uFEFF"))
	}
	if !utf8.Valid(raw) {
		return errors.New("the line is not UTF-8 text")
	}
	r.tokens = 0
	var keys map[string]json.RawMessage
	if json.Unmarshal(raw, &keys) == nil && keys["op"] != nil {
		return r.operate(ctx, keys)
	}
	u, err := r.utterance(raw)
	if err != nil {
		return err
	}
	r.tokens = u.tokens
	r.hear(u)
	return r.memory.Append(ctx, session, u.message)
}

// utterance reads a message and keeps its own form.
func (r *replay) utterance(raw []byte) (*utterance, error) {
	m, err := chat.ParseOpenAI(raw)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, err
	}
	return &utterance{raw: compact.Bytes(), message: m, tokens: r.memory.Tokens(m)}, nil
}

func (r *replay) hear(u *utterance) {
	r.next++
	r.said[r.next] = u
}

// tell writes where the memory stands.
func (r *replay) tell(ctx context.Context) error {
	w, err := r.settle(ctx)
	if err != nil {
		return err
	}
	o := &outcome{line: r.line, tokens: r.tokens, evicted: r.evicted, history: r.next, fill: w}
	if w.System != nil {
		o.system = r.said[w.System.Seq]
	}
	for _, e := range w.Entries {
		o.window = append(o.window, r.said[e.Seq])
	}
	r.evicted = nil
	return r.print(o)
}

// settle notes what left the window since it was called last.
func (r *replay) settle(ctx context.Context) (memory.Window, error) {
	w, err := r.memory.Window(ctx, session)
	if err != nil || len(w.Entries) == 0 {
		return w, err
	}
	for first := w.Entries[0].Seq; r.oldest < first; r.oldest++ {
		u := r.said[r.oldest]
		if u == nil || u.message.Role == chat.System {
			continue // replaced by an operation, or no part of the queue
		}
		r.evicted = append(r.evicted, u)
		delete(r.said, r.oldest)
	}
	return w, nil
}
