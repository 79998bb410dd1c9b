package rerank

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// service is a reranker at an address. It scores each text by itself, so that texts can
// be divided into requests.
type service struct {
	server
	protocol  protocol
	batchSize int
	settings  settings
}

// settings are the arguments of services that they send.
type settings struct {
	model     string
	maxTokens int  // of a text; 0 for the default of the service
	truncate  bool // cut texts that are too long
}

// protocol is how a service is called.
type protocol struct {
	path    string                                                               // after the base URL
	request func(query string, texts []string, top int, s settings) any          // returns the body
	answer  func(raw json.RawMessage) (choices []Choice, usage Usage, err error) // reads the answer
}

// Rank sends the texts.
func (s *service) Rank(ctx context.Context, req Request) ([]Choice, Usage, error) {
	var used Usage
	var all []Choice
	for start := 0; start < len(req.Items); start += s.batchSize {
		batch := req.Items[start:min(start+s.batchSize, len(req.Items))]
		texts := make([]string, len(batch))
		for i, item := range batch {
			texts[i] = item.Text
		}
		top := len(batch)
		if req.Limit > 0 {
			top = min(top, req.Limit)
		}
		var raw json.RawMessage
		if err := s.post(ctx, s.protocol.request(req.Query, texts, top, s.settings), &raw); err != nil {
			return nil, used, err
		}
		choices, usage, err := s.protocol.answer(raw)
		used.Input, used.Queries = used.Input+usage.Input, used.Queries+usage.Queries
		if err == nil {
			err = checked(choices, len(batch))
		}
		if err != nil {
			return nil, used, &CallError{URL: s.name(), Message: err.Error()}
		}
		for _, c := range choices {
			all = append(all, Choice{start + c.Index, c.Score})
		}
	}
	return best(all, req.Limit), used, nil
}

// bearer returns a function that adds a key; an empty one adds nothing.
func bearer(key string) func(*http.Request, []byte) error {
	return func(req *http.Request, _ []byte) error {
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		return nil
	}
}

// rankRequest is a request of Cohere and of Jina.
type rankRequest struct {
	Model           string   `json:"model,omitempty"`
	Query           string   `json:"query"`
	Documents       []string `json:"documents"`
	TopN            int      `json:"top_n,omitempty"`
	MaxTokensPerDoc int      `json:"max_tokens_per_doc,omitempty"` // Cohere's
	ReturnDocuments *bool    `json:"return_documents,omitempty"`   // Jina's
}

// rankAnswer is an answer of Cohere and of Jina.
type rankAnswer struct {
	Results []struct {
		Index *int     `json:"index"`
		Score *float64 `json:"relevance_score"`
	} `json:"results"`
	Usage struct { // Jina's
		Total int `json:"total_tokens"`
	} `json:"usage"`
	Meta struct { // Cohere's
		Tokens struct {
			Input float64 `json:"input_tokens"`
		} `json:"tokens"`
		Billed struct {
			Input    float64 `json:"input_tokens"`
			Searches float64 `json:"search_units"`
		} `json:"billed_units"`
	} `json:"meta"`
}

// cohere is the protocol of Cohere's API, version 2.
func cohere() protocol {
	return protocol{path: "/v2/rerank", answer: readRanking,
		request: func(query string, texts []string, top int, s settings) any {
			return rankRequest{Model: s.model, Query: query, Documents: texts, TopN: top, MaxTokensPerDoc: s.maxTokens}
		}}
}

// jina is the protocol of Jina's API, which vLLM, llama.cpp and others also have.
func jina() protocol {
	return protocol{path: "/v1/rerank", answer: readRanking,
		request: func(query string, texts []string, top int, s settings) any {
			return rankRequest{Model: s.model, Query: query, Documents: texts, TopN: top, ReturnDocuments: new(bool)}
		}}
}

// readRanking reads an answer of Cohere or Jina.
func readRanking(raw json.RawMessage) ([]Choice, Usage, error) {
	var a rankAnswer
	if err := json.Unmarshal(raw, &a); err != nil || a.Results == nil {
		return nil, Usage{}, errNoRanking
	}
	choices := make([]Choice, len(a.Results))
	for i, r := range a.Results {
		if r.Index == nil || r.Score == nil {
			return nil, Usage{}, errNoRanking
		}
		choices[i] = Choice{*r.Index, *r.Score}
	}
	tokens := a.Meta.Tokens.Input
	if tokens == 0 {
		tokens = a.Meta.Billed.Input
	}
	return choices, Usage{Input: max(a.Usage.Total, int(tokens)), Queries: int(a.Meta.Billed.Searches)}, nil
}

// tei is the protocol of Hugging Face's Text Embeddings Inference.
func tei() protocol {
	type request struct {
		Query    string   `json:"query"`
		Texts    []string `json:"texts"`
		Truncate bool     `json:"truncate"`
	}
	return protocol{path: "/rerank",
		request: func(query string, texts []string, _ int, s settings) any {
			return request{Query: query, Texts: texts, Truncate: s.truncate}
		},
		answer: func(raw json.RawMessage) ([]Choice, Usage, error) {
			var results []struct {
				Index *int     `json:"index"`
				Score *float64 `json:"score"`
			}
			if err := json.Unmarshal(raw, &results); err != nil || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
				return nil, Usage{}, errNoRanking
			}
			choices := make([]Choice, len(results))
			for i, r := range results {
				if r.Index == nil || r.Score == nil {
					return nil, Usage{}, errNoRanking
				}
				choices[i] = Choice{*r.Index, *r.Score}
			}
			return choices, Usage{}, nil
		}}
}

// join returns the address of a path below a base URL, which may already have the first
// part of the path: base URLs of compatible servers mostly end with /v1.
func join(base, path string) string {
	base = strings.TrimRight(base, "/")
	if version, _, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/"); ok && strings.HasSuffix(base, "/"+version) {
		return base + strings.TrimPrefix(path, "/"+version)
	}
	return base + path
}
