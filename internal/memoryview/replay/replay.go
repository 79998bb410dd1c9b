// Package replay feeds a transcript through a memory and prints what a model would
// be sent: `qtype memory replay`. It uses no store and no model. It also exports
// sessions as transcripts: `qtype memory export`.
//
// A transcript is JSON lines. A line is a message in OpenAI's form, which is
// appended, or an operation:
//
//	{"role": "user", "content": "Where is my parcel?"}
//	{"op": "clear"}                           deletes window and history
//	{"op": "set", "messages": [ … ]}          replaces the window
//	{"op": "limit", "token_limit": 2000}      changes limits of the memory's policy
//	{"op": "variables", "set": {"plan": "Gold"}}   sets named values; null removes one
//	{"op": "event", "event": { … }}           of a full export; ignored
//	{"op": "read", "as": "text", "n_rounds": 1}    reads a round_window with other limits, once
//
// The output depends on the policy as in a run. With message_window and
// token_window the system message counts, keeps its position, and is not added
// again if it equals the current one. With round_window the first messages may be
// truncated, and are printed as they would be sent.
package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Format is an output format.
type Format string

// Output formats.
const (
	Text Format = "text" // columns
	JSON Format = "json" // JSON lines
)

// Options change what is written.
type Options struct {
	Each   bool   // write after each line of input, not only at the end
	Format Format // default Text
	// ContextWindow is that of the model, in tokens: for a memory that is compacted at a share
	// of it. 0: the share is that of token_limit.
	ContextWindow int
	// Window is called with the window before it is written; nil for no calls.
	Window func(memory.Window)
}

// LineError is an error in the input.
type LineError struct {
	Line int   // 1-based
	Err  error // the cause
}

// Error returns the line and the cause.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// maxLine limits a line of input, in bytes. Messages may contain media.
const maxLine = 64 << 20

// session is the id of the session of a replay.
const session = "replay"

// Run replays in and writes to out. It skips blank lines, but counts them. Invalid
// input is a *LineError, and the output for earlier lines has been written.
func Run(ctx context.Context, cfg memory.Config, in io.Reader, out io.Writer, opts Options) error {
	declared := cfg.Limits
	cfg.Limits = limitsWithin(cfg, opts.ContextWindow)
	mem, err := memory.New(cfg, memory.NewInProcess())
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(out)
	r := &replay{memory: mem, config: cfg, contextWindow: opts.ContextWindow, limits: declared, byID: map[string]*inputMessage{}, print: printer(opts.Format, buffered), window: opts.Window}
	err = r.run(ctx, bufio.NewReaderSize(in, 64<<10), opts.Each)
	return errors.Join(err, buffered.Flush())
}

type replay struct {
	memory  *memory.Memory
	config  memory.Config
	limits  memory.Limits // without the context window
	line    int
	tokens  int                      // of the line's message, 0 for an operation
	byID    map[string]*inputMessage // messages since the last clear or set
	shown   []*inputMessage          // chat messages of the last window, and those added since
	evicted []*inputMessage          // since the last output
	read    json.RawMessage          // result of the operation read, else nil
	print   func(*snapshot) error
	window  func(memory.Window) // may be nil

	contextWindow int // 0: unknown
}

// limitsWithin returns the limits of a memory: of one that is compacted at a share of the
// room of a call, with a token_limit that is not above the context window.
func limitsWithin(cfg memory.Config, window int) memory.Limits {
	const key = "token_limit"
	if cfg.Compact.At == 0 || window == 0 || cfg.Limits[key] <= float64(window) {
		return cfg.Limits
	}
	limits := maps.Clone(cfg.Limits)
	limits[key] = float64(window)
	return limits
}

// inputMessage is a message of the input.
type inputMessage struct {
	raw     []byte // compact JSON
	message chat.Message
	tokens  int
}

// snapshot is the state of the memory after a line.
type snapshot struct {
	line    int
	tokens  int
	window  []outputMessage
	evicted []*inputMessage
	history int64
	fill    memory.Window // numbers of the window; its messages for Text
	context *memory.ContextPreview
	read    json.RawMessage // a text or a list of messages, or nil
}

// outputMessage is a message of the window. The text of entry is shorter than that
// of the input if it was truncated.
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
			return r.lineError(ctx, err)
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

// lineError adds the line to err, unless ctx was canceled.
func (r *replay) lineError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &LineError{Line: r.line, Err: err}
}

// readLine returns the next line. After the last one it returns nil and io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		chunk, err := in.ReadSlice('\n')
		line = append(line, chunk...)
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

// do executes one line.
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
	if details, ok := keys["qtype"]; ok { // of a full export
		if isExcluded(details) {
			return nil
		}
		delete(keys, "qtype")
		raw = encode(keys)
	}
	m, err := r.parseMessage(raw)
	if err != nil {
		return err
	}
	r.tokens = m.tokens
	r.append(m)
	return r.memory.Append(ctx, session, m.message)
}

// isExcluded reports whether a message of a full export is not part of the conversation,
// or is the new text of an edited one, which is replayed with its former text.
func isExcluded(details json.RawMessage) bool {
	var d struct {
		Status string `json:"status"`
		Of     int64  `json:"of"`
	}
	err := json.Unmarshal(details, &d)
	return err == nil && (d.Status == store.Failed.String() || d.Status == store.Rewound.String() || d.Status == store.Deleted.String() || d.Of > 0)
}

func (r *replay) parseMessage(raw []byte) (*inputMessage, error) {
	m, err := chat.ParseOpenAI(raw)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, err
	}
	m.ID = chat.NewID() // identifies it in the window
	return &inputMessage{raw: compact.Bytes(), message: m, tokens: r.memory.Tokens(m)}, nil
}

func (r *replay) append(m *inputMessage) {
	r.byID[m.message.ID] = m
	if m.message.Role != chat.System {
		r.shown = append(r.shown, m)
	}
}

// emit writes a snapshot.
func (r *replay) emit(ctx context.Context) error {
	w, err := r.recordEvictions(ctx)
	if err != nil {
		return err
	}
	if r.window != nil {
		r.window(w)
	}
	o := &snapshot{line: r.line, tokens: r.tokens, evicted: r.evicted, fill: w, read: r.read}
	if o.context, err = r.memory.PreviewContext(ctx, session); err != nil {
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
	for _, s := range sessions { // at most one
		o.history = s.Messages
	}
	r.evicted = nil
	return r.print(o)
}

// recordEvictions reads the window and records what left it since the last call. A
// message that returns because a limit was raised may be evicted again.
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

// reset forgets all messages.
func (r *replay) reset() {
	r.shown = nil
	clear(r.byID)
}

// Export writes the conversation of a session as input of Run: messages as they are now,
// without those that were rewound or deleted, and those of failed turns unless failed is
// set. shortened is how many messages had reasoning, commentary or items of providers, for which OpenAI's
// format has no place.
func Export(ctx context.Context, m *memory.Memory, session string, out io.Writer, failed bool) (shortened int, err error) {
	for e, err := range m.Messages(ctx, session) {
		if err != nil {
			return shortened, err
		}
		if e.Status == store.Failed && !failed {
			continue
		}
		if e.Message.CheckGiven() != nil {
			shortened++
		}
		if _, err := out.Write(append(chat.OpenAI(e.Message), '\n')); err != nil {
			return shortened, err
		}
	}
	return shortened, nil
}

// variablesOperation is the operation that sets named values.
type variablesOperation struct {
	Op  string                     `json:"op"`
	Set map[string]json.RawMessage `json:"set"`
}

// ExportVariables writes the named values of a session, if there are any, as the
// operation of Run that sets them.
func ExportVariables(ctx context.Context, m *memory.Memory, session string, out io.Writer) error {
	variables, err := m.Variables(ctx, session)
	if err != nil || len(variables) == 0 {
		return err
	}
	set := map[string]json.RawMessage{}
	for _, v := range variables {
		set[v.Name] = v.Value
	}
	_, err = out.Write(append(encode(variablesOperation{Op: "variables", Set: set}), '\n'))
	return err
}
