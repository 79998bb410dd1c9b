package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec/chat"
)

// Format is the form of a file with conversations.
type Format string

// The formats.
const (
	Lines       Format = "lines"       // the lines of this package: messages in OpenAI's form, events and variables
	LangChain   Format = "langchain"   // LangChain's messages_to_dict or dumps: a list of messages, or an object that has one, such as a checkpoint of LangGraph
	LangChain4j Format = "langchain4j" // the list that ChatMessageSerializer of LangChain4j writes
)

// Formats returns the formats by name.
func Formats() []string { return []string{string(Lines), string(LangChain), string(LangChain4j)} }

// maxFile limits a file of another program, which is read as a whole, in bytes.
const maxFile = 1 << 30

// detect returns the format of what follows in a reader: that of the first element of a
// list, or of the first object by its keys.
func detect(in *bufio.Reader) Format {
	start, _ := in.Peek(in.Size()) // shorter at the end of the file
	dec := json.NewDecoder(bytes.NewReader(start))
	first, err := dec.Token()
	if first == json.Delim('[') && err == nil {
		if _, err := dec.Token(); err != nil {
			return Lines
		}
		if kind := string(membersOf(dec)["type"]); kind != "" && kind == strings.ToUpper(kind) {
			return LangChain4j
		}
		return LangChain
	}
	members := membersOf(dec)
	if first != json.Delim('{') || members["role"] != nil || members["op"] != nil {
		return Lines
	}
	for _, key := range listKeys() {
		if _, ok := members[key]; ok {
			return LangChain
		}
	}
	return Lines
}

// membersOf returns the members of an object that has been opened, as far as they can be
// read.
func membersOf(dec *json.Decoder) map[string]json.RawMessage {
	members := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			break
		}
		name, _ := key.(string)
		members[name] = json.RawMessage{}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			break
		}
		members[name] = value
	}
	return members
}

// listKeys returns the keys of an object that have, or lead to, a list of messages.
func listKeys() []string { return []string{"messages", "channel_values", "values", "checkpoint"} }

// readMessages reads the messages of a file of another program.
func readMessages(in io.Reader, f Format) ([]chat.Message, error) {
	raw, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(raw) > maxFile:
		return nil, fmt.Errorf("the file is larger than %d GiB", maxFile>>30)
	}
	list, err := messageList(raw, 0)
	if err != nil {
		return nil, err
	}
	read := langChainMessage
	if f == LangChain4j {
		read = langChain4jMessage
	}
	ids := map[string]bool{}
	var all []chat.Message
	for i, one := range list {
		msg, err := read(one)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		if msg.ID == "" || ids[msg.ID] {
			msg.ID = chat.NewID()
		}
		ids[msg.ID] = true
		all = append(all, msg)
	}
	return all, nil
}

// messageList returns the elements of a list, or of the list of messages in an object.
func messageList(raw []byte, depth int) ([]json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '{' && depth < 4 {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); err != nil {
			return nil, fmt.Errorf("it is not JSON: %s", clean(err))
		}
		for _, key := range listKeys() {
			if inner, ok := object[key]; ok {
				return messageList(inner, depth+1)
			}
		}
		return nil, fmt.Errorf("the object has no list messages")
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("it is not a JSON list of messages")
	}
	return list, nil
}

// part is a part of the content of a message in LangChain's forms, or in OpenAI's.
type part struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	ImageURL json.RawMessage `json:"image_url"`
	URL      string          `json:"url"`
	Base64   []byte          `json:"base64"`
	Data     []byte          `json:"data"`
	MimeType string          `json:"mime_type"`
}

// unsentParts are parts that repeat the tool calls, or are not part of the conversation.
func unsentParts() []string {
	return []string{"tool_use", "tool_call", "tool_call_chunk", "function_call", "thinking", "reasoning", "reasoning_content", "redacted_thinking"}
}

// contentBlocks reads the content of a message: a text, null or a list of parts.
func contentBlocks(raw json.RawMessage) ([]chat.Block, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []chat.Block{{Type: "text", Text: text}}, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("its content is neither a text nor a list")
	}
	var blocks []chat.Block
	for _, one := range list {
		if json.Unmarshal(one, &text) == nil {
			blocks = append(blocks, chat.Block{Type: "text", Text: text})
			continue
		}
		var p part
		if err := json.Unmarshal(one, &p); err != nil {
			return nil, fmt.Errorf("a part of its content cannot be read: %s", clean(err))
		}
		if slices.Contains(unsentParts(), p.Type) {
			continue
		}
		b, err := p.block(one)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// block returns a part as a block; OpenAI's forms are read by package chat.
func (p *part) block(raw json.RawMessage) (chat.Block, error) {
	switch p.Type {
	case "text":
		return chat.Block{Type: "text", Text: p.Text}, nil
	case "image", "audio", "video", "file":
		data := p.Base64
		if data == nil {
			data = p.Data
		}
		if data == nil && p.URL == "" {
			return chat.Block{}, fmt.Errorf("a part of type %q has neither base64 nor url", p.Type)
		}
		return chat.Block{Type: p.Type, Text: p.URL, Data: data, MimeType: p.MimeType}, nil
	}
	if p.Type == "image_url" {
		var url string
		if json.Unmarshal(p.ImageURL, &url) == nil {
			raw, _ = encode(map[string]any{"type": "image_url", "image_url": map[string]string{"url": url}}) // texts only
		}
	}
	msg, err := chat.ParseOpenAI(slices.Concat([]byte(`{"role":"user","content":[`), raw, []byte(`]}`)))
	if err != nil || len(msg.Blocks) != 1 {
		return chat.Block{}, fmt.Errorf("it has a part of the unknown type %q", p.Type)
	}
	return msg.Blocks[0], nil
}

// langChainData is the content of a message of LangChain.
type langChainData struct {
	Type       string          `json:"type"`
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Role       string          `json:"role"` // of a ChatMessage
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"tool_calls"`
}

// langChainMessage reads a message that messages_to_dict or dumps of LangChain wrote.
func langChainMessage(raw json.RawMessage) (chat.Message, error) {
	var m struct {
		Type   string          `json:"type"`
		Data   json.RawMessage `json:"data"`
		LC     int             `json:"lc"`
		ID     json.RawMessage `json:"id"` // a list for dumps
		Kwargs json.RawMessage `json:"kwargs"`
		Role   string          `json:"role"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return chat.Message{}, fmt.Errorf("it cannot be read: %s", clean(err))
	}
	kind, inner := m.Type, m.Data
	switch {
	case m.Role != "" && m.Type == "": // OpenAI's form
		return chat.ParseOpenAI(raw)
	case m.LC > 0:
		var path []string
		if err := json.Unmarshal(m.ID, &path); err != nil || len(path) == 0 || m.Kwargs == nil {
			return chat.Message{}, fmt.Errorf("it is not a message of LangChain")
		}
		kind = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(path[len(path)-1], "Chunk"), "Message"))
		inner = m.Kwargs
	case inner == nil:
		inner = raw // the flat form of the messages of a server
	}
	var d langChainData
	if err := json.Unmarshal(inner, &d); err != nil {
		return chat.Message{}, fmt.Errorf("it cannot be read: %s", clean(err))
	}
	return d.message(strings.TrimSuffix(kind, "MessageChunk"))
}

func (d *langChainData) message(kind string) (chat.Message, error) {
	msg := chat.Message{ID: d.ID, Name: d.Name, ToolCallID: d.ToolCallID}
	if kind == "chat" {
		kind = d.Role
	}
	role, ok := map[string]chat.Role{"human": chat.User, "user": chat.User, "ai": chat.Assistant, "AI": chat.Assistant, "assistant": chat.Assistant,
		"system": chat.System, "developer": chat.Developer, "tool": chat.Tool, "function": chat.Function}[kind]
	if !ok {
		return msg, fmt.Errorf("unknown type of message %q", kind)
	}
	msg.Role = role
	var err error
	if msg.Blocks, err = contentBlocks(d.Content); err != nil {
		return msg, err
	}
	if len(d.ToolCalls) > 0 && msg.Text() == "" && len(msg.Blocks) == 1 {
		msg.Blocks = nil
	}
	for _, c := range d.ToolCalls {
		var arguments bytes.Buffer
		if err := json.Compact(&arguments, c.Args); err != nil {
			arguments.WriteString("{}")
		}
		msg = msg.With(chat.ToolCall{ID: c.ID, Name: c.Name, Arguments: arguments.String()})
	}
	return msg, nil
}

// media4j is the content of an image, a sound, a video or a PDF document of LangChain4j.
type media4j struct {
	URL        string `json:"url"`
	Base64Data []byte `json:"base64Data"`
	MimeType   string `json:"mimeType"`
}

// langChain4jMessage reads a message that ChatMessageSerializer of LangChain4j wrote.
func langChain4jMessage(raw json.RawMessage) (chat.Message, error) {
	var m struct {
		Type     string                       `json:"type"`
		Text     *string                      `json:"text"`
		Name     string                       `json:"name"`
		ID       string                       `json:"id"`
		ToolName string                       `json:"toolName"`
		Contents []map[string]json.RawMessage `json:"contents"`
		Requests []chat.ToolCall              `json:"toolExecutionRequests"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return chat.Message{}, fmt.Errorf("it cannot be read: %s", clean(err))
	}
	role, ok := map[string]chat.Role{"SYSTEM": chat.System, "USER": chat.User, "AI": chat.Assistant, "TOOL_EXECUTION_RESULT": chat.Tool}[m.Type]
	if !ok {
		return chat.Message{}, fmt.Errorf("unknown type of message %q", m.Type)
	}
	msg := chat.Message{Role: role, Name: m.Name}
	if role == chat.Tool {
		msg.Name, msg.ToolCallID = m.ToolName, m.ID
	}
	if m.Text != nil {
		msg.Blocks = []chat.Block{{Type: "text", Text: *m.Text}}
	}
	for _, c := range m.Contents {
		b, err := block4j(c)
		if err != nil {
			return msg, err
		}
		msg.Blocks = append(msg.Blocks, b)
	}
	return msg.With(m.Requests...), nil
}

// block4j reads a part of a user's message of LangChain4j.
func block4j(c map[string]json.RawMessage) (chat.Block, error) {
	var kind, text string
	if err := json.Unmarshal(c["type"], &kind); err != nil {
		return chat.Block{}, fmt.Errorf("a part of its content has no type")
	}
	if kind == "TEXT" {
		err := json.Unmarshal(c["text"], &text)
		return chat.Block{Type: "text", Text: text}, err
	}
	types := map[string]struct{ key, block string }{"IMAGE": {"image", "image"}, "AUDIO": {"audio", "audio"}, "VIDEO": {"video", "video"}, "PDF": {"pdfFile", "file"}}
	one, ok := types[kind]
	var m media4j
	if !ok || json.Unmarshal(c[one.key], &m) != nil || m.URL == "" && m.Base64Data == nil {
		return chat.Block{}, fmt.Errorf("it has a part of type %q that cannot be read", kind)
	}
	if kind == "PDF" && m.MimeType == "" {
		m.MimeType = "application/pdf"
	}
	return chat.Block{Type: one.block, Text: m.URL, Data: m.Base64Data, MimeType: m.MimeType}, nil
}
