package openai

import (
	"encoding/json"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/spec/chat"
)

// response is a response, which it writes as a stream of events or as a whole.
type response struct {
	ID           string             `json:"id"`
	Object       string             `json:"object"`
	Created      int64              `json:"created_at"`
	Status       string             `json:"status"`
	Background   bool               `json:"background"`
	Error        *responseError     `json:"error"`
	Incomplete   *incompleteDetails `json:"incomplete_details"`
	Instructions json.RawMessage    `json:"instructions"`
	Model        string             `json:"model"`
	Output       []any              `json:"output"`
	Parallel     bool               `json:"parallel_tool_calls"`
	Previous     *string            `json:"previous_response_id"`
	Conversation *conversationBody  `json:"conversation,omitempty"`
	Store        bool               `json:"store"`
	Temperature  *float64           `json:"temperature"`
	TopP         *float64           `json:"top_p"`
	Text         struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
	Choice     json.RawMessage   `json:"tool_choice"`
	Tools      json.RawMessage   `json:"tools"`
	Truncation string            `json:"truncation"`
	Usage      *responseUsage    `json:"usage"`
	Metadata   map[string]string `json:"metadata"`

	run     string
	save    func() error // makes the response the newest of its session; nil if it is not stored
	seq     int
	buf     []byte
	begun   bool
	current *openItem
	problem *problem.Problem
}

// incompleteDetails is why a response ended before it was complete.
type incompleteDetails struct {
	Reason string `json:"reason"` // max_output_tokens or content_filter
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type responseUsage struct {
	Input        int `json:"input_tokens"`
	InputDetails struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

// textPart is a part of a message or of reasoning.
type textPart struct {
	Type        string      `json:"type"` // output_text or reasoning_text
	Text        string      `json:"text"`
	Annotations *[]any      `json:"annotations,omitempty"` // output_text
	Logprobs    *[]struct{} `json:"logprobs,omitempty"`    // output_text
}

// sourceReference is a web page that an answer cites.
type sourceReference struct {
	Type string `json:"type"` // url_citation
	urlCitation
}

// fileReference is a file that an answer cites.
type fileReference struct {
	Type     string `json:"type"` // file_citation
	ID       string `json:"file_id"`
	Name     string `json:"filename"` // with the page or lines
	Position int    `json:"index"`    // in the text; 0, as for other sources
}

// annotationOf returns the source that a block is about; nil for other blocks.
func annotationOf(b *chat.Block) any {
	if c, ok := citationOf(b); ok {
		return sourceReference{"url_citation", c}
	}
	var file struct {
		ID    string `json:"source_id"`
		Title string `json:"title"`
	}
	if b.Type != "citation_document" || json.Unmarshal([]byte(b.Text), &file) != nil {
		return nil
	}
	return fileReference{Type: "file_citation", ID: file.ID, Name: file.Title}
}

// textItem is an item with text: a message, or reasoning.
type textItem struct {
	ID      string      `json:"id"`
	Type    string      `json:"type"`
	Role    string      `json:"role,omitempty"`
	Phase   string      `json:"phase,omitempty"` // commentary, or empty for the answer
	Status  string      `json:"status"`
	Content []textPart  `json:"content"`
	Summary *[]textPart `json:"summary,omitempty"` // reasoning
}

// callItem is a call of a tool of the client, or a request for an approval.
type callItem struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status,omitempty"`
	CallID    string `json:"call_id,omitempty"`
	Server    string `json:"server_label,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// imageItem is an image of an answer.
type imageItem struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`
	Result string `json:"result"` // base64
}
