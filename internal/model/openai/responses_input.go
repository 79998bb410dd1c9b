package openai

import (
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The types of items that this client reads.
const (
	messageItem    = "message"
	reasoningItem  = "reasoning"
	functionItem   = "function_call"
	customItem     = "custom_tool_call"
	imageItem      = "image_generation_call"
	compactionItem = "compaction"
)

// input is an item of a request.
type input struct {
	kind   string // its type
	callID string // of a call, or of the output of one
	json   json.RawMessage
}

// callAttributes is what the output of a call depends on.
type callAttributes struct {
	custom bool            // whether the call is of a tool with a grammar
	asks   bool            // whether the call asks for an approval
	caller json.RawMessage // what made the call; nil for the model itself
}

// inputs collects the items of a request.
type inputs struct {
	items []input
	calls map[string]*callAttributes // by id
}

// messageInput is a message.
type messageInput struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Phase   json.RawMessage `json:"phase,omitempty"`
	Content []inputPart     `json:"content"`
}

// inputPart is a part of a message, or of the output of a call.
type inputPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	FileURL  string `json:"file_url,omitempty"`
	FileName string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
}

// add adds the items of a message.
func (in *inputs) add(m *chat.Message) error {
	role := wire.NormalizeRole(m.Role)
	if role == chat.Tool {
		in.output(m)
		return nil
	}
	first := len(in.items)
	message := messageInput{Type: messageItem, Role: string(role)}
	flush := func() {
		if len(message.Content) > 0 {
			in.items = append(in.items, input{kind: messageItem, json: encode(message)})
		}
		message.Content, message.Phase = nil, nil
	}
	for _, b := range m.Blocks {
		switch {
		case b.Call != nil:
			flush()
			in.call(b)
		case role == chat.Assistant && b.Item != nil && b.Item.Field == messageItem:
			flush()
			message.Phase, message.Content = attributes(b.Item)["phase"], []inputPart{{Type: "output_text", Text: b.Text}}
			flush()
		case b.Item != nil:
			flush()
			in.item(b)
		default:
			part, err := responsePart(b, role)
			if err != nil {
				return err
			}
			if part != (inputPart{}) {
				message.Content = append(message.Content, part)
			}
		}
	}
	flush()
	in.trim(first)
	return nil
}

// trim removes reasoning at the end of a message, as of an answer that was cut off: the server refuses
// reasoning without what followed it.
func (in *inputs) trim(first int) {
	for len(in.items) > first && in.items[len(in.items)-1].kind == reasoningItem {
		in.items = in.items[:len(in.items)-1]
	}
}

// item adds what the server sent and wants back.
func (in *inputs) item(b chat.Block) {
	raw := json.RawMessage(b.Item.JSON)
	switch b.Item.Field {
	case reasoningItem:
		if o := attributes(b.Item); !isSet(o["encrypted_content"]) && !isSet(o["content"]) {
			return // only an id, and the server stores nothing
		}
	case imageItem:
		if b.Media() {
			raw = encode(attributes(b.Item).with(map[string]string{"result": base64.StdEncoding.EncodeToString(b.Data)}))
		}
	}
	in.items = append(in.items, input{kind: b.Item.Field, json: raw})
}

// call adds a call.
func (in *inputs) call(b chat.Block) {
	if b.Item != nil && b.Item.Field == model.ApprovalRequest {
		in.calls[b.Call.ID] = &callAttributes{asks: true}
		in.items = append(in.items, input{kind: model.ApprovalRequest, callID: b.Call.ID, json: json.RawMessage(b.Item.JSON)})
		return
	}
	known, kind := attributes(b.Item), functionItem
	in.calls[b.Call.ID] = &callAttributes{custom: b.Item != nil && b.Item.Field == customItem, caller: known["caller"]}
	texts := map[string]string{"call_id": b.Call.ID, "name": b.Call.Name}
	if in.calls[b.Call.ID].custom {
		kind, texts["input"] = customItem, argumentsText(b.Call.Arguments)
	} else {
		texts["arguments"] = string(wire.Arguments(b.Call.Arguments))
	}
	texts["type"] = kind
	in.items = append(in.items, input{kind: kind, callID: b.Call.ID, json: encode(known.with(texts))})
}

// output adds the result of a call: its text, or parts if it has media.
func (in *inputs) output(m *chat.Message) {
	call := in.calls[m.ToolCallID]
	if call == nil {
		call = &callAttributes{}
	}
	if call.asks {
		in.items = append(in.items, input{kind: "output", callID: m.ToolCallID, json: decision(m)})
		return
	}
	out := object{"call_id": encode(m.ToolCallID), "type": encode(functionItem + "_output"), "output": encode(m.Text())}
	if call.custom {
		out["type"] = encode(customItem + "_output")
	}
	if isSet(call.caller) {
		out["caller"] = call.caller
	}
	if slices.ContainsFunc(m.Blocks, chat.Block.Media) {
		parts := []inputPart{}
		for _, b := range m.Blocks {
			part, err := responsePart(b, chat.Tool)
			if err != nil {
				part = inputPart{Type: "input_text", Text: wire.ResultNote(b)}
			}
			if part != (inputPart{}) {
				parts = append(parts, part)
			}
		}
		out["output"] = encode(parts)
	}
	in.items = append(in.items, input{kind: "output", callID: m.ToolCallID, json: encode(out)})
}

// newest returns the index of the newest compaction, -1 for none.
func (in *inputs) newest() int {
	for i, it := range slices.Backward(in.items) {
		if it.kind == compactionItem {
			return i
		}
	}
	return -1
}

// isCompacted reports whether the conversation has a compaction.
func (in *inputs) isCompacted() bool { return in.newest() >= 0 }

// compacted returns the items from the newest compaction on, which replaces all before it. Calls
// whose outputs follow it stay, as an output needs its call.
func (in *inputs) compacted() []json.RawMessage {
	first := max(0, in.newest())
	list := make([]json.RawMessage, 0, len(in.items)-first)
	for i, it := range in.items[first:] {
		list = append(list, it.json)
		if i > 0 || it.kind != compactionItem {
			continue
		}
		for _, before := range in.items[:first] {
			isOutput := func(it input) bool { return it.kind == "output" && it.callID == before.callID }
			if before.callID != "" && before.kind != "output" && slices.ContainsFunc(in.items[first:], isOutput) {
				list = append(list, before.json)
			}
		}
	}
	return list
}

// responsePart encodes a block: a text, an image or a file; empty for an empty text and a citation.
func responsePart(b chat.Block, role chat.Role) (inputPart, error) {
	data := func(mime string) string {
		return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(b.Data)
	}
	switch {
	case role == chat.Assistant && b.Media():
		return inputPart{Type: "output_text", Text: wire.ResultNote(b)}, nil
	case role == chat.Assistant && b.IsCitation():
		return inputPart{}, nil
	case b.Type == "image" && !b.Media():
		return inputPart{Type: "input_image", ImageURL: b.Text}, nil
	case b.Type == "image":
		mime := b.MimeType
		if mime == "" {
			mime = wire.ImageType(b.Data)
		}
		return inputPart{Type: "input_image", ImageURL: data(mime)}, nil
	case b.Type == "file" && !b.Media():
		return inputPart{Type: "input_file", FileURL: b.Text}, nil
	case b.Type == "file" && b.MimeType == "application/pdf":
		return inputPart{Type: "input_file", FileName: "document.pdf", FileData: data(b.MimeType)}, nil
	case b.Media():
		if text, ok := wire.FileText(b); ok {
			return inputPart{Type: "input_text", Text: text}, nil
		}
		return inputPart{}, wire.UnsupportedContent(b, "the Responses API")
	case b.Text == "":
		return inputPart{}, nil
	case role == chat.Assistant:
		return inputPart{Type: "output_text", Text: b.Text}, nil
	}
	return inputPart{Type: "input_text", Text: b.Text}, nil
}
