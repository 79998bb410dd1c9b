package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/steps"
)

// progress notifies a client of what a run does, if the client has requested it. A
// goroutine sends, so that a slow client does not delay the run: what accumulates
// meanwhile is one notification. A nil progress does nothing.
type progress struct {
	wake chan struct{} // capacity 1
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	target  *target // nil while no request of the client is open
	sending sync.Mutex
	closed  bool
	pending []note
	count   float64 // notifications so far
}

// target is the request whose client is notified.
type target struct {
	ctx     context.Context
	session *sdk.ServerSession
	token   any
}

// note is one thing to notify of.
type note struct {
	kind string // text, reasoning, commentary, tool or row
	step string
	text string
}

// The kinds of notes that are complete; all others are deltas.
const (
	toolNote = "tool"
	rowNote  = "row"
)

// isDelta reports whether the note is a part of a text.
func (n note) isDelta() bool { return n.kind != toolNote && n.kind != rowNote }

// newProgress returns the progress of a call, nil if the client has not requested it.
func newProgress(ctx context.Context, req *sdk.CallToolRequest) *progress {
	if req.Params.GetProgressToken() == nil {
		return nil
	}
	p := &progress{wake: make(chan struct{}, 1), done: make(chan struct{})}
	p.attach(ctx, req)
	go p.send()
	return p
}

// attach makes a request the target of the notifications.
func (p *progress) attach(ctx context.Context, req *sdk.CallToolRequest) {
	token := req.Params.GetProgressToken()
	if p == nil || token == nil {
		return
	}
	p.mu.Lock()
	p.target = &target{ctx, req.Session, token}
	p.mu.Unlock()
	p.signal()
}

// detach keeps notifications until the next attach. It waits for the one that is
// being sent.
func (p *progress) detach() {
	if p == nil {
		return
	}
	p.flush()
	p.mu.Lock()
	p.target = nil
	p.mu.Unlock()
}

// event takes an event of a step.
func (p *progress) event(ev steps.Event) {
	if ev.Kind == steps.EventToolCall {
		p.add(note{toolNote, ev.Step, fmt.Sprintf("calling %s", ev.Tool)})
		return
	}
	p.add(note{string(ev.Kind), ev.Step, ev.Text})
}

// row reports that the flow has returned n rows.
func (p *progress) row(n int) {
	if p != nil {
		p.add(note{rowNote, "", fmt.Sprintf("row %d", n)})
	}
}

func (p *progress) add(n note) {
	p.mu.Lock()
	if last := len(p.pending) - 1; n.isDelta() && last >= 0 && p.pending[last].kind == n.kind && p.pending[last].step == n.step {
		p.pending[last].text += n.text
	} else {
		p.pending = append(p.pending, n)
	}
	p.mu.Unlock()
	p.signal()
}

func (p *progress) signal() {
	select {
	case p.wake <- struct{}{}:
	default: // the goroutine will see it
	}
}

// send sends notifications until close.
func (p *progress) send() {
	defer close(p.done)
	for range p.wake {
		p.mu.Lock()
		closed := p.closed // read first: what is pending before close is sent
		p.mu.Unlock()
		p.flush()
		if closed {
			return
		}
	}
}

// flush sends what is pending.
func (p *progress) flush() {
	p.sending.Lock()
	defer p.sending.Unlock()
	p.mu.Lock()
	to, notes := p.target, p.pending
	if to != nil {
		p.pending = nil
	}
	p.mu.Unlock()
	if to == nil {
		return
	}
	for _, n := range notes {
		p.count++
		meta := sdk.Meta{"qtype/event": n.kind}
		if n.step != "" {
			meta["qtype/step"] = n.step
		}
		// A failure means that the client is gone; its call is canceled elsewhere.
		_ = to.session.NotifyProgress(to.ctx, &sdk.ProgressNotificationParams{Meta: meta, ProgressToken: to.token, Progress: p.count, Message: n.text})
	}
}

// close sends what is pending and ends the goroutine.
func (p *progress) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.signal()
	<-p.done
}

// maxLine is how long a message may be, as in the transport of the SDK.
const maxLine = sdk.DefaultMaxLineLength

// errLongLine is the error of a line that is longer than maxLine.
var errLongLine = fmt.Errorf("the message is longer than %d MiB", maxLine>>20)

// lineReader is the input without the lines that are not messages: it answers them with the error that
// JSON-RPC defines. The transport of the SDK ends the session at such a line.
type lineReader struct {
	in   *bufio.Reader
	out  io.Writer // gets the answers; safe for concurrent use
	rest []byte    // of the line that is being read
}

// Read returns parts of the lines that are messages.
func (r *lineReader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.line()
		switch {
		case err != nil && !errors.Is(err, errLongLine):
			return 0, err
		case err == nil && len(bytes.TrimSpace(line)) == 0:
			continue
		case err == nil:
			if err = checkMessage(line); err == nil {
				r.rest = append(bytes.TrimRight(line, "\r\n"), '\n')
				continue
			}
		}
		if err := r.answer(line, err); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// line reads the next line. The line of errLongLine is skipped.
func (r *lineReader) line() (line []byte, err error) {
	long := false
	for {
		part, err := r.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLongLine
		case len(line) > 0 && errors.Is(err, io.EOF): // the next call returns the end
			return line, nil
		}
		return line, err
	}
}

// checkMessage returns why a line is not a message, or a list of them.
func checkMessage(line []byte) error {
	if !json.Valid(line) {
		return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "Parse error: a line must be one message in JSON"}
	}
	all := []json.RawMessage{line}
	if bytes.HasPrefix(bytes.TrimSpace(line), []byte{'['}) {
		if err := json.Unmarshal(line, &all); err != nil || len(all) == 0 {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid Request: the list of messages is empty"}
		}
	}
	for _, one := range all {
		if _, err := jsonrpc.DecodeMessage(one); err != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid Request: not a message of JSON-RPC 2.0"}
		}
	}
	return nil
}

// answer writes the error of a line, unless the line is an answer itself.
func (r *lineReader) answer(line []byte, problem error) error {
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method json.RawMessage `json:"method"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(line, &message) // what is not a message has no parts
	if message.Method == nil && (message.Result != nil || message.Error != nil) {
		return nil
	}
	var found *jsonrpc.Error
	if !errors.As(problem, &found) {
		found = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid Request: " + problem.Error()}
	}
	response := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", json.RawMessage("null"), found}
	if id := message.ID; len(id) > 0 && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9') {
		response.ID = id
	}
	text, err := json.Marshal(response)
	if err != nil {
		return err
	}
	_, err = r.out.Write(append(text, '\n'))
	return err
}

// lockedWriter writes one message at a time, and stays open.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(b)
}

// Close does nothing.
func (w *lockedWriter) Close() error { return nil }
