// Package replay feeds a transcript through a memory and tells what a model
// would be sent: `qtype memory replay`. It touches no store and no model.
//
// The input is JSON lines. A line is a message in OpenAI's form, appended by
// itself, or an operation:
//
//	{"role": "user", "content": "Where is my parcel?"}
//	{"op": "clear"}                           forgets window and history
//	{"op": "set", "messages": [ … ]}          replaces the window
//	{"op": "limit", "token_limit": 2000}      changes limits of the memory's policy from here on
//	{"op": "variables", "set": {"plan": "Gold"}}   sets named values, null removes one
//	{"op": "read", "as": "text", "n_rounds": 1}    reads a round_window with other limits, this once
//
// What it says of each line depends on the policy as it does in a run: with
// message_window and token_window the system message stands where it was said,
// counts, and is not said again where it is equal to the one that holds; with
// round_window the first messages may be cut, and are shown as they would be sent.
package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
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
	r := &replay{memory: mem, limits: cfg.Limits, byID: map[string]*inputMessage{}, print: printer(opts.Format, buffered)}
	err = r.run(ctx, bufio.NewReaderSize(in, 64<<10), opts.Each)
	return errors.Join(err, buffered.Flush())
}

type replay struct {
	memory  *memory.Memory
	limits  memory.Limits
	line    int
	tokens  int                      // of the line's own message
	byID    map[string]*inputMessage // the messages since the last clear or set
	shown   []*inputMessage          // chat messages that were in the window, or added, when it was read last
	evicted []*inputMessage          // since the last outcome
	read    json.RawMessage          // what the line's operation read, nil for none
	print   func(*outcome) error
}

// inputMessage is a message as the input gave it.
type inputMessage struct {
	raw     []byte // compact JSON, without tokens
	message chat.Message
	tokens  int
}

// outcome is where the memory stands after a line.
type outcome struct {
	line    int
	tokens  int
	window  []outputMessage
	evicted []*inputMessage
	history int64
	fill    memory.Window // its numbers; for text also its messages
	beside  *memory.ContextPreview
	read    json.RawMessage // a text or a list of messages; nil where the line reads nothing
}

// outputMessage is a message as it is sent: entry says less than its utterance where it was cut.
type outputMessage struct {
	*inputMessage
	entry *memory.Entry
}

func (r *replay) run(ctx context.Context, in *bufio.Reader, each bool) error {
	for {
		raw, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return &LineError{Line: r.line + 1, Err: err}
		}
		if raw == nil && err != nil {
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
			if err := r.emit(ctx); err != nil {
				return err
			}
		}
	}
	if each {
		return nil
	}
	return r.emit(ctx)
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
		case errors.Is(err, bufio.ErrBufferFull):
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
	r.tokens, r.read = 0, nil
	var keys map[string]json.RawMessage
	if json.Unmarshal(raw, &keys) == nil && keys["op"] != nil {
		return r.operate(ctx, keys)
	}
	u, err := r.utterance(raw)
	if err != nil {
		return err
	}
	r.tokens = u.tokens
	r.append(u)
	return r.memory.Append(ctx, session, u.message)
}

// utterance reads a message and keeps its own form.
func (r *replay) utterance(raw []byte) (*inputMessage, error) {
	m, err := chat.ParseOpenAI(raw)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, err
	}
	m.ID = chat.NewID() // by which it is found again in the window
	return &inputMessage{raw: compact.Bytes(), message: m, tokens: r.memory.Tokens(m)}, nil
}

func (r *replay) append(u *inputMessage) {
	r.byID[u.message.ID] = u
	if u.message.Role != chat.System {
		r.shown = append(r.shown, u)
	}
}

// emit writes where the memory stands.
func (r *replay) emit(ctx context.Context) error {
	w, err := r.recordEvictions(ctx)
	if err != nil {
		return err
	}
	o := &outcome{line: r.line, tokens: r.tokens, evicted: r.evicted, fill: w, read: r.read}
	if o.beside, err = r.memory.PreviewContext(ctx, session); err != nil {
		return err
	}
	for _, e := range w.Entries {
		o.window = append(o.window, outputMessage{r.byID[e.Message.ID], e})
	}
	if w.System != nil {
		o.window = slices.Insert(o.window, w.SystemAt, outputMessage{r.byID[w.System.Message.ID], w.System})
	}
	sessions, err := r.memory.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, s := range sessions { // one, or none
		o.history = s.Messages
	}
	r.evicted = nil
	return r.print(o)
}

// recordEvictions notes what left the window since it was looked at last. What comes back
// because a limit was raised may leave it again.
func (r *replay) recordEvictions(ctx context.Context) (memory.Window, error) {
	w, err := r.memory.Window(ctx, session)
	if err != nil {
		return w, err
	}
	inWindow := make(map[*inputMessage]bool, len(w.Entries))
	var window []*inputMessage
	for _, e := range w.Entries {
		u := r.byID[e.Message.ID]
		inWindow[u] = true
		window = append(window, u)
	}
	for _, u := range r.shown {
		if !inWindow[u] {
			r.evicted = append(r.evicted, u)
		}
	}
	r.shown = window
	return w, nil
}

// forget begins anew with nothing said.
func (r *replay) forget() {
	r.shown = nil
	clear(r.byID)
}
