package chat

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

// The JSON form of a message in OpenAI's chat completions:
//
//	{"role": "user", "content": "hello"}
//	{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}]}
//	{"role": "tool", "tool_call_id": "c1", "content": "found"}
//
// A tool call may also be written flat, {"id", "name", "arguments"}.

// ParseOpenAI parses a message in OpenAI's form, with a new id. Content is a
// string, null or a list of parts; the arguments of a tool call are a string or an
// object. It rejects unknown fields, roles and parts.
func ParseOpenAI(data []byte) (Message, error) {
	o, err := readObject(data, "a message", "role", "content", "name", "tool_calls", "tool_call_id")
	if err != nil {
		return Message{}, err
	}
	m := Message{ID: NewID()}
	if m.Role, err = o.role(); err != nil {
		return Message{}, err
	}
	if err := o.texts(map[string]*string{"name": &m.Name, "tool_call_id": &m.ToolCallID}); err != nil {
		return Message{}, err
	}
	calls, err := readList(o, "tool_calls", readOpenAICall)
	if err != nil {
		return Message{}, err
	}
	if m.Blocks, err = readContent(o); err != nil {
		return Message{}, err
	}
	if len(calls) > 0 {
		m = m.With(calls...)
	}
	return m, nil
}

// readContent reads the content of a message.
func readContent(o object) ([]Block, error) {
	switch textfmt.JSONKind(o["content"]) {
	case "null", "nothing":
		return nil, nil
	case "a string":
		text, err := o.text("content")
		return []Block{{Type: "text", Text: text}}, err
	case "a list":
		return readList(o, "content", readPart)
	}
	return nil, fmt.Errorf("%q must be a string, a list of parts or null, not %s", "content", textfmt.JSONKind(o["content"]))
}

// readOpenAICall accepts the nested and the flat form.
func readOpenAICall(data []byte) (ToolCall, error) {
	o, err := readObject(data, "a tool call", "id", "name", "arguments", "type", "function", "index")
	if err != nil {
		return ToolCall{}, err
	}
	if !o.has("function") {
		return o.toolCall()
	}
	f, err := readObject(o["function"], `"function"`, "name", "arguments")
	if err != nil {
		return ToolCall{}, err
	}
	c, err := f.toolCall()
	if err != nil {
		return ToolCall{}, err
	}
	c.ID, err = o.text("id")
	return c, err
}

// partTypes returns the types of parts.
func partTypes() []string {
	return []string{"text", "refusal", "image_url", "input_audio", "video_url", "file"}
}

func readPart(data []byte) (Block, error) {
	o, err := readObject(data, "a part", append(partTypes(), "type")...)
	if err != nil {
		return Block{}, err
	}
	t, err := o.text("type")
	if err != nil {
		return Block{}, err
	}
	switch t {
	case "text", "refusal":
		text, err := o.text(t)
		return Block{Type: "text", Text: text}, err
	case "image_url":
		return readLinked("image", t, o[t])
	case "video_url":
		return readLinked("video", t, o[t])
	case "input_audio":
		return readAudio(o[t])
	case "file":
		return readFile(o[t])
	case "":
		return Block{}, errors.New(`a part needs a "type"`)
	}
	return Block{}, fmt.Errorf("unknown part type %q%s", t, suggest(t, partTypes()))
}

// readLinked accepts {"url": …} or only the URL. A data URL is decoded; other URLs
// are kept and never fetched.
func readLinked(blockType, key string, raw json.RawMessage) (Block, error) {
	b := Block{Type: blockType}
	o := object{"url": raw}
	if textfmt.JSONKind(raw) == "an object" {
		var err error
		if o, err = readObject(raw, fmt.Sprintf("%q", key), "url", "detail"); err != nil {
			return Block{}, err
		}
	}
	url, err := o.text("url")
	if err != nil {
		return Block{}, err
	}
	if url == "" {
		return Block{}, fmt.Errorf("%q needs a %q", key, "url")
	}
	err = b.readURL(url)
	return b, err
}

func readAudio(raw json.RawMessage) (Block, error) {
	o, err := readObject(raw, `"input_audio"`, "data", "format")
	if err != nil {
		return Block{}, err
	}
	var data, format string
	if err := o.texts(map[string]*string{"data": &data, "format": &format}); err != nil {
		return Block{}, err
	}
	b := Block{Type: "audio"}
	if format != "" {
		b.MimeType = "audio/" + format
	}
	b.Data, err = decodeBase64(data)
	return b, err
}

func readFile(raw json.RawMessage) (Block, error) {
	o, err := readObject(raw, `"file"`, "file_data", "file_id", "filename")
	if err != nil {
		return Block{}, err
	}
	var data, id string
	if err := o.texts(map[string]*string{"file_data": &data, "file_id": &id}); err != nil {
		return Block{}, err
	}
	b := Block{Type: "file", Text: id}
	switch {
	case strings.HasPrefix(data, "data:"):
		err = b.readURL(data)
	case data != "":
		b.Data, err = decodeBase64(data)
	}
	return b, err
}

// readURL decodes a data URL, or keeps the URL.
func (b *Block) readURL(url string) error {
	rest, isData := strings.CutPrefix(url, "data:")
	if !isData {
		b.Text = url
		return nil
	}
	head, data, found := strings.Cut(rest, ",")
	mime, coded := strings.CutSuffix(head, ";base64")
	if !found || !coded {
		return errors.New("a data URL must be base64: data:TYPE;base64,…")
	}
	b.MimeType = mime
	var err error
	b.Data, err = decodeBase64(data)
	return err
}

// decodeBase64 accepts the standard alphabet with and without padding.
func decodeBase64(s string) ([]byte, error) {
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return nil, errors.New("bytes must be base64 text")
	}
	return data, nil
}

type openAIMessage struct {
	Role       Role            `json:"role"`
	Content    json.RawMessage `json:"content"`
	Name       string          `json:"name,omitempty"`
	ToolCalls  []openAICall    `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
}

type openAICall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function openAIFunction `json:"function"`
}

type openAIFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// OpenAI returns a message in OpenAI's form, on one line. Roles without a
// counterpart are mapped: chatbot and model to assistant, function to tool. Text
// without media is one string, which every compatible server accepts; with media it
// is a part.
func OpenAI(m Message) json.RawMessage {
	if len(m.Blocks) == 1 && m.Blocks[0].Data == nil && m.Blocks[0].Type == "text" {
		return openAIText(&m)
	}
	out := openAIMessage{Role: openAIRole(m.Role), Name: m.Name, ToolCallID: m.ToolCallID, Content: openAIContent(m)}
	for _, c := range m.Calls() {
		out.ToolCalls = append(out.ToolCalls, openAICall{ID: c.ID, Type: "function", Function: openAIFunction{Name: c.Name, Arguments: c.Arguments}})
	}
	raw, err := compact(out)
	if err != nil { // the structs above can always be encoded
		return quote(m.Text())
	}
	return raw
}

// openAIText is OpenAI for a message of one text, without reflection.
func openAIText(m *Message) json.RawMessage {
	b := make([]byte, 0, 48+len(m.Blocks[0].Text)+len(m.Name)+len(m.ToolCallID))
	b = appendText(append(b, `{"role":`...), string(openAIRole(m.Role)))
	b = appendText(append(b, `,"content":`...), m.Blocks[0].Text)
	b = appendOptional(b, `,"name":`, m.Name)
	return append(appendOptional(b, `,"tool_call_id":`, m.ToolCallID), '}')
}

func openAIRole(r Role) Role {
	switch r {
	case Chatbot, Model:
		return Assistant
	case Function:
		return Tool
	}
	return r
}

func openAIContent(m Message) json.RawMessage {
	media := false
	for _, b := range m.Blocks {
		media = media || mediaType(b.Type) || b.Media()
	}
	text := m.Text()
	switch {
	case media:
		return openAIParts(m.Blocks)
	case text == "" && m.HasCalls():
		return json.RawMessage("null")
	}
	return quote(text)
}

func openAIParts(blocks []Block) json.RawMessage {
	var buf bytes.Buffer
	buf.WriteByte('[')
	for _, b := range blocks {
		if b.IsModels() {
			continue
		}
		if buf.Len() > 1 {
			buf.WriteByte(',')
		}
		buf.Write(openAIPart(b))
	}
	buf.WriteByte(']')
	return buf.Bytes()
}

func openAIPart(b Block) json.RawMessage {
	part := func(format string, values ...any) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(format, values...))
	}
	switch {
	case b.Type == "image":
		return part(`{"type":"image_url","image_url":{"url":%s}}`, quote(b.url()))
	case b.Type == "video":
		return part(`{"type":"video_url","video_url":{"url":%s}}`, quote(b.url()))
	case b.Type == "audio":
		return part(`{"type":"input_audio","input_audio":{"data":"%s","format":%s}}`,
			base64.StdEncoding.EncodeToString(b.Data), quote(audioFormat(b.MimeType)))
	case b.Media():
		return part(`{"type":"file","file":{"filename":"file","file_data":%s}}`, quote(b.url()))
	case mediaType(b.Type):
		return part(`{"type":"file","file":{"file_id":%s}}`, quote(b.Text))
	}
	return part(`{"type":"text","text":%s}`, quote(b.Text))
}

// url returns the URL of the block, a data URL if it has bytes.
func (b Block) url() string {
	if b.Data == nil {
		return b.Text
	}
	mime := b.MimeType
	if mime == "" {
		mime = mediaTypeOf(b.Type, b.Data)
	}
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(b.Data)
}

// audioFormat returns OpenAI's name of an audio type: wav or mp3.
func audioFormat(mime string) string {
	_, sub, _ := strings.Cut(mime, "/")
	sub = strings.TrimPrefix(sub, "x-")
	switch sub {
	case "", "wave", "vnd.wave":
		return "wav"
	case "mpeg":
		return "mp3"
	}
	return sub
}

// mediaTypeOf detects a media type by the magic numbers of the formats. net/http
// can detect more but adds megabytes to the program.
func mediaTypeOf(blockType string, data []byte) string {
	signatures := []struct{ head, mime string }{
		{"\x89PNG\r\n", "image/png"}, {"\xff\xd8\xff", "image/jpeg"}, {"GIF8", "image/gif"}, {"%PDF-", "application/pdf"},
	}
	for _, s := range signatures {
		if bytes.HasPrefix(data, []byte(s.head)) {
			return s.mime
		}
	}
	switch {
	case len(data) > 12 && string(data[8:12]) == "WEBP":
		return "image/webp"
	case blockType == "image":
		return "image/png"
	case blockType == "video":
		return "video/mp4"
	}
	return "application/octet-stream"
}
