package openai

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// reasoning collects the reasoning of an answer, which servers send in fields with several names,
// and what goes back to the server.
type reasoning struct {
	named string // a name that only the catalogue has; empty for none

	field   string           // the field of the reasoning that is the last block so far; empty for none
	details []detail         // reasoning_details, which replace the other fields on the way back
	keeps   bool             // whether <think> goes back in the text
	content strings.Builder  // the text as it came, if keeps
	text    int              // bytes of the text without <think>
	late    []*lateReasoning // what came after the begin of the text
	size    int              // bytes of late
}

// detail is an element of reasoning_details.
type detail struct {
	raw    json.RawMessage // as it came, if it came in one piece
	fields object
}

// newReasoning returns an empty one for a model.
func newReasoning(s *wire.Server) (r reasoning) {
	r.keeps = thinksInText(s.Info.Known)
	if known := s.Info.Known; known != nil && !r.keeps && !strings.Contains(known.Reasoning.Answer, " ") {
		r.named = known.Reasoning.Answer
	}
	if r.named == "reasoning_content" || r.named == "reasoning" || r.named == "content" {
		r.named = ""
	}
	return r
}

// read returns the reasoning of a part of a message, and the field in which it came. The field is
// empty if the text is not the whole of it.
func (r *reasoning) read(part *delta) (text, field string) {
	for _, f := range []struct {
		name string
		raw  json.RawMessage
	}{{r.named, part.named}, {"reasoning_content", part.Reasoning}, {"reasoning", part.Thinking}} {
		if text, err := contentText(f.raw); err == nil && text != "" {
			if f.raw[0] != '"' || len(r.details) > 0 || len(part.Details) > 0 {
				f.name = ""
			}
			field = f.name
			r.add(part.Details)
			return text, field
		}
	}
	return r.add(part.Details), ""
}

// add adds elements of reasoning_details, and returns their texts.
func (r *reasoning) add(details []json.RawMessage) (text string) {
	for _, raw := range details {
		d := detail{raw: raw}
		if json.Unmarshal(raw, &d.fields) != nil {
			continue
		}
		text += d.fields.text("text") + d.fields.text("summary")
		if n := len(r.details); n > 0 && r.details[n-1].continues(d) {
			r.details[n-1].extend(d)
			continue
		}
		r.details = append(r.details, d)
	}
	return text
}

// text returns a text of the object, empty for none.
func (o object) text(name string) (text string) {
	_ = json.Unmarshal(o[name], &text) // leaves it empty
	return text
}

// continues reports whether another element is the next piece of this one, as streams send texts.
func (d *detail) continues(next detail) bool {
	same := func(name string) bool {
		a, b := d.fields[name], next.fields[name]
		return string(a) == string(b) || !isSet(a) || !isSet(b)
	}
	kind := d.fields.text("type")
	return (kind == "reasoning.text" || kind == "reasoning.summary") && string(d.fields["type"]) == string(next.fields["type"]) &&
		string(d.fields["index"]) == string(next.fields["index"]) && same("id") && !isSet(d.fields["signature"])
}

// extend adds the next piece.
func (d *detail) extend(next detail) {
	for name, raw := range next.fields {
		switch {
		case name == "text" || name == "summary":
			d.fields[name] = encode(d.fields.text(name) + next.fields.text(name))
		case isSet(raw):
			d.fields[name] = raw
		}
	}
	d.raw = nil
}

// end marks the reasoning so far, which is the last block, as the value of its field.
func (r *reasoning) end(draft *wire.ResponseBuilder) error {
	field := r.field
	if r.field = ""; field == "" {
		return nil
	}
	return draft.Attach(chat.ReasoningType, chat.Item{Field: field})
}

// close adds what goes back next to the texts, before the calls.
func (r *reasoning) close(draft *wire.ResponseBuilder) error {
	if err := r.end(draft); err != nil {
		return err
	}
	if begin := r.content.Len() - r.text; r.keeps && begin > 0 {
		item := chat.Item{Field: contentField, JSON: string(encode(r.content.String()[:begin]))}
		if err := draft.AppendItem(chat.ItemType, "", item); err != nil {
			return err
		}
	}
	if len(r.details) == 0 {
		return nil
	}
	list := make([]json.RawMessage, len(r.details))
	for i, d := range r.details {
		if list[i] = d.raw; d.raw == nil {
			list[i] = encode(d.fields)
		}
	}
	return draft.AppendItem(chat.ItemType, "", chat.Item{Field: detailsField, JSON: string(encode(list))})
}

// lateReasoning is reasoning that came after the begin of the text.
type lateReasoning struct {
	field string // in which it came; empty for none
	text  strings.Builder
}

// addLate adds reasoning that came after the begin of the text. It has no place in the text, whose
// parts before and after it are one.
func (r *reasoning) addLate(text, field string) error {
	if r.size += len(text); r.size > wire.MaxAnswer {
		return wire.ErrTooLong
	}
	i := slices.IndexFunc(r.late, func(l *lateReasoning) bool { return l.field == field })
	if i < 0 {
		i, r.late = len(r.late), append(r.late, &lateReasoning{field: field})
	}
	r.late[i].text.WriteString(text)
	return nil
}

// place puts the late reasoning before the text of a message, at the end of the block of its field.
func (r *reasoning) place(m *chat.Message) {
	for _, late := range r.late {
		at := max(slices.IndexFunc(m.Blocks, func(b chat.Block) bool { return b.Type == "text" }), 0)
		b := chat.Block{Type: chat.ReasoningType, Text: late.text.String()}
		if late.field != "" {
			b.Item = &chat.Item{Field: late.field}
		}
		if at > 0 && m.Blocks[at-1].Type == b.Type && sameItem(m.Blocks[at-1].Item, b.Item) {
			m.Blocks[at-1].Text += b.Text
			continue
		}
		m.Blocks = slices.Insert(m.Blocks, at, b)
	}
}

// sameItem reports whether two blocks are pieces of one field.
func sameItem(a, b *chat.Item) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// endReasoning completes the block with reasoning, if it is the last one.
func (a *assembler) endReasoning() error {
	return errors.Join(a.endPart(), a.reasoning.end(&a.draft))
}

// appendReasoning adds reasoning to the answer, and returns the deltas for it.
func (a *assembler) appendReasoning(text, field string) ([]model.Event, error) {
	if text == "" {
		return nil, nil
	}
	if a.reasoning.text > 0 {
		return []model.Event{{Reasoning: text}}, a.reasoning.addLate(text, field)
	}
	if field != a.reasoning.field {
		if err := a.endReasoning(); err != nil {
			return nil, err
		}
		a.draft.Close()
	}
	a.reasoning.field = field
	return a.draft.AppendText("", text)
}

// appendText adds text to the answer, and returns the deltas for it.
func (a *assembler) appendText(text string) ([]model.Event, error) {
	if text == "" {
		return nil, nil
	}
	if err := a.endReasoning(); err != nil {
		return nil, err
	}
	a.reasoning.text += len(text)
	return a.draft.AppendText(text, "")
}
