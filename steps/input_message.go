package steps

import (
	"errors"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/mediatype"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// inputMessage is a message that was made from an input of a step.
type inputMessage struct {
	chat.Message
	given bool // a message of the row, which keeps its id
	media bool // it was made from an image or another file
	fixed bool // one of a list of messages, which is not changed
}

// inputMessages are the messages of all inputs, in their order.
type inputMessages []inputMessage

// messagesFrom makes messages from the inputs of a step, in their order.
func messagesFrom(inputs []slot, row *Row) (inputMessages, error) {
	var msgs inputMessages
	for _, in := range inputs {
		v, err := in.read(row)
		if in.of.IsOptional() && (err != nil || v == nil) {
			continue
		}
		if err != nil {
			return nil, err
		}
		made, err := messageFrom(in.of, v)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", in.of.ID, err)
		}
		if len(msgs) == 0 {
			msgs = made
		} else {
			msgs = append(msgs, made...)
		}
	}
	if len(msgs) == 0 {
		return nil, errors.New("all inputs are empty; nothing to send")
	}
	return msgs, nil
}

// messageFrom makes messages from one value. ChatMessages and lists of them are used
// unchanged, with their ids; bytes become a block of the declared type; the text of
// any other value becomes a user message.
func messageFrom(v *spec.Variable, x any) (inputMessages, error) {
	switch x := x.(type) {
	case nil:
		return nil, errors.New("it is null")
	case chat.Message:
		return inputMessages{{Message: x, given: true}}, nil
	case []byte:
		return mediaMessage(v.Type, x)
	case []any:
		if msgs := messageList(x); v.Type.IsListOf("ChatMessage") && msgs != nil {
			return msgs, nil
		}
		if v.Type.Elem != nil && v.Type.Elem.IsMedia() {
			return mediaList(*v.Type.Elem, x)
		}
	}
	return inputMessages{{Message: chat.Text(chat.User, value.Text(x))}}, nil
}

// mediaMessage returns a user message with one block of bytes.
func mediaMessage(t spec.Type, data []byte) (inputMessages, error) {
	switch {
	case !t.IsMedia():
		return nil, fmt.Errorf("it holds bytes, but its type is %s", t)
	case t.Is("video"):
		return nil, errors.New("models do not accept video")
	}
	m := chat.Message{ID: chat.NewID(), Role: chat.User, Blocks: []chat.Block{mediaBlock(t.Name, data)}}
	return inputMessages{{Message: m, media: true}}, nil
}

// mediaBlock returns bytes as a block of a type, with the media type of its content.
func mediaBlock(kind string, data []byte) chat.Block {
	b := chat.Block{Type: kind, Data: data}
	if mime := mediatype.Detect(data); mediatype.KindOf(mime) == kind || kind == "file" {
		b.MimeType = mime
	}
	return b
}

// mediaList returns a user message with a block for each item of a list.
func mediaList(t spec.Type, items []any) (inputMessages, error) {
	var all inputMessages
	for _, item := range items {
		data, ok := item.([]byte)
		if !ok {
			continue // null
		}
		made, err := mediaMessage(t, data)
		if err != nil {
			return nil, err
		}
		all = append(all, made...)
	}
	return all, nil
}

// messageList returns the messages of a list, nil if it holds other values.
func messageList(items []any) inputMessages {
	msgs := make(inputMessages, 0, len(items))
	for _, item := range items {
		m, ok := item.(chat.Message)
		if !ok {
			return nil
		}
		msgs = append(msgs, inputMessage{Message: m, given: true, fixed: true})
	}
	return msgs
}

// plain returns the messages as they are.
func (l inputMessages) plain() []chat.Message {
	msgs := make([]chat.Message, len(l))
	for i := range l {
		msgs[i] = l[i].Message
	}
	return msgs
}

// joined returns the messages, where media and the texts next to them are one user
// message: the parts of one question. known reports whether the conversation has a
// message already, which is not changed then. Texts without media remain separate messages.
func (l inputMessages) joined(known func(id string) bool) []chat.Message {
	if !slices.ContainsFunc(l, func(m inputMessage) bool { return m.media }) {
		return l.plain()
	}
	var msgs []chat.Message
	for len(l) > 0 {
		n := l.questionLength(known)
		question := l[:n]
		l = l[n:]
		if !slices.ContainsFunc(question, func(m inputMessage) bool { return m.media }) {
			msgs = append(msgs, question.plain()...)
			continue
		}
		msgs = append(msgs, question.merged())
	}
	return msgs
}

// questionLength returns how many messages at the start are parts of one question: those
// of the user, of which one may be a message of the row.
func (l inputMessages) questionLength(known func(id string) bool) int {
	given := false
	for i, m := range l {
		if m.Role != chat.User || m.fixed || m.given && (given || known(m.ID)) {
			return max(i, 1)
		}
		given = given || m.given
	}
	return len(l)
}

// merged returns one message with the blocks of all, and with the id and the name of the
// message of the row if there is one.
func (l inputMessages) merged() chat.Message {
	whole := l[0].Message
	if i := slices.IndexFunc(l, func(m inputMessage) bool { return m.given }); i >= 0 {
		whole = l[i].Message
	}
	whole.Blocks = nil
	for _, m := range l {
		whole.Blocks = append(whole.Blocks, m.Blocks...)
	}
	return whole
}
