package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/mediatype"
	"github.com/qtype-dev/qtype/spec/chat"
)

// NormalizeRole returns the sender of a message in terms that all providers have: system,
// user, assistant or tool.
func NormalizeRole(r chat.Role) chat.Role {
	switch r {
	case chat.Developer:
		return chat.System
	case chat.Chatbot, chat.Model:
		return chat.Assistant
	case chat.Function:
		return chat.Tool
	}
	return r
}

// Split separates the system messages from the conversation, for providers that take them
// separately. Their texts are joined by an empty line.
func Split(messages []chat.Message) (system string, rest []chat.Message) {
	var texts []string
	for _, m := range messages {
		if NormalizeRole(m.Role) == chat.System {
			texts = append(texts, m.Text())
			continue
		}
		rest = append(rest, m)
	}
	return strings.Join(texts, "\n\n"), rest
}

// Split separates the system messages that the protocol takes separately.
func (s *Server) Split(messages []chat.Message) (system string, rest []chat.Message) {
	if s.form.Turns.SystemWithin {
		return SplitFirst(messages)
	}
	return Split(messages)
}

// SplitFirst separates the system messages at the beginning only; see TurnRules.SystemWithin.
func SplitFirst(messages []chat.Message) (system string, rest []chat.Message) {
	first := slices.IndexFunc(messages, func(m chat.Message) bool { return NormalizeRole(m.Role) != chat.System })
	if first < 0 {
		first = len(messages)
	}
	system, _ = Split(messages[:first])
	return system, messages[first:]
}

// Arguments returns the arguments of a tool call as an object, for providers that take no
// text. A text that is not an object is wrapped in one.
func Arguments(text string) json.RawMessage {
	if strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	raw, _ := json.Marshal(map[string]string{"arguments": text}) // a text always encodes
	return raw
}

// UnsupportedContent is the error of content that a provider does not accept.
func UnsupportedContent(b chat.Block, provider string) error {
	if b.Media() && b.MimeType != "" {
		return fmt.Errorf("%s of type %s cannot be sent to %s", b.Type, b.MimeType, provider)
	}
	return fmt.Errorf("%s cannot be sent to %s", b.Type, provider)
}

// ResultNote is the text that replaces media of a tool's result which a provider does not
// accept there: the model can say so, where an error would end the conversation.
func ResultNote(b chat.Block) string {
	kind := map[string]string{"image": "an image", "audio": "a sound", "video": "a film"}[b.Type]
	if kind == "" {
		kind = "a file"
	}
	if b.MimeType != "" {
		kind += " of type " + b.MimeType
	}
	return "[" + kind + ", which cannot be passed to this model]"
}

// WithAnswerNotes returns messages with a text in place of each image, sound and file of an
// answer, for providers that take media from users and tools only.
func WithAnswerNotes(messages []chat.Message) []chat.Message {
	answered := func(m chat.Message) bool {
		return NormalizeRole(m.Role) == chat.Assistant && slices.ContainsFunc(m.Blocks, chat.Block.Media)
	}
	if !slices.ContainsFunc(messages, answered) {
		return messages
	}
	messages = slices.Clone(messages)
	for i, m := range messages {
		if !answered(m) {
			continue
		}
		messages[i].Blocks = slices.Clone(m.Blocks)
		for j, b := range m.Blocks {
			if b.Media() {
				messages[i].Blocks[j] = chat.Block{Type: "text", Text: ResultNote(b)}
			}
		}
	}
	return messages
}

// FileText returns the text of a file that is text, for providers that take only PDF
// documents as files. ok is false for other blocks.
func FileText(b chat.Block) (text string, ok bool) {
	if b.Type != "file" || !b.Media() || b.MimeType != "" && !strings.HasPrefix(b.MimeType, "text/") || !strings.HasPrefix(mediatype.Detect(b.Data), "text/") {
		return "", false
	}
	return strings.ToValidUTF8(string(b.Data), "\uFFFD"), true
}

// ImageType returns the media type of an image by its first bytes, PNG if it is unknown:
// providers require a type.
func ImageType(data []byte) string {
	if kind := http.DetectContentType(data); strings.HasPrefix(kind, "image/") {
		return kind
	}
	return "image/png"
}

// PlainID replaces what is not a letter, a digit, _ or - in the id of a call, which another
// provider may have assigned.
func PlainID(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, id)
}

// Texts of messages that requests need and the conversation does not have.
const (
	omittedText  = "(earlier messages are omitted)" // before an answer or a call that begins the window
	continueText = "(continue)"                     // after an answer that ends it
	blankText    = "(empty message)"                // in place of a message of the user without content
	deletedText  = "(the answer is omitted)"        // after the results of tools that no answer follows
)

// TurnRules are what a protocol requires of the order of messages.
type TurnRules struct {
	UserFirst bool // the first message after the system's is the user's
	UserLast  bool // the last message is the user's or a tool's
	NoBlank   bool // messages of the user have content
	Answered  bool // an answer is between the results of tools and the next message of the user

	// SystemWithin keeps system messages in the conversation: each follows a message of the user or results
	// of tools, and an answer follows it. Without it, clients send all of them first.
	SystemWithin bool
}

// Order returns messages that follow the rules. It adds texts, moves system messages of SystemWithin to
// the next place that they can have, and changes nothing else.
func (r TurnRules) Order(messages []chat.Message) []chat.Message {
	ordered := messages
	if r.NoBlank {
		ordered = withoutBlank(messages)
	}
	if r.Answered {
		ordered = answered(ordered)
	}
	first := slices.IndexFunc(ordered, func(m chat.Message) bool { return NormalizeRole(m.Role) != chat.System })
	if first < 0 {
		first = len(ordered)
	}
	if r.UserFirst && first < len(ordered) && NormalizeRole(ordered[first].Role) != chat.User {
		ordered = slices.Insert(slices.Clone(ordered), first, chat.Text(chat.User, omittedText))
	}
	if last := len(ordered) - 1; r.UserLast && (last < first || NormalizeRole(ordered[last].Role) == chat.Assistant) {
		ordered = append(slices.Clip(ordered), chat.Text(chat.User, continueText))
	}
	if r.SystemWithin && first < len(ordered) {
		return slices.Concat(ordered[:first], placedSystem(ordered[first:]))
	}
	return ordered
}

// placedSystem returns a conversation in which system messages are after the message of the user or
// the results of tools that precede them, or else follow them. Those at one place are joined. A place
// does not change when the conversation goes on.
func placedSystem(messages []chat.Message) []chat.Message {
	placed := make([]chat.Message, 0, len(messages)+1)
	var waiting []string
	place := func() {
		if last := len(placed) - 1; len(waiting) > 0 && last >= 0 && NormalizeRole(placed[last].Role) != chat.Assistant {
			placed = append(placed, chat.Text(chat.System, strings.Join(waiting, "\n\n")))
			waiting = nil
		}
	}
	for _, m := range messages {
		switch NormalizeRole(m.Role) {
		case chat.System:
			waiting = append(waiting, m.Text())
			continue
		case chat.Assistant:
			place()
		}
		placed = append(placed, m)
	}
	if place(); len(waiting) > 0 {
		placed = append(placed, chat.Text(chat.User, continueText))
		place()
	}
	return placed
}

// answered returns messages with an answer between results of tools and a message of the user.
func answered(messages []chat.Message) []chat.Message {
	out := messages
	for i, m := range slices.Backward(messages) {
		if i > 0 && isUsers(m) && NormalizeRole(messages[i-1].Role) == chat.Tool {
			out = slices.Insert(slices.Clone(out), i, chat.Text(chat.Assistant, deletedText))
		}
	}
	return out
}

// withoutBlank returns messages with a text in empty messages of the user that have no
// message of the user next to them: clients leave out empty content, and join the messages of
// one side.
func withoutBlank(messages []chat.Message) []chat.Message {
	changed := messages
	for i, m := range messages {
		adjacent := i > 0 && isUsers(messages[i-1]) && !isBlank(messages[i-1]) || i+1 < len(messages) && isUsers(messages[i+1])
		if !isUsers(m) || adjacent || !isBlank(m) {
			continue
		}
		if &changed[0] == &messages[0] {
			changed = slices.Clone(messages)
		}
		changed[i].Blocks = []chat.Block{{Type: "text", Text: blankText}}
	}
	return changed
}

// isUsers reports whether a message is the user's.
func isUsers(m chat.Message) bool { return NormalizeRole(m.Role) == chat.User }

// isBlank reports whether a message has neither media nor text other than spaces.
func isBlank(m chat.Message) bool {
	return !slices.ContainsFunc(m.Blocks, func(b chat.Block) bool { return b.Data != nil || strings.TrimSpace(b.Text) != "" })
}
