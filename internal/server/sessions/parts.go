package sessions

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

// part is a part of a message of the AI SDK: a text, reasoning, a file, a source or a tool call.
type part struct {
	Type       string          `json:"type"` // text, reasoning, file, source-url, source-document, or tool- and the tool's name
	Text       *string         `json:"text,omitempty"`
	MediaType  string          `json:"mediaType,omitempty"`
	URL        string          `json:"url,omitempty"` // file: a data URL, or the URL that the message names
	ToolCallID string          `json:"toolCallId,omitempty"`
	State      string          `json:"state,omitempty"` // text: done; tool: input-available, output-available, output-error or output-denied
	Input      json.RawMessage `json:"input,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	ErrorText  string          `json:"errorText,omitempty"`
	Approval   *approval       `json:"approval,omitempty"` // output-denied
	SourceID   string          `json:"sourceId,omitempty"`
	Title      string          `json:"title,omitempty"`
	Filename   string          `json:"filename,omitempty"`
	Metadata   json.RawMessage `json:"providerMetadata,omitempty"` // source: the whole citation; commentary: that it is
}

// approval is the decision about a call that a person rejected.
type approval struct {
	ID       string `json:"id"`
	Approved bool   `json:"approved"`
	Reason   string `json:"reason,omitempty"`
}

// sourcePart returns the part of a citation.
func sourcePart(b chat.Block) part {
	var c struct {
		SourceID  string `json:"source_id"`
		URL       string `json:"url"`
		Title     string `json:"title"`
		MediaType string `json:"media_type"`
		Filename  string `json:"filename"`
	}
	p := part{Type: "source-url", URL: b.Text, Title: b.Text}
	if json.Unmarshal([]byte(b.Text), &c) == nil {
		p.URL, p.Title, p.SourceID = c.URL, c.Title, c.SourceID
		p.Metadata = json.RawMessage(`{"qtype":` + b.Text + `}`)
	}
	if p.SourceID == "" {
		p.SourceID = p.Title
	}
	if b.Type == "citation_document" {
		p.Type, p.URL, p.MediaType, p.Filename = "source-document", "", c.MediaType, c.Filename
		if p.MediaType == "" {
			p.MediaType = "text/plain"
		}
	}
	return p
}

// errorPrefix begins the result of a tool call that failed.
const errorPrefix = "error: "

// partsOf returns the parts of a message, without results of its tool calls.
func partsOf(m *chat.Message) []part {
	parts := make([]part, 0, len(m.Blocks))
	for _, b := range m.Blocks {
		if p, ok := partOf(b); ok {
			parts = append(parts, p)
		}
	}
	return parts
}

// partOf returns the part of a block; ok is false for an empty text.
func partOf(b chat.Block) (p part, ok bool) {
	switch {
	case b.Call != nil:
		return part{Type: "tool-" + b.Call.Name, ToolCallID: b.Call.ID, State: "input-available", Input: schema.JSONOrText(b.Call.Arguments)}, true
	case b.Type == chat.ReasoningType:
		return part{Type: "reasoning", Text: &b.Text, State: "done"}, b.Text != ""
	case b.Type == chat.CommentaryType:
		metadata, _ := json.Marshal(schema.Commentary()) // texts always encode
		return part{Type: "reasoning", Text: &b.Text, State: "done", Metadata: metadata}, b.Text != ""
	case b.Type == chat.ItemType:
		return part{}, false
	case b.Media():
		media := b.MimeType
		if media == "" {
			media = mediaTypes()[b.Type]
		}
		if media == "" {
			media = http.DetectContentType(b.Data)
		}
		media, _, _ = strings.Cut(media, ";")
		return part{Type: "file", MediaType: media, URL: "data:" + media + ";base64," + base64.StdEncoding.EncodeToString(b.Data)}, true
	case b.Type != "text" && mediaTypes()[b.Type] != "":
		return part{Type: "file", MediaType: mediaTypes()[b.Type], URL: b.Text}, true
	}
	if b.IsCitation() {
		return sourcePart(b), true
	}
	return part{Type: "text", Text: &b.Text, State: "done"}, b.Text != ""
}

// mediaTypes returns the media types of blocks that have none.
func mediaTypes() map[string]string {
	return map[string]string{"image": "image/*", "audio": "audio/*", "video": "video/*", "file": "application/octet-stream", "bytes": "application/octet-stream"}
}

// addResult adds a tool result to the part of its call, or as another part if the call
// is not there.
func addResult(parts []part, m *chat.Message) []part {
	for i := range parts {
		if parts[i].ToolCallID == m.ToolCallID && parts[i].State == "input-available" {
			parts[i].setResult(m.Text())
			return parts
		}
	}
	alone := part{Type: "tool-" + m.Name, ToolCallID: m.ToolCallID, Input: json.RawMessage("{}")}
	alone.setResult(m.Text())
	return append(parts, alone)
}

func (p *part) setResult(text string) {
	if reason, rejected := steps.Rejection(strings.TrimPrefix(p.Type, "tool-"), text); rejected {
		p.State, p.Approval = "output-denied", &approval{ID: p.ToolCallID, Reason: reason}
		return
	}
	if reason, failed := strings.CutPrefix(text, errorPrefix); failed {
		p.State, p.ErrorText = "output-error", reason
		return
	}
	p.State, p.Output = "output-available", schema.JSONOrText(text)
}
