package bedrock

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/smithy-go/eventstream"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// event is one event of a stream; one of its fields is set.
type event struct {
	Start *struct {
		Index wire.Count                 `json:"contentBlockIndex"`
		Start map[string]json.RawMessage `json:"start"` // by the kind of the block
	} `json:"contentBlockStart"`
	Delta *struct {
		Index wire.Count `json:"contentBlockIndex"`
		Delta delta      `json:"delta"`
	} `json:"contentBlockDelta"`
	End *struct {
		Index wire.Count `json:"contentBlockIndex"`
	} `json:"contentBlockStop"`
	Stop *struct {
		Reason string `json:"stopReason"`
	} `json:"messageStop"`
	Metadata *struct {
		Usage wire.Loose[usage] `json:"usage"`
		Tier  tier              `json:"serviceTier"`
	} `json:"metadata"`
}

// delta is a part of a content block.
type delta struct {
	Text string `json:"text"`
	Use  *struct {
		Input string `json:"input"`
	} `json:"toolUse"`
	Result    []json.RawMessage `json:"toolResult"` // of a tool of Bedrock
	Reasoning *struct {
		Text      string `json:"text"`
		Signature string `json:"signature"`
		Redacted  string `json:"redactedContent"`
	} `json:"reasoningContent"`
	Citation *cited `json:"citation"`
	Image    *struct {
		Source source `json:"source"`
	} `json:"image"`
}

// partial is a block of a stream that is not complete. The texts of answers and of reasoning are
// in the draft as they come.
type partial struct {
	use      *toolUse
	image    *media
	result   json.RawMessage   // the start of a result of a tool of Bedrock
	contents []json.RawMessage // of the result
	input    strings.Builder   // of a call
	thought  strings.Builder
	sealed   reasoning
}

// Complete reports whether the closing event was read, or at the end the reason for which
// the answer ended.
func (a *assembler) Complete(atEnd bool) bool { return a.done || atEnd && a.stop != "" }

// Chunk reads one event of a stream and returns its deltas.
func (a *assembler) Chunk(raw []byte) ([]model.Event, error) {
	if err := streamError(raw); err != nil {
		return nil, err
	}
	var ev event
	if err := json.Unmarshal(raw, &ev); err != nil {
		return nil, wire.Shape(err)
	}
	switch {
	case ev.Start != nil:
		return nil, a.at(int(ev.Start.Index)).start(ev.Start.Start)
	case ev.Delta != nil:
		return a.delta(a.at(int(ev.Delta.Index)), ev.Delta.Delta)
	case ev.End != nil:
		return nil, a.complete(int(ev.End.Index))
	case ev.Stop != nil:
		a.stop = cmp.Or(ev.Stop.Reason, "end_turn")
	case ev.Metadata != nil:
		a.usage, a.tier, a.done = ev.Metadata.Usage.Value, ev.Metadata.Tier, a.stop != ""
	}
	return nil, nil
}

// at returns the block with an index.
func (a *assembler) at(index int) *partial {
	if a.blocks == nil {
		a.blocks = map[int]*partial{}
	}
	if a.blocks[index] == nil {
		a.blocks[index] = &partial{}
	}
	return a.blocks[index]
}

// start reads the start of a block, which only some kinds have.
func (p *partial) start(kinds map[string]json.RawMessage) error {
	var err error
	for kind, raw := range kinds {
		switch kind {
		case "toolUse":
			err = json.Unmarshal(raw, &p.use)
		case "toolResult":
			p.result = raw
		case "image":
			err = json.Unmarshal(raw, &p.image)
		}
		if err != nil {
			return wire.Shape(err)
		}
	}
	return nil
}

// delta adds a part of a block.
func (a *assembler) delta(p *partial, d delta) ([]model.Event, error) {
	switch {
	case d.Use != nil:
		if p.input.Len()+len(d.Use.Input) > wire.MaxAnswer {
			return nil, wire.ErrTooLong
		}
		p.input.WriteString(d.Use.Input)
		if a.schema && d.Use.Input != "" {
			return []model.Event{{Text: d.Use.Input}}, nil
		}
		return nil, nil
	case d.Result != nil:
		p.contents = append(p.contents, d.Result...)
		return nil, nil
	case d.Image != nil:
		return nil, p.addImage(d.Image.Source.Bytes)
	case d.Citation != nil:
		a.sources = append(a.sources, *d.Citation)
		return nil, nil
	case d.Reasoning != nil:
		return a.thought(p, d.Reasoning.Text, d.Reasoning.Signature, d.Reasoning.Redacted)
	}
	return a.draft.AppendText(d.Text, "")
}

// thought adds a part of reasoning.
func (a *assembler) thought(p *partial, text, signature, redacted string) ([]model.Event, error) {
	if p.sealed.Text == nil {
		p.sealed.Text = &thoughtText{}
	}
	if p.thought.Len()+len(text)+len(p.sealed.Text.Signature)+len(signature) > wire.MaxAnswer {
		return nil, wire.ErrTooLong
	}
	p.thought.WriteString(text)
	p.sealed.Text.Signature += signature
	p.sealed.Redacted = cmp.Or(redacted, p.sealed.Redacted)
	return a.draft.AppendText("", text)
}

// addImage adds a part of an image.
func (p *partial) addImage(data []byte) error {
	if p.image == nil {
		p.image = &media{}
	}
	if len(p.image.Source.Bytes)+len(data) > wire.MaxAnswer {
		return wire.ErrTooLong
	}
	p.image.Source.Bytes = append(p.image.Source.Bytes, data...)
	return nil
}

// complete ends a block: what is not in the draft yet comes after the blocks before it.
func (a *assembler) complete(index int) error {
	p := a.blocks[index]
	delete(a.blocks, index)
	switch {
	case p == nil: // it had no parts
		return nil
	case p.use != nil && p.use.Type == "":
		a.call(p.use, p.input.String())
		return nil
	case p.use != nil:
		p.use.Input = wire.Arguments(cmp.Or(p.input.String(), "{}"))
		return a.keep(map[string]any{"toolUse": p.use})
	case p.result != nil:
		var result map[string]any
		if err := json.Unmarshal(p.result, &result); err != nil {
			return wire.Shape(err)
		}
		result["content"] = p.contents
		return a.keep(map[string]any{"toolResult": result})
	case p.image != nil:
		return a.image(p.image)
	case p.sealed.Text != nil:
		if p.sealed.Text.Text = p.thought.String(); p.sealed.Redacted != "" {
			p.sealed.Text = nil
		}
		raw, err := json.Marshal(p.sealed)
		if err != nil {
			return err
		}
		return a.seal(p.sealed, string(raw))
	}
	return nil
}

// keep adds a block that only Bedrock knows.
func (a *assembler) keep(b map[string]any) error {
	raw, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return a.draft.AppendItem(chat.ItemType, "", chat.Item{Field: blockField, JSON: string(raw)})
}

// streamError returns the error that an event of a stream reports, nil for none.
func streamError(raw []byte) error {
	var ev map[string]struct {
		Message string `json:"message"`
		Upper   string `json:"Message"`
		Status  int    `json:"originalStatusCode"`
	}
	if json.Unmarshal(raw, &ev) != nil {
		return nil //nolint:nilerr // an event whose fields have other types is none of the errors
	}
	for kind, e := range ev {
		status, known := exceptions()[kind]
		if !known && !strings.HasSuffix(kind, "Exception") && !strings.HasSuffix(kind, "Error") {
			continue
		}
		if !known {
			status = 500
		}
		return &wire.StreamError{API: wire.APIError{Message: cmp.Or(e.Message, e.Upper, kind), Type: kind, Code: json.RawMessage(fmt.Sprint(status))}}
	}
	return nil
}

// exceptions are the errors within a stream, with the status that each has as a response.
func exceptions() map[string]int {
	return map[string]int{
		"internalServerException": 500, "modelStreamErrorException": 424, "modelTimeoutException": 408,
		"serviceUnavailableException": 503, "throttlingException": 429, "validationException": 400,
	}
}

// frames reads the event stream of AWS. A record is {"type": payload}, with the name of
// the event or of the error as type.
type frames struct {
	from  *bufio.Reader
	count int
	head  []byte // what came instead of a stream
}

func newFrames(r io.Reader) wire.RecordReader { return &frames{from: bufio.NewReader(r)} }

// Begun returns the number of records, and what came before the first one.
func (f *frames) Begun() (records int, instead []byte) { return f.count, f.head }

// Next returns the next record; io.EOF at the end.
func (f *frames) Next() ([]byte, error) {
	if f.count == 0 {
		// The first byte of a frame belongs to its length, which is less than 16 MiB.
		if first, err := f.from.Peek(1); err == nil && first[0] != 0 {
			f.head, _ = f.from.Peek(1 << 10) // a shorter body is good enough
			return nil, io.EOF
		}
	}
	m, err := eventstream.NewDecoder().Decode(f.from, nil)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, err
		}
		return nil, fmt.Errorf("damaged event stream: %w", err)
	}
	f.count++
	return record(m)
}

// record converts a frame to JSON.
func record(m eventstream.Message) ([]byte, error) {
	text := func(name string) string {
		if v, ok := m.Headers.Get(name).(eventstream.StringValue); ok {
			return string(v)
		}
		return ""
	}
	payload := bytes.TrimSpace(m.Payload)
	kind := text(":event-type")
	switch text(":message-type") {
	case "exception":
		kind = text(":exception-type")
	case "error": // without a payload
		kind = text(":error-code")
		payload, _ = json.Marshal(map[string]string{"message": text(":error-message")}) // a text always encodes
	}
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	name, _ := json.Marshal(kind) // a text always encodes
	return fmt.Appendf(nil, "{%s:%s}", name, payload), nil
}
