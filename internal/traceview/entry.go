package traceview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/chat"
)

// entry is a span as people read it.
type entry struct {
	span     *telemetry.Span
	title    string
	notes    []string // time, tokens, cost and other short facts
	blocks   []block  // the longer texts
	children []*entry
}

// block is a text under a label: a message, the arguments of a tool, an output.
type block struct {
	label  string
	text   string
	detail bool // repeats what the entries within this one say
}

// failed reports whether the operation failed.
func (e *entry) failed() bool { return e.span.Error != "" }

// entries returns the spans as trees.
func entries(spans []telemetry.Span) []*entry {
	byID := make(map[string]*entry, len(spans))
	all := make([]*entry, len(spans))
	for i := range spans {
		all[i] = &entry{span: &spans[i]}
		byID[spans[i].ID] = all[i]
	}
	var roots []*entry
	for _, e := range all {
		if parent := byID[e.span.Parent]; parent != nil && parent != e {
			parent.children = append(parent.children, e)
		} else {
			roots = append(roots, e)
		}
	}
	d := &description{sent: map[string][]json.RawMessage{}}
	for i, e := range roots {
		d.describe(e, roots[:i])
	}
	return roots
}

// description describes the entries of a row in the order of their starts.
type description struct {
	sent map[string][]json.RawMessage // the messages of the call of a model before, by the enclosing span
}

// kinds is the table of what the kinds of spans are called and how they are described.
var kinds = map[string]func(*description, *entry){
	"flow":      func(_ *description, e *entry) { e.addFields() },
	"step":      func(_ *description, e *entry) { e.describeStep() },
	"model":     func(d *description, e *entry) { e.describeModel(d) },
	"embedding": func(_ *description, e *entry) { e.describeEmbedding() },
	"tool":      func(_ *description, e *entry) { e.describeTool() },
	"memory":    func(_ *description, e *entry) { e.describeMemory() },
}

// describe fills an entry and those within it. before are its earlier siblings.
func (d *description) describe(e *entry, before []*entry) {
	s := e.span
	e.title = s.Kind + " " + s.Name
	if s.End == nil {
		e.notes = append(e.notes, "not ended")
	} else {
		e.notes = append(e.notes, textfmt.ShortDuration(s.End.Sub(s.Start)))
	}
	if attempt := attemptOf(s, before); attempt != "" {
		e.notes = append(e.notes, attempt)
	}
	if describe := kinds[s.Kind]; describe != nil {
		describe(d, e)
	}
	e.notes = append(e.notes, usageNotes(s.Tokens, s.Cost)...)
	for i, c := range e.children {
		d.describe(c, e.children[:i])
	}
}

// attemptOf returns "retry 1" for the call of a model after a failed one, "fallback" for the call of a
// fallback.
func attemptOf(s *telemetry.Span, before []*entry) string {
	if s.Kind != "model" && s.Kind != "embedding" {
		return ""
	}
	retries := 0
	for i := len(before) - 1; i >= 0 && before[i].span.Kind == s.Kind && before[i].span.Name == s.Name && before[i].failed(); i-- {
		retries++
	}
	switch {
	case retries > 0:
		return fmt.Sprintf("retry %d", retries)
	case s.Attributes["fallback"] == true:
		return "fallback"
	}
	return ""
}

// usageNotes returns tokens and cost.
func usageNotes(t *telemetry.Tokens, cost *float64) []string {
	var notes []string
	if t != nil {
		text := fmt.Sprintf("%s tokens in", textfmt.Thousands(t.Input))
		if t.Cached > 0 {
			text += fmt.Sprintf(" (%s cached)", textfmt.Thousands(t.Cached))
		}
		text += fmt.Sprintf(", %s out", textfmt.Thousands(t.Output))
		if t.Estimated {
			text += " (estimated)"
		}
		notes = append(notes, text)
	}
	if cost != nil && *cost > 0 {
		notes = append(notes, "cost "+textfmt.Amount(*cost))
	}
	return notes
}

func (e *entry) describeStep() {
	if kind, ok := e.span.Attributes["step_type"].(string); ok {
		e.title += " " + kind
	}
	if e.span.Attributes["cached"] == true {
		e.notes = append(e.notes, "from cache")
	}
	if rows, ok := e.span.Attributes["rows"].(int); ok {
		e.notes = append(e.notes, textfmt.Count(rows, "row"))
	}
	e.addFields()
}

// addFields adds the variables of a flow or a step.
func (e *entry) addFields() {
	inner := len(e.children) > 0
	e.blocks = append(e.blocks, fields("in", e.span.Input, inner)...)
	e.blocks = append(e.blocks, fields("out", e.span.Output, inner)...)
}

func (e *entry) describeModel(d *description) {
	if name, ok := e.span.Attributes["model"].(string); ok && name != "" && name != e.span.Name {
		e.title += " (" + name + ")"
	}
	if e.span.Attributes["mock"] == true {
		e.notes = append(e.notes, "mock")
	}
	if reason := fmt.Sprint(e.span.Attributes["finish_reason"]); e.span.Attributes["finish_reason"] != nil && reason != "stop" {
		e.notes = append(e.notes, "finish reason "+reason)
	}
	if dropped, ok := e.span.Attributes["dropped"].(string); ok {
		e.notes = append(e.notes, "not sent: "+dropped)
	}
	e.blocks = append(e.blocks, d.messages(e.span)...)
	var answer chat.Message
	if json.Unmarshal(e.span.Output, &answer) == nil && len(e.span.Output) > 0 {
		e.blocks = append(e.blocks, block{label: "answer", text: messageText(answer)})
	}
}

// messages returns the messages of a call. Those that the call before has sent are counted only.
func (d *description) messages(s *telemetry.Span) []block {
	var in struct {
		Messages []json.RawMessage `json:"messages"`
	}
	_ = json.Unmarshal(s.Input, &in) // the span has written it
	before, same := d.sent[s.Parent], 0
	for same < len(before) && same < len(in.Messages) && bytes.Equal(before[same], in.Messages[same]) {
		same++
	}
	if same < len(before) {
		same = 0 // another conversation, or a window that has moved
	}
	d.sent[s.Parent] = in.Messages
	var blocks []block
	if same > 0 {
		text := textfmt.Count(same, "message") + " as in the call before"
		if same < len(in.Messages) {
			text += ", and:"
		}
		blocks = append(blocks, block{label: "sent", text: text})
	}
	for _, raw := range in.Messages[same:] {
		var m chat.Message
		if err := json.Unmarshal(raw, &m); err != nil {
			blocks = append(blocks, block{label: "message", text: string(raw)})
			continue
		}
		blocks = append(blocks, block{label: string(m.Role), text: messageText(m)})
	}
	return blocks
}

// messageText returns the text of a message, its media and items by type and size, its reasoning and
// commentary, and its calls of tools.
func messageText(m chat.Message) string {
	var parts []string
	if text := m.Text(); text != "" {
		parts = append(parts, text)
	}
	for _, b := range m.Blocks {
		if b.Media() {
			parts = append(parts, fmt.Sprintf("[%s, %s]", b.Type, textfmt.Bytes(int64(len(b.Data)))))
		}
		if b.IsModels() && b.Text != "" {
			parts = append(parts, fmt.Sprintf("[%s: %s]", b.Type, b.Text))
		}
		if b.Item != nil {
			parts = append(parts, b.Item.JSON) // the span has its name and size only
		}
	}
	for _, c := range m.Calls() {
		parts = append(parts, fmt.Sprintf("→ %s(%s)", c.Name, c.Arguments))
	}
	return strings.Join(parts, "\n")
}

func (e *entry) describeEmbedding() {
	var texts []string
	if json.Unmarshal(e.span.Input, &texts) == nil {
		e.notes = append(e.notes, textfmt.Count(len(texts), "text"))
		e.blocks = append(e.blocks, block{label: "texts", text: strings.Join(texts, "\n")})
	}
}

func (e *entry) describeTool() {
	if len(e.span.Input) > 0 {
		e.blocks = append(e.blocks, block{label: "arguments", text: string(e.span.Input)})
	}
	if len(e.span.Output) > 0 {
		e.blocks = append(e.blocks, block{label: "result", text: plain(e.span.Output)})
	}
}

func (e *entry) describeMemory() {
	a := e.span.Attributes
	if a["limit"] != nil {
		e.notes = append(e.notes, fmt.Sprintf("%v new messages, window %v of %v %v", a["added"], a["used"], a["limit"], a["unit"]))
	}
	if a["evicted"] != nil {
		e.notes = append(e.notes, fmt.Sprintf("%v left the window", a["evicted"]))
	}
}

// fields returns a block for each key of an object, in its order.
func fields(label string, object json.RawMessage, detail bool) []block {
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	var blocks []block
	for dec.More() {
		key, err := dec.Token()
		var v json.RawMessage
		if err != nil || dec.Decode(&v) != nil {
			return blocks
		}
		blocks = append(blocks, block{label: fmt.Sprintf("%s %v", label, key), text: plain(v), detail: detail})
	}
	return blocks
}

// plain returns a value as people read it: the text of a string or a message, or JSON.
func plain(v json.RawMessage) string {
	var s string
	var m chat.Message
	switch {
	case json.Unmarshal(v, &s) == nil:
		return s
	case json.Unmarshal(v, &m) == nil:
		return messageText(m)
	}
	return string(v)
}

// maxSession is the number of characters of a session that a heading has.
const maxSession = 60

// totals are sums over the spans of a row.
type totals struct {
	tokens     telemetry.Tokens
	cost       float64
	failed     bool
	session    string
	start, end time.Time
}

// totalsOf adds up what models used, and finds the times and the failure of a row.
func totalsOf(spans []telemetry.Span, roots []*entry) totals {
	var t totals
	for i := range spans {
		s := &spans[i]
		if i == 0 || s.Start.Before(t.start) {
			t.start = s.Start
		}
		if s.End != nil && s.End.After(t.end) {
			t.end = *s.End
		}
		if s.Tokens != nil {
			t.tokens.Input += s.Tokens.Input
			t.tokens.Output += s.Tokens.Output
			t.tokens.Cached += s.Tokens.Cached
			t.tokens.Estimated = t.tokens.Estimated || s.Tokens.Estimated
		}
		if s.Cost != nil {
			t.cost += *s.Cost
		}
		if session, ok := s.Attributes["session"].(string); ok && t.session == "" {
			t.session = session
		}
	}
	for _, e := range roots {
		t.failed = t.failed || e.failed()
	}
	return t
}

// notes returns the totals in the form of the notes of an entry.
func (t *totals) notes() []string {
	var notes []string
	if t.session != "" {
		notes = append(notes, "session "+textfmt.Ellipsis(t.session, maxSession))
	}
	if t.end.After(t.start) {
		notes = append(notes, textfmt.ShortDuration(t.end.Sub(t.start)))
	}
	var used *telemetry.Tokens
	if t.tokens.Input+t.tokens.Output > 0 {
		used = &t.tokens
	}
	return append(notes, usageNotes(used, &t.cost)...)
}
