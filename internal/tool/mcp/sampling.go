package mcp

import (
	"cmp"
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Limits of sampling where the document sets none.
const (
	defaultSamplingTokens = 1000
	defaultSamplingCalls  = 5
)

// SampleRequest is a call of a model for a server.
type SampleRequest struct {
	Model     *spec.Model    // the model that the document names
	MaxTokens int            // limit of the answer
	Messages  []chat.Message // the system message first, if there is one
}

// Sample is the answer of a model.
type Sample struct {
	Text      string
	Model     string // the provider's name of the model
	Truncated bool   // the answer reached MaxTokens
}

// sample calls the model of the document for the server.
func (s *Server) sample(ctx context.Context, req *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) { //nolint:staticcheck // deprecated by the newest protocol; servers use it
	call, cancel, err := s.asker.current(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	wanted, err := s.sampleRequest(req.Params)
	if err != nil {
		return nil, err
	}
	if err := s.countSample(); err != nil {
		return nil, err
	}
	answer, err := s.callModel(call, *wanted)
	if err != nil {
		return nil, refused(err)
	}
	result := &sdk.CreateMessageResult{Content: &sdk.TextContent{Text: answer.Text}, Model: answer.Model, Role: "assistant", StopReason: "endTurn"} //nolint:staticcheck // deprecated by the newest protocol; servers use it
	if answer.Truncated {
		result.StopReason = "maxTokens"
	}
	return result, nil
}

// countSample counts a call of the model, and refuses those beyond the limit.
func (s *Server) countSample() error {
	limit := cmp.Or(s.declared.Sampling.MaxCalls, defaultSamplingCalls)
	s.asker.mu.Lock()
	defer s.asker.mu.Unlock()
	if s.asker.samples >= limit {
		return refuse("the limit of %d calls of the model for one call of a tool is reached (max_calls)", limit)
	}
	s.asker.samples++
	return nil
}

// sampleRequest returns the request of a server as one to the model of the document. The
// server's wishes about the model, its temperature and its stop sequences are not followed.
func (s *Server) sampleRequest(p *sdk.CreateMessageParams) (*SampleRequest, error) { //nolint:staticcheck // deprecated by the newest protocol; servers use it
	limit := cmp.Or(s.declared.Sampling.MaxTokens, defaultSamplingTokens)
	if p.MaxTokens > 0 && p.MaxTokens < int64(limit) {
		limit = int(p.MaxTokens)
	}
	r := &SampleRequest{Model: s.declared.Sampling.Model.To, MaxTokens: limit}
	if p.SystemPrompt != "" {
		r.Messages = append(r.Messages, chat.Text(chat.System, p.SystemPrompt))
	}
	for _, m := range p.Messages {
		role := chat.User
		if m.Role == "assistant" {
			role = chat.Assistant
		}
		message := chat.Text(role, "")
		block, err := blockOf(m.Content)
		if err != nil {
			return nil, err
		}
		message.Blocks = []chat.Block{block}
		r.Messages = append(r.Messages, message)
	}
	if len(p.Messages) == 0 {
		return nil, refuse("there is no message for the model")
	}
	return r, nil
}

// blockOf returns a content as a part of a message.
func blockOf(c sdk.Content) (chat.Block, error) {
	switch c := c.(type) {
	case *sdk.TextContent:
		return chat.Block{Type: "text", Text: c.Text}, nil
	case *sdk.ImageContent:
		return chat.Block{Type: "image", Data: c.Data, MimeType: c.MIMEType}, nil
	case *sdk.AudioContent:
		return chat.Block{Type: "audio", Data: c.Data, MimeType: c.MIMEType}, nil
	}
	return chat.Block{}, refuse("messages for the model have a text, an image or a sound")
}
