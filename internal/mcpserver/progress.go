package mcpserver

import (
	"context"
	"fmt"
	"sync"

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
