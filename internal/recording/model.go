package recording

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// chatRequest is a request to a chat model as it is recorded.
type chatRequest struct {
	Provider   string         `json:"provider"`
	Model      string         `json:"model"`
	Parameters map[string]any `json:"parameters,omitempty"`
	Messages   []chat.Message `json:"messages"`
	Tools      []toolJSON     `json:"tools,omitempty"`
	NoCalls    bool           `json:"no_calls,omitempty"`
	Schema     *schemaJSON    `json:"schema,omitempty"`
}

type toolJSON struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type schemaJSON struct {
	Name string          `json:"name"`
	JSON json.RawMessage `json:"json"`
}

// chatResponse is the answer of a chat model as it is recorded.
type chatResponse struct {
	Deltas  []deltaJSON   `json:"deltas,omitempty"`
	Message *chat.Message `json:"message,omitempty"`
	Finish  string        `json:"finish,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Parts   int           `json:"parts,omitempty"`
	Usage   *usageJSON    `json:"usage,omitempty"`
	Error   *modelError   `json:"error,omitempty"`
}

type deltaJSON struct {
	Text       string `json:"text,omitempty"`
	Reasoning  string `json:"reasoning,omitempty"`
	Commentary string `json:"commentary,omitempty"`
}

type usageJSON struct {
	Input  int `json:"input"`
	Output int `json:"output"`
	Cached int `json:"cached,omitempty"`
	Write  int `json:"cache_write,omitempty"`

	Writes    catalogue.CacheWrites `json:"cache_writes,omitzero"` // of Write, those whose lifetime is known
	Reasoning int                   `json:"reasoning,omitempty"`
	Audio     int                   `json:"audio_input,omitempty"`
	Tier      string                `json:"tier,omitempty"`
	Region    string                `json:"region,omitempty"`
	Queries   int                   `json:"queries,omitempty"`
	Requests  []*usageJSON          `json:"requests,omitempty"` // of an answer that took several
}

// newUsageJSON returns what is recorded of a usage.
func newUsageJSON(u model.Usage) *usageJSON {
	made := &usageJSON{Input: u.Input, Output: u.Output, Cached: u.Cached, Write: u.CacheWrite, Writes: u.CacheWrites, Reasoning: u.Reasoning, Audio: u.AudioInput, Tier: u.Tier, Region: u.Region, Queries: u.Queries}
	if u.Requests != nil {
		for _, r := range *u.Requests {
			made.Requests = append(made.Requests, newUsageJSON(r))
		}
	}
	return made
}

// usage returns the usage that was recorded.
func (u *usageJSON) usage() model.Usage {
	made := model.Usage{Input: u.Input, Output: u.Output, Cached: u.Cached, CacheWrite: u.Write, CacheWrites: u.Writes, Reasoning: u.Reasoning, AudioInput: u.Audio, Tier: u.Tier, Region: u.Region, Queries: u.Queries}
	if len(u.Requests) > 0 {
		requests := make([]model.Usage, len(u.Requests))
		for i, r := range u.Requests {
			requests[i] = r.usage()
		}
		made.Requests = &requests
	}
	return made
}

// modelError is an *model.Error as it is recorded.
type modelError struct {
	Status    int    `json:"status,omitempty"`
	Code      string `json:"code,omitempty"`
	Message   string `json:"message"`
	Temporary bool   `json:"temporary,omitempty"`
}

// chatModel records or replays the calls of a chat model.
type chatModel struct {
	info     model.Info
	declared *spec.Model
	next     model.Chat // nil in a replay
	session  *Session
}

// Chat returns a chat model that records the calls of next, or replays them: next is nil
// in a replay.
func (s *Session) Chat(m *spec.Model, next model.Chat) model.Chat {
	info := model.Describe(m)
	if next != nil {
		info = next.Info()
	}
	return &chatModel{info: info, declared: m, next: next, session: s}
}

// Info describes the model.
func (c *chatModel) Info() model.Info { return c.info }

// Generate replays the answer, or calls the model and records it.
func (c *chatModel) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		stopped, live := false, false
		answer, err := exchange(c.session, kindChat, c.declared.ID, c.request(req), func() (*chatResponse, error) {
			live = true
			return c.call(ctx, req, func(ev model.Event) bool {
				stopped = stopped || !yield(ev, nil)
				return !stopped
			})
		})
		switch {
		case stopped:
			return
		case err != nil:
			yield(model.Event{}, err)
			return
		}
		if req.Stream && !live {
			for _, d := range answer.deltas() {
				if !yield(model.Event{Text: d.Text, Reasoning: d.Reasoning, Commentary: d.Commentary}, nil) {
					return
				}
			}
		}
		yield(c.last(answer))
	}
}

// errStopped ends a call whose caller needs no more.
var errStopped = errors.New("the caller has stopped the call")

// call calls the model.
func (c *chatModel) call(ctx context.Context, req model.Request, emit func(model.Event) bool) (*chatResponse, error) {
	answer := &chatResponse{}
	for ev, err := range c.next.Generate(ctx, req) {
		switch failure, known := errors.AsType[*model.Error](err); {
		case known && ctx.Err() == nil:
			answer.Error = &modelError{failure.Status, failure.Code, failure.Message, failure.Temporary}
			return answer, nil
		case err != nil:
			return nil, err
		case ev.Response != nil:
			r := ev.Response
			message := r.Message
			message.ID = "" // random
			answer.Message, answer.Finish, answer.Reason, answer.Parts = &message, r.Finish, r.Reason, r.Parts
			answer.Usage = newUsageJSON(r.Usage)
			return answer, nil
		}
		answer.Deltas = append(answer.Deltas, deltaJSON{ev.Text, ev.Reasoning, ev.Commentary})
		if !emit(ev) {
			return nil, errStopped
		}
	}
	return nil, &model.Error{Model: c.declared.ID, Message: "the answer ended before it was complete"}
}

// request returns a request without what differs from run to run.
func (c *chatModel) request(req model.Request) *chatRequest {
	r := &chatRequest{Provider: c.declared.Provider, Model: c.declared.Name(), Parameters: modelparams.Sent(c.declared), Messages: slices.Clone(req.Messages), NoCalls: req.NoCalls}
	for i := range r.Messages {
		r.Messages[i].ID = ""
	}
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, toolJSON{t.Name, t.Description, t.Parameters})
	}
	if req.Schema != nil {
		r.Schema = &schemaJSON{req.Schema.Name, req.Schema.JSON}
	}
	return r
}

// last returns the last event of an answer.
func (c *chatModel) last(r *chatResponse) (model.Event, error) {
	if r.Error != nil {
		return model.Event{}, &model.Error{Model: c.declared.ID, Endpoint: c.info.Endpoint, Status: r.Error.Status, Code: r.Error.Code, Message: r.Error.Message, Temporary: r.Error.Temporary}
	}
	if r.Message == nil {
		return model.Event{}, fmt.Errorf("model %s: the recording has no answer", c.declared.ID)
	}
	out := &model.Response{Message: *r.Message, Finish: r.Finish, Reason: r.Reason, Parts: r.Parts}
	if u := r.Usage; u != nil {
		out.Usage = u.usage()
	}
	return model.Event{Response: out}, nil
}

// deltas returns the deltas of an answer; the whole text for one that was not streamed.
func (r *chatResponse) deltas() []deltaJSON {
	if len(r.Deltas) > 0 || r.Message == nil || r.Message.Text() == "" {
		return r.Deltas
	}
	return []deltaJSON{{Text: r.Message.Text()}}
}

// embedder records or replays the calls of an embedding model, one text each.
type embedder struct {
	info     model.Info
	declared *spec.EmbeddingModel
	next     model.Embedder // nil in a replay
	session  *Session
}

// Embedder returns an embedding model that records the calls of next, or replays them:
// next is nil in a replay.
func (s *Session) Embedder(m *spec.EmbeddingModel, next model.Embedder) model.Embedder {
	info := model.DescribeEmbedder(m)
	if next != nil {
		info = next.Info()
	}
	return &embedder{info: info, declared: m, next: next, session: s}
}

// embedding is a vector as it is recorded.
type embedding struct {
	Vector string `json:"vector"` // base64 of 32-bit floats, little-endian
	Tokens int    `json:"tokens,omitempty"`
}

// Info describes the model.
func (e *embedder) Info() model.Info { return e.info }

// Embed replays the vectors, or calls the model and records them.
func (e *embedder) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	vectors := make([][]float32, len(texts))
	var usage model.Usage
	ahead := &embedAhead{next: e.next, texts: texts}
	for i, text := range texts {
		request := map[string]any{"provider": e.declared.Provider, "model": e.declared.Name(), "dimensions": e.declared.Dimensions, "text": text}
		got, err := exchange(e.session, kindEmbedding, e.declared.ID, request, func() (embedding, error) { return ahead.at(ctx, i) })
		if err != nil {
			return nil, usage, err
		}
		if vectors[i], err = decodeVector(got.Vector); err != nil {
			return nil, usage, fmt.Errorf("model %s: %w", e.declared.ID, err)
		}
		usage.Input += got.Tokens
	}
	return vectors, usage, nil
}

// embedAhead calls a model once for the first text that was not recorded and all after it.
type embedAhead struct {
	next   model.Embedder
	texts  []string
	start  int
	made   [][]float32
	tokens int // of the call, until they are counted
}

func (a *embedAhead) at(ctx context.Context, i int) (embedding, error) {
	if a.made == nil {
		made, used, err := a.next.Embed(ctx, a.texts[i:])
		if err != nil {
			return embedding{}, err
		}
		a.start, a.made, a.tokens = i, made, used.Input
	}
	tokens := a.tokens
	a.tokens = 0
	return embedding{vectors.Base64(a.made[i-a.start]), tokens}, nil
}

func decodeVector(text string) ([]float32, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw)%4 != 0 {
		return nil, errors.New("the vector of a recording cannot be read")
	}
	v := make([]float32, len(raw)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return v, nil
}
