package openai

import (
	"encoding/base64"
	"encoding/json"
	"mime"
	"path"
	"strings"

	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/spec/chat"
)

// fetchFunc returns the content of a file that a client names by its address. Its error
// is a *problem.Problem.
type fetchFunc func(url string) (data []byte, mediaType string, err error)

// message is a message of a client.
type message struct {
	chat.Message
	pointer  string // its place in the body
	approval bool   // it is a request for an approval, which models do not receive
	approved *bool  // of the answer to a request for an approval; nil for any other message
}

// isInstruction reports whether the message is for the model only.
func (m *message) isInstruction() bool { return m.Role == chat.System || m.Role == chat.Developer }

// wireMessage is a message in the form of chat completions. Members that clients copy
// from answers, such as refusal and annotations, are ignored.
type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Name       string          `json:"name"`
	ToolCalls  []wireCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// roles are the roles of messages.
var roles = map[string]chat.Role{"system": chat.System, "developer": chat.Developer, "user": chat.User, "assistant": chat.Assistant, "tool": chat.Tool}

// parseMessage parses a message of chat completions. The error is a *problem.Problem.
func parseMessage(pointer string, raw json.RawMessage, fetch fetchFunc) (*message, error) {
	var in wireMessage
	if err := decodeAt(pointer, raw, &in); err != nil {
		return nil, err
	}
	role, ok := roles[in.Role]
	if !ok {
		return nil, bad(pointer+"/role", "invalid_value", "unknown role %q: expected system, developer, user, assistant or tool", in.Role)
	}
	m := &message{Message: chat.Message{ID: chat.NewID(), Role: role, Name: in.Name, ToolCallID: in.ToolCallID}, pointer: pointer}
	if role == chat.Tool && in.ToolCallID == "" {
		return nil, bad(pointer+"/tool_call_id", "missing_required_parameter", "the parameter is missing: it names the call that the message answers")
	}
	var err error
	m.Blocks, err = parseContent(pointer+"/content", in.Content, fetch)
	for _, c := range in.ToolCalls {
		m.Blocks = append(m.Blocks, chat.CallBlock(chat.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments}))
	}
	return m, err
}

// parseContent parses the content of a message: a text, parts or null.
func parseContent(pointer string, raw json.RawMessage, fetch fetchFunc) ([]chat.Block, error) {
	raw = []byte(strings.TrimSpace(string(raw)))
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case raw[0] == '"':
		var text string
		err := decodeAt(pointer, raw, &text)
		return []chat.Block{{Type: "text", Text: text}}, err
	case raw[0] != '[':
		return nil, bad(pointer, "invalid_type", "expected a string or an array of content parts")
	}
	var parts []json.RawMessage
	if err := decodeAt(pointer, raw, &parts); err != nil {
		return nil, err
	}
	var blocks []chat.Block
	for i, p := range parts {
		b, err := parsePart(pointerTo(pointer, i), p, fetch)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, *b)
	}
	return blocks, nil
}

// part is a content part of chat completions or of responses.
type part struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	Refusal    string          `json:"refusal"`
	ImageURL   json.RawMessage `json:"image_url"` // chat completions: {"url": …}; responses: the URL
	InputAudio *struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
	File *filePart `json:"file"` // chat completions
	filePart
}

type filePart struct {
	Data string `json:"file_data"`
	ID   string `json:"file_id"`
	Name string `json:"filename"`
	URL  string `json:"file_url"`
}

// parsePart parses a content part.
func parsePart(pointer string, raw json.RawMessage, fetch fetchFunc) (*chat.Block, error) {
	var p part
	if err := decodeAt(pointer, raw, &p); err != nil {
		return nil, err
	}
	switch p.Type {
	case "text", "input_text", "output_text":
		return &chat.Block{Type: "text", Text: p.Text}, nil
	case "refusal":
		return &chat.Block{Type: "text", Text: p.Refusal}, nil
	case "image_url", "input_image":
		return p.image(pointer, fetch)
	case "input_audio":
		return p.audio(pointer)
	case "file", "input_file":
		return p.document(pointer, fetch)
	}
	return nil, bad(pointer+"/type", "invalid_value", "unknown type %q: expected text, image_url, input_audio or file", p.Type)
}

// image returns the block of an image.
func (p *part) image(pointer string, fetch fetchFunc) (*chat.Block, error) {
	if p.ID != "" {
		return nil, noFileID(pointer)
	}
	var url string
	if json.Unmarshal(p.ImageURL, &url) != nil {
		var in struct {
			URL string `json:"url"`
		}
		if err := decodeAt(pointer+"/image_url", orNull(p.ImageURL), &in); err != nil {
			return nil, err
		}
		url, pointer = in.URL, pointer+"/image_url/url"
	} else {
		pointer += "/image_url"
	}
	data, mediaType, err := content(pointer, url, fetch)
	if err != nil {
		return nil, err
	}
	return media("image", pointer, data, mediaType)
}

// media returns the block of a file of a kind; of any kind if kind is empty.
func media(kind, pointer string, data []byte, declared string) (*chat.Block, error) {
	b, err := mediafile.Block(kind, data, declared)
	if err != nil {
		return nil, bad(pointer, "invalid_value", "%s", err)
	}
	return b, nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// audio returns the block of an audio part.
func (p *part) audio(pointer string) (*chat.Block, error) {
	pointer += "/input_audio"
	if p.InputAudio == nil || p.InputAudio.Data == "" {
		return nil, bad(pointer+"/data", "missing_required_parameter", "the parameter is missing: expected base64")
	}
	data, err := base64.StdEncoding.DecodeString(p.InputAudio.Data)
	if err != nil {
		return nil, bad(pointer+"/data", "invalid_value", "it is not valid base64")
	}
	mediaType := "audio/wav"
	switch p.InputAudio.Format {
	case "", "wav":
	case "mp3":
		mediaType = "audio/mpeg"
	default:
		mediaType = "audio/" + p.InputAudio.Format
	}
	return media("audio", pointer+"/data", data, mediaType)
}

// document returns the block of a file.
func (p *part) document(pointer string, fetch fetchFunc) (*chat.Block, error) {
	f := &p.filePart
	if p.Type == "file" {
		if p.File == nil {
			return nil, bad(pointer+"/file", "missing_required_parameter", "the parameter is missing")
		}
		f, pointer = p.File, pointer+"/file"
	}
	switch {
	case f.ID != "":
		return nil, noFileID(pointer)
	case f.URL != "":
		data, mediaType, err := content(pointer+"/file_url", f.URL, fetch)
		if err != nil {
			return nil, err
		}
		return media("", pointer+"/file_url", data, mediaType)
	case strings.HasPrefix(f.Data, "data:"):
		data, mediaType, err := content(pointer+"/file_data", f.Data, fetch)
		if err != nil {
			return nil, err
		}
		return media("", pointer+"/file_data", data, mediaType)
	case f.Data == "":
		return nil, bad(pointer+"/file_data", "missing_required_parameter", "the parameter is missing: expected a data URL or base64")
	}
	data, err := base64.StdEncoding.DecodeString(f.Data)
	if err != nil {
		return nil, bad(pointer+"/file_data", "invalid_value", "it is neither a data URL nor valid base64")
	}
	declared := mime.TypeByExtension(path.Ext(f.Name))
	return media("", pointer+"/file_data", data, declared)
}

func noFileID(pointer string) error {
	return bad(pointer+"/file_id", "unsupported_value", "the server stores no files; send the content as file_data or as a data URL")
}

// content returns the content of a data URL, or of an address that the server may fetch.
func content(pointer, url string, fetch fetchFunc) (data []byte, mediaType string, err error) {
	if url == "" {
		return nil, "", bad(pointer, "missing_required_parameter", "the parameter is missing: expected a data URL")
	}
	if !strings.HasPrefix(url, "data:") {
		data, mediaType, err = fetch(url)
		if p := problem.Of(err); p != nil {
			with := *p
			with.Errors = []problem.Field{{Pointer: pointer, Detail: p.Detail}}
			return nil, "", &with
		}
		return data, mediaType, err
	}
	if data, mediaType, err = schema.DecodeDataURL(url); err != nil {
		return nil, "", bad(pointer, "invalid_value", "%s", err)
	}
	return data, mediaType, nil
}
